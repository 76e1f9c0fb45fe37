"""The threads of TLS handshakes."""

from __future__ import annotations

import os
import threading
import time

from kafkapy._core.tls.handshake_pool import HandshakePool

TIMEOUT_S = 20.0


def niceness(thread: int) -> int:
    return os.getpriority(os.PRIO_PROCESS, thread)


def test_handshakes_have_a_lower_priority_than_the_thread_that_started_them() -> None:
    pool = HandshakePool()
    own = niceness(0)
    others = set(threading.enumerate())
    pool.start(2)
    started = set(threading.enumerate()) - others
    try:
        assert len(started) == 2
        for each in started:
            assert each.native_id is not None
            end = time.monotonic() + TIMEOUT_S
            while niceness(each.native_id) == own < 19:
                assert time.monotonic() < end
            assert niceness(each.native_id) == min(own + 5, 19)
        assert niceness(0) == own
    finally:
        pool.stop()
    assert not any(each.is_alive() for each in started)
