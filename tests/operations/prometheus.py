"""A real Prometheus: Debian's package, unpacked and not installed, on a configuration of packaging/prometheus."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.peers import peers_directory
from tests.ports import free_port
from tests.server_process import ServerProcess

PACKAGING = Path(__file__).parents[2] / "packaging"
# Prometheus's own variable of a dashboard, and ours.
VARIABLES = {"$__rate_interval": "1m", "$instance": ".+"}


def programs() -> Path:
    """Returns the folder of `prometheus` and `promtool`, which is fetched if it is missing."""
    found = shutil.which("prometheus")
    if found is not None:
        return Path(found).parent
    folder = peers_directory() / "prometheus"
    if not (folder / "usr" / "bin" / "prometheus").exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", "prometheus"], cwd=folder, check=True, capture_output=True)
        (package,) = folder.glob("prometheus_*.deb")
        subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
    return folder / "usr" / "bin"


class Prometheus(ServerProcess):
    """A Prometheus that scrapes `targets`: addresses in packaging/prometheus/prometheus.yml -> their replacements."""

    ready_line = re.compile(r"Server is ready to receive web requests")

    def __init__(self, directory: Path, targets: Mapping[str, str]) -> None:
        super().__init__(directory, free_port())
        text = (PACKAGING / "prometheus" / "prometheus.yml").read_text()
        for old, new in targets.items():
            assert old in text
            text = text.replace(old, new)
        self._config = directory / "prometheus.yml"
        self._config.write_text(text)
        shutil.copy(PACKAGING / "prometheus" / "alerts.yml", directory)

    def command(self) -> list[str]:
        return [
            str(programs() / "prometheus"),
            f"--config.file={self._config}",
            f"--storage.tsdb.path={self.directory / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
        ]

    def environment(self) -> dict[str, str] | None:
        return {**os.environ, "GOMAXPROCS": "1"}

    def api(self, path: str, **parameters: str) -> Any:
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=60) as answer:
            found = json.load(answer)
        assert found["status"] == "success", found
        return found["data"]

    def query(self, expression: str) -> list[Any]:
        """Returns the series that an expression evaluates to."""
        found: list[Any] = self.api("query", query=expression)["result"]
        return found


def dashboard_expressions() -> list[str]:
    """Returns every expression of the dashboard with its variables filled in."""
    dashboard = json.loads((PACKAGING / "grafana" / "kafkapy.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    for name, value in VARIABLES.items():
        expressions = [expression.replace(name, value) for expression in expressions]
    return expressions


def alert_operands(expression: str) -> list[str]:
    """Returns the operands of an alert's comparisons; an alert that does not fire has no data, its operands have."""
    parts = re.split(r" (?:and|or) ", expression)
    return [re.sub(r"\s*(?:==|!=|<|>)\s*[-+.\de]+\s*$", "", part) for part in parts]
