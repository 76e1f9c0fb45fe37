# Functions of libssl and libcrypto, found at the first TLS context.
#
# Only functions and constants that OpenSSL 1.1.1 to 3.x share are used, so that building kafkapy needs neither headers
# nor libraries. Every handle is opaque. The constants are those of OpenSSL's headers.
from libc.stdint cimport int64_t, uint8_t, uint64_t

ctypedef void SSL
ctypedef void SSL_CTX
ctypedef void BIO
ctypedef void BIO_METHOD
ctypedef void X509
ctypedef void X509_CRL
ctypedef void X509_STORE
ctypedef void X509_STORE_CTX
ctypedef void X509_VERIFY_PARAM
ctypedef void EVP_PKEY

cdef enum:
    SSL_ERROR_NONE = 0
    SSL_ERROR_SSL = 1
    SSL_ERROR_WANT_READ = 2
    SSL_ERROR_WANT_WRITE = 3
    SSL_ERROR_SYSCALL = 5
    SSL_ERROR_ZERO_RETURN = 6
    SSL_VERIFY_NONE = 0
    SSL_VERIFY_PEER = 1
    SSL_VERIFY_FAIL_IF_NO_PEER_CERT = 2
    SSL_CTRL_EXTRA_CHAIN_CERT = 14
    SSL_CTRL_MODE = 33
    SSL_CTRL_SET_READ_AHEAD = 41
    SSL_CTRL_SET_SESS_CACHE_MODE = 44
    SSL_CTRL_SET_TLSEXT_HOSTNAME = 55
    SSL_CTRL_SET_DH_AUTO = 118
    SSL_CTRL_SET_MIN_PROTO_VERSION = 123
    SSL_CTRL_SET_MAX_PROTO_VERSION = 124
    SSL_SESS_CACHE_OFF = 0
    SSL_MODE_ENABLE_PARTIAL_WRITE = 1
    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER = 2
    SSL_MODE_RELEASE_BUFFERS = 16
    SSL_OP_NO_COMPRESSION = 1 << 17
    SSL_OP_CIPHER_SERVER_PREFERENCE = 1 << 22
    SSL_OP_NO_RENEGOTIATION = 1 << 30
    TLS1_2_VERSION = 0x0303
    TLS1_3_VERSION = 0x0304
    X509_V_OK = 0
    X509_V_ERR_UNABLE_TO_GET_CRL = 3
    X509_V_FLAG_CRL_CHECK = 0x4
    X509_V_FLAG_CRL_CHECK_ALL = 0x8
    X509_V_FLAG_PARTIAL_CHAIN = 0x80000
    X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS = 0x4
    BIO_TYPE_SOURCE_SINK = 0x0400
    BIO_FLAGS_READ = 1
    BIO_FLAGS_WRITE = 2
    BIO_FLAGS_SHOULD_RETRY = 8
    BIO_CTRL_FLUSH = 11
    ERR_LIB_PEM = 9
    ERR_REASON_MASK = 0x7FFFFF       # of OpenSSL 3; 0xFFF before
    PEM_R_NO_START_LINE = 108
    SSL_R_HTTP_REQUEST = 156
    SSL_R_UNSUPPORTED_PROTOCOL = 258
    SSL_R_WRONG_VERSION_NUMBER = 267
    TLSEXT_NAMETYPE_HOST_NAME = 0

ctypedef int (*PasswordCallback)(char *room, int size, int is_writing, void *context) noexcept nogil
ctypedef int (*VerifyCallback)(int is_valid, X509_STORE_CTX *context) noexcept nogil
ctypedef int (*BioRead)(BIO *bio, char *room, int size) noexcept nogil
ctypedef int (*BioWrite)(BIO *bio, const char *data, int size) noexcept nogil
ctypedef long (*BioControl)(BIO *bio, int command, long number, void *pointer) noexcept nogil
ctypedef int (*BioCreate)(BIO *bio) noexcept nogil

