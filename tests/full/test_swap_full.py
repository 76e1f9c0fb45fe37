"""The swap in every variant of directory, release and ending."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tests.swap.swap import Variant, pass_back_and_forth

VARIANTS = [
    Variant(version, dynamic, log_dirs, False, killed)
    for version, dynamic, log_dirs, killed in itertools.product(
        ("4.3.0", "3.9.1"), (False, True), (1, 2), (False, True)
    )
] + [Variant("4.3.0", True, log_dirs, True, killed) for log_dirs, killed in itertools.product((1, 2), (False, True))]


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_swap(variant: Variant, tmp_path: Path) -> None:
    pass_back_and_forth(variant, tmp_path)
