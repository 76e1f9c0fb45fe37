"""A streamed page gathers chunks, ends if its work fails, and stops the work when it is cancelled."""

from __future__ import annotations

import time

import anyio
import pytest

from kafkapy.console.streaming import StreamedPage


def collected(chunks, stopped):
    async def run():
        response = StreamedPage(chunks, lambda: stopped.append(True))
        return [chunk async for chunk in response.body_iterator]

    return anyio.run(run)


def test_an_empty_chunk_sends_what_there_is():
    stopped = []
    assert collected(iter(["head", "", "a", "b"]), stopped) == [b"head", b"ab"]
    assert stopped == [True]


def test_a_failure_ends_the_page(caplog):
    def chunks():
        yield "head"
        yield ""
        raise ZeroDivisionError

    stopped = []
    found = collected(chunks(), stopped)
    assert found[0] == b"head"
    assert b"The console failed here" in found[1]
    assert stopped == [True]
    assert "ZeroDivisionError" in caplog.text


def test_a_cancelled_page_stops_its_work():
    stopped = []

    def chunks():
        while not stopped:
            yield "x"
            time.sleep(0.001)

    async def run():
        response = StreamedPage(chunks(), lambda: stopped.append(True))
        with anyio.CancelScope() as scope:
            async for _ in response.body_iterator:
                scope.cancel()

    anyio.run(run)
    assert stopped


@pytest.mark.parametrize("count", [1, 1000])
def test_all_chunks_arrive(count):
    assert b"".join(collected(iter(["é"] * count), [])) == "é".encode() * count
