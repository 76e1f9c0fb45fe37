/* A connection of a load program, in plain text or in TLS, and the client's authentication by SCRAM-SHA-256.
 *
 * Settings are librdkafka's: security.protocol (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL), sasl.username, sasl.password.
 * Others are ignored. The certificate of the broker is not verified.
 */
#ifndef BENCH_LOAD_SECURED_H
#define BENCH_LOAD_SECURED_H
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <unistd.h>

#include "wire.h"

enum { DIGEST = 32, MAX_TOKEN = 1024 };

struct security { const char *user, *password; SSL_CTX *context; };
struct stream { int fd; SSL *tls; };

static inline SSL_CTX *client_context(void) {
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (!context) die("SSL_CTX_new");
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return context;
}

static inline struct security security_of(int argc, char **argv, int first) {
    struct security found = {NULL, NULL, NULL};
    for (int i = first; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (!value) { fprintf(stderr, "settings are key=value\n"); exit(2); }
        size_t size = (size_t)(value++ - argv[i]);
        if (!strncmp(argv[i], "security.protocol", size) && strstr(value, "SSL")) found.context = client_context();
        if (!strncmp(argv[i], "sasl.username", size)) found.user = value;
        if (!strncmp(argv[i], "sasl.password", size)) found.password = value;
    }
    return found;
}

static inline void wait_for(struct stream *s, int result) {
    int error = SSL_get_error(s->tls, result);
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) die("TLS");
    struct pollfd ready = {s->fd, error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, 0};
    poll(&ready, 1, -1);
}

static inline void write_all(struct stream *s, const unsigned char *data, size_t size) {
    for (size_t sent = 0; sent < size;) {
        ssize_t n = s->tls ? SSL_write(s->tls, data + sent, (int)(size - sent)) : send(s->fd, data + sent, size - sent, MSG_NOSIGNAL);
        if (n > 0) sent += (size_t)n;
        else if (s->tls) wait_for(s, (int)n);
        else die("send");
    }
}

/* Reads what is there: its size, 0 at the end of the stream, or -1 with EAGAIN. */
static inline ssize_t read_some(struct stream *s, void *room, size_t size) {
    if (!s->tls) return recv(s->fd, room, size, MSG_DONTWAIT);
    int n = SSL_read(s->tls, room, (int)size);
    if (n > 0) return n;
    int error = SSL_get_error(s->tls, n);
    if (error == SSL_ERROR_ZERO_RETURN) return 0;
    errno = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? EAGAIN : EPROTO;
    return -1;
}

static inline void read_all(struct stream *s, unsigned char *room, size_t size) {
    for (size_t got = 0; got < size;) {
        ssize_t n = read_some(s, room + got, size - got);
        if (n > 0) got += (size_t)n;
        else if (n < 0 && errno == EAGAIN) { struct pollfd ready = {s->fd, POLLIN, 0}; poll(&ready, 1, -1); }
        else { fprintf(stderr, "the broker closed a connection\n"); exit(1); }
    }
}

/* Sends a request (the frame begins with room for its size), and reads the response's body behind the correlation id. */
static inline size_t ask(struct stream *s, struct writer *w, unsigned char *body, size_t room) {
    unsigned char head[8];
    set32(w->at, (int32_t)(w->size - 4));
    write_all(s, w->at, w->size);
    read_all(s, head, sizeof head);
    size_t size = (size_t)get32(head) - 4;
    if (size > room) { fprintf(stderr, "answer of %zu bytes\n", size); exit(1); }
    read_all(s, body, size);
    return size;
}

