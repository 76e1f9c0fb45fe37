"""The console as a process of its own, and a visitor of its pages that keeps cookies as a browser does."""

from __future__ import annotations

import http.client
import os
import re
import sys
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

from tests.server_process import ServerProcess

ROOT = Path(__file__).parents[1]


class ConsoleProcess(ServerProcess):
    """A console on a free port of the loopback interface, with the clusters that the arguments name."""

    ready_line = re.compile(r"^kafkapy console ready: (\S+)$", re.MULTILINE)

    def __init__(self, directory: Path, *arguments: str, port: int | None = None) -> None:
        super().__init__(directory, port)
        self.arguments = arguments

    def command(self) -> list[str]:
        listener = () if "--listener" in self.arguments else ("--listener", f"localhost:{self.port}")
        return [sys.executable, "-m", "kafkapy", "console", *listener, *self.arguments]

    def environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(ROOT)}

    @property
    def address(self) -> str:
        """The URL that the console has printed, which has the token if users log in by it."""
        found = self.ready_line.findall(self.log())
        assert found, self.log()
        return str(found[-1])

    @property
    def origin(self) -> str:
        """The scheme, the host and the port of the console."""
        return "{0.scheme}://{0.netloc}".format(urlsplit(self.address))

    def visitor(self) -> Visitor:
        """Returns a visitor that has logged in with the printed token."""
        visitor = Visitor(self.origin)
        visitor.get(self.address.removeprefix(self.origin))
        return visitor


class Reply(NamedTuple):
    """A response: its status, its headers with names in small letters, and its body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def plain(self) -> str:
        """The text of the page without tags, on one line."""
        return " ".join(_Text.of(self.text).split())


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.links: list[str] = []

    @classmethod
    def of(cls, html: str) -> str:
        parser = cls()
        parser.feed(html)
        return " ".join(parser.parts)

    def handle_data(self, data: str) -> None:
        self.parts.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value for name, value in attrs if tag == "a" and name == "href" and value]


def links(html: str) -> list[str]:
    """Returns the targets of a page's links."""
    parser = _Text()
    parser.feed(html)
    return parser.links


class Visitor:
    """A client without JavaScript that keeps cookies and follows redirects. Not thread-safe."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.cookies: dict[str, str] = {}

    def get(self, path: str, *, headers: Mapping[str, str] | None = None, follow: bool = True) -> Reply:
        return self._request("GET", path, None, headers or {}, follow)

    def post(
        self, path: str, fields: Mapping[str, str], *, headers: Mapping[str, str] | None = None, follow: bool = True
    ) -> Reply:
        """Sends a form as a page of the console would; `headers` override those of a browser."""
        given = {"Origin": self.origin, "Content-Type": "application/x-www-form-urlencoded", **(headers or {})}
        return self._request("POST", path, urlencode(fields), {k: v for k, v in given.items() if v}, follow)

    @property
    def form_token(self) -> str:
        """The token of this visitor's forms."""
        found = re.search(r'name="form_token" value="([^"]+)"', self.get("/").text)
        assert found
        return found[1]

    def connection(self) -> http.client.HTTPConnection:
        place = urlsplit(self.origin)
        assert place.hostname and place.port
        return http.client.HTTPConnection(place.hostname, place.port, timeout=30)

    def _headers(self) -> dict[str, str]:
        return {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())} if self.cookies else {}

    def _request(self, method: str, path: str, body: str | None, headers: Mapping[str, str], follow: bool) -> Reply:
        connection = self.connection()
        try:
            connection.request(method, path, body, {**self._headers(), **headers})
            response = connection.getresponse()
            reply = Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()
        cookie = reply.headers.get("set-cookie", "").partition(";")[0]
        if cookie:
            name, _, value = cookie.partition("=")
            self.cookies[name] = value
        if follow and reply.status == 303:
            return self._request("GET", reply.headers["location"], None, {}, follow)
        return reply


def walk(visitor: Visitor, start: str, most: int) -> Iterator[tuple[str, Reply]]:
    """Yields the pages that links lead to from a page, each once, at most `most` of them."""
    seen, waiting = {start}, [start]
    while waiting and len(seen) <= most + len(waiting):
        path = waiting.pop(0)
        reply = visitor.get(path)
        yield path, reply
        if "text/html" not in reply.headers.get("content-type", ""):
            continue
        for link in links(reply.text):
            if link.startswith("#"):
                continue
            target = link if link.startswith("/") else path.partition("?")[0] + link
            if target not in seen and len(seen) < most:
                seen.add(target)
                waiting.append(target)
