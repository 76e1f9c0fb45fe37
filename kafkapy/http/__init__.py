"""Web applications in processes of their own: listening, limits, TLS, the checks of every request, logins, sessions."""
