"""A file of users and scrypt hashes of their passwords, one `name:scrypt$n$r$p$salt$hash` per line (RFC 7914)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from pathlib import Path

from kafkapy.errors import ConfigError
from kafkapy.named_tuple import NamedTuple

# 16 MB and about 50 ms for each login (OWASP's recommendation for scrypt with these r and p).
_N, _R, _P = 1 << 14, 8, 5
_LARGEST_N = 1 << 20
_MEMORY = 1 << 30
_SALT_SIZE = 16
_HASH_BYTES = 32


class PasswordHash(NamedTuple):
    """The parameters n, r and p of scrypt, the salt, and the hash of one password."""

    n: int
    r: int
    p: int
    salt: bytes
    digest: bytes

    def accepts(self, password: str) -> bool:
        """Returns True if this is the hash of the password."""
        return hmac.compare_digest(self.digest, _scrypt(password, self.n, self.r, self.p, self.salt))

    def __str__(self) -> str:
        salt, digest = (base64.b64encode(each).decode() for each in (self.salt, self.digest))
        return f"scrypt${self.n}${self.r}${self.p}${salt}${digest}"


def hash_password(password: str) -> PasswordHash:
    """Returns the hash of a password with a new salt."""
    salt = os.urandom(_SALT_SIZE)
    return PasswordHash(_N, _R, _P, salt, _scrypt(password, _N, _R, _P, salt))


def _scrypt(password: str, n: int, r: int, p: int, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, n=n, r=r, p=p, maxmem=_MEMORY, dklen=_HASH_BYTES)


class PasswordFile:
    """The users in a file, which is read once, by the constructor. Raises ConfigError for a file that cannot be
    used."""

    def __init__(self, path: Path) -> None:
        try:
            lines = path.read_text().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"the file of users {path} cannot be read: {error}") from None
        self._users: dict[str, PasswordHash] = {}
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith("#"):
                continue
            name, _, text = line.partition(":")
            try:
                self._users[name.strip()] = _parse(text.strip())
            except ValueError:
                accepted = "NAME:scrypt$N$R$P$SALT$HASH, as `kafkapy console hash-password NAME` prints it"
                raise ConfigError(f"line {number} of {path} is not {accepted}") from None
        if not self._users:
            raise ConfigError(f"the file of users {path} has no user")
        # An unknown name costs as much time as a wrong password.
        self._decoy = hash_password(base64.b64encode(os.urandom(_SALT_SIZE)).decode())

    def accepts(self, name: str, password: str) -> bool:
        """Returns True if the user exists and has this password. Takes about 50 ms, also if the user does not exist."""
        found = self._users.get(name)
        return (found or self._decoy).accepts(password) and found is not None


def _parse(text: str) -> PasswordHash:
    kind, n, r, p, salt, digest = text.split("$")
    parsed = PasswordHash(
        int(n), int(r), int(p), base64.b64decode(salt, validate=True), base64.b64decode(digest, validate=True)
    )
    is_power = parsed.n > 1 and parsed.n & (parsed.n - 1) == 0
    if kind != "scrypt" or not is_power or parsed.n > _LARGEST_N or len(parsed.digest) != _HASH_BYTES:
        raise ValueError(text)
    if not (1 <= parsed.r <= 32 and 1 <= parsed.p <= 16):
        raise ValueError(text)
    return parsed
