"""Sources of the keys that verify tokens: a file, or the endpoint of an identity provider (KIP-768)."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from http.client import HTTPException
from typing import NamedTuple, Protocol
from urllib.error import URLError
from urllib.request import Request, urlopen

from kafkapy.security.oauth.json_web_token import JsonWebToken
from kafkapy.security.oauth.key_set import KeySet, UnknownKey

logger = logging.getLogger("kafka.security.oauthbearer.JwksKeySource")

LARGEST_KEY_SET_BYTES = 1 << 20
# An unknown key id causes a refresh, but each id at most once per minute; the last 16 ids are remembered.
MISSING_KEY_INTERVAL_S = 60.0
MISSING_KEYS = 16
LONGEST_KEY_ID = 1000
# Clients that invent key ids cannot cause more than one additional retrieval in this time.
EXPEDITED_INTERVAL_S = 10.0
RETRIEVAL_TIMEOUT_S = 10.0


class KeySource(Protocol):
    """Verifies signatures with the newest keys. Any thread may use the object."""

    def verify(self, token: JsonWebToken) -> None:
        """Raises InvalidToken if the signature is wrong. May block."""
        ...

    def close(self) -> None:
        """Ends the retrieval of keys."""
        ...


class KeyFile:
    """The keys of a local file. The file is read again when it has changed."""

    def __init__(self, path: str) -> None:
        """Reads the keys. Raises OSError if the file cannot be read, and ValueError if it is not a key set."""
        self._path = path
        self._version = self._read_version()
        self._keys = self._read()

    def verify(self, token: JsonWebToken) -> None:
        self._refresh()
        self._keys.verify(token)

    def close(self) -> None:
        """Does nothing: the file is open only while it is read."""

    def _refresh(self) -> None:
        try:
            version = self._read_version()
            if version == self._version:
                return
            self._keys = self._read()
            self._version = version
        except (OSError, ValueError) as error:
            logger.warning("The keys of %s cannot be read again; the previous keys are used: %s", self._path, error)

    def _read_version(self) -> tuple[int, int, int]:
        status = os.stat(self._path)
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _read(self) -> KeySet:
        with open(self._path, "rb") as file:
            return KeySet.parse(file.read(LARGEST_KEY_SET_BYTES))


class RefreshTimes(NamedTuple):
    """The intervals in seconds at which the keys of an endpoint are retrieved: `interval_s` after a success, and after
    a failure `retry_backoff_s`, which doubles with each further failure up to `retry_backoff_max_s`.
    """

    interval_s: float
    retry_backoff_s: float
    retry_backoff_max_s: float


class KeyEndpoint:
    """The keys at an HTTP(S) address. A thread retrieves them at intervals and after an unknown key id."""

    def __init__(self, url: str, times: RefreshTimes, fetch: Callable[[str], bytes] | None = None) -> None:
        """Retrieves the keys for the first time; if that fails, the thread tries again until it succeeds.

        `fetch(url)` returns the text of the key set; by default it is `fetch_key_set`.
        """
        self._url = url
        self._times = times
        self._fetch = fetch or fetch_key_set
        self._keys = KeySet([])
        self._condition = threading.Condition()
        self._is_closed = False
        self._is_expedited = False
        self._expedited_s = float("-inf")
        self._missing: OrderedDict[str, float] = OrderedDict()
        succeeded = self._retrieve()
        self._thread = threading.Thread(target=self._run, args=(succeeded,), name="oauth-key-retrieval", daemon=True)
        self._thread.start()

    def verify(self, token: JsonWebToken) -> None:
        try:
            self._keys.verify(token)
        except UnknownKey as error:
            if error.key_id is not None:
                self._expedite(error.key_id)
            raise

    def close(self) -> None:
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()

    def _expedite(self, key_id: str) -> None:
        """Makes the thread retrieve the keys now, because a token has an unknown key id.

        A client must not cause many requests to the identity provider. The method therefore does nothing if the id is
        longer than LONGEST_KEY_ID, or if it has caused a retrieval for any id in the last EXPEDITED_INTERVAL_S or for
        the same id in the last MISSING_KEY_INTERVAL_S.
        """
        now_s = time.monotonic()
        with self._condition:
            before_s = self._missing.get(key_id)
            if len(key_id) > LONGEST_KEY_ID or now_s - self._expedited_s < EXPEDITED_INTERVAL_S:
                return
            if before_s is not None and now_s - before_s < MISSING_KEY_INTERVAL_S:
                return
            self._expedited_s = now_s
            self._missing[key_id] = now_s
            self._missing.move_to_end(key_id)
            if len(self._missing) > MISSING_KEYS:
                self._missing.popitem(last=False)
            self._is_expedited = True
            self._condition.notify_all()

    def _run(self, succeeded: bool) -> None:
        failures = 0 if succeeded else 1
        while self._wait(self._pause_s(failures)):
            failures = 0 if self._retrieve() else failures + 1

    def _pause_s(self, failures: int) -> float:
        if not failures:
            return self._times.interval_s
        pause_s: float = self._times.retry_backoff_s * 2.0 ** min(failures - 1, 30)
        return min(self._times.retry_backoff_max_s, pause_s)

    def _wait(self, pause_s: float) -> bool:
        """Waits until `pause_s` has passed or `_expedite` demands a retrieval, and returns True. Returns False if the
        source is closed."""
        with self._condition:
            self._condition.wait_for(lambda: self._is_closed or self._is_expedited, pause_s)
            self._is_expedited = False
            return not self._is_closed

    def _retrieve(self) -> bool:
        try:
            self._keys = KeySet.parse(self._fetch(self._url))
        except (OSError, ValueError) as error:
            logger.error("The keys of OAUTHBEARER tokens could not be retrieved from %s: %s", self._url, error)
            return False
        if not self._keys.keys:
            logger.warning("The key set at %s has no RSA or EC key that may verify signatures", self._url)
        return True


def fetch_key_set(url: str) -> bytes:
    """Returns the document at an HTTP(S) address. Raises OSError if the document cannot be retrieved, and ValueError if
    it is larger than LARGEST_KEY_SET_BYTES."""
    request = Request(url, headers={"Accept": "application/json"})
    try:
        with urlopen(request, timeout=RETRIEVAL_TIMEOUT_S) as response:
            found: bytes = response.read(LARGEST_KEY_SET_BYTES + 1)
    except URLError as error:
        raise OSError(str(error.reason)) from error
    except HTTPException as error:  # a response that is not HTTP, or ends too early
        raise OSError(f"{type(error).__name__}: {error}") from error
    if len(found) > LARGEST_KEY_SET_BYTES:
        raise ValueError(f"the document is larger than {LARGEST_KEY_SET_BYTES} bytes")
    return found
