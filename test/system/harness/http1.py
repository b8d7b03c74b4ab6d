"""As much of HTTP/1.1 as it takes to stand between a client of the API server and the API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

# A head, or a line of a chunk's size, that is longer than this is no message of theirs.
LONGEST_HEAD = 64 << 10


@dataclass
class Head:
    """The start line and the headers of a request or a reply, as they came."""

    raw: bytes
    start: list[str]  # the words of the start line
    headers: dict[str, str] = field(default_factory=dict)  # by name in lower case

    @property
    def chunked(self) -> bool:
        return self.headers.get("transfer-encoding", "").lower() == "chunked"

    @property
    def length(self) -> int:
        return int(self.headers.get("content-length", "0"))

    @property
    def closes(self) -> bool:
        return self.headers.get("connection", "").lower() == "close"


async def read_head(reader: asyncio.StreamReader) -> Head | None:
    """None where the peer closed the connection instead."""
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as ended:
        if ended.partial:
            raise
        return None
    first, *lines = raw.decode("latin-1").strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Head(raw, first.split(" ", 2), headers)


async def read_body(reader: asyncio.StreamReader, head: Head) -> AsyncIterator[bytes]:
    """In pieces that can be handed on as they are: a whole body, or chunk by chunk with its size."""
    if not head.chunked:
        if head.length:
            yield await reader.readexactly(head.length)
        return
    while True:
        size = await reader.readuntil(b"\r\n")
        data = await reader.readexactly(int(size, 16) + 2)
        yield size + data
        if int(size, 16) == 0:
            return


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


LAST_CHUNK = chunk(b"")

VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True)
class Asked:
    """What a request is about, in the words of RBAC."""

    verb: str
    resource: str  # "nodes", "nodeplacements/status"; a path that is no resource's as it is
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.verb, self.resource, self.namespace, self.name)))


def what_is_asked(method: str, target: str) -> Asked:
    url = urlsplit(target)
    words = url.path.strip("/").split("/")
    # /api/v1/..., /apis/GROUP/VERSION/...
    words = words[2:] if words[0] == "api" else words[3:] if words[0] == "apis" else []
    if not words:
        return Asked(VERBS.get(method, method), url.path)
    namespace = ""
    if words[0] == "namespaces" and len(words) > 2:
        namespace, words = words[1], words[2:]
    resource, part, name = words[0], words[2:], words[1] if len(words) > 1 else ""
    verb = VERBS.get(method, method)
    if verb == "get" and parse_qs(url.query).get("watch", ["0"])[0] in ("1", "true"):
        verb = "watch"
    elif verb == "get" and not name:
        verb = "list"
    return Asked(verb, "/".join([resource, *part]), namespace, name)
