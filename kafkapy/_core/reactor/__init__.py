"""The reactor: one thread's event loop over sockets, its connections, buffers and timers, without Kafka's APIs."""
