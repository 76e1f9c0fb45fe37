"""Rounds of chaos on three nodes of ours: faults under all kinds of clients, and a check of their histories.

    python -m tests.cluster.chaos --rounds 500 --directory chaos

Each round has topics of its own, into which librdkafka, Java and our producers and a transactional producer write; a
chain copies them in transactions, by each client in turn; consumers of librdkafka and of ours read. After its faults
all nodes run again. Then each acknowledged record must be in the log once and in order, and each record that a consumer
has read must be at the offset at which it was read. In every second series of rounds, clients and nodes reach each
other through proxies, which can cut their connections.

The seed and the number of a round decide its faults. `progress` in the directory has the next round, so that a further
run continues there; `--first-round` begins elsewhere. The directory of a series with a failure is kept, with the logs
of the nodes and the history of the round.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import pickle
import random
import shutil
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kafkapy.metadata.internal_topics import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from tests.cluster.chain import Chain, KafkapyChain, ProcessChain
from tests.cluster.cluster import Cluster, three
from tests.cluster.faults import Chaos, draw_faults
from tests.cluster.history import History, Outcome, Read, jumps, vanished
from tests.cluster.java_traffic import java_command
from tests.cluster.nodes import Flavour
from tests.cluster.traffic import (
    JavaTrafficProducer,
    KafkapyTrafficConsumer,
    KafkapyTrafficProducer,
    TrafficClient,
    TrafficConsumer,
    TrafficProducer,
    read_log,
    traffic,
)
from tests.crash.failing_disk import FailingDisk, build
from tests.peers import kafka_directory

PARTITIONS = 3
# The clients of the chain, in turn.
CHAINS = ("librdkafka", "kafkapy", "java")
ROUNDS_PER_SERIES = 5
# The time in which all replicas have to be in sync again, and the chain has to copy the rest.
RECOVERY_S = 180.0
# Those of Apache Kafka: shorter ones depose leaders of the quorum on a busy machine.
PROPERTIES = {"controller.quorum.election.timeout.ms": "1000", "controller.quorum.fetch.timeout.ms": "2000"}
# The least number of records and transactions after the faults of a round.
PROGRESS = 20


class Round:
    """One round on a running cluster: its topics, its clients and its check."""

    def __init__(
        self, cluster: Cluster, chaos: Chaos, java: list[str], number: int, seed: int, faults: int = 3
    ) -> None:
        self._cluster = cluster
        self._chaos = chaos
        self._began = time.monotonic()
        self.events: list[str] = []
        chance = random.Random(f"{seed}/{number}")
        self.faults = draw_faults(chance, list(cluster.nodes), with_proxies=bool(cluster.proxies), at_most=faults)
        self.history = History()
        self.uncommitted_reads: list[Read] = []
        self.source, self.target = f"source-{number}", f"target-{number}"
        bootstrap = cluster.bootstrap
        arguments = (lambda: bootstrap, self.source, self.target, f"chain-{number}")
        log = cluster.directory / "chain.log"
        self.chain_client = CHAINS[number % len(CHAINS)]
        self.chain: Chain = {
            "librdkafka": lambda: ProcessChain([sys.executable, "-m", "tests.cluster.chain"], log, *arguments),
            "kafkapy": lambda: KafkapyChain(*arguments),
            "java": lambda: ProcessChain([*java, "chain"], log, *arguments),
        }[self.chain_client]()
        history, source = self.history, self.source
        self._clients: list[TrafficClient] = [
            TrafficProducer(history, lambda: bootstrap, source, PARTITIONS, "librdkafka", rate=100),
            KafkapyTrafficProducer(history, bootstrap, source, PARTITIONS, "kafkapy", rate=100),
            JavaTrafficProducer(
                history, java, cluster.directory / "java.log", bootstrap, source, PARTITIONS, "java", rate=100
            ),
            TrafficProducer(
                history, lambda: bootstrap, source, PARTITIONS, "transactional", rate=200, transaction_size=20
            ),
            TrafficConsumer(history, bootstrap, source, "librdkafka reader", f"readers-{number}"),
            KafkapyTrafficConsumer(self.uncommitted_reads, bootstrap, source, "our reader", f"our-readers-{number}"),
        ]

    def run(self) -> None:
        """Runs the round. Raises AssertionError, which says what went wrong."""
        for topic in (self.source, self.target):
            self._cluster.create_topic(topic, PARTITIONS, min_insync_replicas="2")
        self.chain.start()
        try:
            with traffic(*self._clients):
                self._await_progress("all clients run")
                for fault in self.faults:
                    self._report(str(fault))
                    self._chaos.apply(fault)
                self._report("faults over")
                self._await_in_sync()
                self._report("all replicas in sync")
                self._await_progress("all clients go on")
            source = read_log(self._cluster.bootstrap, self.source, PARTITIONS)
            self._report("all stopped")
            self._cluster.wait_for("copy of the whole topic", lambda: self._is_copied(source), RECOVERY_S)
            self._report("all copied")
        finally:
            self.chain.stop()
        self._check(source)

    def summary(self) -> str:
        """Returns the figures of the round."""
        done = sum(outcome is Outcome.DONE for outcome in self.history.transactions.values())
        return (
            f"{self.history.count(Outcome.DONE)} acknowledged, {done} transactions, {self.chain.committed} copied by "
            f"the chain of {self.chain_client} ({len(self.chain.errors)} errors), "
            f"{len(self.history.reads) + len(self.uncommitted_reads)} read"
        )

    def _report(self, event: str) -> None:
        self.events.append(f"{time.strftime('%H:%M:%S')} ({time.monotonic() - self._began:.0f} s) {event}")

    def _is_copied(self, source: list[Read]) -> bool:
        if self.chain.failure is not None:
            raise self.chain.failure
        return len(read_log(self._cluster.bootstrap, self.target, PARTITIONS, awaits_markers=False)) >= len(source)

    def _await_in_sync(self) -> None:
        """Waits until every replica of the round's topics and of the coordinators' topics is in sync."""
        for topic in (self.source, self.target, TRANSACTION_STATE_TOPIC, GROUP_METADATA_TOPIC):
            for partition in range(PARTITIONS):
                self._cluster.wait_for_isr(topic, partition)

    def _await_progress(self, event: str) -> None:
        """Waits until all producers, the chain and the readers have made progress after this call; logs which was the
        last."""
        history, chain = self.history, self.chain
        sent, transactions, copied = len(history.sent), len(history.transactions), chain.committed
        reads, our_reads = len(history.reads), len(self.uncommitted_reads)
        waiting = ["librdkafka", "kafkapy", "java", "transactional", "chain", "reader", "our reader"]
        last = ""

        def is_waiting(name: str) -> bool:
            if name == "transactional":
                return Outcome.DONE not in list(history.transactions.values())[transactions:]
            if name == "chain":
                return not chain.has_copied(copied + PROGRESS)
            if name == "reader":
                return len(history.reads) == reads
            if name == "our reader":
                return len(self.uncommitted_reads) == our_reads
            done = [each for each in history.sent[sent:] if each.producer == name and each.outcome is Outcome.DONE]
            return len(done) < PROGRESS

        def has_progress() -> bool:
            nonlocal waiting, last
            for client in self._clients:
                failure = getattr(client, "failure", None)
                if failure is not None:
                    raise failure
            last = waiting[-1]
            waiting = [name for name in waiting if is_waiting(name)]
            return not waiting

        try:
            self._cluster.wait_for("progress of all clients", has_progress, RECOVERY_S)
        finally:
            self._report(f"no progress of {waiting}" if waiting else f"{event}, the last one was {last}")

    def _check(self, source: list[Read]) -> None:
        bootstrap = self._cluster.bootstrap
        complaints = self.history.complaints(source)
        everything = read_log(bootstrap, self.source, PARTITIONS, "read_uncommitted")
        complaints += [*vanished(self.uncommitted_reads, everything), *jumps(self.uncommitted_reads)]
        target = read_log(bootstrap, self.target, PARTITIONS)
        complaints += differences(source, target)
        assert not complaints, f"{len(complaints)} complaints:\n" + "\n".join(complaints[:30])


def differences(source: list[Read], target: list[Read]) -> Iterator[str]:
    """Yields a sentence for each record that the chain has not copied once, and for each partition in another order."""
    for partition in range(PARTITIONS):
        wanted, found = [
            [read.value for read in sorted(reads, key=lambda read: read.offset) if read.partition == partition]
            for reads in (source, target)
        ]
        missing, surplus = Counter(wanted) - Counter(found), Counter(found) - Counter(wanted)
        for value, count in missing.items():
            yield f"not copied: {value!r} of partition {partition}, {count} times"
        for value, count in surplus.items():
            yield f"copied too often: {value!r} to partition {partition}, {count} times"
        if not missing and not surplus and wanted != found:
            yield f"partition {partition} was copied in another order"


@contextmanager
def chaotic_cluster(directory: Path, seed: int, *, with_proxies: bool) -> Iterator[tuple[Cluster, Chaos]]:
    """Yields a running cluster of three nodes, whose disks may fail, and its chaos."""
    library = build(directory)
    cluster = Cluster(
        directory, three(Flavour.KAFKAPY), properties=PROPERTIES, proxy_seed=seed if with_proxies else None
    )
    disks = {node_id: FailingDisk(library, node.directory) for node_id, node in cluster.nodes.items()}
    for node_id, disk in disks.items():
        cluster[node_id].extra_environment = disk.environment
    with cluster:
        yield cluster, Chaos(cluster, disks)


def run_series(
    directory: Path,
    rounds: range,
    seed: int,
    java: list[str],
    on_passed: Callable[[int], None],
    *,
    faults_per_round: int = 3,
) -> None:
    """Runs rounds on one new cluster, which every second series reaches through proxies.

    Calls `on_passed` with the number of each round. Raises AssertionError after the first failure; the history of
    the failed round is in `history.pickle` then.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with_proxies = rounds.start // ROUNDS_PER_SERIES % 2 == 1
    with chaotic_cluster(directory, seed + rounds.start, with_proxies=with_proxies) as (cluster, chaos):
        for number in rounds:
            current = Round(cluster, chaos, java, number, seed, faults_per_round)
            try:
                current.run()
            except BaseException:
                history = (current.history.sent, current.history.transactions, current.history.reads)
                (directory / "history.pickle").write_bytes(pickle.dumps(history))
                events = [*current.events, *("chain: " + error for error in current.chain.errors)]
                (directory / "events.txt").write_text(f"round {number} of seed {seed}\n" + "\n".join(events) + "\n")
                raise
            finally:
                print(f"round {number}: {current.summary()}; {'; '.join(current.events)}", flush=True)
            on_passed(number)


