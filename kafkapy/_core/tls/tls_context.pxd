from kafkapy._core.tls.openssl cimport SSL_CTX
from kafkapy._core.tls.tls_session cimport TlsSession

# What gives a connection its TLS session.
cdef class TlsSource:
    # Returns a session for a connected socket, which the caller owns.
    cdef TlsSession *open_session(self, int fd, void *owner, str server_name, bint verifies_name) except NULL

cdef class TlsContext(TlsSource):
    cdef SSL_CTX *native            # owned
    cdef readonly bint is_server
    cdef readonly int client_auth
    cdef int load_identity(self, bytes chain, bytes key, bytes password) except -1
    cdef int load_chain(self, bytes chain) except -1
    cdef int load_key(self, bytes key, bytes password) except -1
    cdef int load_trusted(self, bytes trusted) except -1
    cdef int load_crls(self, bytes crls) except -1
    cdef int set_verification(self) except -1
    cdef object set_ciphers(self, ciphers, versions)
    cdef int set_protocols(self, protocols, ciphers) except -1
    cdef bint asks_for_certificates(self) noexcept     # a server that asks clients for certificates

# The session of a client whose handshake has begun, or has succeeded, before a reactor adopts the connection.
cdef class BegunSession(TlsSource):
    cdef TlsSession *native         # owned; NULL once it was opened

# Takes over the session.
cdef BegunSession begun_session(TlsSession *session)
