"""Messages between the three processes: a JSON header and a body of bytes."""

import json
import struct
from typing import Any

Header = dict[str, Any]

_LENGTHS = struct.Struct(">IQ")


def pack(header: Header, body: bytes = b"") -> bytes:
    """Frame one message."""
    head = json.dumps(header).encode("ascii")
    return _LENGTHS.pack(len(head), len(body)) + head + body


def unpack(buffer: bytearray) -> tuple[Header, bytes] | None:
    """Take the first complete message out of a buffer; None while there is none."""
    if len(buffer) < _LENGTHS.size:
        return None
    n_head, n_body = _LENGTHS.unpack_from(buffer)
    start = _LENGTHS.size + n_head
    if len(buffer) < start + n_body:
        return None
    header = json.loads(bytes(buffer[_LENGTHS.size : start]))
    body = bytes(buffer[start : start + n_body])
    del buffer[: start + n_body]
    return header, body
