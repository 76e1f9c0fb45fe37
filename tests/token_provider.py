"""An OAuth provider for tests, which signs the tokens that Apache Kafka verifies."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from base64 import urlsafe_b64encode
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from kafkapy.security.oauth.signing import SigningKey


class TokenProvider:
    """A token endpoint on loopback that gives the answers in `answers`, the last one again and again.

    An answer is an HTTP status and a body: bytes, a value to encode as JSON, or a function that returns that value.
    `asked` has the headers and the form of each request.
    """

    def __init__(self) -> None:
        self.answers: list[tuple[int, Any]] = [(200, {"access_token": "a.b.c"})]
        self.asked: list[tuple[dict[str, str], dict[str, list[str]]]] = []
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                provider.asked.append((dict(self.headers), parse_qs(body.decode())))
                status, answer = provider.answers[0] if len(provider.answers) == 1 else provider.answers.pop(0)
                answer = answer() if callable(answer) else answer
                content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                """Writes nothing."""

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/token?tenant=t"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Issuer:
    """A signing key on P-256, whose JSON web key set is the file `key_set`."""

    def __init__(self, directory: Path) -> None:
        key = directory / "issuer.pem"
        _openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key)
        self._key = SigningKey(key.read_bytes(), None, "ES256")
        point = _openssl("pkey", "-in", key, "-pubout", "-outform", "DER")[-64:]
        entry = {"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": "k1"}
        entry |= {"x": _encoded(point[:32]), "y": _encoded(point[32:])}
        self.key_set = directory / "keys.json"
        self.key_set.write_text(json.dumps({"keys": [entry]}))

    def token(self, subject: str, *, lifetime_s: int = 3600, **claims: Any) -> str:
        now_s = int(time.time())
        content = {"sub": subject, "iat": now_s, "exp": now_s + lifetime_s, "scope": "all", **claims}
        signed = ".".join(_encoded(json.dumps(part).encode()) for part in ({"alg": "ES256", "kid": "k1"}, content))
        return f"{signed}.{_encoded(self._key.sign(signed.encode()))}"


def _encoded(content: bytes) -> str:
    return urlsafe_b64encode(content).decode().rstrip("=")


def _openssl(*words: str | Path) -> bytes:
    return subprocess.run(["openssl", *map(str, words)], capture_output=True, check=True, timeout=60).stdout
