"""The tool `kafkapy top` against a broker."""

from __future__ import annotations

from kafkapy.tools.top import main


def test_pages_are_printed_for_a_script(broker, capsys):
    assert main(["--bootstrap-server", broker.bootstrap, "--count", "2", "--interval", "0.1"]) == 0
    output = capsys.readouterr().out
    assert output.count("TOPIC ") == 2
    assert "\x1b" not in output
    rows = [line.split() for line in output.splitlines()]
    assert ["orders", "3", "300", "0.0"] in rows
    assert ["billing", "Empty", "140", "+0.0"] in rows
