"""The imports between the modules of the client."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import kafkapy.client

FOLDER = Path(kafkapy.client.__file__).parent


def imports(path: Path) -> set[str]:
    """Returns the modules of the client that a file imports, also for types only or within a function."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kafkapy.client"):
            found.add(node.module)
    return found


def test_no_modules_import_each_other_in_a_circle():
    graph = {}
    for path in FOLDER.rglob("*.py"):
        name = ".".join(("kafkapy.client", *path.relative_to(FOLDER).with_suffix("").parts))
        graph[name.removesuffix(".__init__")] = imports(path)
    assert len(graph) > 50
    list(TopologicalSorter(graph).static_order())
