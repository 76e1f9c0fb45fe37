"""The errors of confluent-kafka's registry client."""

from __future__ import annotations

__all__ = ["OAuthTokenError", "SchemaRegistryError"]


class SchemaRegistryError(Exception):
    """A request that the registry has refused; `error_code` is -1 if it is unknown."""

    UNKNOWN = -1

    def __init__(self, http_status_code: int, error_code: int, error_message: str) -> None:
        super().__init__(http_status_code, error_code, error_message)
        self.http_status_code = http_status_code
        self.error_code = error_code
        self.error_message = error_message

    def __str__(self) -> str:
        return f"{self.error_message} (HTTP status code {self.http_status_code}, SR code {self.error_code})"


class OAuthTokenError(Exception):
    """The OAuth endpoint has not issued a token; `status_code` and `response_text` are from its response."""

    def __init__(self, message: str, status_code: int | None = None, response_text: str | None = None) -> None:
        super().__init__(message if status_code is None else f"{message} (HTTP {status_code}): {response_text}")
        self.message = message
        self.status_code = status_code
        self.response_text = response_text
