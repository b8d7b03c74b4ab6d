"""The proxy does each fault, and without one it does nothing."""

from __future__ import annotations

import fcntl
import http.client
import json
import ssl
import struct
import termios
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from harness import faulty_api
from harness.faulty_api import FaultyApi
from harness.http1 import chunk, what_is_asked
from harness.pki import Pki

NODE = "/api/v1/nodes/one"
WATCH = "/api/v1/nodes?watch=1"
STATUS = "/apis/plumbline.dev/v1alpha1/nodeplacements/one/status"
EVENT = b'{"type":"ADDED","object":{}}\n'


class Server:
    """Answers with what it was asked; watches have an event at once and then nothing."""

    def __init__(self, pki: Pki) -> None:
        self.asked: list[str] = []
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        pki.server("server", ["127.0.0.1"])
        context.load_cert_chain(pki.folder / "server.crt", pki.folder / "server.key")
        self._http.socket = context.wrap_socket(self._http.socket, server_side=True)
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self._http.server_port

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                server.asked.append(f"{self.command} {self.path}")
                if "watch" in self.path:
                    self.send_response(200)
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    self.wfile.write(chunk(EVENT))
                    self.rfile.read(1)
                    return
                length = int(self.headers.get("Content-Length", "0"))
                seen = {"token": self.headers["Authorization"], "body": self.rfile.read(length).decode()}
                text = json.dumps(seen).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_PATCH = do_GET

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        return Handler


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return Pki(tmp_path_factory.mktemp("faulty-api") / "pki")


@pytest.fixture(scope="module")
def server(pki: Pki) -> Iterator[Server]:
    server = Server(pki)
    yield server
    server.stop()


@pytest.fixture
def api(pki: Pki, server: Server) -> Iterator[FaultyApi]:
    api = FaultyApi(pki, server.address, "127.0.0.1")
    api.start()
    yield api
    api.stop()


def connect(api: FaultyApi, pki: Pki) -> http.client.HTTPSConnection:
    context = ssl.create_default_context(cafile=str(pki.ca))
    connection = http.client.HTTPSConnection(api.address, api.port, timeout=5, context=context)
    connection.connect()
    return connection


def ask(
    connection: http.client.HTTPSConnection, method: str = "GET", path: str = NODE, body: str = ""
) -> http.client.HTTPResponse:
    connection.request(method, path, body or None, {"Authorization": "Bearer secret"})
    return connection.getresponse()


def watch(connection: http.client.HTTPSConnection) -> http.client.HTTPResponse:
    stream = ask(connection, path=WATCH)
    assert stream.readline() == EVENT
    return stream


@pytest.mark.parametrize(
    "method, target, asked",
    [
        ("GET", "/api/v1/nodes", "list nodes"),
        ("GET", "/api/v1/nodes/one", "get nodes one"),
        ("GET", "/api/v1/nodes?watch=1&fieldSelector=metadata.name%3Done", "watch nodes"),
        ("GET", "/api/v1/namespaces/default", "get namespaces default"),
        ("POST", "/api/v1/namespaces/default/events", "create events default"),
        ("PATCH", STATUS + "?fieldManager=me", "patch nodeplacements/status one"),
        ("PATCH", "/apis/coordination.k8s.io/v1/namespaces/n/leases/one", "patch leases n one"),
        ("GET", "/version", "get /version"),
    ],
)
def test_a_request_is_named_as_rbac_would(method: str, target: str, asked: str) -> None:
    assert str(what_is_asked(method, target)) == asked


def test_without_a_fault_all_is_passed_on_and_counted(api: FaultyApi, pki: Pki) -> None:
    connection = connect(api, pki)
    for body in ("first", "second"):
        assert json.load(ask(connection, "PATCH", STATUS, body)) == {"token": "Bearer secret", "body": body}
    watch(connection)
    assert api.counts() == {"patch nodeplacements/status": 2, "watch nodes": 1}
    first, second, stream = api.exchanges()
    assert (first.body, first.token, first.code, second.code) == (b"first", "secret", 200, 200)
    assert first.at < (first.answered or 0) <= second.at
    assert stream.code == 200 and api.faults_met() == {}


