"""Checks of log files with Apache Kafka's DumpLogSegments."""

from __future__ import annotations

import re
from pathlib import Path

from tests.peers import run_tool

TIMEOUT_S = 900  # a long test leaves millions of batches
RECORD = re.compile(r"(?<= payload: ).*|(?<= key: ).*")
TOOL = "org.apache.kafka.tools.DumpLogSegments"
# The tool's reports of faults; its exit status is 0 even then.
COMPLAINTS = re.compile(
    r"isvalid: false|mismatch|Found .*(wrong|out of order|error)|corrupt|Exception|Non-consecutive|"
    r"is invalid|truncated|\bfail(ed|ure)?\b|\bWARN\b",
    re.IGNORECASE,
)


def dump(kafka: Path, files: list[Path], *options: str) -> str:
    """Returns the tool's output for these files. Raises AssertionError if the tool reports any fault."""
    done = run_tool(kafka, TOOL, *options, "--files", ",".join(map(str, files)), timeout_s=TIMEOUT_S)
    output = done.stdout.decode()
    says = RECORD.sub("", output)  # the content of a record may look like a report
    complaint = COMPLAINTS.search(says)
    if complaint is not None:
        start = max(0, complaint.start() - 600)
        raise AssertionError(f"the dump tool complains ({complaint.group()}):\n{says[start : complaint.end() + 600]}")
    return output


def dump_everything(kafka: Path, log_dirs: list[Path]) -> None:
    """Dumps all files of log directories without a running broker: segments, indexes, producer snapshots, and the
    records of coordinators and metadata."""
    partitions = [
        path
        for log_dir in log_dirs
        for path in sorted(log_dir.iterdir())
        if path.is_dir() and not path.name.endswith("-delete")
    ]
    metadata = [path for path in partitions if path.name == "__cluster_metadata-0"]
    groups = [path for path in partitions if path.name.startswith("__consumer_offsets-")]
    data = [path for path in partitions if path not in metadata and path not in groups]
    assert data
    dump(kafka, _files(data, ".log"), "--deep-iteration")
    dump(kafka, _files(partitions, ".index"), "--verify-index-only")
    dump(kafka, [*_files(data, ".timeindex"), *_files(metadata, ".timeindex")])
    snapshots = _files(data, ".snapshot")
    if snapshots:
        dump(kafka, snapshots)
    transactions = [path for path in partitions if path.name.startswith("__transaction_state-")]
    for coordinated, decoder in ((groups, "--offsets-decoder"), (transactions, "--transaction-log-decoder")):
        written = [path for path in _files(coordinated, ".log") if path.stat().st_size]
        if written:
            dump(kafka, written, decoder)
    decoded = dump(kafka, _files(metadata, ".log"), "--cluster-metadata-decoder")
    assert "TOPIC_RECORD" in decoded
    checkpoints = [path for path in _files(metadata, ".checkpoint") if path.name != "bootstrap.checkpoint"]
    if checkpoints:
        dump(kafka, checkpoints, "--cluster-metadata-decoder")


def _files(directories: list[Path], suffix: str) -> list[Path]:
    return [path for directory in directories for path in sorted(directory.glob(f"*{suffix}"))]
