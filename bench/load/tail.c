/* Many consumers at the tail of one partition: how soon each of them has a record.
 *
 *   tail HOST PORT TOPIC CONSUMERS SECONDS RATE
 *
 * One producer writes RATE records a second on a fixed schedule to partition 0; every consumer waits for each of them with
 * Fetch v4 (500 ms, 1 byte). A record holds the time for which it was scheduled, and its latency counts from then until a
 * consumer has read it. Prints one line of JSON; fails if a consumer has not read every record.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "wire.h"

enum { MAX_CONSUMERS = 8192, ROOM = 65536, VALUE_BYTES = 100, VALUE_AT = 69, MAX_SAMPLES = 1 << 24 };

struct consumer { int fd; unsigned char *buffer; size_t used; int64_t offset; };

static struct consumer consumers[MAX_CONSUMERS];
static float *samples;
static int64_t sample_count, delivered;
static const char *topic;

static void send_all(int fd, struct writer *w) {
    set32(w->at, (int32_t)(w->size - 4));
    for (size_t sent = 0; sent < w->size;) {
        ssize_t n = send(fd, w->at + sent, w->size - sent, MSG_NOSIGNAL);
        if (n < 0) die("send");
        sent += (size_t)n;
    }
}

static void put_header(struct writer *w, int api, int version) {
    put32(w, 0);
    put16(w, (int16_t)api);
    put16(w, (int16_t)version);
    put32(w, 1);
    put_string(w, "bench");
}

static void send_produce(int fd, int64_t due_ns) {
    unsigned char room[1024], value[VALUE_BYTES] = {0};
    struct writer w = {room, 0};
    memcpy(value, &due_ns, sizeof due_ns);
    put_header(&w, 0, 7);
    put16(&w, -1);
    put16(&w, 1);
    put32(&w, 30000);
    put32(&w, 1);
    put_string(&w, topic);
    put32(&w, 1);
    put32(&w, 0);
    size_t records = w.size;
    put32(&w, 0);
    put_batch(&w, value, VALUE_BYTES);
    set32(w.at + records, (int32_t)(w.size - records - 4));
    send_all(fd, &w);
}

static void send_fetch(struct consumer *c) {
    unsigned char room[1024];
    struct writer w = {room, 0};
    put_header(&w, 1, 4);
    put32(&w, -1);
    put32(&w, 500);
    put32(&w, 1);
    put32(&w, ROOM / 4);
    put8(&w, 0);
    put32(&w, 1);
    put_string(&w, topic);
    put32(&w, 1);
    put32(&w, 0);
    put64(&w, c->offset);
    put32(&w, ROOM / 4);
    send_all(c->fd, &w);
}

/* Reads the answer to one Produce; its base offset. */
static int64_t read_base_offset(int fd) {
    unsigned char head[1024];
    size_t used = 0;
    while (used < 4 || used < 4 + (size_t)get32(head)) {
        ssize_t n = recv(fd, head + used, sizeof head - used, 0);
        if (n <= 0) die("recv");
        used += (size_t)n;
    }
    const unsigned char *at = head + 4 + 4 + 4 + 2 + strlen(topic) + 4 + 4;
    if (at[0] || at[1]) { fprintf(stderr, "produce failed with error %d\n", at[0] << 8 | at[1]); exit(1); }
    return get64(at + 2);
}

/* Notes the records of a whole Fetch answer of `size` bytes. */
static void take_records(struct consumer *c, size_t size) {
    const unsigned char *end = c->buffer + 4 + size;
    const unsigned char *at = c->buffer + 4 + 4 + 4 + 4 + 2 + strlen(topic) + 4 + 4;
    if (at + 22 > end || at[0] || at[1]) { fprintf(stderr, "fetch failed\n"); exit(1); }
    at += 2 + 8 + 8;
    int32_t aborted = get32(at);
    at += 4 + (aborted > 0 ? 16 * aborted : 0);
    at += 4;
    int64_t now = now_ns();
    while (end - at >= VALUE_AT + 8) {
        int32_t length = get32(at + 8);
        if (at + 12 + length > end) break;
        int64_t due;
        memcpy(&due, at + VALUE_AT, sizeof due);
        if (sample_count < MAX_SAMPLES) samples[sample_count++] = (float)(now - due) / 1000.0f;
        delivered++;
        c->offset = get64(at) + 1;
        at += 12 + length;
    }
}

static void readable(struct consumer *c) {
    ssize_t n = recv(c->fd, c->buffer + c->used, ROOM - c->used, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) die("recv");
    c->used += (size_t)n;
    if (c->used < 4 || c->used < 4 + (size_t)get32(c->buffer)) return;
    take_records(c, (size_t)get32(c->buffer));
    c->used = 0;
    send_fetch(c);
}

int main(int argc, char **argv) {
    if (argc != 7) { fprintf(stderr, "usage: tail HOST PORT TOPIC CONSUMERS SECONDS RATE\n"); return 2; }
    topic = argv[3];
    int count = atoi(argv[4]);
    double seconds = atof(argv[5]), rate = atof(argv[6]);
    if (count < 1 || count > MAX_CONSUMERS || rate <= 0 || seconds > 3600 || strlen(topic) > 249) { fprintf(stderr, "out of range\n"); return 2; }
    samples = malloc(sizeof(float) * MAX_SAMPLES);
    int epoll = epoll_create1(0), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK), producer = dial(argv[1], argv[2]);
    send_produce(producer, now_ns());
    int64_t first = read_base_offset(producer) + 1;
    for (int i = 0; i < count; i++) {
        struct consumer *c = &consumers[i];
        c->fd = dial(argv[1], argv[2]);
        c->buffer = malloc(ROOM);
        c->offset = first;
        send_fetch(c);
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
        epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event);
    }
    struct epoll_event timer_event = {.events = EPOLLIN, .data.u32 = UINT32_MAX}, producer_event = {.events = EPOLLIN, .data.u32 = UINT32_MAX - 1};
    epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &timer_event);
    epoll_ctl(epoll, EPOLL_CTL_ADD, producer, &producer_event);
    int64_t start = now_ns(), total = (int64_t)(seconds * rate), sent = 0, limit = start + (int64_t)((seconds + 10) * 1e9);
    double gap = 1e9 / rate;
    arm(timer, start + 1);
    struct epoll_event events[256];
    while (delivered < total * count && now_ns() < limit) {
        int ready = epoll_wait(epoll, events, 256, 1000);
        for (int e = 0; e < ready; e++) {
            uint32_t who = events[e].data.u32;
            if (who == UINT32_MAX) {
                uint64_t expirations;
                if (read(timer, &expirations, 8) != 8) continue;
                while (sent < total && start + (int64_t)(gap * (double)sent) <= now_ns()) {
                    send_produce(producer, start + (int64_t)(gap * (double)sent));
                    sent++;
                }
                if (sent < total) arm(timer, start + (int64_t)(gap * (double)sent));
            } else if (who == UINT32_MAX - 1) {
                unsigned char scratch[65536];
                if (recv(producer, scratch, sizeof scratch, MSG_DONTWAIT) == 0) { fprintf(stderr, "the broker closed the producer\n"); return 1; }
            } else readable(&consumers[who]);
        }
    }
    double took = (double)(now_ns() - start) / 1e9;
    int64_t missing = total * count - delivered;
    printf("{\"answered\": %lld, \"failed\": %lld, \"seconds\": %.3f, \"per_second\": %.0f, ", (long long)delivered, (long long)missing,
           took, (double)delivered / took);
    print_latencies(samples, sample_count);
    return missing ? 1 : 0;
}
