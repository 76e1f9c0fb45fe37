"""The quota of changes that the controller makes for a client (KIP-599): a token bucket, which may fall below zero.

A partition that is created or deleted costs one token. The bucket holds as many tokens as are added in the whole window
of samples. A request that finds it below zero is refused by versions that know the error, and carried out otherwise;
the time until the bucket is at zero again is the throttle time.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import floor

from kafkapy.errors import ApiError, Error
from kafkapy.metadata.image import QuotaEntity
from kafkapy.security.principal import Principal
from kafkapy.server.quotas.precedence import Bucket, Limits


class MutationBucket:
    """The tokens of one bucket. Not thread-safe; the caller passes the time."""

    __slots__ = ("_rate", "_updated_ms", "_window_s", "tokens")

    def __init__(self, rate: float, window_s: float, monotonic_ms: int) -> None:
        """Creates a full bucket that gains `rate` tokens per second, and holds those of `window_s` seconds."""
        self._rate = rate
        self._window_s = window_s
        self._updated_ms = monotonic_ms
        self.tokens = rate * window_s

    def set_rate(self, rate: float, monotonic_ms: int) -> None:
        """Changes the rate. Tokens beyond the new capacity are lost."""
        if rate != self._rate:
            self.refill(monotonic_ms)
            self._rate = rate

    def refill(self, monotonic_ms: int) -> None:
        """Adds the tokens of the time that has passed."""
        gained = self._rate * (monotonic_ms - self._updated_ms) / 1000
        self.tokens = min(self._rate * self._window_s, self.tokens + gained)
        self._updated_ms = monotonic_ms

    def take(self, count: float, monotonic_ms: int) -> None:
        self.refill(monotonic_ms)
        self.tokens = min(self._rate * self._window_s, self.tokens - count)

    def throttle_ms(self, monotonic_ms: int) -> int:
        """Returns the time until the bucket has no debt."""
        self.refill(monotonic_ms)
        return 0 if self.tokens >= 0 else floor(-self.tokens / self._rate * 1000 + 0.5)


class MutationQuota:
    """The quota of one request. Controller thread only, except `remaining_ms`."""

    __slots__ = ("_bucket", "_is_strict", "_measured_ms", "_throttle_ms")

    def __init__(self, bucket: MutationBucket, *, is_strict: bool) -> None:
        """`is_strict` says whether a request that finds the bucket in debt is refused."""
        self._bucket = bucket
        self._is_strict = is_strict
        self._throttle_ms = 0
        self._measured_ms = 0

    def charge(self, partitions: int, monotonic_ms: int) -> None:
        """Takes a token for each partition. Raises ApiError with THROTTLING_QUOTA_EXCEEDED if the quota is exceeded and
        strict; then nothing is taken."""
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
        """Returns what is left of the throttle time that was measured last."""
        return max(0, self._throttle_ms - (monotonic_ms - self._measured_ms)) if self._throttle_ms else 0


class MutationQuotas:
    """The buckets of all clients. `apply` and `quota` are called by the reactor's thread."""

    def __init__(self, limits: Limits, sample_limit: int, sample_ms: int) -> None:
        self._window_s = sample_limit * sample_ms / 1000
        self._limits = limits
        self._buckets: dict[Bucket, MutationBucket] = {}

    def apply(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Takes over the quotas of a metadata image."""
        self._limits.apply(quotas)
        if self._limits.is_empty:
            self._buckets.clear()

    def quota(
        self, principal: Principal, client_id: str, monotonic_ms: int, *, is_strict: bool
    ) -> MutationQuota | None:
        """Returns the quota for one request of the client, or None if nothing limits the client."""
        limit = self._limits.find(principal, client_id)
        if limit is None:
            return None
        bucket = self._buckets.get(limit.bucket)
        if bucket is None:
            bucket = self._buckets[limit.bucket] = MutationBucket(limit.bound, self._window_s, monotonic_ms)
        else:
            bucket.set_rate(limit.bound, monotonic_ms)
        return MutationQuota(bucket, is_strict=is_strict)

    def buckets(self) -> list[tuple[Bucket, float]]:
        """Returns the tokens of each bucket in use. Any thread may call it."""
        return [(bucket, each.tokens) for bucket, each in list(self._buckets.items())]
