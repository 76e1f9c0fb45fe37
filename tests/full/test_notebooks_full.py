"""The notebooks of examples/notebooks run from the first cell to the last and draw their plots."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.spark_session import ROOT

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]
NOTEBOOKS = ROOT / "examples" / "notebooks"
PNG = b"\x89PNG\r\n"


def executed(path: Path, directory: Path) -> nbformat.NotebookNode:
    """Executes a notebook in a kernel of this Python. With KAFKAPY_NOTEBOOK_PLOTS its plots are written there."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": directory}})
    client.execute()
    return notebook


def outputs(notebook: nbformat.NotebookNode, kind: str) -> list[str]:
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [output.data[kind] for cell in cells for output in cell.outputs if kind in output.get("data", {})]


@pytest.mark.parametrize(("name", "shown"), [("hot_search", "window_end"), ("stock_strategy", "high_price_date")])
def test_a_notebook_shows_a_table_and_two_plots(tmp_path, monkeypatch, name, shown):
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    notebook = executed(NOTEBOOKS / f"{name}.ipynb", tmp_path)
    (table,) = outputs(notebook, "text/html")
    assert shown in table and table.count("<tr") >= 2
    plots = [base64.b64decode(text) for text in outputs(notebook, "image/png")]
    assert len(plots) == 2 and all(plot.startswith(PNG) for plot in plots)
    for number, plot in enumerate(plots):
        (Path(os.environ.get("KAFKAPY_NOTEBOOK_PLOTS") or tmp_path) / f"{name}-{number}.png").write_bytes(plot)


def test_the_notebooks_are_stored_without_outputs():
    found = sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))
    assert found == ["hot_search", "stock_strategy"]
    for name in found:
        notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
        assert outputs(notebook, "image/png") == [] and outputs(notebook, "text/plain") == []
