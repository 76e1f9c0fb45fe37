"""Each constant has one definition and one value.

Constants are names in capitals that a module, or an enumeration of Cython, sets to a number, a string or bytes. A
leading underscore does not make another name. Python cannot import Cython's constants, so that one definition in each
language is allowed, with the same value.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from tests.style.sources import ROOT, package_sources

# Names that mean something else in each module, by kind.
OF_EACH_MODULE = {
    "sizes, times and counts of one algorithm": (
        "CHUNK_BYTES FIRST_BYTES SMALLEST_CAPACITY MOST_ROWS IN_FLIGHT_LIMIT MEGABYTE "
        "CHECK_INTERVAL_MS CONNECT_TIMEOUT_S LOOK_S PATIENCE_S PAUSE_S POLL_S RETRY_MS SLICE_MS NEVER"
    ),
    "the layout of one file or structure": "ENTRY_SIZE OFFSET_AT FILE_NAME SUFFIX DELETED_SUFFIX VERSION",
    "texts and names of one tool": "CONNECTION DEPRECATED JAVA PACKAGE SUBJECT USAGE",
    "special values of one type": "INITIAL_EPOCH LARGEST_EPOCH NO_MEMORY UNKNOWN",
    "constants of the protocol, which client and broker each declare": (
        "EARLIEST MAX_TIMESTAMP METADATA_TOPIC MIN_ISR NO_LEADER UNKNOWN_OFFSET"
    ),
}

NAME = re.compile(r"_*[A-Z][A-Z0-9_]*")
CYTHON_CONSTANT = re.compile(r"^(\s*)(_*[A-Z][A-Z0-9_]*)\s*=\s*([^#]+?)\s*(?:#.*)?$", re.MULTILINE)
ALLOWED = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Constant, ast.operator, ast.unaryop)


def scalar(expression: ast.expr | str) -> object:
    """Returns the value of an expression of numbers, strings and bytes; None for anything else."""
    text = expression if isinstance(expression, str) else ast.unparse(expression)
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        return None
    if not all(isinstance(node, ALLOWED) for node in ast.walk(tree)):
        return None
    return eval(compile(tree, "constant", "eval"), {})


def constants() -> Iterator[tuple[str, str, object]]:
    """Yields file, name and value of each constant."""
    for path in package_sources():
        shown = str(path.relative_to(ROOT))
        if path.suffix == ".py":
            for node in ast.parse(path.read_text()).body:
                targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
                for target in targets:
                    if isinstance(target, ast.Name) and NAME.fullmatch(target.id) and getattr(node, "value", None):
                        yield shown, target.id.lstrip("_"), scalar(node.value)
        elif path.suffix in (".pyx", ".pxd"):
            for indent, name, value in CYTHON_CONSTANT.findall(path.read_text()):
                if len(indent) in (0, 4):
                    yield shown, name.lstrip("_"), scalar(value)


def test_each_constant_is_defined_once():
    own = {name for names in OF_EACH_MODULE.values() for name in names.split()}
    found: dict[str, dict[str, object]] = defaultdict(dict)
    for path, name, value in constants():
        if value is not None and not isinstance(value, bool) and name not in own:
            found[name][path] = value
    twice = {}
    for name, places in found.items():
        languages = [path.endswith(".py") for path in places]
        if max(languages.count(True), languages.count(False)) > 1 or len(set(places.values())) > 1:
            twice[name] = places
    assert not twice, "\n".join(f"{name}: {places}" for name, places in sorted(twice.items()))
