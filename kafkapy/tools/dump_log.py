"""The tool `kafka-dump-log`: prints segments, indexes and snapshots of a log directory. It needs no broker."""

from __future__ import annotations

import os
import re
import sys

from kafkapy.protocol.coordinator_record import Coordinator
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.dump_batches import BatchPrinter
from kafkapy.tools.dump_decoders import RecordDecoder, coordinator_decoder, decode_cluster_metadata, text_decoder
from kafkapy.tools.dump_indexes import IndexDump, dump_producer_snapshot, dump_transaction_index
from kafkapy.tools.option import INTEGER, Arguments, Option, ToolError
from kafkapy.tools.record_text import find_decoder
from kafkapy.tools.tool import run_tool

_SNAPSHOT_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_DECODER_FLAGS = (
    "offsets-decoder",
    "transaction-log-decoder",
    "cluster-metadata-decoder",
    "share-group-state-decoder",
    "value-decoder-class",
    "key-decoder-class",
)
_STRING_DECODER = "org.apache.kafka.tools.api.StringDecoder"


def decoder_of(arguments: Arguments) -> RecordDecoder | None:
    """Returns the decoder of keys and values that the flags choose; None if the flags do not ask to print records."""
    if arguments["offsets-decoder"]:
        return coordinator_decoder(Coordinator.GROUP)
    if arguments["transaction-log-decoder"]:
        return coordinator_decoder(Coordinator.TRANSACTION)
    if arguments["cluster-metadata-decoder"]:
        return decode_cluster_metadata
    if arguments["share-group-state-decoder"]:
        return coordinator_decoder(Coordinator.SHARE)
    if arguments["print-data-log"] or any(map(arguments.has, _DECODER_FLAGS)):
        key, value = (find_decoder(arguments[name] or _STRING_DECODER) for name in reversed(_DECODER_FLAGS[-2:]))
        return text_decoder(key, value)
    return None


def print_log(path: str, printer: BatchPrinter) -> None:
    """Prints a `.log` or `.checkpoint` file: its first offset, then its batches."""
    name = os.path.basename(path)
    if name.endswith(".log"):
        start = name.split(".")[0]
        if not start.isdigit():
            raise ToolError(f'For input string: "{start}"')
        print(f"Log starting offset: {int(start)}")
    elif name == "bootstrap.checkpoint":
        print("KRaft bootstrap snapshot")
    else:
        found = _SNAPSHOT_NAME.match(name)
        if found is None:
            raise ToolError(f"{path} is not named like a snapshot: OFFSET-EPOCH.checkpoint")
        print(f"Snapshot end offset: {int(found[1])}, epoch: {int(found[2])}")
    printer.print_file(path)


def run(arguments: Arguments) -> int:
    """Prints the files, then the errors found in them; returns 0, the exit code."""
    arguments.require("files")
    decoder = decoder_of(arguments)
    printer = BatchPrinter(
        sys.stdout,
        is_deep=arguments["deep-iteration"] or decoder is not None,
        decoder=decoder,
        skips_metadata=arguments["skip-record-metadata"],
        max_bytes=arguments["max-bytes"],
    )
    indexes = IndexDump(
        sys.stdout,
        is_sanity_check=arguments["index-sanity-check"],
        is_quiet=arguments["verify-index-only"],
        max_message_size=arguments["max-message-size"],
    )
    for path in arguments["files"].split(","):
        print(f"Dumping {path}")
        suffix = os.path.splitext(path)[1]
        if suffix in (".log", ".checkpoint"):
            print_log(path, printer)
        elif suffix == ".index":
            indexes.dump_offset_index(path)
        elif suffix == ".timeindex":
            indexes.dump_time_index(path)
        elif suffix == ".snapshot":
            dump_producer_snapshot(path, sys.stdout)
        elif suffix == ".txnindex":
            dump_transaction_index(path, sys.stdout)
        else:
            print(f"Ignoring unknown file {path}", file=sys.stderr)
    sys.stdout.flush()
    indexes.print_offset_mismatches()
    indexes.print_time_index_errors()
    for path, gaps in printer.gaps.items():
        print(f"Non-consecutive offsets in {path}", file=sys.stderr)
        for previous in sorted(gaps):
            print(f"  {previous} is followed by {gaps[previous]}", file=sys.stderr)
    return 0


OPTIONS = (
    Option(
        "files",
        "REQUIRED: The files, separated by commas: .log, .index, .timeindex, .snapshot, .txnindex, .checkpoint.",
        "file1, file2, ...",
        completes="file",
    ),
    Option("print-data-log", "Print keys and values as well; implied by any decoder."),
    Option("deep-iteration", "Print each record, not only batches; implied by --print-data-log."),
    Option("verify-index-only", "Compare indexes with their segment and print only errors."),
    Option("index-sanity-check", "Only check an index as the broker of Apache Kafka does when it starts."),
    Option("max-message-size", "The size of the largest batch that an index may point to.", "size", INTEGER, 5242880),
    Option("max-bytes", "The number of bytes to read of a segment.", "size", INTEGER, 2**31 - 1),
    Option(
        "value-decoder-class",
        "The decoder of values: Kafka's StringDecoder, LongDecoder, IntegerDecoder, or a Python callable as "
        "module:name.",
        "",
        default=_STRING_DECODER,
        argument_is_optional=True,
    ),
    Option("key-decoder-class", "The decoder of keys.", "", default=_STRING_DECODER, argument_is_optional=True),
    Option("offsets-decoder", "Decode records as those of __consumer_offsets."),
    Option("transaction-log-decoder", "Decode records as those of __transaction_state."),
    Option("cluster-metadata-decoder", "Decode records as those of the metadata log."),
    Option("share-group-state-decoder", "Decode records as those of __share_group_state."),
    Option("skip-record-metadata", "Print only keys and values, without metadata and control records."),
)
TOOL = Tool(
    name="dump-log",
    description="This tool helps to parse a log file and dump its contents to the console, useful for debugging a "
    "seemingly corrupt log segment.",
    run=run,
    options=OPTIONS,
    not_here=(("remote-log-metadata-decoder", "kafkapy has no tiered storage"),),
    examples=(
        Example("The batches of a segment", "--files data/prices-0/00000000000000000000.log"),
        Example("Its records, with keys and values", "--files data/prices-0/00000000000000000000.log --print-data-log"),
        Example(
            "The offsets that groups have committed",
            "--files data/__consumer_offsets-6/00000000000000000000.log --offsets-decoder",
        ),
        Example(
            "Compare an index with its segment",
            "--files data/prices-0/00000000000000000000.index --verify-index-only",
        ),
        Example(
            "The cluster's metadata",
            "--files data/__cluster_metadata-0/00000000000000000000.log --cluster-metadata-decoder",
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