/* Sends one SASL token; the broker's token is in `answer`, as a string. */
static inline void exchange(struct stream *s, const char *token, char answer[MAX_TOKEN]) {
    unsigned char room[2 * MAX_TOKEN], body[MAX_TOKEN];
    struct writer w = {room, 0};
    put32(&w, 0);
    put16(&w, 36); /* SaslAuthenticate, version 0 */
    put16(&w, 0);
    put32(&w, 1);
    put_string(&w, "bench");
    put32(&w, (int32_t)strlen(token));
    put(&w, token, strlen(token));
    ask(s, &w, body, sizeof body);
    int refused = body[0] || body[1];
    int16_t text = (int16_t)(body[2] << 8 | body[3]);
    const unsigned char *at = body + 4 + (text > 0 ? text : 0);
    int32_t size = get32(at);
    if (refused || size < 0 || size >= MAX_TOKEN) { fprintf(stderr, "authentication failed: %.*s\n", text, body + 4); exit(1); }
    memcpy(answer, at + 4, (size_t)size);
    answer[size] = 0;
}

/* RFC 5802 with SHA-256. The nonce is constant: the broker adds its own part. */
static inline void authenticate(struct stream *s, const struct security *how) {
    char bare[256], first[300], server[MAX_TOKEN], without_proof[MAX_TOKEN], message[3 * MAX_TOKEN], last[2 * MAX_TOKEN];
    unsigned char room[256], body[MAX_TOKEN], salt[256], salted[DIGEST], key[DIGEST], stored[DIGEST], proof[DIGEST];
    char encoded[64];
    unsigned size;
    struct writer w = {room, 0};
    put32(&w, 0);
    put16(&w, 17); /* SaslHandshake, version 1 */
    put16(&w, 1);
    put32(&w, 1);
    put_string(&w, "bench");
    put_string(&w, "SCRAM-SHA-256");
    ask(s, &w, body, sizeof body);
    if (body[0] || body[1]) { fprintf(stderr, "the broker does not offer SCRAM-SHA-256\n"); exit(1); }

    snprintf(bare, sizeof bare, "n=%s,r=benchbenchbenchbench", how->user);
    snprintf(first, sizeof first, "n,,%s", bare);
    exchange(s, first, server);
    char nonce[MAX_TOKEN], salt64[MAX_TOKEN];
    int iterations;
    if (sscanf(server, "r=%[^,],s=%[^,],i=%d", nonce, salt64, &iterations) != 3 || strlen(salt64) > 256) die("SCRAM");
    int salt_size = EVP_DecodeBlock(salt, (unsigned char *)salt64, (int)strlen(salt64));
    for (size_t i = strlen(salt64); i && salt64[i - 1] == '='; i--) salt_size--;
    PKCS5_PBKDF2_HMAC(how->password, (int)strlen(how->password), salt, salt_size, iterations, EVP_sha256(), DIGEST, salted);
    snprintf(without_proof, sizeof without_proof, "c=biws,r=%.900s", nonce);
    snprintf(message, sizeof message, "%s,%s,%s", bare, server, without_proof);
    HMAC(EVP_sha256(), salted, DIGEST, (const unsigned char *)"Client Key", 10, key, &size);
    EVP_Digest(key, DIGEST, stored, &size, EVP_sha256(), NULL);
    HMAC(EVP_sha256(), stored, DIGEST, (unsigned char *)message, strlen(message), proof, &size);
    for (int i = 0; i < DIGEST; i++) proof[i] ^= key[i];
    EVP_EncodeBlock((unsigned char *)encoded, proof, DIGEST);
    snprintf(last, sizeof last, "%s,p=%s", without_proof, encoded);
    exchange(s, last, server);
}

static inline struct stream dial_secured(const char *host, const char *port, const struct security *how) {
    struct stream s = {dial(host, port), NULL};
    if (how->context) {
        s.tls = SSL_new(how->context);
        SSL_set_fd(s.tls, s.fd);
        if (SSL_connect(s.tls) != 1) die("TLS handshake");
        fcntl(s.fd, F_SETFL, fcntl(s.fd, F_GETFL) | O_NONBLOCK);
    }
    if (how->user) authenticate(&s, how);
    return s;
}
#endif
