"""The generated reference has a page for each public module and a section for each tool."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from kafkapy.__main__ import TOOLS
from tests.documents.blocks import ROOT


def test_the_reference_has_the_public_api_and_every_tool(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "docs/reference.py", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    client = (tmp_path / "kafkapy" / "client.html").read_text()
    for name in ("Producer", "Consumer", "AsyncConsumer", "RangeReader"):
        assert f'id="{name}"' in client
    assert 'id="Admin"' in (tmp_path / "kafkapy" / "client" / "admin.html").read_text()
    tools = (tmp_path / "tools.html").read_text()
    assert [name for name in TOOLS if f"id='{name}'" not in tools] == []
    assert "--bootstrap-server" in tools
    assert "tools.html" in (tmp_path / "index.html").read_text()
