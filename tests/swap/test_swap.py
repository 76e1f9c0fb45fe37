"""The swap in both directions, for one of the variants; tests/full runs all variants."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.swap.swap import Variant, pass_back_and_forth


@pytest.mark.timeout(600)
def test_swap(tmp_path: Path) -> None:
    pass_back_and_forth(Variant(dynamic=True, log_dirs=2, killed=True), tmp_path)
