/* Load of small requests over many connections, one in flight each.
 *
 *   requests HOST PORT TOPIC PARTITIONS CONNECTIONS SECONDS RECORD_BYTES ACKS RATE KIND [key=value ...]
 *
 * RATE 0 is a closed loop: every connection sends again when its answer is there. RATE > 0 is a fixed schedule: request i is
 * due at start + i/RATE and its latency counts from then, however late it could be sent, so a stall is not hidden.
 * KIND is `produce` (Produce v7, one record), `fetch` (Fetch v4 from offset 0, at most RECORD_BYTES) or `metadata`
 * (Metadata v4). Requests go to the PARTITIONS in turn. key=value are the settings of secured.h. Prints one line of JSON;
 * fails if an answer holds an error.
 */
#define _GNU_SOURCE
#include <sys/epoll.h>

#include "secured.h"

enum { MAX_CONNECTIONS = 8192, MAX_FRAME = 8 << 20, MAX_SAMPLES = 1 << 24, MAX_VALUE = 1 << 20 };

struct connection {
    struct stream stream;
    int busy, error_at;
    unsigned char *request;
    size_t request_size, partition_at, received;
    int32_t expected;
    unsigned char head[4096];
    int64_t due_ns, next_index;
};

static struct connection connections[MAX_CONNECTIONS];
static float *samples;
static int64_t sample_count, answered, failed;
static int partitions, next_partition;

static void put_produce(struct writer *w, struct connection *c, const char *topic, int value_bytes, int acks) {
    static unsigned char value[MAX_VALUE];
    for (int i = 0; i < value_bytes; i++) value[i] = (unsigned char)('a' + i % 26);
    put16(w, -1);
    put16(w, (int16_t)acks);
    put32(w, 30000);
    put32(w, 1);
    put_string(w, topic);
    put32(w, 1);
    c->partition_at = w->size;
    put32(w, 0);
    size_t records = w->size;
    put32(w, 0);
    put_batch(w, value, value_bytes);
    set32(w->at + records, (int32_t)(w->size - records - 4));
    c->error_at = 4 + 4 + 2 + (int)strlen(topic) + 4 + 4; /* after the size prefix: correlation, count, topic, count, index */
}

static void put_fetch(struct writer *w, struct connection *c, const char *topic, int bytes) {
    put32(w, -1);
    put32(w, 500);
    put32(w, 0);
    put32(w, bytes);
    put8(w, 0);
    put32(w, 1);
    put_string(w, topic);
    put32(w, 1);
    c->partition_at = w->size;
    put32(w, 0);
    put64(w, 0);
    put32(w, bytes);
    c->error_at = 4 + 4 + 4 + 2 + (int)strlen(topic) + 4 + 4; /* as above, with the throttle time before the count */
}

static void build_request(struct connection *c, const char *kind, const char *topic, int value_bytes, int acks) {
    int api = strcmp(kind, "produce") == 0 ? 0 : strcmp(kind, "fetch") == 0 ? 1 : 3;
    struct writer w = {malloc((size_t)value_bytes + 4096), 0};
    put32(&w, 0);
    put16(&w, (int16_t)api);
    put16(&w, api == 0 ? 7 : 4);
    put32(&w, 1);
    put_string(&w, "bench");
    if (api == 0) put_produce(&w, c, topic, value_bytes, acks);
    else if (api == 1) put_fetch(&w, c, topic, value_bytes);
    else {
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
    if (c->partition_at) {
        set32(c->request + c->partition_at, next_partition);
        next_partition = (next_partition + 1) % partitions;
    }
    write_all(&c->stream, c->request, c->request_size);
}

/* Reads what is there; 1 when the whole answer has arrived. */
static int receive(struct connection *c) {
    unsigned char scratch[65536];
    do { /* more than once for TLS, which may hold a part of a record that it has read */
        size_t room = c->received < sizeof c->head ? sizeof c->head - c->received : 0;
        ssize_t n = room ? read_some(&c->stream, c->head + c->received, room) : read_some(&c->stream, scratch, sizeof scratch);
        if (n == 0) { fprintf(stderr, "the broker closed a connection\n"); exit(1); }
        if (n < 0) { if (errno == EAGAIN) return 0; die("recv"); }
        c->received += (size_t)n;
        if (c->received < 4) continue;
        c->expected = get32(c->head);
        if (c->expected < 0 || c->expected > MAX_FRAME) { fprintf(stderr, "answer of %d bytes\n", c->expected); exit(1); }
        if (c->received >= (size_t)c->expected + 4) return 1;
    } while (c->stream.tls);
    return 0;
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

/* On a fixed schedule: each connection serves its own indices (i, i + count, ...) in order, late ones at once. Sends what is
 * due; the number sent, and in *soonest when the next is due (INT64_MAX: none). */
static int64_t send_due(int count, int64_t start, int64_t end, double gap, int64_t *soonest) {
    int64_t now = now_ns(), sent = 0;
    *soonest = INT64_MAX;
    for (int i = 0; i < count; i++) {
        struct connection *c = &connections[i];
        if (c->busy) continue;
        int64_t due = start + (int64_t)(gap * (double)c->next_index);
        if (due >= end) continue;
        if (due <= now) { c->next_index += count; send_request(c, due); sent++; }
        else if (due < *soonest) *soonest = due;
    }
    return sent;
}

int main(int argc, char **argv) {
    if (argc < 11) {
        fprintf(stderr, "usage: requests HOST PORT TOPIC PARTITIONS CONNECTIONS SECONDS RECORD_BYTES ACKS RATE KIND [key=value ...]\n");
        return 2;
    }
    const char *topic = argv[3], *kind = argv[10];
    int count = atoi(argv[5]), value_bytes = atoi(argv[7]), acks = atoi(argv[8]);
    double seconds = atof(argv[6]), rate = atof(argv[9]);
    partitions = atoi(argv[4]);
    if (count < 1 || count > MAX_CONNECTIONS || partitions < 1 || seconds > 3600 || value_bytes < 0 || value_bytes > MAX_VALUE) {
        fprintf(stderr, "out of range\n");
        return 2;
    }
    samples = malloc(sizeof(float) * MAX_SAMPLES);
    struct security security = security_of(argc, argv, 11);
    int epoll = epoll_create1(0), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    for (int i = 0; i < count; i++) {
        struct connection *c = &connections[i];
        c->stream = dial_secured(argv[1], argv[2], &security);
        build_request(c, kind, topic, value_bytes, acks);
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
        epoll_ctl(epoll, EPOLL_CTL_ADD, c->stream.fd, &event);
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
            int64_t soonest;
            in_flight += send_due(count, start, end, gap, &soonest);
            if (soonest != INT64_MAX) arm(timer, soonest);
            else if (!in_flight) break;
        }
    }
    double took = (double)(now_ns() - start) / 1e9;
    failed += in_flight;
    printf("{\"answered\": %lld, \"failed\": %lld, \"seconds\": %.3f, \"per_second\": %.0f, ", (long long)answered, (long long)failed,
           took, (double)answered / took);
    print_latencies(samples, sample_count);
    return failed ? 1 : 0;
}
