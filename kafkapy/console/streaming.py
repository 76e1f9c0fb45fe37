"""A page whose rows are sent while they are found, and whose work stops when the browser leaves.

The browser shows rows as they arrive, without JavaScript. Work runs on threads; a chunk is only requested when the
browser has taken the chunk before, so that output for a slow browser does not accumulate in memory.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from threading import Lock, Thread

import anyio
import anyio.to_thread
from starlette.responses import StreamingResponse

log = logging.getLogger("kafkapy.console")

# Chunks are gathered for this time, so that many small ones do not cost a thread's turn each.
_GATHER_S = 0.05
_MOST_CHARACTERS = 64 << 10


class StreamedPage(StreamingResponse):
    """A response whose text comes from the iterator `chunks`, which runs on a thread.

    Calls the argument `stop` when the browser has closed the connection or has received the last chunk, so that the
    search for the page ends.
    """

    def __init__(
        self,
        chunks: Iterator[str],
        stop: Callable[[], None],
        *,
        content_type: str = "text/html; charset=utf-8",
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(
            _gathered(chunks, stop),
            media_type=content_type,
            headers={"cache-control": "no-store", "x-accel-buffering": "no", **(headers or {})},
        )


async def _gathered(chunks: Iterator[str], stop: Callable[[], None]) -> AsyncIterator[bytes]:
    limiter = anyio.CapacityLimiter(1)  # a search must not wait for the threads of other pages
    running = Lock()
    is_last = False
    try:
        while True:
            text, is_last = await anyio.to_thread.run_sync(
                lambda: _next_chunks(chunks, running), abandon_on_cancel=True, limiter=limiter
            )
            if text:
                yield text.encode("utf-8", "replace")
            if is_last:
                return
    except Exception:
        # The head of the response was sent, so that no other page can be.
        log.exception("A page failed while it was sent")
        yield b"\nThe console failed here by a defect; its log has the details.\n"
    finally:
        stop()
        if not is_last:
            Thread(target=_close, args=(chunks, running), name="end of a page", daemon=True).start()


def _close(chunks: Iterator[str], running: Lock) -> None:
    """Closes the generator of a page that the browser has left, to release what the generator holds.

    Waits while a thread runs the generator. Without this call, the generator would be closed by the garbage collector
    at an unknown later time.
    """
    with running:
        close = getattr(chunks, "close", None)
        if close is not None:
            close()


def _next_chunks(chunks: Iterator[str], running: Lock) -> tuple[str, bool]:
    """Takes the next chunks from the iterator, and returns (their text, whether the iterator has ended).

    Stops after an empty chunk, by which the page requests that the rows so far are sent; after _GATHER_S seconds; or
    when the text has more than _MOST_CHARACTERS characters.
    """
    gathered, began_s, length = [], time.monotonic(), 0
    with running:
        for chunk in chunks:
            gathered.append(chunk)
            length += len(chunk)
            if not chunk or length > _MOST_CHARACTERS or time.monotonic() - began_s >= _GATHER_S:
                return "".join(gathered), False
    return "".join(gathered), True
