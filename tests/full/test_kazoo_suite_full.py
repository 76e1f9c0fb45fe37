"""The test suite of kazoo itself, on the listener of a broker instead of ZooKeeper."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
MODULES = (
    "barrier", "client", "connection", "counter", "election", "interrupt", "lease", "lock", "partitioner",
    "party", "queue", "retry", "watchers",
)  # fmt: skip
# Tests that need what this listener does not have.
OUT_OF_SCOPE = {
    "TestClient::test_update_host_list": "several servers",
    "TestReadOnlyMode::test_read_only": "several servers",
    "TestSSLClient::test_create": "a second port, with TLS",
    "TestReconfig::test_add_remove_observer": "reconfig",
    "TestReconfig::test_bad_input": "reconfig",
    "TestReconfig::test_no_super_auth": "reconfig",
}


def run_suite(modules):
    """Runs modules of the suite with one broker. Returns the output, and the names of the tests that failed."""
    options = ["-q", "-n", "0", "-p", "tests.zookeeper.kazoo_cluster", "-o", "addopts=", "-o", "filterwarnings="]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            *options,
            "-rf",
            "--pyargs",
            *(f"kazoo.tests.test_{name}" for name in modules),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout, set(re.findall(r"^FAILED \S*?(\w+::\w+)(?: |$)", done.stdout, re.MULTILINE))


def test_kazoos_own_suite_passes():
    output, failed = run_suite(MODULES)
    assert failed == set(OUT_OF_SCOPE), output[-6000:]
    assert re.search(r"\d+ passed", output)


def test_kazoos_own_suite_of_sasl_passes():
    output, failed = run_suite(("sasl",))  # its two tests of GSSAPI need a library and a KDC, and skip themselves
    assert not failed, output[-6000:]
    assert re.search(r"\b4 passed, 2 skipped", output), output[-6000:]
