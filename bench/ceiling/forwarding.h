/* The ceiling as one of three nodes: forwards every batch that it leads to the two others, which append it.
 *
 * The forwards to a node share one connection. They are gathered while a wake-up is handled and sent at its end; the other
 * node answers once for all of those that it has read together. An answer to a client with acks=all waits until both others
 * have appended everything up to its own batches. No node may fail.
 */
#ifndef BENCH_CEILING_FORWARDING_H
#define BENCH_CEILING_FORWARDING_H

enum { NODES = 3, FORWARD_API = 1000, MAX_WAITING = 1 << 16, DIAL_TRIES = 2000, DIAL_PAUSE_US = 5000 };

/* The connection to another node. `appended` is the last sequence number that it has appended. */
struct link { int fd, watches_output; unsigned char *out; size_t used, sent, room; int64_t appended; };
/* An answer that waits for the sequence number; `generation` tells its connection from a later one with the same fd. */
struct waiting { int fd, generation; int64_t sequence; size_t size; unsigned char *answer; };

static struct link links[NODES];
static struct waiting waiting[MAX_WAITING];
static int ports[NODES], own_node = -1;
static int64_t last_sequence, waiting_from, waiting_to;

static int is_forwarding(void) { return own_node >= 0; }
static int leader_of(int partition) { return partition % NODES; }

static struct link *link_of(int fd) {
    for (int i = 0; is_forwarding() && i < NODES; i++)
        if (i != own_node && links[i].fd == fd) return &links[i];
    return NULL;
}

static void watch(int epoll, struct link *l, int output, int operation) {
    struct epoll_event event = {.events = EPOLLIN | (output ? EPOLLOUT : 0), .data.fd = l->fd};
    epoll_ctl(epoll, operation, l->fd, &event);
    l->watches_output = output;
}

/* Connects to both others, which may still be starting. */
static void dial_others(int epoll) {
    for (int i = 0; i < NODES; i++) {
        if (i == own_node) continue;
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)ports[i]), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        int on = 1, tries = 0;
        for (;; usleep(DIAL_PAUSE_US)) {
            links[i].fd = socket(AF_INET, SOCK_STREAM, 0);
            if (connect(links[i].fd, (struct sockaddr *)&address, sizeof address) == 0) break;
            close(links[i].fd);
            if (++tries == DIAL_TRIES) die("connect");
        }
        setsockopt(links[i].fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        fcntl(links[i].fd, F_SETFL, O_NONBLOCK);
        watch(epoll, &links[i], 0, EPOLL_CTL_ADD);
    }
}

static void gather(struct link *l, const void *data, size_t size) {
    if (l->used + size > l->room) {
        l->room = 2 * (l->used + size);
        l->out = realloc(l->out, l->room);
    }
    memcpy(l->out + l->used, data, size);
    l->used += size;
}

static void gather32(struct link *l, int32_t v) { uint32_t raw = htonl((uint32_t)v); gather(l, &raw, 4); }
static void gather16(struct link *l, int16_t v) { uint16_t raw = htons((uint16_t)v); gather(l, &raw, 2); }

/* A frame for each of the others: api, version, correlation, no client id; sequence, topic, partition, batches. */
static void forward(const char *topic, int32_t partition, const unsigned char *batches, int32_t size) {
    int64_t sequence = ++last_sequence;
    for (int i = 0; i < NODES; i++) {
        if (i == own_node) continue;
        struct link *l = &links[i];
        gather32(l, 2 + 2 + 4 + 2 + 8 + 2 + (int32_t)strlen(topic) + 4 + 4 + size);
        gather16(l, FORWARD_API);
        gather16(l, 0);
        gather32(l, 0);
        gather16(l, -1);
        gather32(l, (int32_t)(sequence >> 32));
        gather32(l, (int32_t)sequence);
        gather16(l, (int16_t)strlen(topic));
        gather(l, topic, strlen(topic));
        gather32(l, partition);
        gather32(l, size);
        gather(l, batches, (size_t)size);
    }
}

/* Sends what was gathered, as far as the sockets take it. */
static void flush_links(int epoll) {
    for (int i = 0; i < NODES; i++) {
        struct link *l = &links[i];
        if (i == own_node || l->sent == l->used) continue;
        ssize_t n = send(l->fd, l->out + l->sent, l->used - l->sent, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN) die("forward");
        if (n > 0) l->sent += (size_t)n;
        int is_left = l->sent < l->used;
        if (!is_left) l->sent = l->used = 0;
        if (is_left != l->watches_output) watch(epoll, l, is_left, EPOLL_CTL_MOD);
    }
}

/* Keeps an answer until everything that was forwarded so far is appended. */
static void wait_for_others(int fd, int generation, const unsigned char *data, size_t size) {
    if (waiting_to - waiting_from == MAX_WAITING) { fprintf(stderr, "too many answers wait\n"); exit(1); }
    struct waiting *w = &waiting[waiting_to++ % MAX_WAITING];
    *w = (struct waiting){fd, generation, last_sequence, size, malloc(size)};
    memcpy(w->answer, data, size);
}

/* Returns the next answer that need not wait any more, or NULL. */
static struct waiting *next_replicated(void) {
    if (waiting_from == waiting_to) return NULL;
    for (int i = 0; i < NODES; i++)
        if (i != own_node && links[i].appended < waiting[waiting_from % MAX_WAITING].sequence) return NULL;
    return &waiting[waiting_from++ % MAX_WAITING];
}

#endif
