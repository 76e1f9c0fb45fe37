"""The common parts of kafkapy's web applications, each of which runs in a process of its own.

The parts are the HTTP server with its limits and TLS, the checks of every request, logins and sessions.
"""
