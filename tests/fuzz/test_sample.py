"""A sample of `python -m tests.fuzz`: a few damaged inputs of each kind."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.fuzz.targets import CONNECTIONS, Targets
from tests.seeds import drawn_seed

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def targets() -> Iterator[Targets]:
    with Targets() as running:
        yield running


@pytest.mark.parametrize("name", ["wire: frames", "wire: hellos", "wire: TLS records"])
def test_damaged_input_is_refused_and_leaves_nothing(targets: Targets, name: str) -> None:
    """The targets that need no broker have tests of their own, which the command repeats."""
    numbers = random.Random(drawn_seed())
    targets.by_name[name](numbers, CONNECTIONS)
    before = targets.open_descriptors()
    targets.by_name[name](numbers, 4 * CONNECTIONS)
    assert targets.open_descriptors() <= before + 2
