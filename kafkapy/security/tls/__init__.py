"""TLS without sockets: stores of keys and certificates, settings, names of ciphers, principals of certificates."""
