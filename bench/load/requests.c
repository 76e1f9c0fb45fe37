/* Load of small requests: one record per Produce request, or Metadata requests, over many connections, one in flight each.
 *
 *   requests HOST PORT TOPIC PARTITIONS CONNECTIONS SECONDS RECORD_BYTES ACKS RATE KIND
 *
 * RATE 0 is a closed loop: every connection sends again when its answer is there. RATE > 0 is a fixed schedule: request i is
 * due at start + i/RATE and its latency counts from then, however late it could be sent, so a stall is not hidden.
 * KIND is `produce` (Produce v7) or `metadata` (Metadata v4). Prints one line of JSON. Bounded by SECONDS.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CONNECTIONS = 8192, MAX_FRAME = 1 << 20, MAX_SAMPLES = 1 << 24 };

struct connection {
    int fd, busy, error_at;
    unsigned char *request;
    size_t request_size, received;
    int32_t expected;
    unsigned char head[4096];
    int64_t due_ns, next_index;
};

static struct connection connections[MAX_CONNECTIONS];
static float *samples;
static int64_t sample_count, answered, failed;

static void die(const char *what) { perror(what); exit(1); }

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static uint32_t crc32c(const unsigned char *data, size_t size) {
    uint32_t crc = ~0u;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (0x82f63b78u & -(crc & 1));
    }
    return ~crc;
}

/* A growing frame; big-endian. */
struct writer { unsigned char *at; size_t size; };
static void put(struct writer *w, const void *data, size_t size) { memcpy(w->at + w->size, data, size); w->size += size; }
static void put8(struct writer *w, int8_t v) { put(w, &v, 1); }
static void put16(struct writer *w, int16_t v) { uint16_t raw = htons((uint16_t)v); put(w, &raw, 2); }
static void put32(struct writer *w, int32_t v) { uint32_t raw = htonl((uint32_t)v); put(w, &raw, 4); }
static void put64(struct writer *w, int64_t v) { put32(w, (int32_t)(v >> 32)); put32(w, (int32_t)v); }
static void put_string(struct writer *w, const char *s) { put16(w, (int16_t)strlen(s)); put(w, s, strlen(s)); }
static void put_varint(struct writer *w, int32_t v) {
    uint32_t raw = ((uint32_t)v << 1) ^ (uint32_t)(v >> 31);
    for (; raw >= 0x80; raw >>= 7) put8(w, (int8_t)(raw | 0x80));
    put8(w, (int8_t)raw);
}
static void set32(unsigned char *at, int32_t v) { uint32_t raw = htonl((uint32_t)v); memcpy(at, &raw, 4); }
static int32_t get32(const unsigned char *at) { uint32_t raw; memcpy(&raw, at, 4); return (int32_t)ntohl(raw); }

static int varint_size(int32_t v) {
    uint32_t raw = ((uint32_t)v << 1) ^ (uint32_t)(v >> 31);
    int size = 1;
    for (; raw >= 0x80; raw >>= 7) size++;
    return size;
}

/* One record batch of magic 2 with one record of `value_bytes`, no key, no headers. */
static void put_batch(struct writer *w, int value_bytes) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    int64_t now_ms = t.tv_sec * 1000LL + t.tv_nsec / 1000000;
    size_t start = w->size;
    put64(w, 0);
    put32(w, 0);
    put32(w, -1);
    put8(w, 2);
    put32(w, 0);
    size_t crc_from = w->size;
    put16(w, 0);
    put32(w, 0);
    put64(w, now_ms);
    put64(w, now_ms);
    put64(w, -1);
    put16(w, -1);
    put32(w, -1);
    put32(w, 1);
    put_varint(w, 1 + 1 + 1 + 1 + varint_size(value_bytes) + value_bytes + 1);
    put8(w, 0);
    put_varint(w, 0);
    put_varint(w, 0);
    put_varint(w, -1);
    put_varint(w, value_bytes);
    for (int i = 0; i < value_bytes; i++) put8(w, (int8_t)('a' + i % 26));
    put_varint(w, 0);
    set32(w->at + start + 8, (int32_t)(w->size - start - 12));
    set32(w->at + crc_from - 4, (int32_t)crc32c(w->at + crc_from, w->size - crc_from));
}

static void build_request(struct connection *c, const char *kind, const char *topic, int partition, int value_bytes, int acks) {
    struct writer w = {malloc((size_t)value_bytes + 4096), 0};
    int produce = strcmp(kind, "produce") == 0;
    put32(&w, 0);
    put16(&w, produce ? 0 : 3);
    put16(&w, produce ? 7 : 4);
    put32(&w, 1);
    put_string(&w, "bench");
    if (produce) {
        put16(&w, -1);
        put16(&w, (int16_t)acks);
        put32(&w, 30000);
        put32(&w, 1);
        put_string(&w, topic);
        put32(&w, 1);
        put32(&w, partition);
        size_t records = w.size;
        put32(&w, 0);
        put_batch(&w, value_bytes);
        set32(w.at + records, (int32_t)(w.size - records - 4));
        c->error_at = 4 + 4 + 2 + (int)strlen(topic) + 4 + 4; /* after the size prefix: correlation, count, topic, count, index */
    } else {
        put32(&w, 1);
        put_string(&w, topic);
        put8(&w, 0);
        c->error_at = -1;
    }
    set32(w.at, (int32_t)(w.size - 4));
    c->request = w.at;
    c->request_size = w.size;
}

