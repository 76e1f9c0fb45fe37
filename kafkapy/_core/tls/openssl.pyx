"""Finds the functions of OpenSSL in the shared object of Python's module `ssl`, or in the system's libraries."""

from kafkapy._core.bytes.codec_functions import shared_object

cdef extern from "<dlfcn.h>" nogil:
    enum:
        RTLD_LAZY
    void *dlopen(const char *path, int flags)
    void *dlsym(void *handle, const char *name)

cdef enum:
    OLDEST_VERSION = 0x10101000          # 1.1.1

LIBRARIES = ("libssl.so.3", "libssl.so.1.1")

cdef OpenSslFunctions functions


cdef OpenSslFunctions *openssl_functions() noexcept nogil:
    return &functions


cdef OpenSslFunctions *require_openssl() except NULL:
    if not functions.is_complete:
        for path in (shared_object("_ssl"), *LIBRARIES):
            if load_functions(path):
                break
        else:
            raise OSError("TLS needs OpenSSL 1.1.1 or later, and neither Python's module ssl nor the system has it; "
                          "install the package libssl3")
    return &functions


cdef bint load_functions(object path) except -1:
    """Loads OpenSSL's functions from the shared object at `path`; if `path` is None, from the running program itself.

    Returns whether it has all of them; the object stays open. The caller tries Python's module `ssl` first, because it
    has libssl wherever Python has TLS. The program itself has the library if Python was linked with it.
    """
    cdef bytes encoded = b"" if path is None else path.encode()
    cdef char *name = encoded
    cdef void *handle = dlopen(name if path is not None else NULL, RTLD_LAZY)
    if handle == NULL:
        return False
    functions.is_complete = (find_errors(handle) and functions.OpenSSL_version_num() >= OLDEST_VERSION
                             and find_certificates(handle) and find_contexts(handle) and find_sessions(handle)
                             and find_bios(handle))
    return functions.is_complete


cdef bint found(void *handle, const char *name, void **place) noexcept nogil:
    place[0] = dlsym(handle, name)
    return place[0] != NULL


cdef bint find_errors(void *handle) noexcept nogil:
    return (found(handle, "ERR_get_error", <void **> &functions.ERR_get_error)
            and found(handle, "ERR_peek_error", <void **> &functions.ERR_peek_error)
            and found(handle, "ERR_peek_last_error", <void **> &functions.ERR_peek_last_error)
            and found(handle, "ERR_clear_error", <void **> &functions.ERR_clear_error)
            and found(handle, "ERR_reason_error_string", <void **> &functions.ERR_reason_error_string)
            and found(handle, "OpenSSL_version", <void **> &functions.OpenSSL_version)
            and found(handle, "OpenSSL_version_num", <void **> &functions.OpenSSL_version_num))


cdef bint find_certificates(void *handle) noexcept nogil:
    return (found(handle, "BIO_new_mem_buf", <void **> &functions.BIO_new_mem_buf)
            and found(handle, "PEM_read_bio_X509_AUX", <void **> &functions.PEM_read_bio_X509_AUX)
            and found(handle, "PEM_read_bio_X509_CRL", <void **> &functions.PEM_read_bio_X509_CRL)
            and found(handle, "PEM_read_bio_PrivateKey", <void **> &functions.PEM_read_bio_PrivateKey)
            and found(handle, "X509_free", <void **> &functions.X509_free)
            and found(handle, "X509_CRL_free", <void **> &functions.X509_CRL_free)
            and found(handle, "EVP_PKEY_free", <void **> &functions.EVP_PKEY_free)
            and found(handle, "i2d_X509", <void **> &functions.i2d_X509)
            and found(handle, "X509_get_subject_name", <void **> &functions.X509_get_subject_name)
            and found(handle, "X509_NAME_oneline", <void **> &functions.X509_NAME_oneline)
            and found(handle, "X509_get0_notAfter", <void **> &functions.X509_get0_notAfter)
            and found(handle, "X509_cmp_current_time", <void **> &functions.X509_cmp_current_time)
            and found(handle, "X509_verify_cert_error_string", <void **> &functions.X509_verify_cert_error_string)
            and found(handle, "X509_STORE_add_cert", <void **> &functions.X509_STORE_add_cert)
            and found(handle, "X509_STORE_add_crl", <void **> &functions.X509_STORE_add_crl)
            and found(handle, "X509_STORE_set_flags", <void **> &functions.X509_STORE_set_flags)
            and found(handle, "X509_STORE_CTX_get_error", <void **> &functions.X509_STORE_CTX_get_error)
            and found(handle, "X509_STORE_CTX_set_error", <void **> &functions.X509_STORE_CTX_set_error)
            and found(handle, "X509_STORE_CTX_get_error_depth", <void **> &functions.X509_STORE_CTX_get_error_depth)
            and found(handle, "X509_STORE_CTX_get_current_cert", <void **> &functions.X509_STORE_CTX_get_current_cert)
            and found(handle, "X509_STORE_CTX_get_ex_data", <void **> &functions.X509_STORE_CTX_get_ex_data)
            and found(handle, "X509_VERIFY_PARAM_set1_host", <void **> &functions.X509_VERIFY_PARAM_set1_host)
            and found(handle, "X509_VERIFY_PARAM_set1_ip_asc", <void **> &functions.X509_VERIFY_PARAM_set1_ip_asc)
            and found(handle, "X509_VERIFY_PARAM_set_hostflags", <void **> &functions.X509_VERIFY_PARAM_set_hostflags))


