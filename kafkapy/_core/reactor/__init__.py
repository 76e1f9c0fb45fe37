"""The reactor: one thread's event loop over sockets, its connections, buffers and timers. It knows no API."""
