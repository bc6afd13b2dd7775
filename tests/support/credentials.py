"""A credential that must be shown nowhere, in all the places of an address that may have one."""

CANARY = "kn4r1e"

ADDRESSES = [
    f"postgresql://me:{CANARY}@127.0.0.1:{{port}}/db",
    f"postgresql://me:a/{CANARY}@127.0.0.1:{{port}}/db",
    f"postgresql://me:a@{CANARY}@127.0.0.1:{{port}}/db",
    f"postgresql://me:{CANARY}@b@127.0.0.1:{{port}}/db",
    f"postgresql://me:a?{CANARY}@127.0.0.1:{{port}}/db",
    f"postgresql://me:a%40{CANARY}@127.0.0.1:{{port}}/db",
    f"postgresql://127.0.0.1:{{port}}/db?user=me&password={CANARY}",
    f"postgresql://127.0.0.1:{{port}}/db?password=a@{CANARY}&user=me",
    f"postgresql://me:a@127.0.0.1:{{port}}/db?sslpassword={CANARY}",
    f"http://{CANARY}@127.0.0.1:{{port}}",
    f"http://{CANARY}:@127.0.0.1:{{port}}",
    f"http://me:{CANARY}@127.0.0.1:{{port}}/path",
    f"http://me:a/{CANARY}@127.0.0.1:{{port}}",
    f"http://me:a@{CANARY}@127.0.0.1:{{port}}",
    f"http://127.0.0.1:{{port}}?token={CANARY}",
]
