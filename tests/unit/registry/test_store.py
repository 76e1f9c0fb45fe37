"""Records of the topic of schemas that the store cannot understand."""

from __future__ import annotations

import pytest

from kafkapy.registry.store import SchemaStore

KEY = b'{"keytype": "SCHEMA", "subject": "s", "version": 1, "magic": 1}'


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b'{"keytype": "DELETE_SUBJECT", "subject": "s", "magic": 0}', b'{"subject": "s", "version": null}'),
        (b'{"keytype": "CONFIG", "subject": "s", "magic": 1}', b"[" * 100_000),
        (b"[" * 100_000, b"{}"),
        (KEY, b'{"subject": "s", "version": 1, "id": 1e999, "schema": "1"}'),
        (KEY, b'{"subject": "s", "version": 1, "id": null, "schema": "1"}'),
        (KEY, b'{"subject": "s", "version": 1, "id": 8, "schema": "1", "metadata": "x"}'),
        (KEY, b'{"subject": "s", "version": 1, "id": 8, "schema": "1", "ruleSet": [1]}'),
        (KEY, b'{"subject": "s", "version": 1, "id": 8, "schema": 5}'),
        (KEY, b'{"subject": "s", "version": 1, "id": 8, "schema": "1", "schemaType": 5}'),
        (b'{"keytype": "MODE", "subject": "s", "magic": 0}', b'{"mode": "FORWARD"}'),
        (b'{"keytype": "CONFIG", "subject": "s", "magic": 0}', b'{"compatibilityLevel": "SIDEWAYS"}'),
    ],
)
def test_a_record_that_cannot_be_understood_has_no_effect(key: bytes, value: bytes, caplog) -> None:
    # An exception would end the loop over the records of a poll, and the later ones would never be applied.
    store = SchemaStore()
    store.apply(KEY, b'{"subject": "s", "version": 1, "id": 7, "schema": "{}"}')
    store.apply(key, value)
    assert [each.id for each in store.versions("s")] == [7]
    assert (store.mode("s"), store.config("s")) == (None, None)
    assert "is ignored" in caplog.text
