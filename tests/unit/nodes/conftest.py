"""Fixtures of the tests of channels to other nodes."""

from __future__ import annotations

import pytest

from tests.unit.nodes.outcomes import Outcomes


@pytest.fixture
def outcomes() -> Outcomes:
    return Outcomes()
