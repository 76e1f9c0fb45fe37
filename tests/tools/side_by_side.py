"""Command lines for our tools and Apache Kafka's of the same name, on one broker: both must print the same.

`{bootstrap}`, `{data}`, `{topic}` and `{directory}` are replaced by the broker's address, its log directory, a topic
with records of every kind, and a directory for files.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from kafkapy.client import Consumer, Producer
from tests.tools.tool_host import Done, ToolHost, run_ours

INPUT = "h1:v1,h2:NULL\tk\tv\nNULL\tNULL\tNULL\nx:\tk2\tv2\tv3\n:\tüñí\t中国\n"
READER = [
    word
    for each in ("parse.key=true", "parse.headers=true", "null.marker=NULL")
    for word in ("--reader-property", each)
]
ALL_COLUMNS = [
    word
    for name in ("timestamp", "partition", "offset", "delivery", "epoch", "headers", "key", "value")
    for word in ("--formatter-property", f"print.{name}=true")
]
FORMATTERS = "org.apache.kafka.tools.consumer."
JAVA = "org.apache.kafka.common.serialization."
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def as_it_is(text: str) -> str:
    return text


def without_numbers(text: str) -> str:
    """Replaces each number, which is a measurement, by a text such as `N.dddd`, which shows how many decimals it has.

    At most four decimals are shown. A minus sign is removed, because Apache Kafka's tool prints a negative fetch time
    if the group took long to form.
    """

    def shape(match: re.Match[str]) -> str:
        if match[0] in ("Infinity", "NaN"):
            return "N.dddd"
        return "N" if match[1] is None else "N." + "d" * min(len(match[1]) - 1, 4)

    return re.sub(r"(?<!\d)-?\d+(\.\d+)?|Infinity|NaN", shape, text)


def reports_left_out(text: str) -> str:
    """Removes the lines of intervals, whose number varies, and replaces numbers."""
    return without_numbers("\n".join(line for line in text.splitlines() if "ms max latency.\n" not in line + "\n"))


class Case(NamedTuple):
    """A command line.

    words: split at blanks. normalise: applied to both standard outputs. compares_error: whether the first line of
    standard error is compared, which for a wrong command line is Kafka's message.
    """

    tool: str
    words: str
    normalise: Callable[[str], str] = as_it_is
    compares_error: bool = False
    is_sample: bool = False
    input: str = ""
    has_trace: bool = False


SERVER = "--bootstrap-server {bootstrap}"
SEGMENT = "{data}/{topic}-0/00000000000000000000"
METADATA = "{data}/__cluster_metadata-0/00000000000000000000"
PERF = f"{SERVER} --topic perf --num-records 500 --record-size 100"
FORMAT = "format -c {directory}/new.properties -t AAAAAAAAAAAAAAAAAAAAAQ"
CASES = (
    Case(
        "console-consumer",
        f"{SERVER} --topic {{topic}} --from-beginning --max-messages 20 {' '.join(ALL_COLUMNS)}",
        is_sample=True,
    ),
    Case("console-consumer", f"{SERVER} --topic {{topic}} --partition 0 --offset 2 --max-messages 3"),
    Case("console-consumer", f"{SERVER} --topic {{topic}} --partition 0 --offset earliest --max-messages 3"),
    Case("console-consumer", f"{SERVER} --include to.ic-of-al. --from-beginning --max-messages 20"),
    Case(
        "console-consumer",
        f"{SERVER} --topic {{topic}} --from-beginning --max-messages 4 --formatter-property print.key=true "
        "--formatter-property key.separator=: --formatter-property null.literal=nothing "
        "--formatter-property line.separator=; --formatter-property print.headers=true "
        "--formatter-property headers.separator=|",
    ),
    Case(
        "console-consumer",
        f"{SERVER} --topic numbers --partition 0 --offset 0 --max-messages 1 "
        f"--key-deserializer {JAVA}LongDeserializer --formatter-property print.key=true "
        f"--value-deserializer {JAVA}DoubleDeserializer",
    ),
    Case(
        "console-consumer",
        f"{SERVER} --topic {{topic}} --from-beginning --max-messages 3 --formatter {FORMATTERS}NoOpMessageFormatter",
    ),
    Case(
        "console-consumer",
        f"{SERVER} --topic __consumer_offsets --partition 36 --from-beginning --max-messages 3 "
        f"--formatter {FORMATTERS}OffsetsMessageFormatter",
    ),
    Case(
        "console-consumer",
        f"{SERVER} --topic __consumer_offsets --partition 36 --from-beginning --max-messages 3 "
        f"--formatter {FORMATTERS}GroupMetadataMessageFormatter",
    ),
    Case(
        "console-consumer",
        f"{SERVER} --topic __transaction_state --partition 16 --from-beginning --max-messages 4 "
        f"--formatter {FORMATTERS}TransactionLogMessageFormatter",
    ),
    Case(
        "console-consumer",
        f"{SERVER} --topic transactions --from-beginning --isolation-level read_committed --max-messages 10",
        without_numbers,
    ),
    Case("console-consumer", f"{SERVER} --topic {{topic}} --offset 3", compares_error=True, is_sample=True),
    Case("console-consumer", f"{SERVER} --topic {{topic}} --partition 0 --offset -2", compares_error=True),
    Case("console-consumer", f"{SERVER} --topic {{topic}} --partition 0 --group g", compares_error=True),
    Case("console-consumer", f"{SERVER} --topic {{topic}} --include t", compares_error=True),
    Case("console-consumer", f"{SERVER} --topic {{topic}} --formatter NoSuch", compares_error=True),
    Case(
        "console-consumer",
        f"{SERVER} --topic {{topic}} --consumer-property a=b --command-property a=b",
        compares_error=True,
    ),
    Case(
        "console-consumer", f"{SERVER} --topic {{topic}} --group a --command-property group.id=b", compares_error=True
    ),
    Case(
        "console-consumer",
        f"{SERVER} --topic {{topic}} --from-beginning --command-property auto.offset.reset=latest",
        compares_error=True,
    ),
    Case("console-consumer", "--topic t", compares_error=True),
    Case("console-consumer", "--nonsense", compares_error=True),
    Case("console-consumer", "--topic", compares_error=True),
    Case("console-producer", f"{SERVER}", compares_error=True, is_sample=True),
    Case("console-producer", "--topic t", compares_error=True),
    Case("console-producer", "--topic t --bootstrap-server localhost", compares_error=True),
    Case("console-producer", "--topic t --nonsense 1", compares_error=True),
    Case("console-producer", f"{SERVER} --topic t --batch-size many", compares_error=True),
    Case("console-producer", f"{SERVER} --topic t --property a=b --reader-property a=b", compares_error=True),
    Case(
        "console-producer",
        f"{SERVER} --topic none --reader-property parse.key=true",
        compares_error=True,
        input="no key\n",
        has_trace=True,
    ),
    Case(
        "console-producer",
        f"{SERVER} --topic none --reader-property null.marker=,",
        compares_error=True,
        has_trace=True,
    ),
    Case("producer-perf-test", f"{PERF} --throughput -1", without_numbers, is_sample=True),
    Case("producer-perf-test", f"{PERF} --throughput 5000 --warmup-records 100", reports_left_out),
    Case(
        "producer-perf-test",
        "--producer-props bootstrap.servers={bootstrap} acks=1 --topic perf --num-records 10 "
        "--payload-monotonic --throughput -1 --transactional-id perf-id",
        without_numbers,
    ),
    Case(
        "producer-perf-test",
        f"{SERVER} --topic perf --num-records 10 --throughput -1 --payload-file "
        "{directory}/payloads.txt --payload-delimiter ;",
        without_numbers,
    ),
    Case("producer-perf-test", f"{PERF} --throughput -1 --payload-file nowhere", compares_error=True),
    Case("producer-perf-test", "--topic t --num-records 1 --record-size 1 --throughput -1", compares_error=True),
    Case("producer-perf-test", "--topic t --num-records 1 --throughput -1", compares_error=True),
    Case("producer-perf-test", "--topic t --num-records x --record-size 1 --throughput -1", compares_error=True),
    Case("producer-perf-test", "--topic t --num-rec 3 --record-size 1 --throughput -1 --warmup 3", compares_error=True),
    Case(
        "consumer-perf-test",
        f"{SERVER} --topic perf --num-records 500 --timeout 30000",
        without_numbers,
        is_sample=True,
    ),
    Case(
        "consumer-perf-test",
        f"{SERVER} --topic perf --messages 500 --hide-header --date-format yyyy/MM/dd",
        without_numbers,
    ),
    Case("consumer-perf-test", f"{SERVER} --topic perf --num-records 100000000 --timeout 1000", without_numbers),
    Case("consumer-perf-test", f"{SERVER} --topic perf", compares_error=True),
    Case("consumer-perf-test", f"{SERVER} --num-records 3", compares_error=True),
    Case(
        "end-to-end-latency",
        f"{SERVER} --topic perf --num-records 3 --producer-acks all --record-size 10",
        without_numbers,
        is_sample=True,
    ),
    Case("end-to-end-latency", "{bootstrap} perf 3 1 10", without_numbers),
    Case(
        "end-to-end-latency",
        f"{SERVER} --topic perf --num-records 3 --producer-acks 0 --record-size 10",
        compares_error=True,
    ),
    Case(
        "end-to-end-latency",
        f"{SERVER} --topic perf --num-records 0 --producer-acks 1 --record-size 10",
        compares_error=True,
    ),
    Case("end-to-end-latency", "{bootstrap} perf 3", compares_error=True),
    Case("dump-log", f"--files {SEGMENT}.log"),
    Case("dump-log", f"--files {SEGMENT}.log --print-data-log", is_sample=True),
    Case("dump-log", f"--files {SEGMENT}.log --deep-iteration"),
    Case("dump-log", f"--files {SEGMENT}.log --print-data-log --skip-record-metadata"),
    Case("dump-log", f"--files {SEGMENT}.log --max-bytes 300"),
    Case("dump-log", f"--files {SEGMENT}.log,{SEGMENT}.index,{SEGMENT}.timeindex", is_sample=True),
    Case("dump-log", "--files {data}/transactions-0/00000000000000000000.log --deep-iteration"),
    Case("dump-log", "--files {data}/transactions-0/00000000000000000000.txnindex"),
    Case(
        "dump-log",
        "--files {data}/numbers-0/00000000000000000000.log --key-decoder-class org.apache.kafka.tools.api.LongDecoder",
    ),
    Case("dump-log", "--files {data}/perf-0/00000000000000000000.index"),
    Case("dump-log", "--files {data}/perf-0/00000000000000000000.index --verify-index-only"),
    Case("dump-log", "--files {data}/perf-0/00000000000000000000.index --index-sanity-check"),
    Case("dump-log", "--files {data}/perf-0/00000000000000000000.timeindex --verify-index-only"),
    Case(
        "dump-log",
        "--files {data}/perf-0/00000000000000000000.timeindex --index-sanity-check",
        compares_error=True,
        has_trace=True,
    ),
    Case("dump-log", "--files {data}/__consumer_offsets-36/00000000000000000000.log --offsets-decoder", is_sample=True),
    Case("dump-log", "--files {data}/__transaction_state-16/00000000000000000000.log --transaction-log-decoder"),
    Case("dump-log", f"--files {METADATA}.log --cluster-metadata-decoder", is_sample=True),
    Case("dump-log", f"--files {METADATA}-0000000000.checkpoint --cluster-metadata-decoder"),
    Case("dump-log", "--files {data}/bootstrap.checkpoint --cluster-metadata-decoder"),
    Case("dump-log", "--files {data}/meta.properties", compares_error=True),
    Case("dump-log", "--files {data}/nowhere-0/00000000000000000000.log"),
    Case("dump-log", "--print-data-log", compares_error=True),
    Case("storage", "version-mapping", is_sample=True),
    Case("storage", "version-mapping -r 4.0"),
    Case("storage", "version-mapping --release-version 3.9-IV0"),
    Case("storage", "feature-dependencies -f eligible.leader.replicas.version=1 -f metadata.version=10"),
    Case("storage", "feature-dependencies -f foo=1", compares_error=True),
    Case("storage", "feature-dependencies -f foo", compares_error=True),
    Case("storage", "feature-dependencies -f group.version=9", compares_error=True),
    Case("storage", "info -c {directory}/new.properties"),
    Case("storage", "format -c {directory}/new.properties -t AAAAAAAAAAAAAAAAAAAAAQ", compares_error=True),
    Case("storage", "format -c {directory}/static.properties -t AAAAAAAAAAAAAAAAAAAAAQ -s", compares_error=True),
    Case("storage", "format -c {directory}/new.properties", compares_error=True),
    Case(
        "storage",
        "format -c {directory}/new.properties -t AAAAAAAAAAAAAAAAAAAAAQ -s -f group.version=0 -f kraft.version=0",
        compares_error=True,
    ),
    Case("storage", "format -c {directory}/new.properties -t AAAAAAAAAAAAAAAAAAAAAQ -s -f foo=1", compares_error=True),
    *(
        Case("storage", f"{FORMAT} -s {flags}", compares_error=True)
        for flags in (
            "-S foo",
            "-S SCRAM-SHA-256=name=alice,password=x]",
            "-S SCRAM-SHA-256=[name=alice,password=x",
            "-S SCRAM-SHA-256=[name=alice,password]",
            "-S SCRAM-SHA-1=[name=alice,password=x]",
            "-S SCRAM-SHA-256=[password=x]",
            "-S SCRAM-SHA-256=[name=alice]",
            "-S SCRAM-SHA-256=[name=alice,saltedpassword=eA==]",
            "-S SCRAM-SHA-256=[name=alice,password=x,iterations=1]",
            "-S SCRAM-SHA-512=[name=alice,password=x,iterations=20000]",
            "-S SCRAM-SHA-256=[name=alice,password=x,iterations=y]",
            "-S SCRAM-SHA-256=[name=alice,password=x,foo=y]",
            "-S SCRAM-SHA-256=[name=alice,password=x,salt=!!]",
            "-r 3.4 -S SCRAM-SHA-256=[name=alice,password=x]",
        )
    ),
    *(
        Case("storage", f"{FORMAT} -I {voters}", compares_error=True)
        for voters in (
            "foo",
            "x@localhost:9093:JEXY6aqzQY-32P5TStzaFg",
            "1@",
            "1@localhost",
            "1@[::1",
            "1@[::1]x",
            "1@localhost:9093",
            "1@localhost:x:JEXY6aqzQY-32P5TStzaFg",
            "1@localhost:99999:JEXY6aqzQY-32P5TStzaFg",
            "1@localhost:9093:foo",
            "1@localhost:9093:JEXY6aqzQY-32P5TStzaFg -s",
            "1@localhost:9093:JEXY6aqzQY-32P5TStzaFg,1@localhost:9094:MvDxzVmcRsaTz33bUuRU6A",
            ",",
        )
    ),
)


def words_of(error: str) -> str:
    """Returns the first line of an error, without the class of Java's exception; argparse4j wraps its errors."""
    found = re.search(r"^\S+:\s+error:(.*)", error, re.MULTILINE | re.DOTALL)
    if found:
        text = re.sub(r"\s+", " ", found[1].split("\n\n")[0].split("Did you mean")[0]).strip()
        return text.replace("-- ", "--")  # argparse4j breaks lines within flags
    lines = [line for line in error.splitlines() if line and not line.startswith(("The consumer rebalance", "[20"))]
    return re.sub(r"^(Exception in thread \S+ )?(\w+\.)+\w+(Exception|Error): ", "", lines[0]) if lines else ""


