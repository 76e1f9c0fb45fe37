"""The repository's source files with their imports and functions, for the style tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "kafkapy"
GENERATED = PACKAGE / "protocol" / "messages"
# Long because they are tables: declared once, read row by row.
DECLARATIVE = (PACKAGE / "errors.py", PACKAGE / "config" / "keys", PACKAGE / "protocol" / "definitions")

_CYTHON_IMPORT = re.compile(r"^\s*from\s+([\w.]+)\s+c?import\s+\(?(.*?)\)?\s*(?:#.*)?$|^\s*c?import\s+([\w., ]+)")
_CYTHON_FUNCTION = re.compile(r"^(\s*)(?:def|cdef|cpdef)\b.*\(")
_CYTHON_CLASS = re.compile(r"^\s*cdef\s+(?:class|struct|enum|packed|extern|union)\b")


class Function(NamedTuple):
    path: Path
    name: str
    line: int
    length: int


@cache
def package_sources() -> tuple[Path, ...]:
    """Returns our own sources below kafkapy/: Python and Cython, without the generated ones."""
    found = (path for suffix in ("*.py", "*.pyx", "*.pxd", "*.pyi") for path in PACKAGE.rglob(suffix))
    return tuple(sorted(path for path in found if GENERATED not in path.parents))


@cache
def all_sources() -> tuple[Path, ...]:
    """Returns our own sources of the package, the tests, the benchmark and the folders around them."""
    folders = ("tests", "bench", "docs", "packaging", "spark_jobs", "examples")
    around = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return (*package_sources(), *sorted(around), ROOT / "setup.py")


def is_declarative(path: Path) -> bool:
    return any(path == table or table in path.parents for table in DECLARATIVE)


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> dict[str, Path]:
    """Returns every module of kafkapy by its dotted name; the generated ones are left out."""
    return {module_name(path): path for path in package_sources() if path.suffix in (".py", ".pyx")}


@cache
def imports(path: Path) -> tuple[tuple[int, str], ...]:
    """Returns line and dotted name of everything of kafkapy that a source imports, inside functions too."""
    pairs = _python_imports(path) if path.suffix in (".py", ".pyi") else _cython_imports(path)
    return tuple((line, name) for line, name in pairs if name == "kafkapy" or name.startswith("kafkapy."))


def functions(path: Path) -> Iterator[Function]:
    return _python_functions(path) if path.suffix == ".py" else _cython_functions(path)


def _absolute(path: Path, level: int, module: str | None) -> str:
    if not level:
        return module or ""
    package = list(path.relative_to(ROOT).parent.parts)
    base = package[: len(package) - (level - 1)]
    return ".".join([*base, *([module] if module else [])])


def _python_imports(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            module = _absolute(path, node.level, node.module)
            yield node.lineno, module
            for alias in node.names:
                yield node.lineno, f"{module}.{alias.name}"


def _cython_imports(path: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = _CYTHON_IMPORT.match(line)
        if match is None:
            continue
        if match[3]:
            for name in match[3].split(","):
                yield number, name.split(" as ")[0].strip()
            continue
        level = len(match[1]) - len(match[1].lstrip("."))
        module = _absolute(path, level, match[1].lstrip(".") or None)
        yield number, module
        for name in filter(None, re.split(r"[,\s]+", match[2])):
            yield number, f"{module}.{name}"


def _python_functions(path: Path) -> Iterator[Function]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield Function(path, node.name, node.lineno, node.end_lineno - node.lineno + 1)


def _cython_functions(path: Path) -> Iterator[Function]:
    """Yields functions by indentation: one ends before the next line that is not indented deeper."""
    lines = path.read_text().splitlines()
    for start, line in enumerate(lines):
        match = _CYTHON_FUNCTION.match(line)
        if match is None or _CYTHON_CLASS.match(line):
            continue
        last = start
        for number in range(start + 1, len(lines)):
            text = lines[number]
            if not text.strip():
                continue
            closes_signature = text.strip().startswith(")")
            if len(text) - len(text.lstrip()) <= len(match[1]) and not closes_signature:
                break
            last = number
        name = line.split("(")[0].split()[-1].lstrip("*")
        yield Function(path, name, start + 1, last - start + 1)
