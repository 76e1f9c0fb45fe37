CLIENT_AUTH_NONE: int
CLIENT_AUTH_REQUESTED: int
CLIENT_AUTH_REQUIRED: int

class TlsError(ValueError): ...
class TlsSource: ...
class BegunSession(TlsSource): ...

class TlsContext(TlsSource):
    def __init__(
        self,
        *,
        certificate_chain_pem: bytes | None = None,
        private_key_pem: bytes | None = None,
        key_password: bytes | None = None,
        trusted_pem: bytes | None = None,
        is_server: bool,
        client_auth: int = 0,
        protocols: tuple[str, ...] = ("TLSv1.2", "TLSv1.3"),
        ciphers: tuple[str, ...] | None = None,
        crl_pem: bytes | None = None,
    ) -> None: ...
    @property
    def is_server(self) -> bool: ...
    @property
    def client_auth(self) -> int: ...

def openssl_version() -> str: ...
