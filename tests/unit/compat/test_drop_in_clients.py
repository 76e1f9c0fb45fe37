"""Tests of the program that counts, by reflection, how many names of other clients the packages of kafkapy.compat
have."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def load_program():
    spec = importlib.util.spec_from_file_location("drop_in_clients", ROOT / "docs" / "drop_in_clients.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PROGRAM = load_program()


@pytest.mark.parametrize("package", PROGRAM.PACKAGES, ids=lambda package: package.distribution)
def test_enough_names_are_covered_and_each_of_the_rest_has_a_reason(package):
    found = PROGRAM.coverage(package)
    covered, names = PROGRAM.share(found)
    assert covered >= names * PROGRAM.LEAST_SHARE, PROGRAM.missing_names(found)
    assert not [name for name in PROGRAM.missing_names(found) if PROGRAM.reason_of(package, name) is None]


def test_the_page_is_up_to_date():
    """The page depends on the versions of the originals; with other versions it is not compared."""
    page = PROGRAM.PAGE.read_text()
    if all(PROGRAM.section_title(package) in page for package in PROGRAM.PACKAGES):
        assert page == PROGRAM.drop_in_clients(), "run: .venv/bin/python docs/drop_in_clients.py"
    else:
        assert all(f"## {package.distribution} " in page for package in PROGRAM.PACKAGES)
