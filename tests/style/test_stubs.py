"""Every stub (`.pyi`) describes its compiled module: names, signatures, and the parameters of constructors.

mypy's stubtest compares names and signatures with the built modules. It cannot see the constructor of an extension
type, so that the parameters of these are read from the Cython source.
"""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.style.sources import GENERATED, PACKAGE, ROOT, module_name

STUBS = sorted(PACKAGE.rglob("*.pyi"))
# Differences that are meant, as regular expressions of stubtest's names.
EXPECTED = {
    r".*\.__init__": "an extension type's constructor, which the tests below compare",
    r".*\.__buffer__": "the buffer protocol, which Python shows by this name from 3.12 on",
    r".*\.__(reduce|setstate)_cython__": "what Cython adds for pickle",
    r"kafkapy\._core\.bytes\.message\.Message\.(read|write)": "abstract: each message class defines them",
    r"kafkapy\._core\.bytes\.index_file\.IndexFile\.(entry|last_offset|lookup|sanity_check|truncate_to)": (
        "abstract: OffsetIndex and TimeIndex define them"
    ),
    r"kafkapy\._core\.client\.record_accumulator\.(Headers|OnDelivery)": "aliases for annotations",
}
CLASS = re.compile(r"^(?:cdef )?class (\w+)", re.MULTILINE)
CONSTRUCTOR = re.compile(r"^    def __(?:cinit|init)__\(\s*self,?(.*?)\)(?: -> None)?:", re.MULTILINE | re.DOTALL)
PARAMETER = re.compile(r"(\*{0,2}\w+|\*)(?:\s*:[^=]*)?(?:\s+not\s+None)?(?:\s*=\s*(.*))?\s*$", re.DOTALL)


@pytest.mark.timeout(300)
def test_stubs_describe_their_modules(tmp_path):
    expected = tmp_path / "expected"
    expected.write_text("\n".join(EXPECTED))
    options = ["--concise", "--ignore-missing-stub", "--ignore-disjoint-bases", "--ignore-positional-only"]
    command = ["mypy.stubtest", *options, "--ignore-unused-allowlist", "--allowlist", str(expected)]
    modules = [module_name(path) for path in STUBS]
    done = subprocess.run(
        [sys.executable, "-m", *command, *modules], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


def parameters(text: str) -> list[tuple[str, bool]]:
    """Returns name and presence of a default of each parameter, from the text between the parentheses."""
    text = re.sub(r"#.*", "", text)
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    found = [PARAMETER.search(part.strip()) for part in parts if part.strip()]
    return [(match[1], match[2] is not None) for match in found if match]


def constructors_of_source(path: Path) -> dict[str, list[tuple[str, bool]]]:
    """Returns the parameters of the constructor of each class that has one; `__init__` counts before `__cinit__`."""
    source = path.read_text()
    starts = list(CLASS.finditer(source))
    ends = [*(each.start() for each in starts[1:]), len(source)]
    found = {}
    for match, end in zip(starts, ends, strict=False):
        for constructor in CONSTRUCTOR.finditer(source, match.end(), end):
            found[match[1]] = parameters(constructor[1]) or found.get(match[1], [])
    return found


def declared_constructor(cls: type) -> list[tuple[str, bool]]:
    """Returns the parameters that the source of the class declares, or the source of the nearest base that has any."""
    for each in cls.__mro__:
        path = (ROOT / Path(*each.__module__.split("."))).with_suffix(".pyx")
        found = constructors_of_source(path).get(each.__name__) if path.exists() else None
        if found is not None:
            return found
    return []


def constructors_of_stub(path: Path) -> dict[str, list[tuple[str, bool]]]:
    found = {}
    for node in ast.parse(path.read_text()).body:
        for each in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(each, ast.FunctionDef) and each.name == "__init__":
                each.args.args = each.args.args[1:]
                found[node.name] = parameters(ast.unparse(each.args))
    return found


@pytest.mark.parametrize("path", [path for path in STUBS if GENERATED not in path.parents], ids=lambda path: path.stem)
def test_stubs_have_the_constructors_of_their_classes(path):
    module = importlib.import_module(module_name(path))
    described = constructors_of_stub(path)
    assert described == {name: declared_constructor(getattr(module, name)) for name in described}
