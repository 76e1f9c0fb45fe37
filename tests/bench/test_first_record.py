"""`python -m bench.first_record` with one turn."""

from __future__ import annotations

import json

from bench.first_record import CLIENTS, QUANTILES, main


def test_each_client_has_its_percentiles(tmp_path, capsys):
    output = tmp_path / "found.json"
    main(["--count", "1", "--output", str(output)])
    found = json.loads(output.read_text())
    assert {name: set(clients) for name, clients in found.items()} == {
        name: set(clients) for name, clients in CLIENTS.items()
    }
    assert all(len(values) == len(QUANTILES) and min(values) > 0 for each in found.values() for values in each.values())
    assert capsys.readouterr().out.count("p99 in ms") == 6
