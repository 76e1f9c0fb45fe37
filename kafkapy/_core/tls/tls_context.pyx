"""TLS contexts: the keys, certificates, protocols and ciphers of one side, checked when the context is made."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.string cimport memcpy

from kafkapy._core.tls.openssl cimport (
    BIO, ERR_LIB_PEM, ERR_REASON_MASK, EVP_PKEY, PEM_R_NO_START_LINE, SSL_CTRL_EXTRA_CHAIN_CERT, SSL_CTRL_MODE,
    SSL_CTRL_SET_DH_AUTO, SSL_CTRL_SET_MAX_PROTO_VERSION, SSL_CTRL_SET_MIN_PROTO_VERSION, SSL_CTRL_SET_READ_AHEAD,
    SSL_CTRL_SET_SESS_CACHE_MODE, SSL_CTRL_SET_TLSEXT_HOSTNAME, SSL_CTX, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER,
    SSL_MODE_RELEASE_BUFFERS, SSL_OP_CIPHER_SERVER_PREFERENCE, SSL_OP_NO_COMPRESSION, SSL_OP_NO_RENEGOTIATION,
    SSL_SESS_CACHE_OFF,
    SSL_VERIFY_FAIL_IF_NO_PEER_CERT, SSL_VERIFY_NONE, SSL_VERIFY_PEER, TLS1_2_VERSION, TLS1_3_VERSION,
    TLSEXT_NAMETYPE_HOST_NAME, X509, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS, X509_CRL,
    X509_STORE, X509_V_FLAG_CRL_CHECK, X509_V_FLAG_CRL_CHECK_ALL, X509_V_FLAG_PARTIAL_CHAIN, X509_VERIFY_PARAM,
    OpenSslFunctions,
    VerifyCallback, openssl_functions, require_openssl,
)
from kafkapy._core.tls.tls_session cimport (
    READ_BUFFER_BYTES, TlsSession, tls_session_create, tls_session_free, verify_peer)

CLIENT_AUTH_NONE = 0
CLIENT_AUTH_REQUESTED = 1
CLIENT_AUTH_REQUIRED = 2

cdef enum:
    TICKETS = 1                     # of TLS 1.3, after a full handshake

PROTOCOLS = {"TLSv1.2": TLS1_2_VERSION, "TLSv1.3": TLS1_3_VERSION}
INSECURE_PROTOCOLS = ("SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1")
# Suites of TLS 1.3, which OpenSSL configures by a function of their own.
TLS_1_3_SUITES = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256",
                  "TLS_AES_128_CCM_SHA256", "TLS_AES_128_CCM_8_SHA256")
# The suites of TLS 1.2 if none is configured: those of OpenSSL, without those that lack forward secrecy.
cdef const char* DEFAULT_SUITES = b"DEFAULT:!kRSA"
# Not a suite but a signal, which Java lists with the suites.
SIGNALLING_SUITE = "TLS_EMPTY_RENEGOTIATION_INFO_SCSV"

cdef OpenSslFunctions *openssl = openssl_functions()


class TlsError(ValueError):
    """The error that a context cannot be made. The text says why, and never contains a key or a password."""


def openssl_version():
    """Returns the name and version of the TLS library in use. Raises TlsError if there is none."""
    require_library()
    return openssl.OpenSSL_version(0).decode()


cdef int require_library() except -1:
    try:
        require_openssl()
    except OSError as error:
        raise TlsError(str(error)) from None
    return 0


cdef object last_reason():
    """Returns the text of OpenSSL's first pending error, and clears all of them."""
    cdef unsigned long code = openssl.ERR_peek_error()
    cdef const char *reason = openssl.ERR_reason_error_string(code) if code else NULL
    openssl.ERR_clear_error()
    return (<bytes> reason).decode("ascii", "replace") if reason != NULL else "no reason is reported"


cdef bint is_end_of_pem() noexcept:
    """Returns whether OpenSSL's last error only means that the text has no more objects; if so, clears the errors."""
    cdef unsigned long code = openssl.ERR_peek_last_error()
    # The library's number is above the reason: from bit 23 in OpenSSL 3, from bit 24 before.
    cdef bint is_pem = ((code >> 23) & 0xff) == ERR_LIB_PEM or ((code >> 24) & 0xff) == ERR_LIB_PEM
    if is_pem and (code & 0xfff) == PEM_R_NO_START_LINE:
        openssl.ERR_clear_error()
        return True
    return False


cdef int give_password(char *room, int size, int is_writing, void *context) noexcept nogil:
    """OpenSSL's callback for the password of a key: `context` is a bytes object, or NULL if there is none.

    Writes the password to `room`, and returns its length. Returns -1 if there is none, or if it is longer than `size`.
    """
    cdef Py_ssize_t length
    with gil:
        if context == NULL:
            return -1
        length = PyBytes_GET_SIZE(<bytes> context)
        if length > size:
            return -1
        memcpy(room, PyBytes_AS_STRING(<bytes> context), <size_t> length)
        return <int> length


