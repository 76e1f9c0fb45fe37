"""A reason why data of one schema cannot be read with another one."""

from __future__ import annotations

from kafkapy.named_tuple import NamedTuple


class Difference(NamedTuple):
    """A difference that makes two schemas incompatible.

    `kind` is the name that Confluent's registry has for the difference, `path` the location in the schema, and `detail`
    the explanation for the user.
    """

    kind: str
    path: str
    detail: str

    def text(self) -> str:
        """Returns the difference as the text that messages of the API contain: `{errorType:'...', description:'...',
        ...}`.
        """
        return f"{{errorType:'{self.kind}', description:'{self.detail}, at path {self.path}', additionalInfo:''}}"
