"""A scheduler extender that answers as a script says and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = tuple[int, Any]  # HTTP status and body


@dataclass
class Call:
    verb: str
    headers: dict[str, str]
    body: Any


class Extender:
    """`answer` gets the verb and the request's body. Thread-safe: the scheduler binds in parallel."""

    def __init__(self, answer: Callable[[str, Any], Reply]) -> None:
        self._answer = answer
        self._calls: list[Call] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def configuration(self) -> dict[str, Any]:
        """An entry of KubeSchedulerConfiguration's `extenders`."""
        return {
            "urlPrefix": f"http://127.0.0.1:{self._server.server_port}/scheduler",
            "filterVerb": "filter",
            "prioritizeVerb": "prioritize",
            "preemptVerb": "preempt",
            "bindVerb": "bind",
            "weight": 5,
            "nodeCacheCapable": True,
            "ignorable": False,
            "httpTimeout": "5s",
        }

    def calls(self, verb: str, pod: str) -> list[Call]:
        """Those of one verb that were about the pod."""
        with self._lock:
            return [call for call in self._calls if call.verb == verb and pod_name(call.body) == pod]

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handle(self, verb: str, headers: dict[str, str], body: Any) -> Reply:
        status, reply = self._answer(verb, body)
        with self._lock:
            self._calls.append(Call(verb, headers, body))
        return status, reply

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        extender = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # header and body in one packet: two would wait for each other's ACK

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, reply = extender._handle(self.path.rsplit("/", 1)[1], dict(self.headers), body)
                text = json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        return Handler


def pod_name(body: Any) -> str:
    name: str = body["PodName"] if "PodName" in body else body["Pod"]["metadata"]["name"]
    return name
