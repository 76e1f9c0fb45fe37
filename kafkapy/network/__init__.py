"""Listening sockets, connection limits and the threads for work that blocks, around the reactor of `_core`.

TLS would be a stage between the reactor's read and its frame splitter, and before its write (see
`_core/reactor/reactor_input`).
"""
