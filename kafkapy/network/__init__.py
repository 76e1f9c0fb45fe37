"""Listeners, connection limits, outgoing connections and the threads for blocking work, around the reactor of `_core`.

TLS would be a stage between the reactor's read and its frame splitter, and before its write (see
`_core/reactor/reactor_input`).
"""
