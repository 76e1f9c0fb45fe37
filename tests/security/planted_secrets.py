"""Secrets that a test plants, and the search for them in texts in every form in which they could be shown."""

from __future__ import annotations

import gc
import secrets
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from urllib.parse import quote

# DER of an ECPrivateKey (RFC 5915): version 1, then the private number as 32 bytes.
_BEFORE_THE_NUMBER = bytes((2, 1, 1, 4, 32))
_NUMBER_BYTES = 32


class PlantedSecrets:
    """Makes secrets, and finds them again. A secret is text without characters that any form would escape."""

    def __init__(self) -> None:
        self._forms: dict[str, list[str]] = {}

    def new(self, name: str) -> str:
        """Returns a new secret, which a failure shows as `name`."""
        text = f"{name.replace(' ', '-')}-{secrets.token_hex(8)}"
        self.add(name, text.encode())
        return text

    def add(self, name: str, content: bytes) -> None:
        """Adds a secret that was not made by `new`, such as a private key."""
        forms = {content.hex(), b64encode(content).decode().rstrip("="), repr(content)[2:-1], quote(content)}
        # Base64 of a text that contains the secret, at each of the three places in a group of four characters.
        for shift in range(3):
            padded = b64encode(bytes(shift) + content).decode()
            forms.add(padded[4 : len(padded) // 4 * 4 - 4])
        self._forms[name] = [each for each in forms if len(each) >= 12]

    def add_pem(self, name: str, pem: str) -> None:
        """Adds the private number of a P-256 key in PEM, and the line that has most of it.

        The rest of the text is no secret: the first bytes of all keys are the same, and the last are the public key.
        """
        lines = [line for line in pem.splitlines() if line and not line.startswith("-")]
        _, marker, rest = b64decode("".join(lines)).partition(_BEFORE_THE_NUMBER)
        assert marker, f"{name} is no key of the curve P-256"
        self.add(name, rest[:_NUMBER_BYTES])
        self._forms[f"{name}, a line"] = [lines[1]]

    def found_in(self, text: str) -> set[str]:
        """Returns the names of the secrets that a text contains."""
        return {name for name, forms in self._forms.items() if any(form in text for form in forms)}

    def check(self, texts: Mapping[str, str]) -> None:
        """Asserts that no text contains a secret."""
        found = {where: self.found_in(text) for where, text in texts.items()}
        assert not any(found.values()), {where: names for where, names in found.items() if names}


def representations() -> Iterator[tuple[str, str]]:
    """Yields the class and the representation of each object of kafkapy in this process."""
    for each in gc.get_objects():
        kind = type(each)
        if str(kind.__module__).startswith("kafkapy"):
            yield f"{kind.__module__}.{kind.__qualname__}", repr(each)
