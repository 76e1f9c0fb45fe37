"""The registry client of the Go library franz-go against our registry: each of its calls has the expected result."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.clients.legacy.installation import built_go_program

pytestmark = pytest.mark.timeout(900)

PROGRAM = Path(__file__).with_name("franz_go")
ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}'


def test_each_call_of_the_client_has_the_expected_result(registry):
    command = [str(built_go_program("franz-go-registry", PROGRAM)), registry.url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    results = dict(map(json.loads, done.stdout.splitlines()))
    encoded = results.pop("encoded")
    assert results == {
        "created": 1,
        "created again": True,
        "second": 2,
        "refused": True,
        "text": ORDER,
        "found": 2,
        "latest": 2,
        "versions": [1, 2],
        "usages": ["go", 1],
        "types": ["AVRO", "PROTOBUF", "JSON"],
        "referrers": [1, "go-batch"],
        "compatible": [False, True],
        "level": "FULL_TRANSITIVE",
        "level again": "FULL_TRANSITIVE",
        "level before": "FULL_TRANSITIVE",
        "mode": "READONLY",
        "read-only": True,
        "mode before": "READONLY",
        "deleted": None,
        "subjects": ["go", "go-batch"],
        "deleted subject": [1],
        "gone": [1, 2],
    }
    assert encoded.startswith("AAAAA"), "Confluent's wire format begins with a zero byte and the id in four bytes"
