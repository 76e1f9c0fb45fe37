"""The commands of docs/election.md run as they are written, and show the records that the page explains."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documents.blocks import Block, of_section
from tests.documents.newcomer import Newcomer
from tests.documents.shell import Shell

PAGE = "docs/election.md"
pytestmark = pytest.mark.timeout(300)
PARTITION_CHANGE = '"type":"PARTITION_CHANGE_RECORD"'


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[Newcomer]:
    with Newcomer(tmp_path) as made:
        made.activates(". .venv/bin/activate")
        yield made


def section(heading: str) -> list[Block]:
    return of_section(PAGE, heading)


def test_the_page_shows_one_election(newcomer: Newcomer) -> None:
    start, folder = section("The cluster")
    sandbox = newcomer.leaves_running(start.text, until="sandbox ready", timeout_s=120)
    (client,) = section("A client")
    with Shell(newcomer) as shell:
        shell.types(folder.text)
        state, create, metadata = section("Two kinds of leaders")
        assert shell.types(state.text).count('"leaderEpoch":') == 3
        assert "Created topic story." in shell.types(create.text)
        assert '"type":"PARTITION_RECORD"' in shell.types(metadata.text)
        probe = newcomer.leaves_running(client.text, until="acknowledged", timeout_s=120)

        (crash,) = section("The crash")
        assert "killed" in shell.types(crash.text)
        # A reader waits for the client; the page's own command tells when the controller has fenced the broker.
        change, describe = section("A new leader of the partition")[0].text.splitlines()
        shell.repeats(change, until='"fenced":1')
        (log, votes) = section("A new leader of the quorum")
        assert "active since epoch" in shell.types(log.text) and "Fencing broker" in shell.types(log.text)
        assert shell.types(votes.text).count('"leaderId":') == 3
        leader_change, partition_change, _ = shell.types(change).splitlines()
        assert "LeaderChange: " in leader_change and PARTITION_CHANGE in partition_change
        second = shell.types("echo $SECOND").strip()
        assert f"Leader: {second}" in shell.types(describe)

        back, grown, preferred = section("The return")
        assert "restarted" in shell.types(back.text)
        shell.repeats(back.text.splitlines()[1], until=PARTITION_CHANGE)
        assert "proposes the ISR" in shell.types(grown.text)
        assert '"leader":' + shell.types("echo $ACTIVE").strip() in shell.types(preferred.text)

        probe.send_signal(signal.SIGINT)
        assert probe.wait(60) == 128 + signal.SIGINT
        (result,) = section("Nothing was lost")
        printed = shell.types(result.text)
        # The client may have stopped before it found the preferred leader of the third epoch.
        assert printed.count("partitionLeaderEpoch: ") in (2, 3)
        sums = [line.split()[0] for line in printed.splitlines() if line.endswith("/00000000000000000000.log")]
        assert len(sums) == 3 and len(set(sums)) == 1
    stop_cleanly(sandbox)


def stop_cleanly(sandbox: subprocess.Popen[bytes]) -> None:
    sandbox.send_signal(signal.SIGTERM)
    assert sandbox.wait(60) == 0
