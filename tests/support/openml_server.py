"""A stand-in for OpenML on loopback, for tests: a few datasets, and faults on demand.

It speaks as much of OpenML's REST API (XML) as the unmodified openml client
needs for datasets, tasks and suites::

    with OpenMLServer(faults=["truncate"]) as server:
        openml.config.server = server.url

Faults are written ``NAME``, ``NAME=VALUE``, or either with ``@PART``, which
limits them to paths that contain PART.
"""

import gzip
import hashlib
import re
import socket
import struct
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit
from xml.sax.saxutils import escape

import numpy as np

FAULTS = (
    *("truncate", "truncate-lines", "cut", "bad-md5", "no-md5", "empty", "bad-xml", "html"),
    *("http-500", "http-500-twice", "http-503-twice", "busy-twice", "not-found", "reset"),
    *("reset-twice", "slow", "trickle", "plain", "bomb", "no-qualities", "wrong-id"),
    *("redirect", "redirect-forever", "control-codes"),
)
NS = 'xmlns:oml="http://openml.org/openml"'


def dataset(name, arff, target, n_rows, kind="ARFF", **facts):
    """Describe one dataset of the server."""
    return {"name": name, "arff": arff, "target": target, "rows": n_rows, "format": kind, **facts}


def bundled(load, name, labels):
    """Write one of scikit-learn's datasets as ARFF."""
    bunch = load()
    lines = [f"@relation {name}"]
    lines += [f"@attribute a{j} numeric" for j in range(bunch.data.shape[1])]
    lines += [f"@attribute class {{{','.join(labels)}}}", "@data"]
    for row, code in zip(bunch.data, bunch.target, strict=True):
        lines.append(",".join([*(repr(float(value)) for value in row), labels[code]]))
    return dataset(name, "\n".join(lines) + "\n", "class", len(bunch.target))


MIXED = """% a comment, and every oddity of dense files that matters
@RELATION 'mixed data'
@ATTRIBUTE id INTEGER
@ATTRIBUTE 'a size' REAL
@attribute colour {red, 'dark green', "it's blue"}
@attribute count numeric
@attribute secret {x,y}
@attribute Class {no, 'yes, it is', never}

@DATA
1, 1.5, red, 255, x, no
2, ?, 'dark green', 1, y, 'yes, it is'
% in between
3,-0.25,"it's blue",2,x,no
4,1e3,?,3,y,'yes, it is'
5, 1.5, red, 255, y, no
6,2,red,4,x,?
"""

SPARSE = """@relation words
@attribute w0 numeric
@attribute w1 integer
@attribute w2 real
@attribute topic {news,sport,art}
@data
{0 3,2 0.5}
{1 1,3 sport}
{}
{0 2, 1 7, 2 1.25, 3 art}
{3 sport}
"""

PRICES = """@relation prices
@attribute rooms integer
@attribute colour {red, blue}
@attribute price integer
@data
1,red,100
2,blue,250
3,red,300
4,red,310
2,blue,220
"""


def datasets():
    """Return what the server has, by OpenML's number."""
    from sklearn.datasets import load_iris, load_wine

    return {
        61: bundled(load_iris, "iris", ["Iris-setosa", "Iris-versicolor", "Iris-virginica"]),
        187: bundled(load_wine, "wine", ["1", "2", "3"]),
        9001: dataset("mixed", MIXED, "Class", 6, row_id="id", ignore=["secret"]),
        9002: dataset("words", SPARSE, "topic", 5, kind="Sparse_ARFF"),
        9003: dataset("../../evil", MIXED.replace("colour", "../../x"), "Class", 6, row_id="id"),
        9004: dataset("prices", PRICES, "price", 5),
    }


