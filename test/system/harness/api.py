"""The API server, as a scenario speaks to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import requests
import urllib3
from urllib3.exceptions import InsecureRequestWarning

from .process import Failed

Object = dict[str, Any]


class ApiError(Failed):
    """The API server refused; `status` is its Status object."""

    def __init__(self, request: str, code: int, status: Object) -> None:
        super().__init__(f"{request}: {code} {status.get('reason', '')}: {status.get('message', status)}")
        self.code = code
        self.status = status


class Api:
    """Speaks for one identity: a client certificate or a token."""

    def __init__(
        self, server: str, ca: Path, certificate: tuple[Path, Path] | None = None, token: str | None = None
    ) -> None:
        self.server = server
        self._session = requests.Session()
        self._session.trust_env = False  # proxies are for the world outside of the sandbox
        self._session.verify = str(ca)
        if certificate:
            self._session.cert = (str(certificate[0]), str(certificate[1]))
        if token:
            self._session.headers["Authorization"] = f"Bearer {token}"

    def request(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        query: dict[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Object:
        answer = self._session.request(
            method,
            self.server + path,
            params=query,
            data=None if body is None else json.dumps(body),
            headers={"Content-Type": content_type},
            timeout=30,
        )
        return _decoded(f"{method} {path}", answer)

    def get(self, path: str, **query: str) -> Object:
        return self.request("GET", path, query=query)

    def items(self, path: str, **query: str) -> list[Object]:
        items: list[Object] = self.get(path, **query)["items"]
        return items

    def create(self, path: str, body: Object) -> Object:
        return self.request("POST", path, body)

    def apply(self, path: str, body: Object, manager: str, **query: str) -> Object:
        """Server-side apply."""
        query["fieldManager"] = manager
        return self.request("PATCH", path, body, query, "application/apply-patch+yaml")

    def merge(self, path: str, body: Object, **query: str) -> Object:
        """A merge patch."""
        return self.request("PATCH", path, body, query, "application/merge-patch+json")

    def delete(self, path: str, **query: str) -> Object:
        return self.request("DELETE", path, query=query)

    def exists(self, path: str) -> bool:
        try:
            self.get(path)
        except ApiError as error:
            if error.code == 404:
                return False
            raise
        return True

    def watch(self, path: str, **query: str) -> Iterator[Object]:
        """The events of one watch request, until the server ends it."""
        request = self._session.get(
            self.server + path, params={"watch": "1", **query}, stream=True, timeout=30
        )
        with request as answer:
            if answer.status_code != 200:
                _decoded(f"watch {path}", answer)
            for line in answer.iter_lines():
                yield json.loads(line)


def _decoded(request: str, answer: requests.Response) -> Object:
    try:
        body: Object = answer.json()
    except ValueError:
        body = {"message": answer.text}
    if answer.status_code >= 400:
        raise ApiError(request, answer.status_code, body)
    return body


def get_unverified(url: str, **arguments: Any) -> requests.Response:
    """Of a program of the sandbox that made its certificate itself: who it is, is not in question here."""
    urllib3.disable_warnings(InsecureRequestWarning)  # each time: pytest switches them on again
    with requests.Session() as session:
        session.trust_env = False
        return session.get(url, timeout=10, verify=False, **arguments)
