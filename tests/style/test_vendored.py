"""The files of other projects in the repository are those that the page on the console's libraries lists."""

from __future__ import annotations

import re
from hashlib import sha256

from tests.style.sources import ROOT

PAGE = ROOT / "docs" / "decisions" / "console-libraries.md"
STATIC = ROOT / "kafkapy" / "console" / "static"
_ROW = re.compile(r"^\| `([^`]+)` \| ([\d.]+) \| (\w+) \| `([0-9a-f]{64})` \|$", re.MULTILINE)


def test_vendored_files_are_unchanged_and_have_their_licence():
    listed = {name: digest for name, _, _, digest in _ROW.findall(PAGE.read_text())}
    found = {path.name: sha256(path.read_bytes()).hexdigest() for path in STATIC.glob("*.min.*")}
    assert found == listed
    for name in found:
        assert (STATIC / f"{name.partition('.')[0]}.LICENSE.txt").exists()


def test_our_own_files_of_the_console_are_small():
    assert (STATIC / "console.css").stat().st_size < 15_000
    assert (STATIC / "console.js").stat().st_size < 10_000
    assert sum(path.stat().st_size for path in STATIC.iterdir()) < 150_000
