"""The pages of the metadata log show neither passwords nor the keys of users."""

from __future__ import annotations

import pytest

from kafkapy.console.pages.metadata import HIDDEN_VALUE, _facts, _summary
from kafkapy.metadata.history import LoggedRecord
from kafkapy.metadata.image import BROKER_RESOURCE, EMPTY_IMAGE, TOPIC_RESOURCE
from kafkapy.protocol.messages.metadata_records import ConfigRecord, UserScramCredentialRecord

PASSWORD_KEY = "listener.name.internal.ssl.keystore.password"


def summary_of(message):
    return _summary(LoggedRecord(0, 0, 1, 0, message))


def config(key, resource_type=BROKER_RESOURCE):
    return ConfigRecord(resource_type=resource_type, resource_name="1", name=key, value="hunter2")


@pytest.mark.parametrize("key", [PASSWORD_KEY, "a.key.of.a.plug-in"])
def test_the_value_of_a_password_is_hidden(key):
    found = summary_of(config(key))
    assert "hunter2" not in found
    assert f"value: {HIDDEN_VALUE}" in found


def test_other_values_are_shown():
    assert "hunter2" in summary_of(config("log.retention.ms"))
    assert "hunter2" in summary_of(config("retention.ms", TOPIC_RESOURCE))


def test_the_keys_of_a_scram_credential_are_hidden():
    message = UserScramCredentialRecord(
        name="ann", mechanism=1, salt=b"salt-1", stored_key=b"stored-1", server_key=b"server-1", iterations=4096
    )
    found = summary_of(message)
    assert found.count(HIDDEN_VALUE) == 3
    assert "name: ann" in found
    assert "iterations: 4096" in found


def test_the_difference_of_two_images_tells_that_a_password_has_changed_and_not_its_value():
    first, second = (
        EMPTY_IMAGE._replace(configs={(BROKER_RESOURCE, "1"): {PASSWORD_KEY: value}}) for value in ("a1", "b2")
    )
    before, after = _facts(first), _facts(second)
    assert before != after
    assert {each.shown for each in (*before.values(), *after.values())} == {HIDDEN_VALUE}
