"""The arithmetic of `python -m bench.spark`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bench.quantiles import quantile
from bench.spark import medians, rates
from bench.spark_queries import FORMS
from bench.spark_streams import percentiles

ROOT = Path(__file__).parents[2]


def test_rates_and_goals():
    seconds = {"kafka": 10.0, "kafkapy": 4.0, "kafkapy-columns": 11.0}
    measured = {
        form: [{"seconds": seconds[form] * noise, "cpu_seconds": 3.04} for noise in (1, 0.5, 9)] for form in FORMS
    }
    told = rates(measured, "count", 1_000_000)
    assert told["kafka"] == {"rows_per_s": 100_000, "cpu_s": 3.0}
    assert told["kafkapy"] == {"rows_per_s": 250_000, "cpu_s": 3.0, "times_own": 2.5, "goal": 2.5, "reached": True}
    assert not told["kafkapy-columns"]["reached"] and told["kafkapy-columns"]["goal"] == 4.0


def test_the_generation_of_rows_is_reported_without_a_goal():
    measured = {
        form: [{"seconds": seconds, "cpu_seconds": 2.0}]
        for form, seconds in (("noop", 1.0), ("kafka", 8.0), ("kafkapy", 5.0))
    }
    told = rates(measured, "write", 1_000_000)
    assert told["noop"] == {"rows_per_s": 1_000_000, "cpu_s": 2.0}
    assert told["kafkapy"]["times_own"] == 1.6 and not told["kafkapy"]["reached"]


def test_medians_by_part_and_form():
    rounds = [{"seconds": 1.0, "jvm_cpu_s": 2.0}, {"seconds": 3.0, "jvm_cpu_s": 4.0}, {"seconds": 2.0, "jvm_cpu_s": 9}]
    assert medians({"kafka": {"read": rounds}}) == {"read": {"kafka": {"seconds": 2.0, "jvm_cpu_s": 4.0}}}


def test_quantiles():
    assert quantile([7.0], 0.99) == 7.0
    assert (quantile(range(100), 0.5), quantile(range(100), 0.99), quantile(range(10), 0.99)) == (50, 99, 9)
    assert percentiles([]) == {}
    assert percentiles([float(each) for each in range(100)]) == {"p50_ms": 50, "p99_ms": 99}


# A process of its own, because this one may have a JVM, and children that work.
MEASURED = """\
import subprocess, sys
from bench.spark_driver import cpu_seconds

before = cpu_seconds()
work = "import time\\nwhile time.process_time() < 0.3: pass"
subprocess.run([sys.executable, "-c", work], check=True)
reader = subprocess.Popen([sys.executable, "-c", work + "\\nprint(1, flush=True)\\ninput()"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE)
assert reader.stdout.readline() == b"1\\n"
after = cpu_seconds()
reader.communicate(b"\\n")
print(after.python - before.python, before.jvm, after.jvm)
"""


def test_cpu_seconds_of_descendants_are_counted_by_program():
    done = subprocess.run([sys.executable, "-c", MEASURED], cwd=ROOT, check=True, capture_output=True, text=True)
    python, *jvm = map(float, done.stdout.split())
    assert python >= 0.3 - 2 / os.sysconf("SC_CLK_TCK")
    assert jvm == [0, 0]
