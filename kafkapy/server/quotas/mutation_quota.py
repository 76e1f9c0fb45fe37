"""The quota of changes that the controller makes for a client (KIP-599): a token bucket, which may fall below zero.

A partition that is created or deleted costs one token. The bucket holds at most the tokens that are added in one window
of controller.quota.window.num samples. If the bucket is below zero when a request arrives, the request is refused if
its version has the error THROTTLING_QUOTA_EXCEEDED, and served otherwise. The throttle time is the time until the
bucket is at zero again.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import floor, inf
from threading import Lock
from typing import NamedTuple

from kafkapy._core.broker_state.quota_sensor import QuotaSensor
from kafkapy.config.row import INT_MAX
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.image import QuotaEntity
from kafkapy.security.principal import Principal
from kafkapy.server.quotas.delays import Delays
from kafkapy.server.quotas.precedence import BUCKET_IDLE_MS, Bucket, Limits


class MutationBucket:
    """The tokens of one bucket. Thread-safe; the caller passes the time.

    The quorum thread takes tokens, and the reactor's thread changes the rate and looks for idle buckets. Both threads
    also add the tokens of the time that has passed; a lock ensures that no change of `tokens` is lost. `spent` measures
    the rate at which tokens were taken.
    """

    __slots__ = ("_lock", "_rate", "_updated_ms", "_window_s", "rule", "spent", "tokens")

    def __init__(self, rate: float, sample_limit: int, sample_ms: int, monotonic_ms: int, rule: str = "") -> None:
        """Creates a full bucket, which gains `rate` tokens per second.

        Its capacity is the tokens of `sample_limit` periods of `sample_ms` milliseconds. `rule` is a text that names
        the entity of the quota that sets the rate.
        """
        window_s = sample_limit * sample_ms / 1000
        self._lock = Lock()
        self.rule = rule
        self.spent = QuotaSensor(inf, sample_limit, sample_ms)
        self._rate = rate
        self._window_s = window_s
        self._updated_ms = monotonic_ms
        self.tokens = rate * window_s

    def set_rate(self, rate: float, monotonic_ms: int) -> None:
        """Changes the rate. Tokens beyond the new capacity are lost."""
        with self._lock:
            if rate != self._rate:
                self._refill(monotonic_ms)
                self._rate = rate

    @property
    def rate(self) -> float:
        """The tokens that are added in a second."""
        return self._rate

    def _refill(self, monotonic_ms: int) -> None:
        """Adds the tokens of the time that has passed. The caller holds the lock."""
        gained = self._rate * (monotonic_ms - self._updated_ms) / 1000
        self.tokens = min(self._rate * self._window_s, self.tokens + gained)
        self._updated_ms = monotonic_ms

    def take(self, count: float, monotonic_ms: int) -> None:
        with self._lock:
            self._refill(monotonic_ms)
            self.tokens = min(self._rate * self._window_s, self.tokens - count)
            self.spent.record(count, monotonic_ms)

    def is_idle(self, monotonic_ms: int) -> bool:
        """Returns whether nothing was taken for an hour and the bucket is full, as a new one would be."""
        if monotonic_ms - self.spent.last_record_ms <= BUCKET_IDLE_MS:
            return False
        with self._lock:
            self._refill(monotonic_ms)
            return self.tokens >= self._rate * self._window_s

    def throttle_ms(self, monotonic_ms: int) -> int:
        """Returns the milliseconds until the bucket has at least 0 tokens, at most INT_MAX.

        Returns 0 if the quota is NaN, which Kafka accepts and which limits nothing.
        """
        with self._lock:
            self._refill(monotonic_ms)
            if not self.tokens < 0:
                return 0
            wait_ms = -self.tokens / self._rate * 1000 + 0.5
        return floor(wait_ms) if wait_ms < INT_MAX else INT_MAX


class MutationQuota:
    """Charges the changes of one request to the quota of its client, and measures the throttle time.

    `bucket` has the tokens of all clients that share the limit. Only the quorum thread, which runs the controller, may
    use the object, except `remaining_ms`.
    """

    __slots__ = ("_bucket", "_is_strict", "_measured_ms", "_throttle_ms")

    def __init__(self, bucket: MutationBucket, *, is_strict: bool) -> None:
        """If `is_strict` is True, `charge` refuses changes while the bucket has fewer than 0 tokens."""
        self._bucket = bucket
        self._is_strict = is_strict
        self._throttle_ms = 0
        self._measured_ms = 0

    def charge(self, partitions: int, monotonic_ms: int) -> None:
        """Takes `partitions` tokens from the bucket.

        If the quota is strict and the bucket has fewer than 0 tokens, takes none and raises ApiError
        THROTTLING_QUOTA_EXCEEDED.
        """
        bucket = self._bucket
        if self._is_strict:
            if self._measure(bucket, monotonic_ms):
                raise ApiError(Error.THROTTLING_QUOTA_EXCEEDED)
            bucket.take(partitions, monotonic_ms)
        else:
            bucket.take(partitions, monotonic_ms)
            self._measure(bucket, monotonic_ms)

    def _measure(self, bucket: MutationBucket, monotonic_ms: int) -> int:
        throttle_ms = bucket.throttle_ms(monotonic_ms)
        if throttle_ms:
            self._throttle_ms, self._measured_ms = throttle_ms, monotonic_ms
        return throttle_ms

    def remaining_ms(self, monotonic_ms: int) -> int:
        """Returns how much of the throttle time remains at `monotonic_ms`, in milliseconds; 0 if it has passed.

        This is the throttle time that `charge` measured last.
        """
        return max(0, self._throttle_ms - (monotonic_ms - self._measured_ms)) if self._throttle_ms else 0


class MutationSpending(NamedTuple):
    """The tokens of the clients that share a limit (`bucket`), and the rate at which the clients take them.

    The limit is `bound` tokens per second.
    """

    bucket: Bucket
    tokens: float
    rate: float  # tokens taken per second
    bound: float
    rule: str  # the entity of the quota that sets the bound
    throttle_ms: float  # the average of the throttle times within the window, or 0


class MutationQuotas:
    """The token buckets for all groups of clients that share a limit.

    `apply` and `quota` are called by the reactor's thread.
    """

    def __init__(self, limits: Limits, sample_limit: int, sample_ms: int) -> None:
        self._sample_limit = sample_limit
        self._sample_ms = sample_ms
        self._delays = Delays(sample_limit * sample_ms)
        self._limits = limits
        self._buckets: dict[Bucket, MutationBucket] = {}

    def apply(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Applies the limits that the quotas of a metadata image set for controller_mutation_rate.

        `quotas` maps each entity, such as a user, to {quota key: limit}.
        """
        self._limits.apply(quotas)
        if self._limits.is_empty:
            self._buckets.clear()

    def quota(
        self, principal: Principal, client_id: str, monotonic_ms: int, *, is_strict: bool
    ) -> MutationQuota | None:
        """Returns the quota for one request of the client, or None if nothing limits the client.

        If `is_strict` is True, a request that exceeds the quota is refused instead of served.
        """
        limit = self._limits.find(principal, client_id)
        if limit is None:
            return None
        bucket = self._buckets.get(limit.bucket)
        if bucket is None:
            bucket = self._buckets[limit.bucket] = MutationBucket(
                limit.bound, self._sample_limit, self._sample_ms, monotonic_ms, limit.rule
            )
        else:
            bucket.set_rate(limit.bound, monotonic_ms)
            bucket.rule = limit.rule
        return MutationQuota(bucket, is_strict=is_strict)

    def note_delay(self, principal: Principal, client_id: str, throttle_ms: int, monotonic_ms: int) -> None:
        """Counts a client's delay of `throttle_ms`. The delay begins at `monotonic_ms`, the time of the call."""
        limit = self._limits.find(principal, client_id)
        if limit is not None:
            self._delays.add(limit.bucket, throttle_ms, monotonic_ms)

    def drop_idle(self, monotonic_ms: int) -> None:
        """Drops the buckets that were not used for an hour and are full."""
        for bucket in [bucket for bucket, each in self._buckets.items() if each.is_idle(monotonic_ms)]:
            del self._buckets[bucket]
            self._delays.drop(bucket)

    def waiting(self, monotonic_ms: int) -> int:
        """Returns how many delays by this quota (controller_mutation_rate) still last at `monotonic_ms`.

        Each delay is that of a client whose changes exceeded the quota. Any thread may call it.
        """
        return self._delays.waiting(monotonic_ms)

    def spending(self, monotonic_ms: int) -> list[MutationSpending]:
        """Returns the spending of each bucket, that is of the clients that share one limit.

        Buckets that are full, because no client has taken tokens for an hour, are left out. Any thread may call it.
        """
        return [
            MutationSpending(
                bucket,
                each.tokens,
                each.spent.rate(monotonic_ms),
                each.rate,
                each.rule,
                self._delays.average_ms(bucket, monotonic_ms),
            )
            for bucket, each in list(self._buckets.items())
        ]
