"""The output of `--json`: the results as one JSON document."""

from __future__ import annotations

import json
from typing import Any


def print_json(value: Any) -> None:
    """Prints `value` as a JSON document to standard output.

    Sets are printed as sorted lists, and objects of types that JSON does not have as their text.
    """
    print(json.dumps(value, default=_plain, ensure_ascii=False, indent=2))


def _plain(value: Any) -> Any:
    if isinstance(value, set | frozenset):
        return sorted(value)
    return str(value)