def run(directory: Path, first: int, count: int, seed: int, *, keeps_going: bool) -> int:
    """Runs rounds in series; returns the number of failed series."""
    failed = 0
    java = java_command(kafka_directory(Flavour.KAFKA_43.value), directory / "classes")
    number, end = first, first + count
    while number < end:
        last = min(end, (number // ROUNDS_PER_SERIES + 1) * ROUNDS_PER_SERIES)
        series = _new_directory(directory / f"round-{number}")

        def passed(done: int) -> None:
            nonlocal number
            number = done + 1
            (directory / "progress").write_text(f"{seed} {number}\n")

        try:
            run_series(series, range(number, last), seed, java, passed)
            shutil.rmtree(series)
        except Exception:
            failed += 1
            (series / "failure.txt").write_text(traceback.format_exc())
            print(f"round {number} of seed {seed} FAILED, see {series}", flush=True)
            traceback.print_exc()
            if not keeps_going:
                return failed
            passed(number)
    return failed


def _new_directory(wanted: Path) -> Path:
    """Returns the path, or one with a further number if it exists: a failure of an earlier run is kept."""
    candidates = (wanted.with_name(f"{wanted.name}.{count}") for count in itertools.count(2))
    return wanted if not wanted.exists() else next(path for path in candidates if not path.exists())


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.chaos", description=__doc__)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seed", type=int, help="default: that of the directory's last run, or a random one")
    parser.add_argument("--first-round", type=int, help="default: the one after the directory's last run, or 0")
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--keep-going", action="store_true", help="continue after a failed round")
    options = parser.parse_args(words)
    directory: Path = options.directory.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(filename=directory / "clients.log", format="%(asctime)s %(name)s %(message)s")
    progress = directory / "progress"
    known_seed, known_round = map(int, progress.read_text().split()) if progress.exists() else (None, 0)
    seed = options.seed if options.seed is not None else known_seed
    if seed is None:
        seed = random.randrange(1 << 30)
    first = known_round if options.first_round is None else options.first_round
    print(f"seed {seed}, rounds {first} to {first + options.rounds - 1}", flush=True)
    return 1 if run(directory, first, options.rounds, seed, keeps_going=options.keep_going) else 0


if __name__ == "__main__":
    sys.exit(main())
