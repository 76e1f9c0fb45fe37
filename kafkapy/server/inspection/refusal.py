"""The error response of the inspection interface, and functions that read the parameters of a request."""

from __future__ import annotations

from collections.abc import Mapping

LARGEST_NUMBER = (1 << 63) - 1


class Refusal(Exception):
    """An error response: an HTTP status and a full sentence."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


def whole(name: str, text: str, most: int = LARGEST_NUMBER) -> int:
    """Returns the number in `text`, which must be a whole number from 0 to `most`.

    Raises Refusal for any other text. `name` is the name of the value in the error's message.
    """
    if not (text.isascii() and text.isdigit()) or len(text) > 19 or int(text) > most:
        raise Refusal(400, f"{name}={text[:40]} is not a whole number from 0 to {most}.")
    return int(text)


class Query:
    """The parameters of a URL's query, of which each may be given once."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = given

    def check(self, known: tuple[str, ...]) -> None:
        """Raises Refusal if the query has a parameter that is not in `known`."""
        for name in self._given:
            if name not in known:
                accepted = f"accepted are {', '.join(known)}" if known else "this page has none"
                raise Refusal(400, f"There is no parameter {name[:40]!r}; {accepted}.")

    def text(self, name: str) -> str | None:
        """Returns the parameter `name`, or None if the query does not have it."""
        return self._given.get(name)

    def whole(self, name: str, default: int, most: int = LARGEST_NUMBER) -> int:
        """Returns the parameter `name`, a whole number from 0 to `most`; `default` if the query does not have it."""
        text = self._given.get(name)
        return default if text is None else whole(name, text, most)

    def limit(self, most: int) -> int:
        """Returns the parameter `limit`, the number of entries of a page: 1 to `most`, by default `most`."""
        found = self.whole("limit", most, most)
        if not found:
            raise Refusal(400, f"limit=0 is not a whole number from 1 to {most}.")
        return found
