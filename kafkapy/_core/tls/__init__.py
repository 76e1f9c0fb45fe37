"""TLS by OpenSSL: contexts, and sessions that turn bytes of a socket into plaintext without the interpreter lock."""
