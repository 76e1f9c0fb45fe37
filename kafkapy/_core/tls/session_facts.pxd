# The facts about a TLS session that Python reads. NULL means a connection without TLS.
from kafkapy._core.tls.tls_session cimport TlsSession

cdef object session_protocol(TlsSession *session)
cdef object session_cipher(TlsSession *session)
cdef object session_is_resumed(TlsSession *session)
cdef object session_certificate(TlsSession *session)
# The reason of a failure; None: the session has not failed.
cdef object session_error(TlsSession *session)
# Releases the session of a connection that no longer exists, unless a thread of the pool uses it.
cdef void release_session(TlsSession *session) noexcept
