"""The shape of sources: length of files and functions, names, module docstrings, files that nobody imports."""

from __future__ import annotations

import ast
import re
from collections import Counter

from tests.style.sources import (
    PACKAGE,
    ROOT,
    all_sources,
    functions,
    imports,
    is_declarative,
    modules,
    package_sources,
)

FILE_LINES = 700
FUNCTION_LINES = 70
LINE_LENGTH = 120
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}
# Run by name, not imported: the program, and the generator that setup.py runs.
ENTRY_POINTS = {"kafkapy", "kafkapy.__main__", "kafkapy.testing.plugin", "kafkapy.protocol.generator"}
# Imported by programs only.
_REGISTRY_MODULES = ("avro", "json_schema", "protobuf", "schema_registry_client", "serde")
ENTRY_POINTS |= {f"kafkapy.compat.confluent_kafka.schema_registry.{name}" for name in _REGISTRY_MODULES}


def shown(path):
    return str(path.relative_to(ROOT))


def test_files_are_short():
    lengths = {path: path.read_text().count("\n") for path in all_sources() if not is_declarative(path)}
    assert not {shown(path): length for path, length in lengths.items() if length > FILE_LINES}


def test_lines_of_cython_are_short():
    """Python's lines are checked by ruff."""
    sources = [path for path in all_sources() if path.suffix in (".pyx", ".pxd")]
    lines = [(path, line) for path in sources for line in enumerate(path.read_text().splitlines(), 1)]
    assert not [f"{shown(path)}:{number}" for path, (number, text) in lines if len(text) > LINE_LENGTH]


def test_functions_are_short():
    sources = [path for path in all_sources() if path.suffix in (".py", ".pyx") and not is_declarative(path)]
    long = [each for path in sources for each in functions(path) if each.length > FUNCTION_LINES]
    assert not [f"{shown(each.path)}:{each.line} {each.name} has {each.length} lines" for each in long]


def test_names_say_what_is_inside():
    assert not [shown(path) for path in all_sources() if FORBIDDEN_NAMES & {path.stem, *path.relative_to(ROOT).parts}]


def test_every_module_says_what_it_is():
    silent = []
    for path in all_sources():
        text = path.read_text().strip()
        if path.suffix == ".py" and text:
            silent += [] if ast.get_docstring(ast.parse(text)) else [shown(path)]
        elif path.suffix == ".pyx":
            silent += [] if re.match(r'(#.*\n|\s)*r?"""', text) else [shown(path)]
    assert not silent


def test_nothing_is_left_for_later():
    marks = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    sources = [path for path in all_sources() if path != ROOT / "tests" / "style" / "test_shape.py"]
    assert not [shown(path) for path in sources if marks.search(path.read_text())]


def test_every_module_is_imported():
    """A module is imported by another one, or named in a table of modules that are imported on demand."""
    used = Counter(name for path in package_sources() for _, name in imports(path) if modules().get(name) != path)
    named = {
        node.value
        for path in package_sources()
        if path.suffix == ".py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    packages = {name for name, path in modules().items() if path.name == "__init__.py"}
    lazily = {name for name in modules() if name in named or (".handlers." in name and name.split(".")[-1] in named)}
    assert not sorted(set(modules()) - set(used) - packages - lazily - ENTRY_POINTS)


def test_packages_have_an_init():
    folders = {path.parent for path in package_sources()}
    assert not [shown(folder) for folder in folders if not (folder / "__init__.py").exists() and folder != PACKAGE]
