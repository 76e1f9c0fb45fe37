"""Everything that a client can send before it has authenticated, damaged at random.

Each target runs a number of rounds, and fails unless every input is accepted or refused in the documented way.
"""

from __future__ import annotations

import random
import resource
import socket
import ssl
import struct
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest
from kafkapy.protocol.messages.metadata import MetadataRequest
from kafkapy.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kafkapy.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.api_client import request_bytes
from tests.broker_process import BrokerProcess
from tests.harness.certificates import CertificateAuthority
from tests.oauth_tokens import initial_response, unsecured_token
from tests.ports import free_ports
from tests.property.test_sasl_fuzz import CASES, mutate, try_mutated
from tests.sasl_client import SaslConnection, plain_token
from tests.unit.security.tls.test_damaged_stores import PARSERS, try_mutations
from tests.wire.test_tls_hostile import damaged, first_flight, read_to_the_end

# How many connections are open at the same time.
CONNECTIONS = 16
TIMEOUT_S = 120
USER, PASSWORD = "alice", "alice-secret"
Target = Callable[[random.Random, int], None]


class Targets:
    """All targets by name, and the broker that those on the wire have. Context manager."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="kafkapy-fuzz-")
        folder = Path(self._folder.name)
        authority = CertificateAuthority(folder / "authority")
        broker = authority.issue("broker")
        self._key_store = folder / "broker.pem"
        self._key_store.write_bytes(broker.key_pem + broker.chain_pem)
        port, self.sasl_port, self.tls_port = free_ports(3)
        self.broker = BrokerProcess(folder / "kafkapy", self._properties(port, authority.certificate_file), port=port)
        self.by_name: dict[str, Target] = {
            **{f"text: {name}": _text_target(name) for name in CASES},
            **{f"store: {name}": _store_target(name) for name in PARSERS if callable(PARSERS[name][0])},
            "wire: frames": self.fuzz_frames,
            "wire: hellos": self.fuzz_hellos,
            "wire: TLS records": self.fuzz_records,
        }

    def _properties(self, port: int, authority: Path) -> Mapping[str, str]:
        plain = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
        oauth = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
        return {
            "listeners": f"PLAINTEXT://localhost:{port},SASL://localhost:{self.sasl_port},TLS://localhost:{self.tls_port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SASL_SSL",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "listener.name.sasl.plain.sasl.jaas.config": plain,
            "listener.name.sasl.oauthbearer.sasl.jaas.config": oauth,
            "listener.name.tls.plain.sasl.jaas.config": plain,
            "listener.name.tls.oauthbearer.sasl.jaas.config": oauth,
            "kafkapy.sasl.oauthbearer.unsecured.tokens.enable": "true",
            "connection.failed.authentication.delay.ms": "0",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._key_store),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(authority),
            "ssl.client.auth": "requested",
        }

    def __enter__(self) -> Self:
        self.broker.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.broker.stop()
        self._folder.cleanup()

    # -- what was used

    def cpu_seconds(self) -> float:
        """Returns the CPU time of this process and of the broker."""
        fields = Path(f"/proc/{self.broker.pid}/stat").read_text().rpartition(")")[2].split()
        ticks = sum(map(int, fields[11:13]))
        own = resource.getrusage(resource.RUSAGE_SELF)
        return ticks / 100 + own.ru_utime + own.ru_stime

    def broker_kilobytes(self) -> int:
        """Returns the resident memory of the broker."""
        status = Path(f"/proc/{self.broker.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))

    def open_descriptors(self) -> int:
        """Returns how many files and connections the broker has open."""
        return len(list(Path(f"/proc/{self.broker.pid}/fd").iterdir()))

    def check_broker(self) -> None:
        """Asserts that the broker serves a client that authenticates, and that it has logged no trace."""
        with SaslConnection(self.sasl_port) as client:
            client.socket.settimeout(TIMEOUT_S)
            assert client.log_in(USER, PASSWORD).error_code == 0
        log = self.broker.log()
        assert "Traceback" not in log, log[log.index("Traceback") :][:4000]
        assert PASSWORD not in log

    # -- the targets on the wire

    def fuzz_frames(self, numbers: random.Random, rounds: int) -> None:
        """Sends conversations in which one frame, or the length of one, is damaged."""
        for _ in _groups(rounds):
            with _connections(self.sasl_port) as clients:
                for client in clients:
                    _send(client, _damaged_conversation(numbers))
        self.check_broker()

    def fuzz_hellos(self, numbers: random.Random, rounds: int) -> None:
        """Sends damaged hellos of TLS clients."""
        for _ in _groups(rounds):
            hello = first_flight(numbers.choice((ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)))
            with _connections(self.tls_port) as clients:
                for client in clients:
                    _send(client, damaged(hello, numbers))
        self.check_broker()

    def fuzz_records(self, numbers: random.Random, rounds: int) -> None:
        """Handshakes, and damages one of the client's flights: of the handshake, or of requests."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        for _ in range(rounds):
            context.maximum_version = numbers.choice((ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3))
            with _connections(self.tls_port, 1) as (client,):
                _converse(client, context, numbers)
        self.check_broker()


