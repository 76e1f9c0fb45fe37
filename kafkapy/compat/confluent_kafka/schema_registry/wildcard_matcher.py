"""The patterns with wildcards that select fields in the metadata of a schema."""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["wildcard_match"]

_MATCHERS = {"**": ".*", "*": "[^.]*", "?": "[^.]"}
_TOKEN = re.compile(r"\*\*|\*|\?|\\.|.", re.DOTALL)


def wildcard_match(text: str, matcher: str) -> bool:
    """Returns whether `text`, a full name whose parts are separated by dots, matches the pattern `matcher`.

    In the pattern, `?` matches one character and `*` any number of characters, both except dots; `**` matches any
    number of characters, dots included.
    """
    return _compiled(matcher).fullmatch(text) is not None


@lru_cache(maxsize=1000)
def _compiled(matcher: str) -> re.Pattern[str]:
    tokens = _TOKEN.findall(matcher.replace("**.*", "**"))
    return re.compile(
        "".join(_MATCHERS.get(each) or re.escape(each[1:] if len(each) == 2 else each) for each in tokens), re.DOTALL
    )
