"""A reason why data of one schema cannot be read with another one."""

from __future__ import annotations

from kafkapy.named_tuple import NamedTuple


class Difference(NamedTuple):
    """A difference that makes two schemas incompatible.

    `kind` is its name in Confluent's registry, `path` its place in the schema, and `detail` the explanation for the
    user.
    """

    kind: str
    path: str
    detail: str

    def text(self) -> str:
        """Returns the difference in the form of a message of the API."""
        return f"{{errorType:'{self.kind}', description:'{self.detail}, at path {self.path}', additionalInfo:''}}"