def check(host: ToolHost, case: Case, places: dict[str, str]) -> None:
    """Runs both tools, Kafka's first, and compares their output."""
    words = [word.format(**places) for word in case.words.split()]
    if "--max-messages" in words:
        words += ["--timeout-ms", "20000"]  # a consumer that waits fails soon
    theirs: Done = host.run(case.tool, *words, input=case.input)
    ours = run_ours(case.tool, *words, input=case.input)
    if not case.has_trace:
        assert case.normalise(ours.out) == case.normalise(theirs.out), (case, ours, theirs)
    assert ours.code == (0 if "--help" in words else theirs.code), (case, ours, theirs)
    if case.compares_error:
        assert words_of(ours.err) == words_of(theirs.err), (case, ours.err, theirs.err)
    assert "Traceback" not in ours.err


def prepare(bootstrap: str, directory: Path) -> dict[str, str]:
    """Makes records, groups, transactions and files for the cases; returns the values of the placeholders."""
    topic = "topic-of-all"
    for codec in CODECS:
        words = ("--bootstrap-server", bootstrap, "--topic", topic, "--compression-codec", codec)
        assert run_ours("console-producer", *words, *READER, input=INPUT) == Done(0, "", "")
    make_records(bootstrap)
    (directory / "payloads.txt").write_text("one;two;three;")
    listeners = (
        "listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093\ncontroller.listener.names=CONTROLLER\n"
    )
    settings = f"process.roles=broker,controller\nnode.id=1\n{listeners}log.dirs={directory}/a,{directory}/b\n"
    (directory / "new.properties").write_text(settings + "controller.quorum.bootstrap.servers=localhost:9093\n")
    (directory / "static.properties").write_text(settings + "controller.quorum.voters=1@localhost:9093\n")
    return {"bootstrap": bootstrap, "topic": topic, "directory": str(directory)}


def make_records(bootstrap: str) -> None:
    """Writes numbers and transactions, committed and aborted, and commits offsets of a group."""
    with Producer(bootstrap_servers=bootstrap) as producer:
        producer.send("numbers", struct.pack(">d", 2.5e-7), struct.pack(">q", -7)).result(30)
        producer.send_many("perf", [b"x" * 100] * 500)
    with Producer(bootstrap_servers=bootstrap, transactional_id=TRANSACTIONAL_ID) as producer:
        producer.init_transactions()
        for number in range(3):
            producer.begin_transaction()
            for value in range(10):
                producer.send("transactions", f"{number} {value}")
            producer.flush()
            if number % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    settings = {"group_id": GROUP, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    with Consumer(bootstrap_servers=bootstrap, **settings) as consumer:
        consumer.subscribe(["topic-of-all"])
        count = 0
        while count < 20:
            count += len(consumer.poll(1))
            consumer.commit()


# The cases name the partitions of the coordinators' topics to which these names belong: 36 and 16.
GROUP = "readers-10"
TRANSACTIONAL_ID = "writer-26"
