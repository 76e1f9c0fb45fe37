"""Tests of confluent-kafka's AdminClient on kafkapy's admin client, without a broker."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.client.admin import Results
from kafkapy.compat.confluent_kafka import KafkaError, KafkaException
from kafkapy.compat.confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from kafkapy.errors import ApiError, Error

PATIENCE_S = 30


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_configuration_that_cannot_be_read_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    altered: list[str] = []

    class Admin:
        """An admin client that may not describe the topic "secret"."""

        def describe_configs(self, resources: Any, timeout: float) -> Results[Any, Any]:
            results: Results[Any, Any] = Results()
            for each in resources:
                refused = each.name == "secret"
                results.put(each, ApiError(Error.TOPIC_AUTHORIZATION_FAILED) if refused else {})
            return results

        def incremental_alter_configs(self, changes: Any, *, validate_only: bool, timeout: float) -> Results[Any, Any]:
            altered.extend(each.name for each in changes)
            results: Results[Any, Any] = Results()
            for each in changes:
                results.put(each, None)
            return results

    admin = Admin()
    with AdminClient({"bootstrap.servers": "127.0.0.1:1"}) as client, monkeypatch.context() as patch:
        patch.setattr(client, "_admin", lambda: admin)
        resources = [ConfigResource(ResourceType.TOPIC, name, {"retention.ms": "1"}) for name in ("open", "secret")]
        futures = client.alter_configs(resources)
        assert futures[resources[0]].result(PATIENCE_S) == {}
        with pytest.raises(KafkaException) as caught:
            futures[resources[1]].result(PATIENCE_S)
    assert caught.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED  # type: ignore[attr-defined]
    assert altered == ["open"]
