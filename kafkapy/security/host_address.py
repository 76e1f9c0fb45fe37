"""The textual form of IP addresses in ACLs."""

from __future__ import annotations

import socket


def acl_host(address: str) -> str:
    """Returns an IP address in the form that ACLs have. An IPv6 address has eight groups without leading zeros, as Java
    writes it (`0:0:0:0:0:0:0:1`). An IPv4 address that is mapped to IPv6 is written as an IPv4 address."""
    if ":" not in address:
        return address
    plain, percent, zone = address.partition("%")
    try:
        packed = socket.inet_pton(socket.AF_INET6, plain)
    except OSError:
        return address
    if packed[:12] == b"\0" * 10 + b"\xff\xff":
        return socket.inet_ntop(socket.AF_INET, packed[12:])
    groups = (int.from_bytes(packed[pos : pos + 2], "big") for pos in range(0, 16, 2))
    return ":".join(f"{group:x}" for group in groups) + percent + zone
