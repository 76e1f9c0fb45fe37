"""Builds the extension of one `.pyx` in place, unoptimized, without looking at the other sources.

python -m tests.mutation.build_one kafkapy/storage/example.pyx
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path


def main(source: str) -> None:
    spec = importlib.util.spec_from_file_location("kafkapy_setup", Path("setup.py").resolve())
    assert spec is not None and spec.loader is not None
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    build.COMPILER_FLAGS.append("-O0")
    extension = build.extension(build.ROOT / source)
    build.setup(
        name="mutant",
        script_args=["-q", "build_ext", "--inplace"],
        ext_modules=[extension],
        packages=[],
        cmdclass={"build_ext": build.CythonBuild},
    )


if __name__ == "__main__":
    main(sys.argv[1])
