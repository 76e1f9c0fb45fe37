"""Compiles `.proto` texts with protoc, which the package grpcio-tools contains.

The compiler runs in a process of its own for each text, because a client of the registry sends the text: a text that
makes the compiler crash, or occupies it for ever, ends only that process. The results are cached.
"""

from __future__ import annotations

import importlib.resources
import importlib.util
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from kafkapy.registry.errors import InvalidSchema

_COMPILER_TIMEOUT_S = 10.0
_MOST_MESSAGE_CHARACTERS = 2000
_MOST_CACHED = 64
_MAIN = "schema"
# What the compiler writes to its log, such as "W0000 00:00:1795970307.628296 4918 parser.cc:659] No edition".
_LOG_LINE = re.compile(r"^(?:[IWEF]\d{4} \d\d:.*|WARNING: All log messages .*)\n?", re.MULTILINE)
# The files of googleapis-common-protos, which every registry resolves without a reference.
_COMMON_FILE = re.compile(r"google/type/\w+\.proto")


def can_compile() -> bool:
    """Returns whether the compiler is installed."""
    return importlib.util.find_spec("grpc_tools") is not None


def compiled(text: str, referred: Mapping[str, str]) -> Any:
    """Returns the FileDescriptorSet of a `.proto` text and the files that it imports; its last file is that of `text`.

    `referred` has the texts of the schemas that `text` imports, directly or indirectly, by the names of the references.
    Raises InvalidSchema if the compiler refuses the text, with the reason.
    """
    return _compiled(text, tuple(referred.items()))


@lru_cache(_MOST_CACHED)
def _compiled(text: str, referred: tuple[tuple[str, str], ...]) -> Any:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    main = f"{_MAIN}.proto"
    while any(name == main for name, _ in referred):
        main = f"_{main}"
    with tempfile.TemporaryDirectory(prefix="kafkapy-proto-") as name:
        folder = Path(name)
        files = folder / "files"
        for path, content in (*_common_files(text, *(each for _, each in referred)), *referred, (main, text)):
            _write(files, path, content)
        output = folder / "output"
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{files}", "--include_imports"]
        try:
            ended = subprocess.run(
                [*command, f"--descriptor_set_out={output}", str(files / main)],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_COMPILER_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise InvalidSchema(f"the text could not be compiled within {_COMPILER_TIMEOUT_S:.0f} s") from None
        if ended.returncode:
            said = _LOG_LINE.sub("", ended.stderr.decode(errors="replace")).replace(f"{files}/", "").strip()
            raise InvalidSchema(said[:_MOST_MESSAGE_CHARACTERS] or f"the compiler ended with {ended.returncode}")
        return FileDescriptorSet.FromString(output.read_bytes())


def _write(folder: Path, name: str, content: str) -> None:
    """Writes a file that the compiler can import by its name. Raises InvalidSchema if no file can have the name."""
    parts = PurePosixPath(name).parts
    if not parts or any(part in ("/", "..") or "\0" in part for part in parts):
        raise InvalidSchema(f"the name {name!r} of a reference is not a path that can be imported")
    path = folder.joinpath(*parts)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8", errors="replace", newline="")
    except OSError as error:
        raise InvalidSchema(f"the name {name!r} of a reference cannot be that of a file: {error.strerror}") from None


def _common_files(*texts: str) -> list[tuple[str, str]]:
    """Returns (name, content) for each file of Google's common types that `texts` need, directly or indirectly."""
    if importlib.util.find_spec("google.type") is None:
        return []
    folder = importlib.resources.files("google.type")
    found: dict[str, str] = {}
    waiting = [*texts]
    while waiting:
        for name in _COMMON_FILE.findall(waiting.pop()):
            file = folder / name.rpartition("/")[2]
            if name not in found and file.is_file():
                found[name] = file.read_text()
                waiting.append(found[name])
    return [*found.items()]
