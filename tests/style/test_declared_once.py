"""Facts that are declared once and used in other places: configuration keys, generated pages, the README's commands."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
from collections.abc import Iterator

import pytest

from kafkapy.config.client_table import ADMIN_ROWS, CONSUMER_ROWS, PRODUCER_ROWS
from kafkapy.config.table import BROKER_ROWS, DYNAMIC_ONLY_ROWS, STATIC_ROWS, TOPIC_ROWS
from tests.style.sources import ROOT, package_sources

READ_TO_BE_REFUSED = {"remote.log.storage.system.enable"}
KEYS = {*STATIC_ROWS, *DYNAMIC_ONLY_ROWS, *TOPIC_ROWS, *PRODUCER_ROWS, *CONSUMER_ROWS, *ADMIN_ROWS}
CONFIG_KEY = re.compile(r'\bconfig\["([^"]+)"\]')
CODE_BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)
README = (ROOT / "README.md").read_text()


def test_configuration_keys_are_rows_of_the_table():
    unknown = [
        f"{path.relative_to(ROOT)}: {key}"
        for path in package_sources()
        if "compat" not in path.relative_to(ROOT).parts  # the options of other clients
        for key in CONFIG_KEY.findall(path.read_text())
        if key not in KEYS
    ]
    assert not unknown


def named_outside_the_table() -> set[str]:
    """Returns every string of the sources that could be a key, outside the rows and what is generated from them."""
    return {
        node.value
        for tree in trees_outside_the_table()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def read_as_attributes() -> set[str]:
    """Returns the names of the attributes that the code reads from objects whose name ends in `config`."""
    return {
        node.attr
        for tree in trees_outside_the_table()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value).endswith("config")
    }


def trees_outside_the_table() -> Iterator[ast.Module]:
    config = ROOT / "kafkapy" / "config"
    generated = (config / "broker_keys.py", config / "topic_keys.py")
    for path in package_sources():
        if path.suffix == ".py" and config / "keys" not in path.parents and path not in generated:
            yield ast.parse(path.read_text())


def test_a_key_has_an_effect_or_says_that_it_has_none():
    """A row is `key` if the code reads it and `inert` if not; the warning at the start depends on it."""
    named, attributes = named_outside_the_table(), read_as_attributes()
    clients = (*PRODUCER_ROWS.values(), *CONSUMER_ROWS.values())
    assert not sorted(row.name for row in clients if row.has_effect and row.name not in named)
    brokers = BROKER_ROWS.values()
    is_attribute = {row.name: row.name.replace(".", "_") in attributes for row in brokers}
    effective = [row.name for row in brokers if row.has_effect]
    assert not sorted(name for name in effective if not is_attribute[name] and name not in named)
    inert = [row.name for row in brokers if not row.has_effect and row.name not in READ_TO_BE_REFUSED]
    assert not sorted(name for name in inert if is_attribute[name])


def load_generator():
    spec = importlib.util.spec_from_file_location("generate_docs", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", load_generator().PAGES)
def test_generated_page_is_up_to_date(name):
    page = load_generator().PAGES[name]()
    assert (ROOT / "docs" / name).read_text() == page, "run: .venv/bin/python docs/generate.py"


def test_readme_commands_are_programs_of_the_repository():
    words = [
        line.split()[0] for kind, block in CODE_BLOCK.findall(README) if kind == "sh" for line in block.splitlines()
    ]
    programs = [word for word in words if word.startswith("./")]
    assert {"./run-broker", "./run-tests"} <= set(programs)
    for program in programs:
        assert os.access(ROOT / program, os.X_OK), program


def test_readme_python_is_python():
    blocks = [block for kind, block in CODE_BLOCK.findall(README) if kind == "python"]
    assert blocks
    for block in blocks:
        ast.parse(block)


def test_ci_runs_the_readmes_test_command():
    assert "run-tests" in (ROOT / ".ci" / "run").read_text()