def _text_target(name: str) -> Target:
    def run(numbers: random.Random, rounds: int) -> None:
        for _ in range(rounds):
            try_mutated(name, numbers)

    return run


def _store_target(name: str) -> Target:
    make, parse = PARSERS[name]
    assert callable(make)
    content = make()

    def run(numbers: random.Random, rounds: int) -> None:
        try_mutations(content, parse, numbers, rounds)

    return run


def _groups(rounds: int) -> Iterator[None]:
    """Yields as often as groups of CONNECTIONS connections are needed for `rounds` connections."""
    for _ in range(-(-rounds // CONNECTIONS)):
        yield


@contextmanager
def _connections(port: int, count: int = CONNECTIONS) -> Iterator[list[socket.socket]]:
    """Opens connections; in the end waits until the broker has closed each, which it must do."""
    clients = [socket.create_connection(("127.0.0.1", port), TIMEOUT_S) for _ in range(count)]
    try:
        yield clients
        for client in clients:
            began = time.monotonic()
            read_to_the_end(client)
            assert time.monotonic() - began < TIMEOUT_S, "the broker has not closed a connection"
    finally:
        for client in clients:
            client.close()


def _send(client: socket.socket, data: bytes) -> None:
    with suppress(ConnectionError):  # the broker may have refused the beginning
        client.sendall(data)


def _damaged_conversation(numbers: random.Random) -> bytes:
    frames = list(numbers.choice(_CONVERSATIONS))
    place = numbers.randrange(len(frames))
    if numbers.randrange(4):
        frames[place] = mutate(numbers, frames[place])
    lengths = [len(each) for each in frames]
    if not numbers.randrange(3):
        lengths[place] = numbers.choice((0, 1, 7, -1, 1 << 20, (1 << 31) - 1, -(1 << 31), lengths[place] - 1))
    return b"".join(struct.pack(">i", length) + each for length, each in zip(lengths, frames, strict=True))


def _conversation(mechanism: str, *tokens: bytes, version: int = 1) -> list[bytes]:
    """Returns the frames by which a client asks for the versions, authenticates, and asks for the metadata."""
    software = ApiVersionsRequest(client_software_name="fuzz", client_software_version="1")
    return [
        request_bytes(ApiKey.API_VERSIONS, 3, software),
        request_bytes(ApiKey.SASL_HANDSHAKE, version, SaslHandshakeRequest(mechanism=mechanism)),
        *(
            request_bytes(ApiKey.SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(auth_bytes=each)) if version else each
            for each in tokens
        ),
        request_bytes(ApiKey.METADATA, 12, MetadataRequest(topics=[])),
    ]


_PLAIN_TOKEN = plain_token(USER, PASSWORD)
_SCRAM_TOKENS = b"n,,n=alice,r=nonce", b"c=biws,r=nonce,p=" + b"A" * 43 + b"="
_CONVERSATIONS = [
    _conversation(mechanism, *tokens, version=version)
    for version in (0, 1)
    for mechanism, tokens in (
        ("PLAIN", (_PLAIN_TOKEN,)),
        ("SCRAM-SHA-256", _SCRAM_TOKENS),
        ("SCRAM-SHA-512", _SCRAM_TOKENS),
        ("OAUTHBEARER", (initial_response(unsecured_token(), "", key="value"), b"\1")),
    )
]


def _converse(client: socket.socket, context: ssl.SSLContext, numbers: random.Random) -> None:
    """Handshakes and sends requests. Either a flight of records or the conversation in them is damaged."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    damaged_flight = numbers.randrange(4)
    flight = 0
    with suppress(ssl.SSLError, ConnectionError):
        while True:
            with suppress(ssl.SSLWantReadError):
                tls.do_handshake()
                tls.write(_damaged_conversation(numbers))
                damaged_flight = flight if damaged_flight < 3 else -1
            data = outgoing.read()
            client.sendall(damaged(data, numbers) if flight == damaged_flight and data else data)
            if flight >= damaged_flight or not (received := client.recv(65536)):
                return
            incoming.write(received)
            flight += 1
