"""The program that measures how long a test suite waits for its broker."""

from __future__ import annotations

import json

from bench.ephemeral import FIGURES, main


def test_every_turn_has_all_figures_in_the_order_of_the_events(tmp_path, capsys):
    main(["--count", "1", "--output", str(tmp_path / "figures.json")])
    (turn,) = json.loads((tmp_path / "figures.json").read_text())["turns"]
    assert tuple(turn) == FIGURES
    assert turn["ready_s"] < turn["acknowledged_s"] < turn["read_s"]
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:5]] == list(FIGURES)
