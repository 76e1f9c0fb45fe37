"""Facts about a TLS session as Python objects: protocol, cipher suite, peer's certificate, reason of a failure."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport uint8_t

from kafkapy._core.tls.openssl cimport X509, OpenSslFunctions, openssl_functions
from kafkapy._core.tls.tls_session cimport TLS_ESTABLISHED, TLS_FAILED, TLS_OPEN, tls_session_free

cdef OpenSslFunctions *openssl = openssl_functions()


cdef inline bint is_established(TlsSession *session) noexcept:
    return session != NULL and session.ssl != NULL and session.phase in (TLS_ESTABLISHED, TLS_OPEN)


cdef object session_protocol(TlsSession *session):
    return openssl.SSL_get_version(session.ssl).decode() if is_established(session) else None


cdef object session_cipher(TlsSession *session):
    cdef const void *cipher = openssl.SSL_get_current_cipher(session.ssl) if is_established(session) else NULL
    cdef const char *name = openssl.SSL_CIPHER_standard_name(cipher) if cipher != NULL else NULL
    return name.decode() if name != NULL else None


cdef object session_is_resumed(TlsSession *session):
    return is_established(session) and openssl.SSL_session_reused(session.ssl) != 0


cdef object session_certificate(TlsSession *session):
    cdef X509 *certificate = openssl.SSL_get1_peer_certificate(session.ssl) if is_established(session) else NULL
    cdef uint8_t *place
    cdef int size
    if certificate == NULL:
        return None
    try:
        size = openssl.i2d_X509(certificate, NULL)
        if size <= 0:
            raise MemoryError()
        encoded = PyBytes_FromStringAndSize(NULL, size)
        place = <uint8_t *> PyBytes_AS_STRING(encoded)
        openssl.i2d_X509(certificate, &place)
        return encoded
    finally:
        openssl.X509_free(certificate)


cdef object session_error(TlsSession *session):
    if session == NULL or session.error == NULL:
        return "the TLS library reports no reason" if session != NULL and session.phase == TLS_FAILED else None
    return (<bytes> session.error).decode("utf-8", "replace")


cdef void release_session(TlsSession *session) noexcept:
    if session.in_pool:
        session.owner = NULL
    else:
        tls_session_free(session)