cdef struct OpenSslFunctions:
    bint is_complete                 # every function was found
    # errors
    unsigned long (*ERR_get_error)() noexcept nogil
    unsigned long (*ERR_peek_error)() noexcept nogil
    unsigned long (*ERR_peek_last_error)() noexcept nogil
    void (*ERR_clear_error)() noexcept nogil
    const char *(*ERR_reason_error_string)(unsigned long code) noexcept nogil
    const char *(*OpenSSL_version)(int kind) noexcept nogil
    unsigned long (*OpenSSL_version_num)() noexcept nogil
    # reading PEM, certificates
    BIO *(*BIO_new_mem_buf)(const void *data, int size) noexcept nogil
    X509 *(*PEM_read_bio_X509_AUX)(BIO *bio, X509 **, PasswordCallback, void *context) noexcept nogil
    X509_CRL *(*PEM_read_bio_X509_CRL)(BIO *bio, X509_CRL **, PasswordCallback, void *context) noexcept nogil
    EVP_PKEY *(*PEM_read_bio_PrivateKey)(BIO *bio, EVP_PKEY **, PasswordCallback, void *context) noexcept nogil
    void (*X509_free)(X509 *) noexcept nogil
    void (*X509_CRL_free)(X509_CRL *) noexcept nogil
    void (*EVP_PKEY_free)(EVP_PKEY *) noexcept nogil
    int (*i2d_X509)(X509 *, uint8_t **room) noexcept nogil
    void *(*X509_get_subject_name)(X509 *) noexcept nogil
    char *(*X509_NAME_oneline)(void *name, char *room, int size) noexcept nogil
    void *(*X509_get0_notAfter)(X509 *) noexcept nogil
    int (*X509_cmp_current_time)(void *moment) noexcept nogil
    const char *(*X509_verify_cert_error_string)(long code) noexcept nogil
    int (*X509_STORE_add_cert)(X509_STORE *, X509 *) noexcept nogil
    int (*X509_STORE_add_crl)(X509_STORE *, X509_CRL *) noexcept nogil
    int (*X509_STORE_set_flags)(X509_STORE *, unsigned long flags) noexcept nogil
    int (*X509_STORE_CTX_get_error)(X509_STORE_CTX *) noexcept nogil
    void (*X509_STORE_CTX_set_error)(X509_STORE_CTX *, int code) noexcept nogil
    int (*X509_STORE_CTX_get_error_depth)(X509_STORE_CTX *) noexcept nogil
    X509 *(*X509_STORE_CTX_get_current_cert)(X509_STORE_CTX *) noexcept nogil
    void *(*X509_STORE_CTX_get_ex_data)(X509_STORE_CTX *, int index) noexcept nogil
    int (*X509_VERIFY_PARAM_set1_host)(X509_VERIFY_PARAM *, const char *name, size_t size) noexcept nogil
    int (*X509_VERIFY_PARAM_set1_ip_asc)(X509_VERIFY_PARAM *, const char *address) noexcept nogil
    void (*X509_VERIFY_PARAM_set_hostflags)(X509_VERIFY_PARAM *, unsigned int flags) noexcept nogil
    # contexts
    const void *(*TLS_server_method)() noexcept nogil
    const void *(*TLS_client_method)() noexcept nogil
    SSL_CTX *(*SSL_CTX_new)(const void *method) noexcept nogil
    void (*SSL_CTX_free)(SSL_CTX *) noexcept nogil
    long (*SSL_CTX_ctrl)(SSL_CTX *, int command, long number, void *pointer) noexcept nogil
    uint64_t (*SSL_CTX_set_options)(SSL_CTX *, uint64_t options) noexcept nogil
    void (*SSL_CTX_set_verify)(SSL_CTX *, int mode, VerifyCallback) noexcept nogil
    int (*SSL_CTX_use_certificate)(SSL_CTX *, X509 *) noexcept nogil
    int (*SSL_CTX_use_PrivateKey)(SSL_CTX *, EVP_PKEY *) noexcept nogil
    int (*SSL_CTX_check_private_key)(SSL_CTX *) noexcept nogil
    int (*SSL_CTX_add_client_CA)(SSL_CTX *, X509 *) noexcept nogil
    int (*SSL_CTX_set_default_verify_paths)(SSL_CTX *) noexcept nogil
    int (*SSL_CTX_set_cipher_list)(SSL_CTX *, const char *names) noexcept nogil
    int (*SSL_CTX_set_ciphersuites)(SSL_CTX *, const char *names) noexcept nogil
    int (*SSL_CTX_set_session_id_context)(SSL_CTX *, const uint8_t *data, unsigned int size) noexcept nogil
    int (*SSL_CTX_set_num_tickets)(SSL_CTX *, size_t count) noexcept nogil
    void (*SSL_CTX_set_default_read_buffer_len)(SSL_CTX *, size_t size) noexcept nogil
    X509_STORE *(*SSL_CTX_get_cert_store)(SSL_CTX *) noexcept nogil
    const char *(*OPENSSL_cipher_name)(const char *standard_name) noexcept nogil
    # sessions
    SSL *(*SSL_new)(SSL_CTX *) noexcept nogil
    void (*SSL_free)(SSL *) noexcept nogil
    void (*SSL_set_bio)(SSL *, BIO *for_reading, BIO *for_writing) noexcept nogil
    void (*SSL_set_accept_state)(SSL *) noexcept nogil
    void (*SSL_set_connect_state)(SSL *) noexcept nogil
    int (*SSL_do_handshake)(SSL *) noexcept nogil
    int (*SSL_read_ex)(SSL *, void *room, size_t size, size_t *count) noexcept nogil
    int (*SSL_write_ex)(SSL *, const void *data, size_t size, size_t *count) noexcept nogil
    int (*SSL_get_error)(SSL *, int status) noexcept nogil
    int (*SSL_shutdown)(SSL *) noexcept nogil
    long (*SSL_ctrl)(SSL *, int command, long number, void *pointer) noexcept nogil
    int (*SSL_set_ex_data)(SSL *, int index, void *data) noexcept nogil
    void *(*SSL_get_ex_data)(SSL *, int index) noexcept nogil
    int (*SSL_get_ex_data_X509_STORE_CTX_idx)() noexcept nogil
    X509_VERIFY_PARAM *(*SSL_get0_param)(SSL *) noexcept nogil
    long (*SSL_get_verify_result)(SSL *) noexcept nogil
    size_t (*SSL_get_finished)(SSL *, void *room, size_t size) noexcept nogil
    const char *(*SSL_get_version)(SSL *) noexcept nogil
    const void *(*SSL_get_current_cipher)(SSL *) noexcept nogil
    const char *(*SSL_CIPHER_standard_name)(const void *cipher) noexcept nogil
    int (*SSL_session_reused)(SSL *) noexcept nogil
    X509 *(*SSL_get1_peer_certificate)(SSL *) noexcept nogil
    # BIOs of our own
    BIO_METHOD *(*BIO_meth_new)(int kind, const char *name) noexcept nogil
    int (*BIO_meth_set_read)(BIO_METHOD *, BioRead) noexcept nogil
    int (*BIO_meth_set_write)(BIO_METHOD *, BioWrite) noexcept nogil
    int (*BIO_meth_set_ctrl)(BIO_METHOD *, BioControl) noexcept nogil
    int (*BIO_meth_set_create)(BIO_METHOD *, BioCreate) noexcept nogil
    int (*BIO_get_new_index)() noexcept nogil
    BIO *(*BIO_new)(BIO_METHOD *) noexcept nogil
    int (*BIO_free)(BIO *) noexcept nogil
    void (*BIO_set_data)(BIO *, void *data) noexcept nogil
    void *(*BIO_get_data)(BIO *) noexcept nogil
    void (*BIO_set_init)(BIO *, int is_ready) noexcept nogil
    void (*BIO_set_flags)(BIO *, int flags) noexcept nogil
    void (*BIO_clear_flags)(BIO *, int flags) noexcept nogil

# The functions of this process. Usable after `require_openssl` has returned; written under the interpreter lock.
cdef OpenSslFunctions *openssl_functions() noexcept nogil
# Finds the functions at the first call. Raises OSError if no usable library is found.
cdef OpenSslFunctions *require_openssl() except NULL