@pytest.mark.parametrize("code", [409, 410, 429, 500, 503])
def test_a_refusal_comes_without_the_servers_doing(
    api: FaultyApi, pki: Pki, server: Server, code: int
) -> None:
    refusals = [one for one in vars(faulty_api).values() if isinstance(one, faulty_api.Refusal)]
    api.put(next(one for one in refusals if one.code == code), faulty_api.writes)
    connection, asked_before = connect(api, pki), len(server.asked)
    refused = ask(connection, "PATCH", STATUS, "{}")
    assert refused.status == code and json.load(refused)["code"] == code
    assert refused.headers["Retry-After"] == ("1" if code in (429, 503) else None)
    assert len(server.asked) == asked_before
    read = ask(connection)
    assert read.status == 200 and read.read()
    api.heal()
    assert ask(connection, "PATCH", STATUS, "{}").status == 200
    assert api.faults_met() == {str(code): 1}


def test_a_request_may_hang_until_all_is_healed(api: FaultyApi, pki: Pki) -> None:
    api.put(faulty_api.SILENCE)
    connection = connect(api, pki)
    connection.sock.settimeout(0.2)
    with pytest.raises(TimeoutError):
        ask(connection)
    api.heal()
    assert ask(connect(api, pki)).status == 200


def test_a_reply_may_get_lost_when_all_is_done(api: FaultyApi, pki: Pki, server: Server) -> None:
    api.put(faulty_api.LOST_REPLY)
    with pytest.raises(http.client.RemoteDisconnected):
        ask(connect(api, pki), "PATCH", STATUS, "{}")
    assert server.asked[-1] == f"PATCH {STATUS}"


def test_a_stream_may_end_in_the_midst_of_a_line(api: FaultyApi, pki: Pki) -> None:
    stream = watch(connect(api, pki))
    assert api.cut_streams() == 1
    with pytest.raises(http.client.IncompleteRead) as broken:
        stream.read()
    assert broken.value.partial == faulty_api.HALF_A_LINE


def test_a_stream_may_expire_by_an_event_at_once_or_later(api: FaultyApi, pki: Pki) -> None:
    stream = watch(connect(api, pki))
    assert api.expire_streams() == 1
    assert json.loads(stream.read())["object"]["code"] == 410
    api.put(faulty_api.EXPIRED_EVENT, faulty_api.watches)
    event = json.load(ask(connect(api, pki), path=WATCH))
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


def unacknowledged(connection: http.client.HTTPSConnection) -> int:
    """Bytes that the other side's TCP has not confirmed."""
    (count,) = struct.unpack("i", fcntl.ioctl(connection.sock, termios.TIOCOUTQ, bytes(4)))
    return int(count)


def test_what_is_sent_by_a_lost_connection_is_never_acknowledged(api: FaultyApi, pki: Pki) -> None:
    connection = connect(api, pki)
    assert ask(connection).read()
    assert unacknowledged(connection) == 0
    assert api.lose_connections() == 1
    connection.sock.settimeout(0.3)
    with pytest.raises(TimeoutError):
        ask(connection)
    assert unacknowledged(connection) > 0
    assert ask(connect(api, pki)).status == 200


def test_idle_connections_may_be_closed_and_streams_go_on(api: FaultyApi, pki: Pki) -> None:
    idle, streaming = connect(api, pki), connect(api, pki)
    assert ask(idle).read()
    watch(streaming)
    assert api.close_idle() == 1
    assert idle.sock.recv(1) == b""
    assert api.cut_streams() == 1


def certificate(connection: http.client.HTTPSConnection) -> bytes | None:
    assert isinstance(connection.sock, ssl.SSLSocket)
    return connection.sock.getpeercert(binary_form=True)


def test_new_connections_see_another_certificate(api: FaultyApi, pki: Pki, tmp_path: Path) -> None:
    first = connect(api, pki)
    api.rotate_certificate()
    assert certificate(first) != certificate(connect(api, pki))
    assert ask(first).status == 200
    api.rotate_certificate(Pki(tmp_path / "foreign"))
    with pytest.raises(ssl.SSLCertVerificationError):
        connect(api, pki)


def test_a_token_may_end(api: FaultyApi, pki: Pki) -> None:
    api.refuse_token("secret")
    refused = ask(connect(api, pki))
    assert refused.status == 401 and refused.read()
    api.heal()
    assert ask(connect(api, pki)).status == 401


def test_nobody_may_listen_for_a_while(api: FaultyApi, pki: Pki) -> None:
    connection = connect(api, pki)
    assert ask(connection).read()
    api.go_down()
    with pytest.raises(ConnectionResetError):
        ask(connection)
    with pytest.raises(ConnectionRefusedError):
        connect(api, pki)
    api.come_up()
    began = time.monotonic()
    assert ask(connect(api, pki)).status == 200
    assert time.monotonic() - began < 5
