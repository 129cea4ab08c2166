"""A run with its page, for tests: requests, streams, and answers compared with openapi.json."""

import http.client
import json
import re
import socket
import time

from harness import ENDLESS, ROOT, RUN_SECONDS, TIME_FACTOR, EndToEndTest, free_address, small_setup

OPENAPI = json.loads((ROOT / "master/see/openapi.json").read_text(encoding="utf-8"))
JSON_TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def port_of(url):
    return int(url.rsplit(":", 1)[1])


def port_address(text):
    """("HOST", PORT) of the line by which volunteers join."""
    host, port = re.search(r"([\d.]+):(\d+)", text).groups()
    return host, int(port)


def ask(port, path, headers=None, method="GET", host="127.0.0.1"):
    """(status, headers, body) of one request."""
    connection = http.client.HTTPConnection(host, port, timeout=20 * TIME_FACTOR)
    try:
        connection.request(method, path, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode(errors="replace")
    finally:
        connection.close()


def fits(value, schema, where="answer"):
    """Raises where the value is not what the schema of openapi.json says."""
    if "$ref" in schema:
        schema = OPENAPI["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not any(is_number if kind == "number" else is_number and isinstance(value, int)
               if kind == "integer" else isinstance(value, JSON_TYPES[kind]) for kind in types):
        raise AssertionError(f"{where} is {value!r}, not {types}")
    if "enum" in schema and value not in schema["enum"]:
        raise AssertionError(f"{where} is {value!r}, none of {schema['enum']}")
    if is_number and value < schema.get("minimum", value):
        raise AssertionError(f"{where} is {value}, below {schema['minimum']}")
    if isinstance(value, list):
        for place, item in enumerate(value):
            fits(item, schema["items"], f"{where}[{place}]")
    if isinstance(value, dict):
        for key in schema.get("required", ()):
            if key not in value:
                raise AssertionError(f"{where} lacks {key}")
        for key, item in value.items():
            if key in schema.get("properties", {}):
                fits(item, schema["properties"][key], f"{where}.{key}")
            elif schema.get("additionalProperties") is False:
                raise AssertionError(f"{where}.{key} is not described")


class Stream:
    """A reader of server-sent events, as slow as its caller."""

    def __init__(self, port, source="127.0.0.1", headers=None):
        self.socket = socket.create_connection(("127.0.0.1", port), 20 * TIME_FACTOR, (source, 0))
        lines = "".join(f"{name}: {value}\r\n" for name, value in {"Host": "localhost", **(headers or {})}.items())
        self.socket.sendall(f"GET /api/v1/events HTTP/1.1\r\n{lines}Accept: text/event-stream\r\n\r\n".encode())
        self.text = b""

    def wait_for(self, piece, seconds=RUN_SECONDS):
        deadline = time.monotonic() + seconds
        while piece not in self.text:
            self.socket.settimeout(max(0.01, deadline - time.monotonic()))
            got = self.socket.recv(1 << 16)
            if not got:
                raise AssertionError(f"the stream ended without {piece!r}")
            self.text += got

    def close(self):
        self.socket.close()


class PageCase(EndToEndTest):
    """A small run with its page."""

    def setUp(self):
        super().setUp()
        self.setup = small_setup(self.cluster)
        self.store = self.cluster.path("store")

    def start(self, *flags, volunteers=1, checkpoints=2):
        """A master with its page, and volunteers that train without end. It never takes those that a test
        pauses for dead."""
        master = self.setup.with_flag("--epochs", ENDLESS).start_master(
            self.cluster, self.store, "--listen", "127.0.0.1:0", "--http", free_address(), "--threads", 1,
            "--silence-ms", 3_600_000, "--stall-s", 3600, *flags)
        page = master.wait_event("page")
        port, self.key = port_of(page["url"]), page["key"]
        self.address = master.wait_event("listening")["address"]
        helpers = [self.cluster.volunteer(self.address) for _ in range(volunteers)]
        if checkpoints:
            master.wait_checkpoint(checkpoints)
        return master, port, helpers

    def start_held(self):
        """A master that trains to its end, once a volunteer has come: its program, its page's port, and
        the address for that volunteer."""
        master = self.setup.start_master(self.cluster, self.store, "--listen", "127.0.0.1:0",
                                         "--http", "127.0.0.1:0", "--threads", 1)
        return master, port_of(master.wait_event("page")["url"]), master.wait_event("listening")["address"]

    def get(self, port, path):
        status, _, body = ask(port, path)
        self.assertEqual(status, 200, body)
        return json.loads(body)

    def wait_answer(self, port, path, matches, what):
        deadline = time.monotonic() + RUN_SECONDS
        while True:
            answer = self.get(port, path)
            if matches(answer):
                return answer
            if time.monotonic() > deadline:
                raise AssertionError(f"never came to: {what}\n{answer}")
            time.sleep(0.1)

    def wait_run(self, port, matches, what):
        return self.wait_answer(port, "/api/v1/run", matches, what)

    def stand_still(self, port, helpers):
        """Stops the volunteers; returns what the page says once a second has changed nothing: a round that
        was whole may become a checkpoint after they stopped."""
        for helper in helpers:
            helper.pause()
        before = None
        while True:
            run = self.wait_run(port, lambda r: r["wait"]["is_held_up"], "a run that stands still")
            place = run["progress"]["round"], run["progress"]["batch"]
            if before == place:
                return run
            before = place
            time.sleep(1)

    def ask_from(self, source, port):
        connection = http.client.HTTPConnection("127.0.0.1", port, 20 * TIME_FACTOR, (source, 0))
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        result = answer.status, answer.read().decode(errors="replace")
        connection.close()
        return result
