"""Somebody who listens where a kubelet is said to, under a certificate of his choice, and keeps what he is
told."""

from __future__ import annotations

import json
import socket
import ssl
from pathlib import Path
from threading import Thread

from .api import Object

PATIENCE_S = 10


class Impostor:
    """Answers every request with the same object."""

    def __init__(self, address: str, port: int, certificate: Path, key: Path, answer: Object) -> None:
        self.requests: list[str] = []  # their heads
        self.turned_away: list[str] = []  # why, of each client that did not like the certificate
        body = json.dumps(answer)
        self._reply = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}"
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self._listener = socket.create_server((address, port))
        self._thread = Thread(target=self._serve)
        self._thread.start()

    def stop(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:  # stopped
                return
            with client:
                client.settimeout(PATIENCE_S)
                self._meet(client)

    def _meet(self, client: socket.socket) -> None:
        try:
            # The server's part of a handshake ends with the client's consent.
            connection = self._context.wrap_socket(client, server_side=True)
        except OSError as error:
            self.turned_away.append(f"{error}")
            return
        with connection:
            head = b""
            while b"\r\n\r\n" not in head and (part := connection.recv(1 << 16)):
                head += part
            self.requests.append(head.decode())
            connection.sendall(self._reply.encode())
