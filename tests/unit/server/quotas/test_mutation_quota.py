"""The token bucket of controller mutations, with the figures that Apache Kafka 4.3 shows."""

from __future__ import annotations

from math import inf, nan
from threading import Thread

import pytest

from kafkapy.config.row import INT_MAX
from kafkapy.errors import ApiError, Error
from kafkapy.security.principal import Principal
from kafkapy.server.quotas.mutation_quota import MutationBucket, MutationQuotas
from kafkapy.server.quotas.precedence import BUCKET_IDLE_MS, Bucket, StoredLimits

ENTITY = (("user", "u"),)
USER = Principal("User", "u")


def quotas_of(rate: float) -> MutationQuotas:
    quotas = MutationQuotas(StoredLimits("controller_mutation_rate"), 11, 1000)
    quotas.apply({ENTITY: {"controller_mutation_rate": rate}})
    return quotas


def test_a_request_may_take_more_than_there_is_and_the_next_one_is_refused() -> None:
    quotas = quotas_of(1)
    first = quotas.quota(USER, "c", 0, is_strict=True)
    assert first is not None
    first.charge(12, 0)
    assert first.remaining_ms(0) == 0
    second = quotas.quota(USER, "c", 18, is_strict=True)
    assert second is not None
    with pytest.raises(ApiError) as refused:
        second.charge(1, 18)
    assert refused.value.error is Error.THROTTLING_QUOTA_EXCEEDED
    assert second.remaining_ms(18) == 982
    assert second.remaining_ms(518) == 482
    assert second.remaining_ms(5000) == 0
    third = quotas.quota(USER, "c", 1000, is_strict=True)
    assert third is not None
    third.charge(1, 1000)


def test_an_old_request_is_carried_out_and_delays_the_client() -> None:
    quota = quotas_of(1).quota(USER, "c", 0, is_strict=False)
    assert quota is not None
    for _ in range(3):
        quota.charge(6, 0)
    assert quota.remaining_ms(0) == 7000


def test_clients_without_a_limit_have_no_quota() -> None:
    assert quotas_of(1).quota(Principal("User", "other"), "c", 0, is_strict=True) is None
    quotas = quotas_of(1)
    quotas.apply({})
    assert quotas.quota(USER, "c", 0, is_strict=True) is None
    assert quotas.spending(0) == []


def test_a_change_keeps_the_debt() -> None:
    quotas = quotas_of(1)
    quota = quotas.quota(USER, "c", 0, is_strict=False)
    assert quota is not None
    quota.charge(21, 0)
    quotas.apply({ENTITY: {"controller_mutation_rate": 10.0}})
    quota = quotas.quota(USER, "d", 0, is_strict=False)
    assert quota is not None
    quota.charge(0, 0)
    assert quota.remaining_ms(0) == 1000


def test_absurd_rates() -> None:
    for rate, throttle_ms in ((5e-324, INT_MAX), (1e-300, INT_MAX), (nan, 0), (inf, 0), (1e300, 0)):
        quotas = quotas_of(rate)
        for now_ms in (0, 0, 1):
            quota = quotas.quota(USER, "c", now_ms, is_strict=False)
            assert quota is not None
            quota.charge(10**6, now_ms)
        assert quota.remaining_ms(1) == throttle_ms


def test_the_spending_of_a_bucket() -> None:
    quotas = quotas_of(2)
    quota = quotas.quota(USER, "c", 0, is_strict=True)
    assert quota is not None
    quota.charge(30, 0)
    quotas.note_delay(USER, "c", 4000, 0)
    quotas.note_delay(USER, "c", 2000, 0)
    assert quotas.spending(0) == [(Bucket("u", ""), -8.0, 3.0, 2.0, "user u", 3000.0)]
    assert [quotas.waiting(now_ms) for now_ms in (0, 2000, 3999, 4000)] == [2, 1, 1, 0]


def test_full_buckets_that_were_not_used_for_an_hour_are_dropped() -> None:
    quotas = MutationQuotas(StoredLimits("controller_mutation_rate"), 11, 1000)
    quotas.apply({(("client-id", None),): {"controller_mutation_rate": 0.01}})
    for client_id, count in (("a", 1), ("b", 100)):
        quota = quotas.quota(USER, client_id, 0, is_strict=True)
        assert quota is not None
        quota.charge(count, 0)
        quotas.note_delay(USER, client_id, 1000, 0)
    quotas.drop_idle(BUCKET_IDLE_MS)
    assert [each.bucket.client_id for each in quotas.spending(0)] == ["a", "b"]
    quotas.drop_idle(BUCKET_IDLE_MS + 1)
    assert [each.bucket.client_id for each in quotas.spending(0)] == ["b"]  # which still has a debt
    quotas.drop_idle(4 * BUCKET_IDLE_MS)
    assert quotas.spending(0) == []


class InterruptedBucket(MutationBucket):
    """A bucket in which another thread takes five tokens while a change of the rate refills the bucket."""

    thread: Thread | None = None

    def _refill(self, monotonic_ms: int) -> None:
        if self.thread is not None:
            super()._refill(monotonic_ms)
            return
        tokens = self.tokens
        self.thread = Thread(target=self.take, args=(5, monotonic_ms))
        self.thread.start()
        self.thread.join(0.1)  # ends early only if nothing keeps the thread from taking its tokens now
        self.tokens = tokens


def test_a_change_of_the_rate_does_not_lose_the_tokens_that_another_thread_takes() -> None:
    bucket = InterruptedBucket(1, 11, 1000, 0)
    bucket.set_rate(2, 0)
    assert bucket.thread is not None
    bucket.thread.join()
    assert bucket.tokens == 11 - 5
