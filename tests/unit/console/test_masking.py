"""A filter that looks at masked content is refused, however its path is written."""

from __future__ import annotations

import pytest

from kafkapy.console.masking import Mask
from kafkapy.console.problem import Problem
from kafkapy.console.record_filter import Filter

MASK = Mask(paths=(("card", "number"), ("lines", "card")))


@pytest.mark.parametrize(
    "path",
    [
        *("card.number", "$.card.number", "$card.number", ".card.number", "card..number", "card", "$.card", "$", "."),
        *("lines.0.card", "lines.-1.card", "lines.+0.card", "lines. 0.card", "$.lines.-1", "card.number.deeper"),
    ],
)
def test_a_filter_on_masked_content_is_refused(path):
    with pytest.raises(Problem, match="masking rule"):
        MASK.check([Filter("json", "contains", "4111", path)])


@pytest.mark.parametrize("path", ["id", "$.id", "card.expiry", "lines.0.n"])
def test_a_filter_on_other_content_is_accepted(path):
    MASK.check([Filter("json", "contains", "4111", path)])