cdef class PemReader:
    """Reads the objects of one PEM text in order. *Pins* the text."""

    cdef BIO *native
    cdef bytes text

    def __cinit__(self, bytes text):
        self.text = text
        openssl.ERR_clear_error()
        self.native = openssl.BIO_new_mem_buf(PyBytes_AS_STRING(text), <int> PyBytes_GET_SIZE(text))
        if self.native == NULL:
            raise MemoryError()

    def __dealloc__(self):
        if self.native != NULL:
            openssl.BIO_free(self.native)

    cdef X509 *certificate(self) except? NULL:
        """Returns the next certificate, which the caller owns; NULL if there is none."""
        cdef X509 *found = openssl.PEM_read_bio_X509_AUX(self.native, NULL, give_password, NULL)
        if found == NULL and not is_end_of_pem():
            raise TlsError(f"a certificate cannot be read: {last_reason()}")
        return found

    cdef X509_CRL *crl(self) except? NULL:
        cdef X509_CRL *found = openssl.PEM_read_bio_X509_CRL(self.native, NULL, give_password, NULL)
        if found == NULL and not is_end_of_pem():
            raise TlsError(f"a certificate revocation list cannot be read: {last_reason()}")
        return found


cdef class TlsSource:
    """Gives a connection its TLS session: a context makes one, and a BegunSession has one already."""

    cdef TlsSession *open_session(self, int fd, void *owner, str server_name, bint verifies_name) except NULL:
        raise NotImplementedError


cdef class BegunSession(TlsSource):
    """The session of a client whose handshake has begun, or has succeeded, on another thread. It serves once."""

    def __dealloc__(self):
        tls_session_free(self.native)

    cdef TlsSession *open_session(self, int fd, void *owner, str server_name, bint verifies_name) except NULL:
        cdef TlsSession *session = self.native
        if session == NULL or session.fd != fd:
            raise RuntimeError("the session is in use, or belongs to another socket")
        self.native = NULL
        session.owner = owner
        return session


cdef BegunSession begun_session(TlsSession *session):
    cdef BegunSession begun = BegunSession.__new__(BegunSession)
    begun.native = session
    return begun


