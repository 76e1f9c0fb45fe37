"""Tests of confluent-kafka's Producer on kafkapy's producer, without a broker."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.client.coordinator import GroupMetadata, MemberIdentity, OffsetAndMetadata
from kafkapy.compat.confluent_kafka import Producer, TopicPartition
from kafkapy.compat.confluent_kafka._group_metadata import group_metadata_bytes
from kafkapy.types import TopicPartition as Place

NOWHERE = {"bootstrap.servers": "127.0.0.1:1"}
GROUP = group_metadata_bytes(GroupMetadata("group", MemberIdentity(1, "member", None)))


def test_offsets_of_a_transaction_keep_their_metadata_and_leader_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    with Producer({**NOWHERE, "transactional.id": "id"}) as producer:
        monkeypatch.setattr(producer._client, "send_offsets_to_transaction", lambda offsets, *_: sent.append(offsets))
        positions = [TopicPartition("t", 0, 5, metadata="mine", leader_epoch=3), TopicPartition("t", 1)]
        producer.send_offsets_to_transaction(positions, GROUP)
        assert sent == [{Place("t", 0): OffsetAndMetadata(5, "mine", 3)}]
        for wrong in (None, (), [1]):
            with pytest.raises(TypeError):
                producer.send_offsets_to_transaction(wrong, GROUP)  # type: ignore[arg-type]


def test_records_that_are_reported_while_a_batch_ends_are_counted() -> None:
    with Producer(NOWHERE) as producer:
        client = producer._client

        class Batch:
            queue = SimpleNamespace(topic="t", partition=0)
            size_estimate = 1

            def take_callbacks(self) -> list[Any]:
                return []

            @property
            def record_count(self) -> int:
                """Returns 3; the first call lets the reports of another thread be counted first."""
                if client.finished_records == before:
                    client.finished_records += 10
                return 3

        before = client.finished_records
        client._on_batch_finished(Batch())  # type: ignore[arg-type]
        assert client.finished_records == before + 13
        client.finished_records = client.records_appended
