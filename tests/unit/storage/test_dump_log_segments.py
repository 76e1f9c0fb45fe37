"""Apache Kafka's DumpLogSegments reads the files that this broker writes, and reports no fault."""

import re

import pytest

from tests.harness.log import LogHarness, batch
from tests.peers import run_tool

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]

DUMP = "org.apache.kafka.tools.DumpLogSegments"
CONFIG = {"segment.bytes": 1024 * 1024, "index.interval.bytes": 4096}


@pytest.fixture
def directory(tmp_path):
    """Writes a log of several segments with every codec, an idempotent producer and an aborted transaction."""
    harness = LogHarness(tmp_path)
    log = harness.log(CONFIG)
    for number in range(250):
        records = batch(
            20,
            timestamp=harness.clock.wall_ms(),
            value=bytes([number % 251]) * 1600,
            compression=number % 5,
            producer_id=7,
            producer_epoch=1,
            base_sequence=number * 20,
        )
        log.append_as_leader(records, number // 100)
        harness.clock.advance(25)
    log.append_as_leader(batch(2, producer_id=9, producer_epoch=0, base_sequence=0, is_transactional=True), 2)
    log.append_as_leader(harness.marker(9, 0, commit=False), 2, from_client=False)
    log.close()
    return harness.path


def dump(kafka_43, *arguments):
    output = run_tool(kafka_43, DUMP, *[str(argument) for argument in arguments]).stdout.decode()
    assert not re.search(r"Mismatch|corrupt|Exception|isvalid: false|Found .* gaps", output, re.IGNORECASE), output
    return output


def test_segments_and_indexes(directory, kafka_43):
    logs = sorted(directory.glob("*.log"))
    assert len(logs) > 1
    output = dump(kafka_43, "--deep-iteration", "--files", ",".join(str(path) for path in logs))
    assert len(re.findall(r"^\| offset: \d+", output, re.MULTILINE)) == 250 * 20 + 3
    indexes = ",".join(str(path) for path in sorted([*directory.glob("*.index"), *directory.glob("*.timeindex")]))
    dump(kafka_43, "--verify-index-only", "--files", indexes)
    dump(kafka_43, "--index-sanity-check", "--files", indexes)
    dump(kafka_43, "--files", indexes)


def test_snapshot_and_transaction_index(directory, kafka_43):
    newest = max(directory.glob("*.snapshot"))
    output = dump(kafka_43, "--files", newest)
    assert "producerId: 7 producerEpoch: 1" in output
    assert "lastSequence: 4999" in output
    output = dump(kafka_43, "--files", ",".join(str(path) for path in directory.glob("*.txnindex")))
    assert "producerId: 9" in output
    assert re.search(r"firstOffset: 5000.*lastOffset: 5002.*lastStableOffset: 5003", output), output