cdef class TlsContext(TlsSource):
    """The configuration of TLS connections of one kind. It does not change, and any number of connections and threads
    may share it.

    A change of a key or certificate needs a new context; open connections continue with the one that they began with.
    Each context has its own keys for the tickets of resumed sessions, so that a session of an old context is never
    resumed in a new one.
    """

    def __init__(self, *, certificate_chain_pem=None, private_key_pem=None, key_password=None, trusted_pem=None,
                 bint is_server, int client_auth=0, protocols=("TLSv1.2", "TLSv1.3"), ciphers=None, crl_pem=None):
        """Makes the context from PEM texts. Raises TlsError if one of the arguments cannot be used.

        The chain begins with the certificate of the key. `trusted_pem` are the certificates at which a chain of the
        peer may end, which need not be self-signed; None means the trusted certificates of the platform. `client_auth`,
        one of the constants CLIENT_AUTH_*, says whether a server asks clients for certificates; with CLIENT_AUTH_NONE
        it needs no `trusted_pem` and `crl_pem`. `ciphers` are IANA's names; None means OpenSSL's defaults with forward
        secrecy. A certificate that a list in `crl_pem` revokes is refused, as is a certificate of a client or server
        whose issuer has no list there.
        """
        require_library()
        if self.native != NULL:
            raise RuntimeError("already initialized")
        self.is_server = is_server
        self.client_auth = client_auth
        self.native = openssl.SSL_CTX_new(openssl.TLS_server_method() if is_server else openssl.TLS_client_method())
        if self.native == NULL:
            raise TlsError(f"OpenSSL cannot make a context: {last_reason()}")
        openssl.SSL_CTX_set_options(
            self.native, SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_RENEGOTIATION)
        openssl.SSL_CTX_ctrl(
            self.native, SSL_CTRL_MODE, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS, NULL)
        openssl.SSL_CTX_ctrl(self.native, SSL_CTRL_SET_READ_AHEAD, 1, NULL)
        openssl.SSL_CTX_set_default_read_buffer_len(self.native, READ_BUFFER_BYTES)
        # Sessions are resumed by tickets alone, so that the server keeps no memory for clients that are gone.
        openssl.SSL_CTX_ctrl(self.native, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, NULL)
        openssl.SSL_CTX_set_num_tickets(self.native, TICKETS)
        openssl.SSL_CTX_set_session_id_context(self.native, b"kafkapy", 7)
        self.set_protocols(protocols, ciphers)
        if certificate_chain_pem is not None or private_key_pem is not None:
            self.load_identity(certificate_chain_pem, private_key_pem, key_password)
        elif is_server:
            raise TlsError("a server needs a certificate and its private key")
        if not is_server or client_auth != 0:
            self.load_trusted(trusted_pem)
            if crl_pem is not None:
                self.load_crls(crl_pem)
            self.set_verification()

    def __dealloc__(self):
        if self.native != NULL:
            openssl.SSL_CTX_free(self.native)

    cdef bint asks_for_certificates(self) noexcept:
        return self.is_server and self.client_auth != CLIENT_AUTH_NONE

    cdef int set_verification(self) except -1:
        cdef int mode = SSL_VERIFY_PEER
        if self.is_server and self.client_auth == CLIENT_AUTH_REQUIRED:
            mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT
        openssl.SSL_CTX_set_verify(self.native, mode, <VerifyCallback> verify_peer)
        return 0

    cdef int set_protocols(self, protocols, ciphers) except -1:
        versions = []
        for name in protocols:
            if name in INSECURE_PROTOCOLS:
                raise TlsError(f"the protocol {name} is insecure and not supported; accepted are "
                               f"{', '.join(PROTOCOLS)}")
            if name not in PROTOCOLS:
                raise TlsError(f"unknown protocol {name}; accepted are {', '.join(PROTOCOLS)}")
            versions.append(PROTOCOLS[name])
        if not versions:
            raise TlsError("no protocol is enabled")
        if ciphers:
            versions = self.set_ciphers(ciphers, versions)
        elif not openssl.SSL_CTX_set_cipher_list(self.native, DEFAULT_SUITES):
            raise TlsError(f"OpenSSL has no suites with forward secrecy: {last_reason()}")
        openssl.SSL_CTX_ctrl(self.native, SSL_CTRL_SET_MIN_PROTO_VERSION, min(versions), NULL)
        openssl.SSL_CTX_ctrl(self.native, SSL_CTRL_SET_MAX_PROTO_VERSION, max(versions), NULL)
        return 0

    cdef object set_ciphers(self, ciphers, versions):
        """Enables the cipher suites `ciphers`; returns the protocol versions in `versions` that can use one of them.

        Raises TlsError if a suite is unknown, if none of the suites of a version is supported, and if no suite belongs
        to one of `versions`.
        """
        cdef bytes encoded
        newer, older = [], []
        for name in ciphers:
            standard = "TLS_" + name[4:] if name.startswith("SSL_") else name
            if standard == SIGNALLING_SUITE:
                continue
            if standard in TLS_1_3_SUITES:
                newer.append(standard)
                continue
            encoded = standard.encode("ascii", "replace")
            found = openssl.OPENSSL_cipher_name(encoded).decode()
            if found == "(NONE)":
                raise TlsError(f"unknown cipher suite {name}; the names are those of IANA, such as {TLS_1_3_SUITES[0]}")
            older.append(found)
        usable = []
        if TLS1_2_VERSION in versions and older:
            encoded = ":".join(older).encode()
            if not openssl.SSL_CTX_set_cipher_list(self.native, encoded):
                raise TlsError(f"none of the cipher suites {', '.join(older)} is supported: {last_reason()}")
            # Without parameters, suites with finite-field Diffie-Hellman would be configured and never chosen.
            openssl.SSL_CTX_ctrl(self.native, SSL_CTRL_SET_DH_AUTO, 1, NULL)
            usable.append(TLS1_2_VERSION)
        if TLS1_3_VERSION in versions and newer:
            encoded = ":".join(newer).encode()
            if not openssl.SSL_CTX_set_ciphersuites(self.native, encoded):
                raise TlsError(f"none of the cipher suites {', '.join(newer)} is supported: {last_reason()}")
            usable.append(TLS1_3_VERSION)
        if not usable:
            raise TlsError(f"none of the cipher suites {', '.join(ciphers)} belongs to an enabled protocol")
        return usable

    cdef int load_identity(self, bytes chain, bytes key, bytes password) except -1:
        if chain is None or key is None:
            raise TlsError("a certificate and its private key are needed together")
        self.load_chain(chain)
        self.load_key(key, password)
        if not openssl.SSL_CTX_check_private_key(self.native):
            raise TlsError(f"the private key does not belong to the certificate: {last_reason()}")
        return 0

    cdef int load_chain(self, bytes chain) except -1:
        cdef PemReader reader = PemReader(chain)
        cdef X509 *certificate = reader.certificate()
        cdef bint is_used
        if certificate == NULL:
            raise TlsError("the certificate chain contains no certificate")
        is_used = openssl.SSL_CTX_use_certificate(self.native, certificate)
        openssl.X509_free(certificate)
        if not is_used:
            raise TlsError(f"the certificate cannot be used: {last_reason()}")
        while True:
            certificate = reader.certificate()
            if certificate == NULL:
                return 0
            # The context takes over the certificate.
            if not openssl.SSL_CTX_ctrl(self.native, SSL_CTRL_EXTRA_CHAIN_CERT, 0, certificate):
                openssl.X509_free(certificate)
                raise TlsError(f"a certificate of the chain cannot be used: {last_reason()}")

    cdef int load_key(self, bytes key, bytes password) except -1:
        cdef PemReader reader
        cdef EVP_PKEY *native
        cdef bint is_used
        if b"PRIVATE KEY-----" not in key:
            raise TlsError("the private key's PEM contains no private key")
        reader = PemReader(key)
        native = openssl.PEM_read_bio_PrivateKey(reader.native, NULL, give_password,
                                                 <void *> password if password is not None else NULL)
        if native == NULL:
            if b"ENCRYPTED" in key:
                what = "is wrong" if password is not None else "is missing"
                raise TlsError(f"the private key cannot be decrypted: its password {what} ({last_reason()})")
            raise TlsError(f"the private key cannot be read: {last_reason()}")
        is_used = openssl.SSL_CTX_use_PrivateKey(self.native, native)
        openssl.EVP_PKEY_free(native)
        if not is_used:
            raise TlsError(f"the private key does not belong to the certificate: {last_reason()}")
        return 0

    cdef int load_trusted(self, bytes trusted) except -1:
        """Sets the certificates at which a chain may end, from PEM text.

        A server also sends their names, so that a client can choose its certificate.
        """
        cdef X509_STORE *store = openssl.SSL_CTX_get_cert_store(self.native)
        cdef PemReader reader
        cdef X509 *certificate
        cdef bint is_added
        cdef int count = 0
        openssl.X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN)
        if trusted is None:
            openssl.SSL_CTX_set_default_verify_paths(self.native)
            return 0
        reader = PemReader(trusted)
        while True:
            certificate = reader.certificate()
            if certificate == NULL:
                break
            is_added = openssl.X509_STORE_add_cert(store, certificate) and (
                not self.is_server or openssl.SSL_CTX_add_client_CA(self.native, certificate))
            openssl.X509_free(certificate)
            if not is_added:
                raise TlsError(f"a trusted certificate cannot be used: {last_reason()}")
            count += 1
        if count == 0:
            raise TlsError("the trusted certificates contain no certificate")
        return 0

    cdef int load_crls(self, bytes crls) except -1:
        cdef X509_STORE *store = openssl.SSL_CTX_get_cert_store(self.native)
        cdef PemReader reader = PemReader(crls)
        cdef X509_CRL *crl
        cdef bint is_added
        cdef int count = 0
        while True:
            crl = reader.crl()
            if crl == NULL:
                break
            is_added = openssl.X509_STORE_add_crl(store, crl)
            openssl.X509_CRL_free(crl)
            if not is_added:
                raise TlsError(f"a certificate revocation list cannot be used: {last_reason()}")
            count += 1
        if count == 0:
            raise TlsError("the PEM of revocation lists contains none")
        openssl.X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL)
        return 0

    cdef TlsSession *open_session(self, int fd, void *owner, str server_name, bint verifies_name) except NULL:
        """Returns a session for the socket `fd` of the connection `owner`.

        A client sends `server_name`, unless it is an IP address (RFC 6066). If `verifies_name` is set, the server's
        certificate must be for this name. Raises MemoryError, and UnicodeError for a text that cannot be a host name.
        """
        cdef TlsSession *session
        cdef X509_VERIFY_PARAM *rules
        cdef bytes name = None
        if server_name is not None:
            name = server_name.rstrip(".").encode("idna" if not server_name.isascii() else "ascii")
        session = tls_session_create(self.native, self.is_server, fd, owner)
        if session == NULL:
            raise MemoryError()
        session.checks_peer = self.asks_for_certificates()
        if name is None:
            return session
        rules = openssl.SSL_get0_param(session.ssl)
        if verifies_name and openssl.X509_VERIFY_PARAM_set1_ip_asc(rules, name):
            return session
        if not is_ipv4(server_name) and ":" not in server_name:
            openssl.SSL_ctrl(session.ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_HOST_NAME, <char *> name)
        if verifies_name:
            # The certificate must contain an unusual form of an address, such as 127.1, literally.
            openssl.X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS)
            if not name or not openssl.X509_VERIFY_PARAM_set1_host(rules, name, <size_t> len(name)):
                tls_session_free(session)
                raise ValueError(f"a certificate cannot be checked for the host name {server_name!r}")
        return session


def is_ipv4(str name):
    return name.replace(".", "").isdigit()
