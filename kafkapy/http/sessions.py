"""Sessions of users who have logged in, limited in number and time, and the limit on failed logins."""

from __future__ import annotations

import hmac
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from threading import Lock
from typing import Any

MOST_SESSIONS = 100
SESSION_IDLE_S = 8 * 3600.0
LONGEST_S = 24 * 3600.0
# Failed logins that are accepted in a period, of all clients together.
MOST_FAILURES = 10
FAILURE_PERIOD_S = 60.0


class Session:
    """The session of a user who has logged in. Every form of the session contains `form_token`; a form that is sent
    without it is refused, because it may come from another site. `state` is any object of the application."""

    __slots__ = ("began_s", "form_token", "key", "state", "used_s", "user")

    def __init__(self, user: str, now_s: float, state: Any = None) -> None:
        self.key = secrets.token_urlsafe(32)
        self.form_token = secrets.token_urlsafe(32)
        self.user = user
        self.began_s = self.used_s = now_s
        self.state = state

    def accepts_form(self, token: str) -> bool:
        """Returns True if `token`, which was sent with a form, is the form token of this session."""
        return hmac.compare_digest(self.form_token.encode(), token.encode())


class Sessions:
    """The sessions of a server. Thread-safe.

    A session ends after `idle_s` seconds without a request, and `longest_s` seconds after the login. The login that
    exceeds `most` sessions ends the session that was not used for the longest time. `on_end(session)` is called for
    each session that ends.
    """

    def __init__(
        self,
        *,
        most: int = MOST_SESSIONS,
        idle_s: float = SESSION_IDLE_S,
        longest_s: float = LONGEST_S,
        clock: Callable[[], float] = time.monotonic,
        on_end: Callable[[Session], None] = lambda session: None,
    ) -> None:
        self._most, self._idle_s, self._longest_s = most, idle_s, longest_s
        self._clock = clock
        self._on_end = on_end
        self._sessions: OrderedDict[str, Session] = OrderedDict()  # the one that was used last is at the end
        self._failures: deque[float] = deque()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, user: str, state: Any = None) -> Session:
        """Adds a session for `user`, who has logged in, and returns the session. `state` is any object of the
        application."""
        ended = []
        with self._lock:
            session = Session(user, self._clock(), state)
            self._sessions[session.key] = session
            while len(self._sessions) > self._most:
                ended.append(self._sessions.popitem(last=False)[1])
        for each in ended:
            self._on_end(each)
        return session

    def find(self, key: str) -> Session | None:
        """Returns the session with this key and marks it as used; None if it does not exist or has ended."""
        now_s = self._clock()
        with self._lock:
            session = self._sessions.get(key)
            if session is None:
                return None
            if now_s - session.used_s <= self._idle_s and now_s - session.began_s <= self._longest_s:
                session.used_s = now_s
                self._sessions.move_to_end(key)
                return session
            del self._sessions[key]
        self._on_end(session)
        return None

    def end(self, key: str) -> None:
        """Ends a session, if it exists."""
        with self._lock:
            session = self._sessions.pop(key, None)
        if session is not None:
            self._on_end(session)

    def end_all(self) -> None:
        """Ends all sessions."""
        for key in list(self._sessions):
            self.end(key)

    def try_login(self) -> bool:
        """Returns True if a login may be attempted now, and False after too many failed logins in the last minute.

        An attempt counts as failed until `forgive` is called, so that attempts at the same time cannot exceed the
        limit.
        """
        now_s = self._clock()
        with self._lock:
            while self._failures and now_s - self._failures[0] > FAILURE_PERIOD_S:
                self._failures.popleft()
            if len(self._failures) >= MOST_FAILURES:
                return False
            self._failures.append(now_s)
            return True

    def forgive(self) -> None:
        """Counts one attempt less, because its login has not failed."""
        with self._lock:
            if self._failures:
                self._failures.pop()
