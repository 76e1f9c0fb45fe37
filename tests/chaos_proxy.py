"""A proxy between a client and a broker that causes the faults of a bad network, at random moments that a seed decides.

Each piece of data that passes, in either direction, may be delayed. The connection may break before it or in the middle
of it. Or the proxy stops passing data, although both connections stay open.
"""

from __future__ import annotations

import asyncio
import random
import threading
from concurrent.futures import Future
from types import TracebackType
from typing import NamedTuple, Self

PIECE_BYTES = 4096


class Chances(NamedTuple):
    """The probability of each fault of a piece of data; `longest_delay_s` bounds the delay."""

    delay: float = 0.0
    longest_delay_s: float = 0.05
    drop: float = 0.0
    cut: float = 0.0
    silence: float = 0.0


CALM = Chances()


class ChaosProxy:
    """Listens on `port` of loopback and passes data on to `target_port`, on a thread of its own.

    Any thread may change `chances` at any moment; `faults` counts the faults of each kind.
    """

    def __init__(self, port: int, target_port: int, seed: int) -> None:
        self.port = port
        self.chances = CALM
        self.faults: dict[str, int] = dict.fromkeys(("delay", "drop", "cut", "silence"), 0)
        self._target_port = target_port
        self._chance = random.Random(seed)
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._started: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name="chaos-proxy", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.result(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def sever(self) -> None:
        """Breaks all connections, including idle ones."""
        self._loop.call_soon_threadsafe(self._sever)

    def _sever(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._connected, "localhost", self.port))
        self._started.set_result(None)
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._sever()
        self._loop.run_until_complete(asyncio.sleep(0))

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("localhost", self._target_port)
        except OSError:
            writer.transport.abort()
            return
        pair = {writer, far_writer}
        self._writers |= pair
        try:
            await asyncio.gather(self._pump(reader, far_writer), self._pump(far_reader, writer))
        except (OSError, EOFError):
            pass  # one side is gone, by us or by itself: the other goes too
        finally:
            self._writers -= pair
            for each in pair:
                each.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            piece = await reader.read(PIECE_BYTES)
            if not piece:
                raise EOFError
            fate = self._fate()
            if fate is not None:
                self.faults[fate] += 1
            if fate == "delay":
                await asyncio.sleep(self._chance.random() * self.chances.longest_delay_s)
            elif fate == "drop":
                raise EOFError
            elif fate == "silence":
                await self._loop.create_future()  # until the connection is severed
            elif fate == "cut":
                writer.write(piece[: self._chance.randrange(len(piece))])
                await writer.drain()
                raise EOFError
            writer.write(piece)
            await writer.drain()

    def _fate(self) -> str | None:
        draw = self._chance.random()
        for name in self.faults:
            draw -= getattr(self.chances, name)
            if draw < 0:
                return name
        return None