class OpenMLServer(ThreadingHTTPServer):
    """The server, on a free port of 127.0.0.1; `requests` and `queries` record them."""

    daemon_threads = True

    def __init__(self, faults=()):
        self.datasets, self.faults = datasets(), [_fault(text) for text in faults]
        self.requests, self.queries = [], []
        self.seen, self.lock = Counter(), threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def base(self):
        """The address without the API's path."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def url(self):
        """What to set as ``openml.config.server``."""
        return f"{self.base}/api/v1/xml"

    def moved(self, path):
        """Return the address that a redirection names."""
        return f"/moved{path}"

    def handle_error(self, request, client_address):
        """Say nothing of clients that hang up."""

    def __enter__(self):
        threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    # -- answers

    def description(self, number, faults):
        """Answer data/ID."""
        found = self.datasets[number]
        parts = {
            "id": number + 1 if "wrong-id" in faults else number,
            "name": "a\x85b" if "control-codes" in faults else found["name"],
            "version": 1,
            "description": "a test",
            "format": found["format"],
            "url": f"{self.base}/data/v1/download/{number}/file.arff",
            "file_id": number,
            "default_target_attribute": found["target"],
            "row_id_attribute": found.get("row_id"),
            "ignore_attribute": found.get("ignore"),
            "status": "active",
            "md5_checksum": hashlib.md5(found["arff"].encode()).hexdigest(),
        }
        if "no-md5" in faults:
            del parts["md5_checksum"]
        return _xml("data_set_description", parts)

    def qualities(self, number, faults):
        """Answer data/qualities/ID."""
        if "no-qualities" in faults:
            raise KeyError(362, "No qualities found")
        n = self.datasets[number]["rows"]
        facts = (
            f"<oml:quality><oml:name>{name}</oml:name><oml:value>{value}</oml:value></oml:quality>"
            for name, value in (("NumberOfFeatures", 1.0), ("NumberOfInstances", float(n)))
        )
        return f"<oml:data_qualities {NS}>{''.join(facts)}</oml:data_qualities>"

    def listing(self, filters):
        """Answer data/list with data_name and data_version."""
        items = "".join(
            f"<oml:dataset><oml:did>{number}</oml:did><oml:name>{escape(found['name'])}</oml:name>"
            "<oml:version>1</oml:version><oml:status>active</oml:status>"
            "<oml:format>ARFF</oml:format></oml:dataset>"
            for number, found in self.datasets.items()
            if found["name"] == filters.get("data_name") and filters.get("data_version", "1") == "1"
        )
        if not items or int(filters.get("offset", 0)):
            raise KeyError(372, "No results")
        return f"<oml:data {NS}>{items}</oml:data>"

    def task(self, number):
        """Answer task/ID: task 1000 + ID is 5-fold cross-validation on dataset ID."""
        data = number - 1000
        kind = {62: 5, 9004: 2}.get(data, 1)  # clustering, regression, classification
        target = self.datasets.get(data, self.datasets[61])["target"]
        return (
            f"<oml:task {NS}><oml:task_id>{number}</oml:task_id>"
            f"<oml:task_type_id>{kind}</oml:task_type_id><oml:task_type>a type</oml:task_type>"
            '<oml:input name="source_data"><oml:data_set>'
            f"<oml:data_set_id>{data}</oml:data_set_id>"
            f"<oml:target_feature>{target}</oml:target_feature></oml:data_set></oml:input>"
            '<oml:input name="estimation_procedure"><oml:estimation_procedure>'
            f"<oml:data_splits_url>{self.base}/api_splits/get/{number}/splits.arff"
            "</oml:data_splits_url></oml:estimation_procedure></oml:input></oml:task>"
        )

    def splits(self, number):
        """Write the splits of a task: two repeats of two folds."""
        n = self.datasets[number - 1000]["rows"]
        rng = np.random.default_rng(number)
        lines = [
            "@relation splits\n@attribute type {TRAIN,TEST}\n@attribute rowid numeric\n"
            "@attribute repeat numeric\n@attribute fold numeric\n@data"
        ]
        for repeat in range(2):
            fold_of = rng.permutation(n) % 2
            for fold in range(2):
                lines += [
                    f"{'TEST' if own == fold else 'TRAIN'},{row},{repeat},{fold}"
                    for row, own in enumerate(fold_of)
                ]
        return "\n".join(lines) + "\n"

    def study(self):
        """Answer study/ID."""
        tasks = "".join(f"<oml:task_id>{1000 + number}</oml:task_id>" for number in (61, 187))
        data = "".join(f"<oml:data_id>{number}</oml:data_id>" for number in (61, 187))
        return (
            f"<oml:study {NS}><oml:id>7</oml:id><oml:alias>small</oml:alias>"
            "<oml:main_entity_type>task</oml:main_entity_type><oml:name>small</oml:name>"
            "<oml:description>x</oml:description><oml:status>active</oml:status>"
            "<oml:creation_date>2024-01-01 00:00:00</oml:creation_date><oml:creator>1</oml:creator>"
            f"<oml:data>{data}</oml:data><oml:tasks>{tasks}</oml:tasks></oml:study>"
        )


def _xml(root, parts):
    body = ""
    for key, value in parts.items():
        for each in value if isinstance(value, list) else [value]:
            if each is not None:
                body += f"<oml:{key}>{escape(str(each))}</oml:{key}>\n"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<oml:{root} {NS}>\n{body}</oml:{root}>'


def _fault(text):
    head, _, part = text.partition("@")
    name, _, value = head.partition("=")
    if name not in FAULTS:
        raise ValueError(f"unknown fault {name!r}")
    return name, float(value or 0), part


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        server, path = self.server, unquote(urlsplit(self.path).path)
        with server.lock:
            server.requests.append(path)
            server.queries.append(urlsplit(self.path).query)
            server.seen[path] += 1
            early = server.seen[path] <= 2
        faults = {name: value for name, value, part in server.faults if part in path}
        time.sleep(faults.get("slow", 0))
        moved, path = path.startswith("/moved"), path.replace("/moved", "")
        if "redirect-forever" in faults or ("redirect" in faults and not moved):
            self.reply(301, b"x" * 100, faults, {"Location": server.moved(self.path)})
        elif "reset" in faults or ("reset-twice" in faults and early):
            self.hang_up()
        elif "not-found" in faults:
            self.reply(404, b"Not Found", faults)
        elif "http-500" in faults or ("http-500-twice" in faults and early):
            self.reply(500, b"<!DOCTYPE html><h1>500</h1><br>", faults)
        elif "http-503-twice" in faults and early:
            wait = f"{faults['http-503-twice']:.0f}"
            self.reply(503, b"<!DOCTYPE html><h1>503</h1><br>", faults, {"Retry-After": wait})
        elif "html" in faults:
            self.reply(200, b"<!DOCTYPE html><html><body>Please log in<br></body>", faults)
        elif "busy-twice" in faults and early and "/api/" in path:
            self.complain(107, "Database connection error.", faults)
        else:
            self.answer(path, faults)

    def answer(self, path, faults):
        server, api = self.server, path.removeprefix("/api/v1/xml/")
        try:
            if found := re.fullmatch(r"data/(\d+)", api):
                body = server.description(int(found[1]), faults)
            elif found := re.fullmatch(r"data/qualities/(\d+)", api):
                body = server.qualities(int(found[1]), faults)
            elif api.startswith("data/list"):
                parts = api.split("/")[2:]
                body = server.listing(dict(zip(parts[::2], parts[1::2], strict=False)))
            elif found := re.fullmatch(r"task/(\d+)", api):
                body = server.task(int(found[1]))
            elif re.fullmatch(r"study/(7|small)", api):
                body = server.study()
            elif found := re.fullmatch(r"/data/v1/download/(\d+)/.*", path):
                return self.send_file(server.datasets[int(found[1])]["arff"].encode(), faults)
            elif found := re.fullmatch(r"/api_splits/get/(\d+)/.*", path):
                return self.send_file(server.splits(int(found[1])).encode(), faults)
            else:
                raise KeyError(100, "Function not valid")
        except KeyError as error:
            code, text = error.args if len(error.args) == 2 else (111, "Unknown dataset")
            return self.complain(code, text, faults)
        body = body.encode()
        return self.reply(200, body[: len(body) // 2] if "bad-xml" in faults else body, faults)

    def send_file(self, body, faults):
        if "bad-md5" in faults:
            spot = max(i for i, byte in enumerate(body[:-3]) if 0x30 <= byte <= 0x39)
            body = body[:spot] + bytes([0x30 + (body[spot] - 0x2F) % 10]) + body[spot + 1 :]
        if "truncate" in faults:
            body = body[: len(body) // 2]
        if "truncate-lines" in faults:
            body = body[: body.rindex(b"\n", 0, len(body) * 3 // 4) + 1]
        if "bomb" in faults:
            body = b"\n" * (4 * 2**20)
        return self.reply(200, body, faults, data=True)

    def complain(self, code, text, faults):
        body = (
            f"<oml:error {NS}><oml:code>{code}</oml:code><oml:message>{text}</oml:message>"
            "</oml:error>"
        )
        self.reply(412, body.encode(), faults)

    def reply(self, status, body, faults, headers=None, data=False):
        if "empty" in faults and status == 200:
            body = b""
        packed = "gzip" in self.headers.get("Accept-Encoding", "") and "plain" not in faults
        if packed and body:
            body = gzip.compress(body, 6)
        self.send_response(status)
        self.send_header("Content-Type", "text/xml; charset=utf-8")
        if packed and body:
            self.send_header("Content-Encoding", "gzip")
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if "cut" in faults and data:
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
        elif "trickle" in faults:
            step = max(1, int(faults["trickle"] / 20))
            for start in range(0, len(body), step):
                self.wfile.write(body[start : start + step])
                self.wfile.flush()
                time.sleep(0.05)
        else:
            self.wfile.write(body)

    def hang_up(self):
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.close_connection = True
        self.rfile.close()
        self.connection.close()

    def finish(self):
        try:
            super().finish()
        except (OSError, ValueError):
            self.connection.close()

    def log_message(self, *_):
        """Say nothing."""
