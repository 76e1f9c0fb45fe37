"""A small web page that shows a running job: the first entries of its last result as bars, and the rate as a curve.

The page has no scripts; the browser loads it again every two seconds. The same server has the job's metrics.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from kafkapy_jobs.arguments import fail
from kafkapy_jobs.html_page import line_plot, page, row_bars, section

REFRESH_S = 2
RATES = 120
TEXTS = {
    "en": {"rate": "Records per second", "waiting": "The first result has not arrived yet.", "updated": "Updated"},
    "zh": {"rate": "每秒记录数", "waiting": "还没有结果。", "updated": "更新时间"},
}
LANGUAGES = tuple(TEXTS)


class LivePage:
    """The content of the page. Thread-safe."""

    def __init__(self, title: str, language: str = "en", clock: Callable[[], float] = time.time) -> None:
        """`language` is that of the page's own texts; `clock` returns the seconds since 1970."""
        self._title = title
        self._language = language
        self._clock = clock
        self._lock = threading.Lock()
        self._heading = ""
        self._entries: list[tuple[str, float]] = []
        self._rates: dict[str, deque[tuple[float, float]]] = {}

    def show(self, heading: str, entries: Sequence[tuple[str, float]]) -> None:
        """Replaces the bars by the entries of a new result, which are names and numbers in their order."""
        with self._lock:
            self._heading, self._entries = heading, list(entries)

    def add_rate(self, query: str, rate: float) -> None:
        """Adds a point to the curve of a query: `rate` records per second now."""
        with self._lock:
            self._rates.setdefault(query, deque(maxlen=RATES)).append((self._clock(), rate))

    def html(self) -> str:
        """Returns the page."""
        texts = TEXTS[self._language]
        with self._lock:
            heading, entries = self._heading, list(self._entries)
            rates = {query: list(points) for query, points in self._rates.items()}
            now = self._clock()
        top = section(heading, row_bars(entries, title=heading)) if entries else f"<p>{texts['waiting']}</p>"
        # All queries of a job read the same topics, so one curve is enough.
        points = next(iter(rates.values()), [])
        labels = [time.strftime("%H:%M:%S", time.localtime(moment)) for moment, _ in points]
        curve = line_plot({query: [rate for _, rate in points] for query in list(rates)[:1]}, labels)
        parts = [
            f'<meta http-equiv="refresh" content="{REFRESH_S}">',
            top,
            section(texts["rate"], curve) if points else "",
            f'<p class="note">{texts["updated"]} {time.strftime("%H:%M:%S", time.localtime(now))}</p>',
        ]
        return page(self._title, parts, self._language)


class PageServer:
    """Serves the page at `/` and the metrics at `/metrics`, from threads of its own."""

    def __init__(self, address: str, live: LivePage, metrics: Callable[[], str]) -> None:
        """Binds `address` (HOST:PORT; port 0 is any). Ends the program if that is not possible."""
        host, _, port = address.rpartition(":")
        content = {
            "/": ("text/html; charset=utf-8", live.html),
            "/metrics": ("text/plain; version=0.0.4; charset=utf-8", metrics),
        }

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                found = content.get(self.path.partition("?")[0])
                if found is None:
                    self.send_error(404)
                    return
                body = found[1]().encode()
                self.send_response(200)
                self.send_header("Content-Type", found[0])
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: object) -> None:
                """Logs nothing, because requests would be printed between the job's results."""

        class Server(ThreadingHTTPServer):
            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

        try:
            self._server = Server((host.strip("[]"), int(port)), Handler)
        except (OSError, ValueError, OverflowError) as error:
            fail(f"--http {address}: {getattr(error, 'strerror', None) or error}")
        self._thread = threading.Thread(target=self._server.serve_forever, name="page", daemon=True)

    @property
    def port(self) -> int:
        """The port on which the server listens."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Starts the server."""
        self._thread.start()

    def stop(self) -> None:
        """Stops the server and releases its port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
