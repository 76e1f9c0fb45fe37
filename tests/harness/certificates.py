"""Certificates for tests: authorities with keys of their own, made by the command `openssl`."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

PASSWORD = "changeit"  # of the stores and keys that an Identity writes
CONFIGURATION = """\
[ca]
default_ca = own
[own]
database = {folder}/index.txt
new_certs_dir = {folder}
certificate = {folder}/ca.crt
private_key = {folder}/ca.key
serial = {folder}/serial
crlnumber = {folder}/crlnumber
default_md = sha256
default_crl_days = 30
unique_subject = no
policy = any
preserve = yes
copy_extensions = none
[any]
CN = optional
OU = optional
O = optional
L = optional
ST = optional
C = optional
[req]
distinguished_name = none
string_mask = utf8only
utf8 = yes
[none]
"""


def openssl(*arguments: str | Path) -> str:
    """Runs the command and returns its output. Raises AssertionError with the errors that it printed."""
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"openssl {' '.join(map(str, arguments))}: {done.stderr}"
    return done.stdout


def key_options(key_type: str) -> list[str]:
    """Returns the options that make a new key: "ec" for P-256, or "rsa2048" with any number of bits."""
    if key_type == "ec":
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    return ["-newkey", f"rsa:{key_type.removeprefix('rsa')}"]


@dataclass(frozen=True)
class Identity:
    """A certificate with its chain, leaf first, and its unencrypted key."""

    chain_file: Path
    key_file: Path

    @property
    def chain_pem(self) -> bytes:
        return self.chain_file.read_bytes()

    @property
    def key_pem(self) -> bytes:
        return self.key_file.read_bytes()

    @property
    def pem_file(self) -> Path:
        """Key and chain in one file."""
        path = self.key_file.with_suffix(".pem")
        path.write_bytes(self.key_pem + self.chain_pem)
        return path

    @property
    def pkcs12_file(self) -> Path:
        """Key and chain in a PKCS #12 store that PASSWORD opens."""
        path = self.key_file.with_suffix(".p12")
        openssl(
            *("pkcs12", "-export", "-in", self.chain_file, "-inkey", self.key_file),
            *("-name", path.stem, "-passout", f"pass:{PASSWORD}", "-out", path),
        )
        return path

    @property
    def encrypted_key_file(self) -> Path:
        """The key in PKCS #8, encrypted with PASSWORD."""
        path = self.key_file.with_suffix(".encrypted.key")
        openssl("pkcs8", "-topk8", "-in", self.key_file, "-passout", f"pass:{PASSWORD}", "-out", path)
        return path


class CertificateAuthority:
    """An authority that signs with a key of its own, in `folder`; an intermediate one if `parent` is given."""

    def __init__(
        self, folder: Path, name: str = "Test CA", *, parent: CertificateAuthority | None = None, key_type: str = "ec"
    ) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "index.txt").touch()
        (folder / "serial").write_text("1000\n")
        (folder / "crlnumber").write_text("01\n")
        self._configuration = folder / "openssl.cnf"
        self._configuration.write_text(CONFIGURATION.format(folder=folder))
        self.certificate_file = folder / "ca.crt"
        self._above = parent.chain_above() if parent is not None else b""
        new_key: list[str | Path] = [
            "req",
            *key_options(key_type),
            "-nodes",
            "-keyout",
            folder / "ca.key",
            "-subj",
            f"/CN={name}",
        ]
        if parent is None:
            extension = ["-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=keyCertSign,cRLSign"]
            openssl(*new_key, "-x509", "-days", "3650", "-out", self.certificate_file, *extension)
        else:
            openssl(*new_key, "-out", folder / "ca.csr")
            parent.sign(folder / "ca.csr", self.certificate_file, "basicConstraints=critical,CA:TRUE\n")

    @property
    def certificate_pem(self) -> bytes:
        return self.certificate_file.read_bytes()

    def chain_above(self) -> bytes:
        """Returns the certificates (PEM) of the intermediate authorities, which follow the leaf in an issued chain."""
        return self.certificate_pem + self._above if self._above or self._is_intermediate() else b""

    def _is_intermediate(self) -> bool:
        return (self.folder / "ca.csr").exists()

    def sign(self, request: Path, certificate: Path, extensions: str, days: tuple[float, float] = (-1, 825)) -> None:
        """Signs a request; the certificate is valid between two times, in days from now."""
        extension_file = certificate.with_suffix(".ext")
        extension_file.write_text(extensions)
        now = datetime.now(UTC)
        start, end = ((now + timedelta(days=each)).strftime("%Y%m%d%H%M%SZ") for each in days)
        openssl(
            "ca", "-batch", "-notext", "-config", self._configuration, "-in", request, "-out", certificate,
            "-startdate", start, "-enddate", end, "-extfile", extension_file,
        )  # fmt: skip

    def issue(
        self,
        name: str,
        *,
        subject: str | None = None,
        names: tuple[str, ...] = ("DNS:localhost", "IP:127.0.0.1"),
        usage: str = "serverAuth,clientAuth",
        key_type: str = "ec",
        days: tuple[float, float] = (-1, 825),
    ) -> Identity:
        """Returns a certificate for `subject` (`/CN=name` unless given) in the files `name`.crt and `name`.key."""
        request, leaf, chain, key = (self.folder / f"{name}.{each}" for each in ("csr", "leaf", "crt", "key"))
        extra = ["-multivalue-rdn"] if "+" in (subject or "") else []
        openssl("req", *key_options(key_type), "-nodes", "-keyout", key, "-out", request, "-utf8",
                "-subj", subject or f"/CN={name}", *extra, "-config", self._configuration)  # fmt: skip
        extensions = f"extendedKeyUsage={usage}\n"
        if names:
            extensions += f"subjectAltName={','.join(names)}\n"
        self.sign(request, leaf, extensions, days)
        chain.write_bytes(leaf.read_bytes() + self.chain_above())
        return Identity(chain, key)

    def revoke(self, *identities: Identity) -> bytes:
        """Revokes certificates, and returns the authority's whole revocation list in PEM."""
        for identity in identities:
            leaf = identity.chain_file.with_suffix(".leaf")
            openssl("ca", "-config", self._configuration, "-revoke", leaf)
        listed = self.folder / "crl.pem"
        openssl("ca", "-config", self._configuration, "-gencrl", "-out", listed)
        return listed.read_bytes()
