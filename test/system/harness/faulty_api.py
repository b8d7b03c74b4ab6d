"""A proxy in front of the API server that does to its clients what networks, load balancers and API
servers under stress do, and that keeps account of what was asked."""

from __future__ import annotations

import asyncio
import ctypes
import json
import socket
import ssl
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from .api import Object
from .http1 import LAST_CHUNK, LONGEST_HEAD, Asked, Head, chunk, read_body, read_head, what_is_asked
from .pki import Pki

T = TypeVar("T")

# What each of them looks like to a client: half a line of JSON, as a stream that breaks off leaves it.
HALF_A_LINE = b'{"type":"MODIFIED","object":{"kind":"NodePl'
SO_ATTACH_FILTER = 26  # of Linux' SOL_SOCKET; Python has no name for it


@dataclass
class Exchange:
    """A request and what became of it. Times are those of the wall clock, in seconds."""

    asked: Asked
    at: float
    token: str = ""
    body: bytes = b""
    code: int | None = None  # of the reply
    answered: float | None = None  # when the reply (of a watch its head) was handed on
    server_s: float | None = None  # how long the API server took for it
    fault: str = ""  # what was done to it


Applies = Callable[[Asked], bool]


def everything(asked: Asked) -> bool:
    return True


def writes(asked: Asked) -> bool:
    return asked.verb in ("create", "update", "patch", "delete")


def watches(asked: Asked) -> bool:
    return asked.verb == "watch"


class Fault:
    """Done instead of asking the API server."""

    name: str

    async def meet(self, client: Client, exchange: Exchange) -> None:
        raise NotImplementedError


class Refusal(Fault):
    """A Status of the API server, or of what stands in front of it."""

    def __init__(self, code: int, reason: str, retry_after_s: int | None = None) -> None:
        self.name = str(code)
        self.code = code
        self._head = f"HTTP/1.1 {code} {reason}\r\nContent-Type: application/json\r\n"
        if retry_after_s is not None:
            self._head += f"Retry-After: {retry_after_s}\r\n"
        self._status = status(code, reason)

    async def meet(self, client: Client, exchange: Exchange) -> None:
        text = json.dumps(self._status).encode()
        exchange.code = self.code
        await client.send(f"{self._head}Content-Length: {len(text)}\r\n\r\n".encode() + text)
        exchange.answered = time.time()


class Silence(Fault):
    """Takes the request and never answers."""

    name = "hang"

    async def meet(self, client: Client, exchange: Exchange) -> None:
        await client.until_closed()


class LostReply(Fault):
    """Lets the API server do it and closes the connection instead of telling so."""

    name = "lost reply"

    async def meet(self, client: Client, exchange: Exchange) -> None:
        await client.ask_server(exchange)
        client.close()


class ExpiredEvent(Fault):
    """For watches: the other form of 410, an event in a stream that began well."""

    name = "410 event"

    async def meet(self, client: Client, exchange: Exchange) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        event = json.dumps({"type": "ERROR", "object": status(410, "Expired")}).encode() + b"\n"
        exchange.code = 200
        await client.send(head + chunk(event) + LAST_CHUNK)
        exchange.answered = time.time()


def status(code: int, reason: str) -> Object:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "reason": reason,
        "message": f"{reason}: so it was told to answer",
        "code": code,
    }


UNAUTHORIZED = Refusal(401, "Unauthorized")
CONFLICT = Refusal(409, "Conflict")
EXPIRED = Refusal(410, "Expired")
TOO_MANY = Refusal(429, "TooManyRequests", retry_after_s=1)
INTERNAL = Refusal(500, "InternalError")
UNAVAILABLE = Refusal(503, "ServiceUnavailable", retry_after_s=1)
SILENCE = Silence()
LOST_REPLY = LostReply()
EXPIRED_EVENT = ExpiredEvent()


