/* TLS 1.3 of the ceiling: OpenSSL on the socket itself, with the buffers and sizes that kafkapy uses.
 *
 * Without a certificate every connection is in plain text, and these functions are recv, send and sendfile.
 */
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>

enum { READ_BUFFER = 65536, GATHER = 245760 };

static SSL_CTX *tls_context;
static SSL *sessions[MAX_FDS];

static void use_certificate(const char *certificate, const char *key) {
    tls_context = SSL_CTX_new(TLS_server_method());
    if (!tls_context || SSL_CTX_use_certificate_chain_file(tls_context, certificate) != 1
        || SSL_CTX_use_PrivateKey_file(tls_context, key, SSL_FILETYPE_PEM) != 1) die("certificate");
    SSL_CTX_set_min_proto_version(tls_context, TLS1_3_VERSION);
    SSL_CTX_set_mode(tls_context, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(tls_context, 1);
    SSL_CTX_set_default_read_buffer_len(tls_context, READ_BUFFER);
}

static void open_session(int fd) {
    if (!tls_context) return;
    sessions[fd] = SSL_new(tls_context);
    if (!sessions[fd] || !SSL_set_fd(sessions[fd], fd)) die("SSL_new");
    SSL_set_accept_state(sessions[fd]);
}

static void close_session(int fd) {
    SSL_free(sessions[fd]);
    sessions[fd] = NULL;
}

/* recv. With TLS, it reads until the socket has no more bytes or the room is full. */
static ssize_t receive(int fd, unsigned char *room, size_t size) {
    if (!sessions[fd]) return recv(fd, room, size, 0);
    size_t total = 0;
    while (total < size) {
        size_t part;
        ERR_clear_error();
        if (SSL_read_ex(sessions[fd], room + total, size - total, &part)) { total += part; continue; }
        if (total) break;
        if (SSL_get_error(sessions[fd], 0) != SSL_ERROR_WANT_READ) return 0;
        errno = EAGAIN;
        return -1;
    }
    return (ssize_t)total;
}

/* Whether bytes that were received wait to be decrypted, for which epoll reports nothing. */
static int has_pending(int fd) { return sessions[fd] && SSL_has_pending(sessions[fd]); }

static void wait_until_writable(int fd) {
    struct pollfd ready = {fd, POLLOUT, 0};
    poll(&ready, 1, 1000);
}

static void send_all(int fd, const unsigned char *data, size_t size, int flags) {
    while (size) {
        ssize_t n = sessions[fd] ? SSL_write(sessions[fd], data, (int)size) : send(fd, data, size, flags | MSG_NOSIGNAL);
        if (n > 0) { data += n; size -= (size_t)n; continue; }
        if (sessions[fd] ? SSL_get_error(sessions[fd], (int)n) != SSL_ERROR_WANT_WRITE : errno != EAGAIN) return;
        wait_until_writable(fd);
    }
}

static void send_file(int fd, int file, int64_t position, int64_t size) {
    static unsigned char plaintext[GATHER];
    off_t at = position;
    while (size) {
        ssize_t n = sessions[fd] ? pread(file, plaintext, (size_t)(size < GATHER ? size : GATHER), at)
                                 : sendfile(fd, file, &at, (size_t)size);
        if (n <= 0 && (sessions[fd] || errno != EAGAIN)) return;
        if (n < 0) { wait_until_writable(fd); continue; }
        if (sessions[fd]) { send_all(fd, plaintext, (size_t)n, 0); at += n; }
        size -= n;
    }
}
