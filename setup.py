"""Builds kafkapy: generates the protocol from its definitions, then compiles one extension per `.pyx`.

With KAFKAPY_LINK_ONLY set nothing is built: `pip install -e` then only links a tree that was built in place.
"""

import os
import runpy
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

ROOT = Path(__file__).parent
COMPILER_FLAGS = ["-O2", "-g0", "-fno-strict-aliasing", "-Wall", "-Wno-unused-function", "-Wno-unused-variable"]
# C that we wrote ourselves, by the extension that links it.
C_SOURCES = {"crc32c": ["crc32c_hardware.c"]}

GENERATOR = ROOT / "kafkapy" / "protocol" / "generator.py"
COMPILER_DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
}


def extension(source: Path) -> Extension:
    relative = source.relative_to(ROOT)
    extra = [str(relative.parent / name) for name in C_SOURCES.get(source.stem, []) if relative.parent.name == "_core"]
    return Extension(
        ".".join(relative.with_suffix("").parts), [str(relative), *extra], extra_compile_args=COMPILER_FLAGS
    )


def extensions() -> list[Extension]:
    if os.environ.get("KAFKAPY_LINK_ONLY"):
        return []
    runpy.run_path(str(GENERATOR), run_name="__main__")
    found = [extension(source) for source in sorted((ROOT / "kafkapy").glob("**/*.pyx"))]
    built: list[Extension] = cythonize(found, compiler_directives=COMPILER_DIRECTIVES, nthreads=os.cpu_count() or 1)
    return built


if __name__ == "__main__":  # the processes of cythonize import this file too
    setup(ext_modules=extensions())
