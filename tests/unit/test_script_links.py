"""Links to the program under the names of Apache Kafka's scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.script_links import install_links

NAMES = ["kafka-topics", "kafka-configs"]
LINKS = ["kafka-configs", "kafka-configs.sh", "kafka-topics", "kafka-topics.sh"]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "kafkapy"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_links_with_and_without_their_ending(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    directory = tmp_path / "bin"
    assert install_links([str(directory)], NAMES, str(program)) == 0
    assert sorted(path.name for path in directory.iterdir()) == LINKS
    assert all(path.resolve() == program for path in directory.iterdir())
    assert capsys.readouterr().out.split() == [f"{directory}/{name}{end}" for name in NAMES for end in ("", ".sh")]
    assert install_links([str(directory)], NAMES, str(program)) == 0, "a second time changes nothing"


def test_files_of_other_programs_are_left_unchanged(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    directory = tmp_path / "bin"
    directory.mkdir()
    (directory / "kafka-topics.sh").write_text("theirs")
    assert install_links([str(directory)], NAMES, str(program)) == 1
    assert (directory / "kafka-topics.sh").read_text() == "theirs"
    assert "kafka-topics.sh exists already" in capsys.readouterr().err
    assert (directory / "kafka-configs.sh").is_symlink()


@pytest.mark.parametrize("arguments", [[], ["--force"], ["a", "b"]])
def test_wrong_arguments_print_the_usage(arguments: list[str], program: Path, capsys: pytest.CaptureFixture[str]):
    assert install_links(arguments, NAMES, str(program)) == 1
    assert "usage: kafkapy install-links" in capsys.readouterr().err


def test_links_to_a_module_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert install_links([str(tmp_path)], NAMES, "/usr/lib/kafkapy/__main__.py") == 1
    assert "is not a program" in capsys.readouterr().err


def test_a_directory_that_cannot_be_created_is_an_error(program: Path, capsys: pytest.CaptureFixture[str]):
    assert install_links([f"{program}/bin"], NAMES, str(program)) == 1
    assert "Not a directory" in capsys.readouterr().err
