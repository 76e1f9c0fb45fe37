"""Manual pages: every tool has one, which man reads without a warning."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from kafkapy.__main__ import ABOUT_TOOLS, TOOLS, main


def rendered(page: str) -> str:
    """Returns a page as plain text. Raises AssertionError for a warning of the formatter."""
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    command = ["groff", "-man", "-Tascii", "-ww", "-P-c", "-P-b", "-P-u", "-P-o"]
    done = subprocess.run(command, input=page, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


def test_the_page_of_a_tool_has_its_options_and_examples(capsys: pytest.CaptureFixture[str]):
    assert main(["man", "get-offsets"]) == 0
    text = " ".join(rendered(capsys.readouterr().out).split())
    assert "kafkapy-get-offsets - print the offsets of partitions" in text
    assert "kafka-get-offsets.sh" in text
    assert "--topic-partitions topic1:1,topic2:0-3,topic3,topic4:5-,topic5:-3 Comma separated list" in text
    assert "kafkapy get-offsets --bootstrap-server localhost:9092 --topic prices" in text


def test_all_pages_are_installed(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["man", "--install", str(tmp_path / "man1")]) == 0
    names = {path.name for path in (tmp_path / "man1").iterdir()}
    assert names == {f"kafkapy-{name}.1" for name in (*TOOLS, *ABOUT_TOOLS)} | {"kafkapy.1"}
    assert capsys.readouterr().out == f"{tmp_path / 'man1'}: {len(names)} pages\n"
    rendered("".join(path.read_text() for path in sorted((tmp_path / "man1").iterdir())))


@pytest.mark.parametrize("words", [["nonsense"], ["a", "b"], ["--install", "a", "b"]])
def test_bad_input_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]):
    assert main(["man", *words]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err
