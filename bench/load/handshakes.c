/* TLS handshakes, one after the other on each of some connections.
 *
 *   handshakes HOST PORT THREADS SECONDS RATE KIND
 *
 * RATE is the number per second of all threads; 0 means as many as possible. KIND is:
 *   full     a handshake, the arrival of a session ticket, and the end of the connection
 *   resumed  the same, with the ticket of the thread's last connection; "resumed" is the share that the server accepts
 *   failing  a handshake that the client refuses when it has verified the server's certificate
 *   garbage  a connection that sends bytes at random instead
 * TLS 1.3 only. Prints one line of JSON; fails if a handshake of the first two kinds fails.
 */
#define _GNU_SOURCE
#include <pthread.h>

#include "secured.h"

enum { MAX_THREADS = 64, MAX_SAMPLES = 1 << 20, GARBAGE = 200, TICKET_TIMEOUT_MS = 5000 };

struct worker {
    pthread_t thread;
    SSL_CTX *context;
    SSL_SESSION *ticket;
    float *samples;
    int64_t count, resumed, begin_ns;
};

static const char *host, *port, *kind;
static int64_t end_ns, gap_ns;
static int is_resumed;

static int keep_ticket(SSL *tls, SSL_SESSION *session) {
    struct worker *worker = SSL_CTX_get_app_data(SSL_get_SSL_CTX(tls));
    SSL_SESSION_free(worker->ticket);
    worker->ticket = session;
    return 1; /* the reference is kept */
}

static int refuse(int ok, X509_STORE_CTX *store) { (void)ok; (void)store; return 0; }

/* Ends the connection with a reset, so that the client's port is free at once. */
static void drop(int fd) {
    struct linger reset = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(fd);
}

static void send_garbage(struct worker *worker) {
    unsigned char data[GARBAGE];
    for (int i = 0; i < GARBAGE; i++) data[i] = (unsigned char)(rand() + worker->count);
    int fd = dial(host, port);
    if (send(fd, data, sizeof data, MSG_NOSIGNAL) < 0) die("send");
    drop(fd);
}

static void fail_handshake(struct worker *worker) {
    int fd = dial(host, port);
    SSL *tls = SSL_new(worker->context);
    SSL_set_fd(tls, fd);
    if (SSL_connect(tls) == 1) { fprintf(stderr, "the handshake did not fail\n"); exit(1); }
    SSL_free(tls);
    drop(fd);
}

static void shake_hands(struct worker *worker) {
    int fd = dial(host, port), resumes = is_resumed && worker->ticket;
    SSL *tls = SSL_new(worker->context);
    SSL_set_fd(tls, fd);
    if (resumes) SSL_set_session(tls, worker->ticket);
    SSL_SESSION_free(worker->ticket);
    worker->ticket = NULL;
    if (SSL_connect(tls) != 1) die("TLS handshake");
    worker->resumed += SSL_session_reused(tls);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    while (!worker->ticket) { /* its arrival also shows that the server has completed the handshake */
        unsigned char byte;
        if (SSL_read(tls, &byte, 1) > 0) die("unexpected data");
        struct pollfd ready = {fd, POLLIN, 0};
        if (!worker->ticket && poll(&ready, 1, TICKET_TIMEOUT_MS) < 1) { fprintf(stderr, "the server sent no ticket\n"); exit(1); }
    }
    SSL_shutdown(tls);
    SSL_free(tls);
    drop(fd);
}

static void *work(void *argument) {
    struct worker *worker = argument;
    worker->context = client_context();
    SSL_CTX_set_app_data(worker->context, worker);
    SSL_CTX_set_min_proto_version(worker->context, TLS1_3_VERSION);
    SSL_CTX_set_session_cache_mode(worker->context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(worker->context, keep_ticket);
    if (!strcmp(kind, "failing")) SSL_CTX_set_verify(worker->context, SSL_VERIFY_PEER, refuse);
    for (int64_t due = worker->begin_ns; due < end_ns; due += gap_ns) {
        int64_t begin = now_ns();
        if (gap_ns && begin < due) {
            struct timespec left = {(due - begin) / 1000000000LL, (due - begin) % 1000000000LL};
            nanosleep(&left, NULL);
            begin = due;
        }
        if (!gap_ns) due = begin;
        if (!strcmp(kind, "garbage")) send_garbage(worker);
        else if (!strcmp(kind, "failing")) fail_handshake(worker);
        else shake_hands(worker);
        if (worker->count < MAX_SAMPLES) worker->samples[worker->count++] = (float)(now_ns() - begin) / 1000.0f;
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 7) {
        fprintf(stderr, "usage: handshakes HOST PORT THREADS SECONDS RATE full|resumed|failing|garbage\n");
        return 2;
    }
    static struct worker workers[MAX_THREADS];
    int threads = atoi(argv[3]);
    double seconds = atof(argv[4]), rate = atof(argv[5]);
    host = argv[1], port = argv[2], kind = argv[6];
    is_resumed = !strcmp(kind, "resumed");
    if (threads < 1 || threads > MAX_THREADS || seconds > 3600) {
        fprintf(stderr, "out of range\n");
        return 2;
    }
    int64_t start = now_ns(), count = 0, resumed = 0;
    end_ns = start + (int64_t)(seconds * 1e9);
    gap_ns = rate > 0 ? (int64_t)(1e9 * threads / rate) : 0;
    for (int i = 0; i < threads; i++) {
        workers[i].samples = malloc(sizeof(float) * MAX_SAMPLES);
        workers[i].begin_ns = start + gap_ns * i / threads; /* the threads take turns */
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i])) die("pthread_create");
    }
    float *all = malloc(sizeof(float) * MAX_SAMPLES * (size_t)threads);
    for (int i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        memcpy(all + count, workers[i].samples, sizeof(float) * (size_t)workers[i].count);
        count += workers[i].count;
        resumed += workers[i].resumed;
    }
    double took = (double)(now_ns() - start) / 1e9;
    printf("{\"answered\": %lld, \"failed\": 0, \"resumed\": %.3f, \"seconds\": %.3f, \"per_second\": %.0f, ", (long long)count,
           (double)resumed / (double)(count ? count : 1), took, (double)count / took);
    print_latencies(all, count);
    return 0;
}
