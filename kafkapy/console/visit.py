"""One request of a logged-in user for a page of one cluster, and the page as the name of a template with its values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kafkapy.console.cluster_view import ClusterView
from kafkapy.console.problem import Problem
from kafkapy.console.settings import Settings
from kafkapy.http.sessions import Session
from kafkapy.named_tuple import NamedTuple

PAGE_ROWS = 100
LONGEST_TEXT = 1000


class Visit(NamedTuple):
    """A request of a user for a page.

    `path` has the parameters in the path of the URL. `query` has the last value of each parameter in the query of the
    URL, `lists` all values of each, for forms with rows. `form` has the fields of a form that was sent, or is None.
    `view_of` returns the view of a cluster by its name, or raises Problem if there is none.
    """

    cluster: ClusterView
    session: Session
    settings: Settings
    path: Mapping[str, str]
    query: Mapping[str, str]
    lists: Mapping[str, list[str]]
    url: str
    view_of: Callable[[str], ClusterView]
    form: Mapping[str, str] | None = None

    def shared(self) -> dict[str, Any]:
        """Returns the values that the template of every page needs, by their names in the template."""
        return {
            "settings": self.settings,
            "session": self.session,
            "cluster": self.cluster,
            "clusters": list(self.settings.clusters),
            "url": self.url,
            "tab": "",
        }

    def text(self, name: str, default: str = "") -> str:
        """Returns the parameter `name` of the query without surrounding spaces; `default` if it is missing.

        Raises Problem if it has more than LONGEST_TEXT characters.
        """
        found = self.query.get(name, default).strip()
        if len(found) > LONGEST_TEXT:
            raise Problem(400, f"The parameter {name} has more than {LONGEST_TEXT} characters.")
        return found

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        """Returns the parameter `name` of the query as a whole number; `default` if it is missing or empty.

        Raises Problem for another text and for a number that is less than `low` or greater than `high`.
        """
        text = self.text(name)
        if not text:
            return default
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit()) or len(digits) > 19 or not low <= int(text) <= high:
            raise Problem(400, f"{name}={text[:40]} is not a whole number from {low} to {high}.")
        return int(text)

    def choice(self, name: str, choices: Mapping[str, Any] | tuple[str, ...], default: str) -> str:
        """Returns the parameter `name` of the query, which must be in `choices`; `default` if it is missing or empty.

        Raises Problem for another value.
        """
        found = self.text(name) or default
        if found not in choices:
            raise Problem(400, f"{name}={found[:40]} is not one of {', '.join(choices)}.")
        return found


class Page(NamedTuple):
    """A page: the name of its template, without `.html`, and the template's values."""

    template: str
    values: dict[str, Any]
    status: int = 200


class Part(NamedTuple):
    """The rows of a list that one page shows.

    `start` is the index of the first of these rows in the whole list, and `total` is the length of the whole list.
    """

    rows: list[Any]
    start: int
    total: int

    @property
    def end(self) -> int:
        """The index, in the whole list, after the last row of the part."""
        return self.start + len(self.rows)


def part_of(rows: list[Any], visit: Visit) -> Part:
    """Returns at most PAGE_ROWS of the rows, beginning with the index in the parameter `start` of the query."""
    start = visit.whole("start", 0, 0, 1 << 40)
    return Part(rows[start : start + PAGE_ROWS], start, len(rows))
