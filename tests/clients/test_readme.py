"""The README's first use, as it stands there, against a live broker."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.broker_process import ROOT, BrokerProcess


def test_first_use(broker: BrokerProcess) -> None:
    """With another client, then with our own, which also sees what the other has written."""
    printed = []
    for program in re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL):
        program = program.replace("localhost:9092", broker.bootstrap)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout)
    assert printed[:2] == ["b'first' b'hello'\n", "1\n" + 2 * "b'first' b'hello'\n"]
    assert "UNKNOWN_TOPIC_OR_PARTITION" in printed[2]
    assert "listeners" in printed[2]
