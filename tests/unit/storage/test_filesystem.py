"""The filesystem: what each operation syncs, in which order, and what survives a power failure."""

import os

import pytest

from kafkapy.storage import filesystem as module
from kafkapy.storage.filesystem import Filesystem, read_small_file
from tests.lossy_filesystem import LossyFilesystem


class Recorder(Filesystem):
    """Records the names of the files and directories that are synced; names of directories end in a slash."""

    __slots__ = ("synced",)

    def __init__(self):
        self.synced = []

    def sync_file(self, fd):
        self.synced.append(os.path.basename(os.readlink(f"/proc/self/fd/{fd}")))
        super().sync_file(fd)

    def sync_directory(self, path):
        self.synced.append(f"{os.path.basename(path)}/")
        super().sync_directory(path)


@pytest.fixture
def recorder():
    return Recorder()


def test_a_file_is_synced_before_it_gets_its_name(recorder, tmp_path):
    recorder.write_atomically(str(tmp_path / "file"), b"content")
    assert (tmp_path / "file").read_bytes() == b"content"
    assert recorder.synced == ["file.tmp", f"{tmp_path.name}/"]
    recorder.write_atomically(str(tmp_path / "file"), b"new", sync=False)
    assert (tmp_path / "file").read_bytes() == b"new"
    assert len(recorder.synced) == 2


def test_a_write_replaces_the_content_and_syncs_it_only_on_demand(recorder, tmp_path):
    path = tmp_path / "file"
    recorder.write_file(str(path), b"a long content", mode=0o600)
    assert recorder.synced == ["file"]
    assert path.stat().st_mode & 0o777 == 0o600
    recorder.write_file(str(path), b"short", sync=False)
    assert path.read_bytes() == b"short"
    assert recorder.synced == ["file"]


@pytest.mark.parametrize("method", ["write_file", "append_file"])
def test_short_writes_are_continued(recorder, tmp_path, monkeypatch, method):
    write = os.write
    monkeypatch.setattr(module.os, "write", lambda fd, data: write(fd, bytes(data)[:3]))
    getattr(recorder, method)(str(tmp_path / "file"), b"0123456789")
    assert (tmp_path / "file").read_bytes() == b"0123456789"


def test_append_and_truncate(recorder, tmp_path):
    path = tmp_path / "file"
    recorder.append_file(str(path), b"one")
    recorder.append_file(str(path), b"two")
    assert path.read_bytes() == b"onetwo"
    recorder.truncate_file(str(path), 4)
    assert path.read_bytes() == b"onet"
    assert recorder.synced == []


def test_a_durable_rename_syncs_both_directories(recorder, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "file").write_bytes(b"x")
    recorder.replace(str(tmp_path / "a" / "file"), str(tmp_path / "a" / "other"))
    assert recorder.synced == ["a/"]
    recorder.replace(str(tmp_path / "a" / "other"), str(tmp_path / "b" / "other"))
    assert recorder.synced == ["a/", "b/", "a/"]
    recorder.rename(str(tmp_path / "b" / "other"), str(tmp_path / "b" / "again"))
    assert recorder.synced == ["a/", "b/", "a/"]
    assert (tmp_path / "b" / "again").read_bytes() == b"x"


def test_new_directories_are_durable_and_existing_ones_are_kept(recorder, tmp_path):
    recorder.make_directory(str(tmp_path / "a" / "b"))
    assert recorder.synced == [f"{tmp_path.name}/", "a/"]
    (tmp_path / "a" / "b" / "file").write_bytes(b"x")
    recorder.make_directory(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b" / "file").exists()
    assert len(recorder.synced) == 2


def test_what_does_not_exist_may_be_removed(recorder, tmp_path):
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "tree" / "deep").mkdir(parents=True)
    for _ in range(2):
        recorder.unlink(str(tmp_path / "file"))
        recorder.remove_tree(str(tmp_path / "tree"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", [0, 1, module.SMALL_FILE - 1, module.SMALL_FILE, 2 * module.SMALL_FILE + 5])
def test_files_of_any_size_are_read_whole(tmp_path, size):
    content = os.urandom(size)
    (tmp_path / "file").write_bytes(content)
    assert read_small_file(str(tmp_path / "file")) == content


def test_descriptors_are_closed(recorder, tmp_path):
    before = len(os.listdir("/proc/self/fd"))
    path = str(tmp_path / "file")
    recorder.write_atomically(path, b"x")
    recorder.append_file(path, b"x")
    recorder.sync_path(path)
    recorder.sync_filesystem(str(tmp_path))
    read_small_file(path)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_sync_of_the_file_system_fails_for_a_missing_path(recorder, tmp_path):
    with pytest.raises(FileNotFoundError):
        recorder.sync_filesystem(str(tmp_path / "missing"))


def test_a_power_failure_never_leaves_half_of_an_atomic_write(tmp_path):
    (tmp_path / "before").mkdir()
    lossy = LossyFilesystem(str(tmp_path / "before"))
    lossy.write_atomically(str(tmp_path / "before" / "file"), b"old")
    lossy.write_atomically(str(tmp_path / "before" / "file"), b"new", sync=False)
    lossy.pull_the_plug(str(tmp_path / "after"))
    lossy.close()
    assert (tmp_path / "after" / "file").read_bytes() == b"old"
