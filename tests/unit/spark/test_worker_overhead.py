"""In a task of Spark, and nowhere else: objects of imported modules are exempt from garbage collections, unchanged zip
files are not read again, and the JVM's command is acknowledged at once."""

from __future__ import annotations

import gc
import importlib
import os
import socket
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from zipimport import zipimporter

import pytest
from pyspark import TaskContext

from kafkapy.spark import worker_overhead
from kafkapy.spark.worker_overhead import request_input, shorten_tasks


@pytest.fixture(autouse=True)
def unfrozen():
    def unfreeze() -> None:
        worker_overhead._exempt_imported_modules.cache_clear()
        gc.unfreeze()

    unfreeze()
    yield
    unfreeze()


@pytest.fixture
def in_task(monkeypatch):
    monkeypatch.setattr(TaskContext, "get", lambda: object())


@pytest.fixture
def reads(monkeypatch) -> list[str]:
    """Returns a list, to which each reading of the list of files of a zip file adds the path of the file."""
    found: list[str] = []
    original = zipimporter.invalidate_caches

    def read(self: zipimporter) -> None:
        found.append(self.archive)
        original(self)

    monkeypatch.setattr(zipimporter, "invalidate_caches", read)
    return found


@pytest.fixture
def archive(tmp_path, monkeypatch) -> Path:
    """Returns a zip file on the module path, whose module `zipped_early` is imported."""
    path = tmp_path / "modules.zip"
    write(path, "zipped_early")
    monkeypatch.syspath_prepend(str(path))
    for name in ("zipped_early", "zipped_late"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    importlib.import_module("zipped_early")
    yield path
    sys.path_importer_cache.pop(str(path))


@pytest.fixture
def connection() -> Iterator[socket.socket]:
    """Returns a TCP connection that delays its acknowledgements."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
        server.accept()[0],
    ):
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
        assert options(client) == (False, False)
        yield client


def options(connection: socket.socket) -> tuple[int, int]:
    """Returns whether the connection acknowledges at once, and whether it sends small parts at once."""
    found = [connection.getsockopt(socket.IPPROTO_TCP, each) for each in (socket.TCP_QUICKACK, socket.TCP_NODELAY)]
    return bool(found[0]), bool(found[1])


def write(path: Path, *names: str) -> None:
    with zipfile.ZipFile(path, "w") as file:
        for name in names:
            file.writestr(f"{name}.py", f"NAME = {name!r}\n")


def test_a_task_exempts_the_present_objects_once(in_task):
    shorten_tasks()
    frozen = gc.get_freeze_count()
    assert frozen > 10_000
    later = [[] for _ in range(1000)]
    shorten_tasks()
    assert gc.get_freeze_count() <= frozen
    assert all(gc.is_tracked(each) for each in later)


def test_a_zip_file_is_read_again_only_after_a_change(in_task, archive, reads):
    shorten_tasks()
    shorten_tasks()
    assert reads.count(str(archive)) == 1  # it may have changed since the import
    importlib.invalidate_caches()
    assert reads.count(str(archive)) == 1
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("zipped_late")
    write(archive, "zipped_early", "zipped_late")
    importlib.invalidate_caches()
    assert reads.count(str(archive)) == 2
    assert importlib.import_module("zipped_late").NAME == "zipped_late"
    importlib.invalidate_caches()
    assert reads.count(str(archive)) == 2


@pytest.mark.parametrize("when", ["before the first task", "later"])
def test_a_zip_file_may_vanish_and_return(in_task, archive, when):
    content = archive.read_bytes()
    if when == "later":
        shorten_tasks()
    archive.unlink()
    shorten_tasks()
    importlib.invalidate_caches()
    sys.modules.pop("zipped_early")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("zipped_early")
    archive.write_bytes(content)
    importlib.invalidate_caches()
    assert importlib.import_module("zipped_early").NAME == "zipped_early"


def test_a_task_acknowledges_its_command_at_once(in_task, connection):
    request_input()
    assert options(connection) == (True, True)
    connection.sendall(b"x")  # the descriptors are still open


def test_a_task_without_a_list_of_descriptors_changes_nothing(in_task, connection, monkeypatch):
    def fail(path: str) -> list[str]:
        raise FileNotFoundError(path)

    monkeypatch.setattr(os, "listdir", fail)
    request_input()
    assert options(connection) == (False, False)


def test_a_process_that_runs_no_task_is_unchanged(monkeypatch, archive, connection):
    monkeypatch.setattr(TaskContext, "get", lambda: None)
    shorten_tasks()
    request_input()
    assert options(connection) == (False, False)
    assert gc.get_freeze_count() == 0
    assert type(sys.path_importer_cache[str(archive)]) is zipimporter
