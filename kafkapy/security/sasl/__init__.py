"""SASL mechanisms (RFC 4422) as state machines, for servers and for clients: tokens in, tokens out, no I/O."""
