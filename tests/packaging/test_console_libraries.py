"""The executable has the libraries of the console without what the console does not use, so that it remains small."""

from __future__ import annotations

import ast
import marshal
import re
import subprocess
import sys
import tomllib
import zlib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "packaging" / "kafkapy.spec"
LEFT_OUT = {"google-re2"}
# What the executable has for the console alone, if the registry and the REST proxy are not counted.
OURS = ("kafkapy.console", "kafkapy.http")
LIBRARIES = ("anyio", "h11", "jinja2", "markupsafe", "starlette", "uvicorn")
PACKAGES = (*OURS, *LIBRARIES, "configparser", "http.cookies", "logging.config")
LARGEST_BYTES = 1_000_000
SUFFIXES_LEFT_OUT = (".py", ".pyi", ".pyc", ".c", ".typed")

# Serves the page on which users log in, and a page that does not exist, without the modules that the arguments name.
SERVE = """
import sys, threading, urllib.error, urllib.request

sys.modules.update(dict.fromkeys(sys.argv[1:]))
from kafkapy.console.application import Console
from kafkapy.console.settings import Settings
from kafkapy.http.serving import WebServer, listen

bound = listen("127.0.0.1", 0)
port = bound.getsockname()[1]
console = Console(Settings({"test": {"bootstrap.servers": "127.0.0.1:1"}}, frozenset({"127.0.0.1"}), port=port))
ready = threading.Event()
server = WebServer(console.application, bound, on_ready=ready.set)
thread = threading.Thread(target=server.run)
thread.start()
ready.wait(60)
for path in ("login", "static/console.css", "nothing"):
    try:
        print(path, urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}").status)
    except urllib.error.HTTPError as error:
        print(path, error.code)
server.stop()
thread.join()
"""


def names(requirements: list[str]) -> set[str]:
    return {match[0].lower() for match in map(re.compile(r"[\w-]+").match, requirements) if match}


def listed(name: str) -> list[str]:
    """Returns a list of the recipe of the executable."""
    for statement in ast.parse(SPEC.read_text()).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == name:
            found: list[str] = ast.literal_eval(statement.value)
            return found
    raise AssertionError(f"{SPEC} has no list {name}")


def test_the_executable_has_the_libraries_of_the_console():
    with (ROOT / "pyproject.toml").open("rb") as file:
        wanted = names(tomllib.load(file)["project"]["optional-dependencies"]["console"])
    packed = names((ROOT / "packaging" / "requirements.txt").read_text().splitlines())
    assert wanted - packed == LEFT_OUT


def test_the_console_serves_pages_without_the_modules_that_the_executable_lacks():
    command = [sys.executable, "-c", SERVE, *listed("UNUSED_BY_CONSOLE"), "re2", "unittest", "xmlrpc"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["login 200", "static/console.css 200", "nothing 404"], done.stderr


def files(package: str) -> Iterator[tuple[str, Path]]:
    """Yields (name of the module or "", file) of each file of a package; of a module, only its own file."""
    spec = find_spec(package)
    assert spec is not None, package
    if not spec.submodule_search_locations:
        yield package, Path(str(spec.origin))
        return
    directory = Path(spec.submodule_search_locations[0])
    for path in sorted(directory.rglob("*")):
        parts = path.relative_to(directory).with_suffix("").parts
        if path.suffix == ".py":
            yield ".".join((package, *parts)).removesuffix(".__init__"), path
        elif path.is_file() and path.suffix not in SUFFIXES_LEFT_OUT:
            yield "", path


def packed_size(path: Path, optimize: int) -> int:
    """Returns the size of a module in the executable: PyInstaller compresses the code of each module by itself."""
    code = compile(path.read_bytes(), path, "exec", dont_inherit=True, optimize=optimize)
    return len(zlib.compress(marshal.dumps(code)))


def test_the_console_adds_less_than_a_megabyte():
    left_out, stripped = listed("UNUSED_BY_CONSOLE"), listed("STRIPPED")
    sizes: dict[str, int] = {}
    data = bytearray()  # is compressed as a whole
    for package in PACKAGES:
        for name, path in files(package):
            if not name:
                data += path.read_bytes()
            elif not any(name == each or name.startswith(f"{each}.") for each in left_out):
                sizes[name] = packed_size(path, 2 if package in stripped else 0)
    largest = sorted(sizes.items(), key=lambda item: -item[1])[:20]
    total = sum(sizes.values()) + len(zlib.compress(data, 9))
    assert total < LARGEST_BYTES, (total, largest)
