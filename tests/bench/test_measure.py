"""Rounds: disturbed turns are repeated, the least disturbed one counts, medians cover figures of every round."""

import subprocess
import sys
import time

from bench.measure import medians, undisturbed
from bench.run import Run


class Turns:
    """A workload; during its n-th turn, other processes use the n-th of the given numbers of cores."""

    def __init__(self, *foreign):
        self.foreign = list(foreign)
        self.taken = 0

    def __call__(self):
        self.taken += 1
        return {"value": self.taken, "foreign_cores": self.foreign[self.taken - 1]}


def test_a_quiet_turn_is_taken_as_it_is():
    turns = Turns(0.05)
    assert undisturbed(turns, 0.1) == {"value": 1, "foreign_cores": 0.05, "tries": 1}


def test_a_disturbed_turn_is_repeated():
    assert undisturbed(Turns(0.5, 0.05), 0.1)["value"] == 2


def test_after_so_many_in_vain_the_least_disturbed_counts():
    turns = Turns(0.5, 0.2, 0.3)
    assert undisturbed(turns, 0.1) == {"value": 2, "foreign_cores": 0.2, "tries": 3}
    assert turns.taken == 3


def test_medians_are_of_what_every_round_has():
    assert medians([{"a": 1, "b": 5}, {"a": 9, "b": 5}, {"a": 2}]) == {"a": 2}


class BusyServer:
    """A process that uses CPU instead of a broker."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, "-c", "while True: pass"])

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def reset_peak_memory(self):
        pass

    def memory_mb(self, peak=False):
        return 12.0


def test_the_brokers_cpu_is_its_own_and_not_foreign():
    server = BusyServer()
    try:

        def load():
            began = server.cpu_seconds()
            while server.cpu_seconds() < began + 0.3:
                time.sleep(0.01)
            return {"answered": 1}

        figures = Run(server, 1.0, {}).measure(load)
    finally:
        server.process.kill()
        server.process.wait()
    assert figures["answered"] == 1
    assert figures["cpu_seconds"] >= 0.3
    assert figures["peak_memory_mb"] == 12.0
    assert figures["foreign_cores"] >= 0