cdef bint find_contexts(void *handle) noexcept nogil:
    return (found(handle, "TLS_server_method", <void **> &functions.TLS_server_method)
            and found(handle, "TLS_client_method", <void **> &functions.TLS_client_method)
            and found(handle, "SSL_CTX_new", <void **> &functions.SSL_CTX_new)
            and found(handle, "SSL_CTX_free", <void **> &functions.SSL_CTX_free)
            and found(handle, "SSL_CTX_ctrl", <void **> &functions.SSL_CTX_ctrl)
            and found(handle, "SSL_CTX_set_options", <void **> &functions.SSL_CTX_set_options)
            and found(handle, "SSL_CTX_set_verify", <void **> &functions.SSL_CTX_set_verify)
            and found(handle, "SSL_CTX_use_certificate", <void **> &functions.SSL_CTX_use_certificate)
            and found(handle, "SSL_CTX_use_PrivateKey", <void **> &functions.SSL_CTX_use_PrivateKey)
            and found(handle, "SSL_CTX_check_private_key", <void **> &functions.SSL_CTX_check_private_key)
            and found(handle, "SSL_CTX_add_client_CA", <void **> &functions.SSL_CTX_add_client_CA)
            and found(handle, "SSL_CTX_set_default_verify_paths", <void **> &functions.SSL_CTX_set_default_verify_paths)
            and found(handle, "SSL_CTX_set_cipher_list", <void **> &functions.SSL_CTX_set_cipher_list)
            and found(handle, "SSL_CTX_set_ciphersuites", <void **> &functions.SSL_CTX_set_ciphersuites)
            and found(handle, "SSL_CTX_set_session_id_context", <void **> &functions.SSL_CTX_set_session_id_context)
            and found(handle, "SSL_CTX_set_num_tickets", <void **> &functions.SSL_CTX_set_num_tickets)
            and found(handle, "SSL_CTX_set_default_read_buffer_len",
                      <void **> &functions.SSL_CTX_set_default_read_buffer_len)
            and found(handle, "SSL_CTX_get_cert_store", <void **> &functions.SSL_CTX_get_cert_store)
            and found(handle, "OPENSSL_cipher_name", <void **> &functions.OPENSSL_cipher_name))


cdef bint find_sessions(void *handle) noexcept nogil:
    return (found(handle, "SSL_new", <void **> &functions.SSL_new)
            and found(handle, "SSL_free", <void **> &functions.SSL_free)
            and found(handle, "SSL_set_bio", <void **> &functions.SSL_set_bio)
            and found(handle, "SSL_set_accept_state", <void **> &functions.SSL_set_accept_state)
            and found(handle, "SSL_set_connect_state", <void **> &functions.SSL_set_connect_state)
            and found(handle, "SSL_do_handshake", <void **> &functions.SSL_do_handshake)
            and found(handle, "SSL_read_ex", <void **> &functions.SSL_read_ex)
            and found(handle, "SSL_write_ex", <void **> &functions.SSL_write_ex)
            and found(handle, "SSL_get_error", <void **> &functions.SSL_get_error)
            and found(handle, "SSL_shutdown", <void **> &functions.SSL_shutdown)
            and found(handle, "SSL_ctrl", <void **> &functions.SSL_ctrl)
            and found(handle, "SSL_set_ex_data", <void **> &functions.SSL_set_ex_data)
            and found(handle, "SSL_get_ex_data", <void **> &functions.SSL_get_ex_data)
            and found(handle, "SSL_get_ex_data_X509_STORE_CTX_idx",
                      <void **> &functions.SSL_get_ex_data_X509_STORE_CTX_idx)
            and found(handle, "SSL_get0_param", <void **> &functions.SSL_get0_param)
            and found(handle, "SSL_get_verify_result", <void **> &functions.SSL_get_verify_result)
            and found(handle, "SSL_get_finished", <void **> &functions.SSL_get_finished)
            and found(handle, "SSL_get_version", <void **> &functions.SSL_get_version)
            and found(handle, "SSL_get_current_cipher", <void **> &functions.SSL_get_current_cipher)
            and found(handle, "SSL_CIPHER_standard_name", <void **> &functions.SSL_CIPHER_standard_name)
            and found(handle, "SSL_session_reused", <void **> &functions.SSL_session_reused)
            and (found(handle, "SSL_get1_peer_certificate", <void **> &functions.SSL_get1_peer_certificate)
                 or found(handle, "SSL_get_peer_certificate", <void **> &functions.SSL_get1_peer_certificate)))


cdef bint find_bios(void *handle) noexcept nogil:
    return (found(handle, "BIO_meth_new", <void **> &functions.BIO_meth_new)
            and found(handle, "BIO_meth_set_read", <void **> &functions.BIO_meth_set_read)
            and found(handle, "BIO_meth_set_write", <void **> &functions.BIO_meth_set_write)
            and found(handle, "BIO_meth_set_ctrl", <void **> &functions.BIO_meth_set_ctrl)
            and found(handle, "BIO_meth_set_create", <void **> &functions.BIO_meth_set_create)
            and found(handle, "BIO_get_new_index", <void **> &functions.BIO_get_new_index)
            and found(handle, "BIO_new", <void **> &functions.BIO_new)
            and found(handle, "BIO_free", <void **> &functions.BIO_free)
            and found(handle, "BIO_set_data", <void **> &functions.BIO_set_data)
            and found(handle, "BIO_get_data", <void **> &functions.BIO_get_data)
            and found(handle, "BIO_set_init", <void **> &functions.BIO_set_init)
            and found(handle, "BIO_set_flags", <void **> &functions.BIO_set_flags)
            and found(handle, "BIO_clear_flags", <void **> &functions.BIO_clear_flags))
