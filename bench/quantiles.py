"""The quantiles of measured values."""

from __future__ import annotations

from collections.abc import Sequence


def quantile(values: Sequence[float], share: float) -> float:
    """Returns the value below which `share` of the values are. `values` must not be empty."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]