class FaultyApi:
    """Passes on what it is asked, with the Authorization header, unless it was told otherwise. Its methods
    may be called from any thread; it works on one of its own."""

    def __init__(self, pki: Pki, server: tuple[str, int], address: str, port: int = 0) -> None:
        self.address, self.port = address, port
        self.server = server
        self.to_server = ssl.create_default_context(cafile=str(pki.ca))
        self._pki = pki
        self._certificates = 0
        self._to_clients = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._faults: list[tuple[Fault, Applies]] = []
        self._refused_tokens: set[str] = set()
        self._exchanges: list[Exchange] = []
        self._clients: set[Client] = set()
        self._lost: list[Client] = []  # kept: a socket that nobody holds would be closed, and say so
        self._listener: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self.rotate_certificate()

    def start(self) -> None:
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self.come_up()

    def stop(self) -> None:
        self.go_down()
        self._run(self._cancel_all())
        self._loop.call_soon_threadsafe(self._loop.stop)

    # Faults that last until they are taken back

    def put(self, fault: Fault, applies: Applies = everything) -> None:
        """From now on, for requests of that kind. Of several, the last that applies counts."""
        self._faults = [*self._faults, (fault, applies)]

    def heal(self) -> None:
        """All of them are over. What was refused for good, tokens and broken connections, stays so."""
        self._faults = []
        # Only a fault can have kept a client waiting, and it would go on doing so.
        self._on_all(lambda client: client.met_a_fault, Client.close)

    def refuse_token(self, token: str) -> None:
        self._refused_tokens.add(token)

    def go_down(self) -> None:
        """Nobody listens any more, and every connection is reset."""
        self._run(self._close())

    def come_up(self) -> None:
        self._run(self._listen())

    # What happens once

    def rotate_certificate(self, foreign: Pki | None = None) -> None:
        """New connections see another certificate, of the same authority or of a foreign one."""
        pki = foreign or self._pki
        self._certificates += 1
        file = f"faulty-api-{self.address}-{self._certificates}"
        pki.server(file, [self.address])
        self._to_clients.load_cert_chain(pki.folder / f"{file}.crt", pki.folder / f"{file}.key")

    def close_idle(self) -> int:
        """Closes connections on which nothing is asked, as servers and balancers do. Returns how many."""
        return self._on_all(lambda client: client.exchange is None, Client.close)

    def cut_streams(self) -> int:
        """Ends watches in the midst of a line."""
        return self._on_all(lambda client: client.streams, Client.cut)

    def expire_streams(self) -> int:
        """Says 410 in watches that went well so far, and ends them."""
        return self._on_all(lambda client: client.streams, Client.expire)

    def lose_connections(self) -> int:
        """The connections of now are half open: what comes by them is neither read nor acknowledged, and
        nothing is sent, not even that they are closed."""
        self._lost += self._clients
        return self._on_all(lambda client: True, Client.lose)

    # What was asked

    def exchanges(self, since: float = 0) -> list[Exchange]:
        return [one for one in list(self._exchanges) if one.at >= since]

    def counts(self, since: float = 0) -> Counter[str]:
        """How often each was asked: "patch nodeplacements/status", say."""
        return Counter(f"{one.asked.verb} {one.asked.resource}" for one in self.exchanges(since))

    def faults_met(self, since: float = 0) -> Counter[str]:
        """How many requests each fault was done to."""
        return Counter(one.fault for one in self.exchanges(since) if one.fault)

    # On its own thread

    def fault_for(self, exchange: Exchange) -> Fault | None:
        if exchange.token in self._refused_tokens:
            return UNAUTHORIZED
        return next((fault for fault, applies in reversed(self._faults) if applies(exchange.asked)), None)

    def note(self, exchange: Exchange) -> None:
        self._exchanges.append(exchange)

    async def _listen(self) -> None:
        if self._listener and self._listener.is_serving():
            return
        self._listener = await asyncio.start_server(
            self._serve, self.address, self.port, ssl=self._to_clients, limit=LONGEST_HEAD
        )
        self.port = self._listener.sockets[0].getsockname()[1]  # the same when it comes up again

    async def _close(self) -> None:
        if self._listener:
            self._listener.close()
        for client in list(self._clients):
            if not client.lost:
                client.reset()

    async def _cancel_all(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = Client(self, reader, writer)
        self._clients.add(client)
        try:
            await client.serve()
        except (OSError, asyncio.IncompleteReadError):  # of either side, or of the faults
            pass
        finally:
            self._clients.discard(client)
            client.close()

    def _on_all(self, which: Callable[[Client], bool], action: Callable[[Client], None]) -> int:
        async def act() -> int:
            chosen = [client for client in self._clients if not client.lost and which(client)]
            for client in chosen:
                action(client)
            return len(chosen)

        return self._run(act())

    def _run(self, task: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(task, self._loop).result(10)


class Client:
    """One connection of a client, and one of its own to the API server."""

    def __init__(self, proxy: FaultyApi, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.exchange: Exchange | None = None  # that it waits for, or whose stream it reads
        self.streams = False
        self.lost = False
        self._proxy = proxy
        self._reader, self._writer = reader, writer
        self._server: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._request = b""

    @property
    def met_a_fault(self) -> bool:
        return self.exchange is not None and self.exchange.fault != ""

    async def serve(self) -> None:
        while (head := await read_head(self._reader)) is not None:
            body = b"".join([part async for part in read_body(self._reader, head)])
            self._request = head.raw + body
            token = head.headers.get("authorization", "").removeprefix("Bearer ")
            exchange = Exchange(what_is_asked(head.start[0], head.start[1]), time.time(), token, body)
            self.exchange = exchange
            self._proxy.note(exchange)
            if fault := self._proxy.fault_for(exchange):
                exchange.fault = fault.name
                await fault.meet(self, exchange)
            else:
                await self._pass_on(exchange)
            self.exchange = None
            if head.closes or self._writer.is_closing():
                return

    async def until_closed(self) -> None:
        """By either side. A client that says anything more without an answer to the last is not ours."""
        if await self._reader.read(1):
            raise ConnectionResetError("the client does not wait for its answer")

    async def send(self, data: bytes) -> None:
        if self.lost:
            await asyncio.Event().wait()
        self._writer.write(data)
        await self._writer.drain()

    async def ask_server(self, exchange: Exchange) -> Head:
        """The head of the API server's reply; its body is yet to be read."""
        began = time.monotonic()
        reader, writer = await self._to_server()
        writer.write(self._request)
        head = await read_head(reader)
        if head is None:
            raise ConnectionResetError("the API server closed the connection")
        exchange.server_s = time.monotonic() - began
        return head

    async def _pass_on(self, exchange: Exchange) -> None:
        head = await self.ask_server(exchange)
        exchange.code = int(head.start[1])
        reader, _ = await self._to_server()
        if exchange.asked.verb == "watch" and exchange.code == 200:
            await self.send(head.raw)
            exchange.answered = time.time()
            await self._stream(reader, head)
        else:
            await self.send(b"".join([head.raw, *[part async for part in read_body(reader, head)]]))
            exchange.answered = time.time()

    async def _stream(self, reader: asyncio.StreamReader, head: Head) -> None:
        """Until the server ends it or the client goes, which it does without a word of HTTP."""
        self.streams = True
        relay = asyncio.ensure_future(self._relay(reader, head))
        gone = asyncio.ensure_future(self.until_closed())
        try:
            await asyncio.wait({relay, gone}, return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                raise ConnectionResetError("the client closed the connection")
            relay.result()
        finally:
            self.streams = False
            relay.cancel()
            gone.cancel()

    async def _relay(self, reader: asyncio.StreamReader, head: Head) -> None:
        async for part in read_body(reader, head):
            if self.streams:  # else its end has been said
                await self.send(part)

    async def _to_server(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._server is None or self._server[0].at_eof():
            host, port = self._proxy.server
            self._server = await asyncio.open_connection(
                host, port, ssl=self._proxy.to_server, server_hostname=host
            )
        return self._server

    # Ends

    def close(self) -> None:
        if not self.lost:
            self._writer.close()
        if self._server:
            self._server[1].close()

    def reset(self) -> None:
        self._writer.transport.abort()
        if self._server:
            self._server[1].close()

    def cut(self) -> None:
        self._end_stream(chunk(HALF_A_LINE))

    def expire(self) -> None:
        event = {"type": "ERROR", "object": status(410, "Expired")}
        self._end_stream(chunk(json.dumps(event).encode() + b"\n") + LAST_CHUNK)

    def _end_stream(self, last_words: bytes) -> None:
        self.streams = False
        self._writer.write(last_words)
        self.close()

    def lose(self) -> None:
        self.lost = True
        device: socket.socket = self._writer.get_extra_info("socket")
        # One instruction: of each packet, take 0 bytes. So TCP never hears of it and acknowledges nothing.
        instruction = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))
        device.setsockopt(
            socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HL", 1, ctypes.addressof(instruction))
        )
