"""Listeners, connection limits, outgoing connections and the threads for blocking work, around `_core.reactor`."""
