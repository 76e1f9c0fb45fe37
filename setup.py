"""Builds kafkapy: generates the protocol from its definitions, then compiles one extension per `.pyx`.

Environment variables:

- KAFKAPY_LINK_ONLY: build nothing; `pip install -e` then only links a tree that was built in place.
- KAFKAPY_WARNINGS_AS_ERRORS: fail when the C compiler warns. CI sets it.
- KAFKAPY_SANITIZED: build for `scripts/sanitized-tests`, with bounds checks and the address and undefined-behaviour
  sanitizers. Such a build runs only with the sanitizers' libraries preloaded.
- SOURCE_DATE_EPOCH: the date to record instead of the present.

Wheels and sdists contain `build_data.json`: the commit (of this clone, or of the sdist), the date, and the versions of
Cython and of the compiler. `kafkapy --version` shows them.
"""

import json
import os
import runpy
import subprocess
import sysconfig
import time
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

ROOT = Path(__file__).parent
COMPILER_FLAGS = ["-O2", "-g0", "-fno-strict-aliasing", "-Wall", "-Wno-unused-function", "-Wno-unused-variable"]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
# C sources of our own, by the extension that links them.
C_SOURCES = {"crc32c": ["crc32c_hardware.c"]}

GENERATOR = ROOT / "kafkapy" / "protocol" / "generator.py"
BUILD_DATA = Path("kafkapy") / "build_data.json"
COMPILER_DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
}
LINKER_FLAGS: list[str] = []

if os.environ.get("KAFKAPY_WARNINGS_AS_ERRORS"):
    COMPILER_FLAGS.append("-Werror")
if os.environ.get("KAFKAPY_SANITIZED"):
    # Later options of the compiler override earlier ones. C's division stays, as Python's would give other results; the
    # sanitizer reports a division by zero.
    COMPILER_FLAGS += ["-O1", "-g1", "-fno-omit-frame-pointer", *SANITIZERS]
    LINKER_FLAGS += SANITIZERS
    COMPILER_DIRECTIVES |= {"boundscheck": True, "initializedcheck": True}


def extension(source: Path) -> Extension:
    relative = source.relative_to(ROOT)
    extra = [str(relative.parent / name) for name in C_SOURCES.get(source.stem, []) if relative.parent.name == "bytes"]
    return Extension(
        ".".join(relative.with_suffix("").parts),
        [str(relative), *extra],
        extra_compile_args=COMPILER_FLAGS,
        extra_link_args=LINKER_FLAGS,
    )


def extensions() -> list[Extension]:
    if os.environ.get("KAFKAPY_LINK_ONLY"):
        return []
    runpy.run_path(str(GENERATOR), run_name="__main__")
    return [extension(source) for source in sorted((ROOT / "kafkapy").glob("**/*.pyx"))]


class CythonBuild(build_ext):
    """Imports Cython only when something is compiled: sdists and metadata do not need it. Uses all processors."""

    def run(self) -> None:
        from Cython.Build import cythonize

        processors = os.cpu_count() or 1
        options = {"compiler_directives": COMPILER_DIRECTIVES, "nthreads": processors}
        compiled = {each.name: each for each in cythonize(self.extensions or [], **options)}
        for each in self.extensions or []:
            each.sources[:] = compiled[each.name].sources
            each.depends = compiled[each.name].depends
        self.parallel = self.parallel or processors
        super().run()


def first_line(*command: str) -> str:
    """Returns the first line that a command prints, or "" if it cannot be run or fails."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.partition("\n")[0] if done.returncode == 0 else ""


def build_data() -> dict[str, str]:
    from Cython import __version__ as cython

    moment = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH") or time.time()))
    data = {"commit": "unknown", "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", moment)}
    if (ROOT / BUILD_DATA).exists():  # only in an sdist
        data |= json.loads((ROOT / BUILD_DATA).read_text())
    elif (ROOT / ".git").exists():
        data["commit"] = first_line("git", "rev-parse", "HEAD") or "unknown"
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    return {**data, "cython": cython, "compiler": first_line(compiler, "--version") or compiler}


class BuildWithData(build_py):
    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            self.mkpath(str(Path(self.build_lib) / BUILD_DATA.parent))
            (Path(self.build_lib) / BUILD_DATA).write_text(json.dumps(build_data()))


class SourceWithData(sdist):
    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        (Path(base_dir) / BUILD_DATA).write_text(json.dumps(build_data()))


if __name__ == "__main__":  # cythonize's processes import this file as well
    setup(
        ext_modules=extensions(),
        cmdclass={"build_ext": CythonBuild, "build_py": BuildWithData, "sdist": SourceWithData},
    )
