"""The review, the command and the audit of a changed configuration show no password."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kafkapy.client.admin import ConfigEntry
from kafkapy.console.changes.topic_changes import ALTER_CONFIGURATION
from kafkapy.console.changing import audit_entry
from kafkapy.http.sessions import Session

LISTED, UNLISTED = "ssl.keystore.password", "listener.name.internal.ssl.keystore.password"


class View:
    """A cluster whose brokers describe one password and one other key."""

    name, servers = "test", "broker:9092"

    def __init__(self):
        self.admin = SimpleNamespace(incremental_alter_configs=lambda *_, **__: SimpleNamespace(check=lambda: None))

    def configuration(self, kind, name):
        return [ConfigEntry(LISTED, None, 5, True, False), ConfigEntry("log.retention.ms", "1", 5, False, False)]


@pytest.mark.parametrize("key", [LISTED, UNLISTED, "a.key.of.a.plug-in"])
def test_a_password_is_in_no_review_command_or_audit(key):
    view, fields = View(), {"kind": "broker", "name": "1", "set": f"{key}=hunter2\nlog.retention.ms=7", "remove": ""}
    plan = ALTER_CONFIGURATION.plan(view, fields)
    visit = SimpleNamespace(session=Session("ann", 0.0), cluster=view)
    entry = audit_entry(visit, ALTER_CONFIGURATION, fields, plan)
    assert "hunter2" not in f"{plan.rows} {entry}"
    assert entry["fields"] == {**fields, "set": f"{key}=***\nlog.retention.ms=7"}
    assert entry["commands"][0].endswith(f"--add-config '{key}=***,log.retention.ms=7'")
    assert ("log.retention.ms", "1", "7") in plan.rows