static void send_request(struct connection *c, int64_t due_ns) {
    c->busy = 1;
    c->due_ns = due_ns;
    for (size_t sent = 0; sent < c->request_size;) {
        ssize_t n = send(c->fd, c->request + sent, c->request_size - sent, MSG_NOSIGNAL);
        if (n < 0) die("send");
        sent += (size_t)n;
    }
}

/* Reads what is there; 1 when the whole answer has arrived. */
static int receive(struct connection *c) {
    unsigned char scratch[65536];
    size_t room = c->received < sizeof c->head ? sizeof c->head - c->received : 0;
    ssize_t n = room ? recv(c->fd, c->head + c->received, room, MSG_DONTWAIT) : recv(c->fd, scratch, sizeof scratch, MSG_DONTWAIT);
    if (n == 0) { fprintf(stderr, "the broker closed a connection\n"); exit(1); }
    if (n < 0) { if (errno == EAGAIN) return 0; die("recv"); }
    c->received += (size_t)n;
    if (c->received < 4) return 0;
    c->expected = get32(c->head);
    if (c->expected < 0 || c->expected > MAX_FRAME) { fprintf(stderr, "answer of %d bytes\n", c->expected); exit(1); }
    return c->received >= (size_t)c->expected + 4;
}

static void finish(struct connection *c) {
    int64_t latency = now_ns() - c->due_ns;
    if (sample_count < MAX_SAMPLES) samples[sample_count++] = (float)latency / 1000.0f;
    answered++;
    if (c->error_at >= 0) {
        const unsigned char *at = c->head + 4 + c->error_at;
        if (at[0] || at[1]) failed++;
    }
    c->busy = 0;
    c->received = 0;
}

static int compare(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

static int dial(const char *host, const char *port) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_INET}, *found;
    if (getaddrinfo(host, port, &hints, &found)) die("getaddrinfo");
    int fd = socket(found->ai_family, SOCK_STREAM, 0), on = 1;
    if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen)) die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    freeaddrinfo(found);
    return fd;
}

static void arm(int timer, int64_t at_ns) {
    struct itimerspec when = {.it_value = {at_ns / 1000000000LL, at_ns % 1000000000LL}};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
}

int main(int argc, char **argv) {
    if (argc != 11) {
        fprintf(stderr, "usage: requests HOST PORT TOPIC PARTITIONS CONNECTIONS SECONDS RECORD_BYTES ACKS RATE KIND\n");
        return 2;
    }
    const char *topic = argv[3], *kind = argv[10];
    int partitions = atoi(argv[4]), count = atoi(argv[5]), value_bytes = atoi(argv[7]), acks = atoi(argv[8]);
    double seconds = atof(argv[6]), rate = atof(argv[9]);
    if (count < 1 || count > MAX_CONNECTIONS || partitions < 1 || seconds > 3600) { fprintf(stderr, "out of range\n"); return 2; }
    samples = malloc(sizeof(float) * MAX_SAMPLES);
    int epoll = epoll_create1(0), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    for (int i = 0; i < count; i++) {
        struct connection *c = &connections[i];
        c->fd = dial(argv[1], argv[2]);
        build_request(c, kind, topic, i % partitions, value_bytes, acks);
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
        epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event);
        c->next_index = i;
    }
    struct epoll_event timer_event = {.events = EPOLLIN, .data.u32 = UINT32_MAX};
    epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &timer_event);

    int64_t start = now_ns(), end = start + (int64_t)(seconds * 1e9), in_flight = 0;
    double gap = rate > 0 ? 1e9 / rate : 0;
    if (rate > 0) arm(timer, start + 1);
    else for (int i = 0; i < count; i++) { send_request(&connections[i], now_ns()); in_flight++; }

    struct epoll_event events[256];
    while (now_ns() < end || in_flight) {
        int ready = epoll_wait(epoll, events, 256, 2000);
        if (ready == 0 && now_ns() > end) break;
        for (int e = 0; e < ready; e++) {
            if (events[e].data.u32 == UINT32_MAX) {
                uint64_t expirations;
                if (read(timer, &expirations, 8) != 8) continue;
                continue;
            }
            struct connection *c = &connections[events[e].data.u32];
            if (!c->busy || !receive(c)) continue;
            finish(c);
            in_flight--;
            if (rate == 0 && now_ns() < end) { send_request(c, now_ns()); in_flight++; }
        }
        if (rate > 0) {
            /* Each connection serves its own indices (i, i + count, ...) in order, late ones at once. */
            int64_t now = now_ns(), soonest = INT64_MAX;
            for (int i = 0; i < count; i++) {
                struct connection *c = &connections[i];
                if (c->busy) continue;
                int64_t due = start + (int64_t)(gap * (double)c->next_index);
                if (due >= end) continue;
                if (due <= now) { c->next_index += count; send_request(c, due); in_flight++; }
                else if (due < soonest) soonest = due;
            }
            if (soonest != INT64_MAX) arm(timer, soonest);
            else if (!in_flight) break;
        }
    }
    double took = (double)(now_ns() - start) / 1e9;
    qsort(samples, (size_t)sample_count, sizeof(float), compare);
#define AT(q) (sample_count ? samples[(int64_t)((double)(sample_count - 1) * (q))] : 0)
    printf("{\"answered\": %lld, \"failed\": %lld, \"seconds\": %.3f, \"per_second\": %.0f, \"p50_us\": %.0f, \"p99_us\": %.0f, "
           "\"p999_us\": %.0f, \"max_us\": %.0f}\n", (long long)answered, (long long)failed, took, (double)answered / took,
           AT(0.5), AT(0.99), AT(0.999), AT(1.0));
    return failed ? 1 : 0;
}
