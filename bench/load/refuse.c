/* A server of TLS 1.3 that refuses every client with the least work: the floor of what an attack costs a machine.
 *
 *   refuse PORT CERTIFICATE KEY
 *
 * Listens on loopback until it is killed. A connection whose first byte cannot begin a handshake is closed. The others get
 * one handshake each, on a thread of the niceness that the broker's threads for handshakes have, and are closed after it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "secured.h"

enum { QUEUE = 4096, NICENESS = 5, HANDSHAKE_RECORD = 0x16, TIMEOUT_S = 5 };

static int queue[QUEUE];
static unsigned first, last;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;

static void *shake_hands(void *context) {
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICENESS);
    for (;;) {
        pthread_mutex_lock(&lock);
        while (first == last) pthread_cond_wait(&not_empty, &lock);
        int fd = queue[first++ % QUEUE];
        pthread_mutex_unlock(&lock);
        struct timeval timeout = {TIMEOUT_S, 0};
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
        SSL *tls = SSL_new(context);
        SSL_set_fd(tls, fd);
        SSL_accept(tls);
        SSL_free(tls);
        close(fd);
    }
    return NULL;
}

/* Refuses a readable connection, or passes it to the thread; a full queue refuses it too. */
static void receive(int epoll, int fd) {
    unsigned char byte;
    if (recv(fd, &byte, 1, MSG_PEEK) != 1 || byte != HANDSHAKE_RECORD || last - first == QUEUE) {
        close(fd);
        return;
    }
    epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL);
    pthread_mutex_lock(&lock);
    queue[last++ % QUEUE] = fd;
    pthread_cond_signal(&not_empty);
    pthread_mutex_unlock(&lock);
}

int main(int argc, char **argv) {
    if (argc != 4) { fprintf(stderr, "usage: refuse PORT CERTIFICATE KEY\n"); return 2; }
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    if (!context || SSL_CTX_use_certificate_chain_file(context, argv[2]) != 1
        || SSL_CTX_use_PrivateKey_file(context, argv[3], SSL_FILETYPE_PEM) != 1) die("certificate");
    SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1])),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1, epoll = epoll_create1(0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 50)) die("listen");
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[64];
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    pthread_t thread;
    if (pthread_create(&thread, NULL, shake_hands, context)) die("pthread_create");
    for (;;) {
        int ready = epoll_wait(epoll, events, 64, -1);
        for (int e = 0; e < ready; e++) {
            if (events[e].data.fd != listener) { receive(epoll, events[e].data.fd); continue; }
            int fd = accept(listener, NULL, NULL);
            if (fd < 0) continue;
            struct epoll_event arrival = {.events = EPOLLIN, .data.fd = fd};
            epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &arrival);
        }
    }
}
