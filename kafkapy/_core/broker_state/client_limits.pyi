from kafkapy._core.broker_state.quota_sensor import QuotaSensor

class ClientLimits:
    def __init__(
        self,
        generation: int,
        client_id: bytes,
        *,
        produce: QuotaSensor | None = None,
        fetch: QuotaSensor | None = None,
        request: QuotaSensor | None = None,
        exempt: QuotaSensor | None = None,
        fetch_window_bytes: int = 0,
    ) -> None: ...
    @property
    def generation(self) -> int: ...
    @property
    def client_id(self) -> bytes: ...
    @property
    def produce(self) -> QuotaSensor | None: ...
    @property
    def fetch(self) -> QuotaSensor | None: ...
    @property
    def request(self) -> QuotaSensor | None: ...
    @property
    def exempt(self) -> QuotaSensor | None: ...
    @property
    def fetch_window_bytes(self) -> int: ...
