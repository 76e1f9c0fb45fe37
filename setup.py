"""Builds kafkapy: generates the protocol from its definitions, then compiles one extension per `.pyx`.

With KAFKAPY_LINK_ONLY set nothing is built: `pip install -e` then only links a tree that was built in place.
What is built for others holds `build_data.json`: the commit (of this clone, or of the sdist), the date
(SOURCE_DATE_EPOCH, if it is set) and what the core was compiled with. `kafkapy --version` shows it.
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
# C that we wrote ourselves, by the extension that links it.
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


def extension(source: Path) -> Extension:
    relative = source.relative_to(ROOT)
    extra = [str(relative.parent / name) for name in C_SOURCES.get(source.stem, []) if relative.parent.name == "bytes"]
    return Extension(
        ".".join(relative.with_suffix("").parts), [str(relative), *extra], extra_compile_args=COMPILER_FLAGS
    )


def extensions() -> list[Extension]:
    if os.environ.get("KAFKAPY_LINK_ONLY"):
        return []
    runpy.run_path(str(GENERATOR), run_name="__main__")
    return [extension(source) for source in sorted((ROOT / "kafkapy").glob("**/*.pyx"))]


class CythonBuild(build_ext):
    """Cython only when something is compiled, and on all processors: neither an sdist nor metadata need it."""

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
    """Of what a command prints; nothing if it cannot be run or fails."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.partition("\n")[0] if done.returncode == 0 else ""


def build_data() -> dict[str, str]:
    from Cython import __version__ as cython

    moment = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH") or time.time()))
    data = {"commit": "unknown", "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", moment)}
    if (ROOT / BUILD_DATA).exists():  # in an sdist
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


if __name__ == "__main__":  # the processes of cythonize import this file too
    setup(
        ext_modules=extensions(),
        cmdclass={"build_ext": CythonBuild, "build_py": BuildWithData, "sdist": SourceWithData},
    )
