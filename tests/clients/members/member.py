"""Members of a group with unmodified clients, each in a process of its own.

    PROGRAM BOOTSTRAP GROUP TOPIC ASSIGNOR INSTANCE|- SESSION_MS MAX_POLL_MS

A member's program is called with these arguments. The program prints `assigned P,P,...` when its partitions change, and
`record PARTITION OFFSET` for each record that it has read and committed, with tabs between the fields. It reads two
commands from standard input: `stop` leaves the group and ends, `stall MS` stops polling for that time.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.clients.legacy.installation import java_command, java_jars, kafkajs

FOLDER = Path(__file__).parent
SESSION_MS, MAX_POLL_MS = 3000, 4000
DEADLINE_SECONDS = 60
JAVA_RELEASES = {"java-4.3": "4.3.0", "java-0.10.1": "0.10.1.1", "java-4.3-consumer": "4.3.0"}
_PACKAGE = "org.apache.kafka.clients.consumer."
JAVA_ASSIGNORS = {
    "range": f"{_PACKAGE}RangeAssignor",
    "roundrobin": f"{_PACKAGE}RoundRobinAssignor",
    "sticky": f"{_PACKAGE}StickyAssignor",
    "cooperative-sticky": f"{_PACKAGE}CooperativeStickyAssignor",
    "consumer:range": "consumer:range",
    "consumer:uniform": "consumer:uniform",
}
# The assignors that each client has.
ASSIGNORS = {
    "librdkafka": ("range", "roundrobin", "cooperative-sticky"),
    "kafka-python": ("range", "roundrobin", "sticky", "cooperative-sticky"),
    "aiokafka": ("range", "roundrobin", "sticky"),
    "kafkajs": ("roundrobin",),
    "java-4.3": ("range", "roundrobin", "sticky", "cooperative-sticky"),
    "java-0.10.1": ("range", "roundrobin"),
    "java-4.3-consumer": ("consumer:range", "consumer:uniform"),  # assignors of the broker (KIP-848)
}
WITH_STATIC_MEMBERS = ("librdkafka", "kafka-python", "aiokafka", "java-4.3")


class MemberPrograms:
    """The commands that run the clients' programs. Java's programs are compiled at their first use."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._java: dict[str, list[str]] = {}

    def command(self, client: str) -> list[str]:
        if client == "kafkajs":
            *environment, _ = kafkajs("2.2.4")
            return [*environment, str(FOLDER / "member.js")]
        if client in JAVA_RELEASES:
            if client not in self._java:
                self._java[client] = self._compiled(JAVA_RELEASES[client], self._directory / client)
            return self._java[client]
        return [sys.executable, str(FOLDER / "member_program.py"), client]

    def _compiled(self, release: str, classes: Path) -> list[str]:
        jars, source = java_jars("kafka-clients", release), FOLDER / "Member.java"
        compiler = ["javac", "-nowarn", "-proc:none", "-cp", f"{jars}/*", "-d", str(classes), str(source)]
        subprocess.run(compiler, check=True, capture_output=True, timeout=DEADLINE_SECONDS)
        return [*java_command(), "-cp", f"{classes}:{jars}/*", "Member"]


class GroupOfMembers:
    """All members that were started in one group on one topic. `close` kills those that still run."""

    def __init__(
        self, command: list[str], client: str, assignor: str, bootstrap: str, group: str, topic: str, directory: Path
    ) -> None:
        strategy = JAVA_ASSIGNORS[assignor] if client in JAVA_RELEASES else assignor
        self._command = [*command, bootstrap, group, topic, strategy]
        self._directory = directory
        self.members: list[Member] = []

    def start(self, instance: str = "-") -> Member:
        # Long times, because a static member must return before its session ends, even if its program starts slowly.
        times = (SESSION_MS, MAX_POLL_MS) if instance == "-" else (10 * SESSION_MS, 10 * MAX_POLL_MS)
        command = [*self._command, instance, *map(str, times)]
        member = Member(command, self._directory / f"member-{len(self.members)}.log")
        self.members.append(member)
        return member

    @property
    def running(self) -> list[Member]:
        return [member for member in self.members if member.is_running]

    def records(self) -> list[tuple[int, int]]:
        """Returns partition and offset of all records that the members have read; a record may be repeated."""
        return sorted(record for member in self.members for record in member.records())

    def wait_for_shares(self, partitions: int, *shares: int, among: list[Member] | None = None) -> None:
        """Waits until each partition has exactly one member, with `shares` as the numbers of partitions."""

        def is_shared() -> bool:
            assigned = [member.assigned() for member in among or self.running]
            everything = sorted(number for each in assigned for number in each)
            return everything == list(range(partitions)) and sorted(map(len, assigned)) == sorted(shares)

        self.wait(is_shared, f"{shares} of {partitions}")

    def wait(self, is_true: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not is_true():
            state = [(member.is_running, member.assigned(), len(member.records())) for member in self.members]
            assert time.monotonic() < deadline, f"{what}: {state}\n{self.members[-1].last_words()}"
            time.sleep(0.05)

    def close(self) -> None:
        for member in self.running:
            member.crash()


class Member:
    """Owns the process of a member, whose output is written to the file `log`."""

    def __init__(self, command: list[str], log: Path) -> None:
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=output, stderr=log.with_suffix(".err").open("wb")
            )

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def assigned(self) -> list[int]:
        words = [line.split("\t")[1] for line in self._lines() if line.startswith("assigned\t")]
        return [int(number) for number in words[-1].split(",")] if words and words[-1] else []

    def records(self) -> list[tuple[int, int]]:
        found = [line.split("\t") for line in self._lines() if line.startswith("record\t")]
        return [(int(partition), int(offset)) for _, partition, offset in found]

    def stop(self) -> None:
        self._say("stop")
        assert self._process.wait(DEADLINE_SECONDS) == 0, self.last_words()

    def stall(self, milliseconds: int) -> None:
        self._say(f"stall {milliseconds}")

    def freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def crash(self) -> None:
        self._process.kill()
        self._process.wait()

    def last_words(self) -> str:
        return self._log.with_suffix(".err").read_text(errors="replace")[-3000:]

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()

    def _lines(self) -> list[str]:
        whole, _, _ = self._log.read_text(errors="replace").rpartition("\n")
        return whole.splitlines()
