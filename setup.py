"""Builds kafkapy: generates the protocol from its definitions, then compiles one extension per `.pyx`."""

import runpy
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

ROOT = Path(__file__).parent
COMPILER_FLAGS = ["-O2", "-g0", "-fno-strict-aliasing", "-Wall", "-Wno-unused-function", "-Wno-unused-variable"]
# C that we wrote ourselves, by the extension that links it.
C_SOURCES = {"crc32c": ["crc32c_hardware.c"]}

GENERATOR = ROOT / "kafkapy" / "protocol" / "generator.py"
runpy.run_path(str(GENERATOR), run_name="__main__")


def extension(source: Path) -> Extension:
    relative = source.relative_to(ROOT)
    extra = [str(relative.parent / name) for name in C_SOURCES.get(source.stem, []) if relative.parent.name == "_core"]
    return Extension(
        ".".join(relative.with_suffix("").parts), [str(relative), *extra], extra_compile_args=COMPILER_FLAGS
    )


EXTENSIONS = [extension(source) for source in sorted((ROOT / "kafkapy").glob("**/*.pyx"))]
setup(
    ext_modules=cythonize(
        EXTENSIONS,
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "cdivision": True,
            "initializedcheck": False,
        },
    )
)
