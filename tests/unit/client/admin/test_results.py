"""Results: values and errors by key."""

from __future__ import annotations

import pytest

from kafkapy.client.admin import Results
from kafkapy.errors import ApiError, Error


def test_results_give_values_and_raise_errors() -> None:
    results: Results[str, int] = Results()
    results.put("a", 1)
    assert results.check() == {"a": 1}
    results.put("b", ApiError(Error.INVALID_TOPIC_EXCEPTION))
    assert results["a"] == 1 and set(results) == {"a", "b"} and len(results) == 2
    with pytest.raises(ApiError, match="INVALID_TOPIC_EXCEPTION"):
        results["b"]
    with pytest.raises(ApiError, match="INVALID_TOPIC_EXCEPTION"):
        results.check()
    with pytest.raises(KeyError):
        results["c"]
    assert repr(results).startswith("Results(values={'a': 1}, errors=")
