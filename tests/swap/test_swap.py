"""The swap in both directions, for a sample of the variants; tests/full runs all variants."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.swap.swap import Variant, pass_back_and_forth

SAMPLE = (
    Variant(dynamic=True, log_dirs=2, killed=True),
    Variant(version="3.9.1"),
)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("variant", SAMPLE, ids=str)
def test_swap(variant: Variant, tmp_path: Path) -> None:
    pass_back_and_forth(variant, tmp_path)
