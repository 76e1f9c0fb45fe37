"""Certificates for the tests, made by the openssl program: an authority, a server on loopback, and clients."""

from __future__ import annotations

import subprocess
from pathlib import Path

PASSWORD = "changeit"
_SERVER_NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1"


class Authority:
    """A certificate authority with P-256 keys whose files are in `directory`."""

    def __init__(self, directory: Path, name: str = "Test CA") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.certificate = directory / "ca.crt"
        self._key = directory / "ca.key"
        _openssl(
            *("req", "-x509", *_new_key(self._key), "-days", "3650", "-subj", f"/CN={name}"),
            *("-addext", "basicConstraints=critical,CA:TRUE", "-out", self.certificate),
        )

    def issue(self, name: str, subject: str, names: str = _SERVER_NAMES, *, days: int = 825) -> Identity:
        """Returns a key and certificate of the subject, in files that begin with `name`.

        `names` is an extension with the alternative names, "" for none. With negative `days` the certificate is
        expired.
        """
        directory = self.directory
        key, request, certificate = (directory / f"{name}.{end}" for end in ("key", "csr", "crt"))
        extensions = directory / f"{name}.ext"
        extensions.write_text(f"{names}\nextendedKeyUsage=serverAuth,clientAuth\n")
        _openssl("req", *_new_key(key), "-out", request, "-subj", subject)
        _openssl(
            *("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial"),
            *("-days", str(days), "-extfile", extensions, "-out", certificate),
        )
        return Identity(name, key, certificate, self.certificate)


class Identity:
    """A private key in PKCS #8 with its certificate, in every form of a key store."""

    def __init__(self, name: str, key: Path, certificate: Path, authority: Path) -> None:
        self.key = key
        self.certificate = certificate
        self._name = name
        self._authority = authority

    @property
    def pem(self) -> Path:
        """Key and chain in one file."""
        path = self.key.with_suffix(".pem")
        path.write_text("".join(each.read_text() for each in (self.key, self.certificate, self._authority)))
        return path

    @property
    def pkcs12(self) -> Path:
        """Key and chain in a PKCS #12 file that PASSWORD opens."""
        path = self.key.with_suffix(".p12")
        _openssl(
            *("pkcs12", "-export", "-in", self.certificate, "-inkey", self.key, "-certfile", self._authority),
            *("-name", self._name, "-passout", f"pass:{PASSWORD}", "-out", path),
        )
        return path

    @property
    def encrypted_key(self) -> Path:
        """The key, encrypted with PASSWORD, in PKCS #8."""
        path = self.key.with_suffix(".encrypted.key")
        _openssl("pkcs8", "-topk8", "-in", self.key, "-passout", f"pass:{PASSWORD}", "-out", path)
        return path


def _new_key(path: Path) -> tuple[str | Path, ...]:
    return ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", path)


def _openssl(*words: str | Path) -> None:
    done = subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
