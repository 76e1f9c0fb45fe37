"""A page that is sent while it is made: the work for it ends when the browser leaves."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

import anyio
import pytest

from kafkapy.console.streaming import StreamedPage


@pytest.mark.parametrize("received", [0, 1, 3])
def test_the_work_for_a_page_ends_when_the_browser_leaves(received):
    stopped, ended = Event(), Event()

    def chunks() -> Iterator[str]:
        try:
            while True:
                yield "row"
                yield ""  # sends what there is
        finally:
            ended.set()

    # The reference keeps the generator alive, so that the garbage collector cannot end it.
    work = chunks()

    async def leave() -> None:
        body = StreamedPage(work, stopped.set).body_iterator
        with anyio.CancelScope() as scope:
            count = 0
            async for _ in body:
                count += 1
                if count > received:
                    scope.cancel()
                    await anyio.lowlevel.checkpoint()
        await body.aclose()

    anyio.run(leave)
    assert stopped.is_set()
    assert ended.wait(30)
    assert next(work, "closed") == "closed"
