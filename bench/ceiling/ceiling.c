/* The ceiling: the least that a broker can do. One thread, epoll; checks CRC32C, assigns offsets, appends; fetches by sendfile.
 *
 *   ceiling PORT DATA_DIR PARTITIONS [NODE PORT PORT PORT | CERTIFICATE KEY]
 *
 * With a certificate and its key every client uses TLS 1.3 (tls.h). With NODE (0 to 2) and the ports of all three nodes it is one node of three, each of which leads every third partition and
 * forwards what it appends to the two others (forwarding.h).
 *
 * Not a broker: no index on disk, no producer state, no record validation, no recovery; every topic name that is asked for
 * exists with PARTITIONS partitions. It serves ApiVersions 0-3, Metadata 1-4, Produce 3-7, Fetch 4-10, ListOffsets 1 on
 * 127.0.0.1 and trusts its client: for the benchmark only. FindCoordinator is announced, not served: without it, and without
 * Fetch 10 for zstd, librdkafka would not compress. It says what the machine allows, so that a broker's figures can be
 * given as a share of it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../kafkapy/_core/bytes/crc32c_hardware.h"

enum { MAX_FDS = 65536, MAX_TOPICS = 64, MAX_PARTITIONS = 20000, SLAB = 4 << 20, INDEX_EVERY = 65536 };

struct entry { int64_t offset, position; };
struct partition { int fd; int64_t next_offset, size, indexed_to; struct entry *index; size_t entries; };
struct topic { char name[256]; struct partition *partitions; };
struct connection { unsigned char *buffer; size_t used, room; int generation; int64_t to_confirm; };

static struct topic topics[MAX_TOPICS];
static struct connection *connections[MAX_FDS];
static int topic_count, partition_count, port, crc32c_variant, generations;
static const char *data_dir;

static void die(const char *what) { perror(what); exit(1); }

#include "forwarding.h"
#include "tls.h"

/* A cursor over a request and one over an answer; big-endian. */
struct reader { const unsigned char *at, *end; };
static int16_t get16(struct reader *r) { uint16_t v; memcpy(&v, r->at, 2); r->at += 2; return (int16_t)ntohs(v); }
static int32_t get32(struct reader *r) { uint32_t v; memcpy(&v, r->at, 4); r->at += 4; return (int32_t)ntohl(v); }
static int64_t get64(struct reader *r) { int64_t high = get32(r); return high << 32 | (uint32_t)get32(r); }
static void skip_string(struct reader *r) { int16_t n = get16(r); if (n > 0) r->at += n; }

static unsigned char answer[1 << 20];
static size_t answer_size;
static void put(const void *data, size_t size) {
    if (answer_size + size > sizeof answer) die("answer too large");
    memcpy(answer + answer_size, data, size);
    answer_size += size;
}
static void put8(int8_t v) { put(&v, 1); }
static void put16(int16_t v) { uint16_t raw = htons((uint16_t)v); put(&raw, 2); }
static void put32(int32_t v) { uint32_t raw = htonl((uint32_t)v); put(&raw, 4); }
static void put64(int64_t v) { put32((int32_t)(v >> 32)); put32((int32_t)v); }
static void put_string(const char *s) { put16((int16_t)strlen(s)); put(s, strlen(s)); }

static struct topic *find_topic(const unsigned char *name, int length) {
    for (int i = 0; i < topic_count; i++)
        if ((int)strlen(topics[i].name) == length && memcmp(topics[i].name, name, (size_t)length) == 0) return &topics[i];
    if (topic_count == MAX_TOPICS || length <= 0 || length > 249) return NULL;
    struct topic *t = &topics[topic_count++];
    memcpy(t->name, name, (size_t)length);
    t->partitions = calloc((size_t)partition_count, sizeof *t->partitions);
    for (int p = 0; p < partition_count; p++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s-%d.log", data_dir, t->name, p);
        t->partitions[p].fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600);
        if (t->partitions[p].fd < 0) die(path);
    }
    return t;
}

static struct topic *read_topic(struct reader *r) {
    int16_t length = get16(r);
    struct topic *t = find_topic(r->at, length);
    r->at += length;
    return t;
}

static void set64(unsigned char *at, int64_t v) {
    uint32_t high = htonl((uint32_t)(v >> 32)), low = htonl((uint32_t)v);
    memcpy(at, &high, 4);
    memcpy(at + 4, &low, 4);
}

/* Checks and numbers the batches in place, appends them; the base offset, or -1. */
static int64_t append(struct partition *p, unsigned char *batches, int32_t size) {
    int64_t base = p->next_offset;
    for (int32_t at = 0; at + 61 <= size;) {
        struct reader header = {batches + at + 8, batches + size};
        int32_t length = get32(&header);
        header.at = batches + at + 17;
        uint32_t crc = (uint32_t)get32(&header);
        if (length < 49 || at + 12 + length > size) return -1;
        if (crc32c_by(crc32c_variant, 0, batches + at + 21, (size_t)length - 9) != crc) return -1;
        header.at = batches + at + 23;
        int32_t last_delta = get32(&header);
        set64(batches + at, p->next_offset);
        p->next_offset += last_delta + 1;
        at += 12 + length;
    }
    if (p->size >= p->indexed_to) {
        p->index = realloc(p->index, sizeof *p->index * (p->entries + 1));
        p->index[p->entries++] = (struct entry){base, p->size};
        p->indexed_to = p->size + INDEX_EVERY;
    }
    for (int32_t written = 0; written < size;) {
        ssize_t n = write(p->fd, batches + written, (size_t)(size - written));
        if (n < 0) die("write");
        written += (int32_t)n;
    }
    p->size += size;
    return base;
}

static int64_t position_of(struct partition *p, int64_t offset) {
    int64_t position = 0;
    size_t low = 0, high = p->entries;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (p->index[middle].offset <= offset) { position = p->index[middle].position; low = middle + 1; }
        else high = middle;
    }
    while (position < p->size) {
        unsigned char header[61];
        if (pread(p->fd, header, sizeof header, position) != sizeof header) break;
        struct reader r = {header, header + sizeof header};
        int64_t base = get64(&r);
        int32_t length = get32(&r);
        r.at = header + 23;
        if (base + get32(&r) >= offset) break;
        position += 12 + length;
    }
    return position;
}

static void api_versions(int version) {
    static const int16_t served[][3] = {{0, 3, 7}, {1, 4, 10}, {2, 1, 1}, {3, 1, 4}, {10, 0, 0}, {18, 0, 3}};
    int count = sizeof served / sizeof *served;
    put16(0);
    if (version >= 3) put8((int8_t)(count + 1));
    else put32(count);
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < 3; j++) put16(served[i][j]);
        if (version >= 3) put8(0);
    }
    if (version >= 1) put32(0);
    if (version >= 3) put8(0);
}

static void metadata(struct reader *r, int version) {
    if (version >= 3) put32(0);
    int nodes = is_forwarding() ? NODES : 1;
    put32(nodes);
    for (int i = 0; i < nodes; i++) {
        put32(i + 1);
        put_string("127.0.0.1");
        put32(is_forwarding() ? ports[i] : port);
        put16(-1);
    }
    if (version >= 2) put_string("ceiling");
    put32(1);
    int32_t count = get32(r);
    struct topic *asked[MAX_TOPICS];
    int found = 0;
    for (int32_t i = 0; i < count && found < MAX_TOPICS; i++) {
        struct topic *t = read_topic(r);
        if (t) asked[found++] = t;
    }
    put32(found);
    for (int i = 0; i < found; i++) {
        put16(0);
        put_string(asked[i]->name);
        put8(0);
        put32(partition_count);
        for (int p = 0; p < partition_count; p++) {
            put16(0);
            put32(p);
            put32(is_forwarding() ? leader_of(p) + 1 : 1);
            for (int list = 0; list < 2; list++) {
                put32(nodes);
                for (int i = 0; i < nodes; i++) put32(i + 1);
            }
        }
    }
}

/* Whether and when a produce request is answered. */
enum { NO_ANSWER, ANSWER, ANSWER_WHEN_REPLICATED };

static int produce(struct reader *r, int version) {
    skip_string(r);
    int16_t acks = get16(r);
    get32(r);
    int32_t topic_total = get32(r);
    put32(topic_total);
    for (int32_t i = 0; i < topic_total; i++) {
        struct topic *t = read_topic(r);
        put_string(t->name);
        int32_t parts = get32(r);
        put32(parts);
        for (int32_t j = 0; j < parts; j++) {
            int32_t index = get32(r), size = get32(r);
            int64_t base = append(&t->partitions[index], (unsigned char *)r->at, size);
            if (is_forwarding() && base >= 0) forward(t->name, index, r->at, size);
            r->at += size;
            put32(index);
            put16(base < 0 ? 2 : 0);
            put64(base);
            put64(-1);
            if (version >= 5) put64(0);
        }
    }
    put32(0);
    if (acks == 0) return NO_ANSWER;
    return acks < 0 && is_forwarding() ? ANSWER_WHEN_REPLICATED : ANSWER;
}

/* Appends what the partition's leader has forwarded; the sequence number is confirmed when all input is handled. */
static void append_forwarded(int fd, struct reader *r) {
    int64_t sequence = get64(r);
    struct topic *t = read_topic(r);
    int32_t index = get32(r), size = get32(r);
    if (append(&t->partitions[index], (unsigned char *)r->at, size) < 0) die("forwarded batch");
    connections[fd]->to_confirm = sequence;
}

static void confirm(int fd, struct connection *c) {
    if (!c->to_confirm) return;
    unsigned char frame[12] = {0, 0, 0, 8};
    set64(frame + 4, c->to_confirm);
    c->to_confirm = 0;
    send_all(fd, frame, sizeof frame, 0);
}

/* Takes the other node's confirmation, and sends the answers that waited for it. */
static void confirmed(struct link *l, struct reader *r) {
    l->appended = get64(r);
    for (struct waiting *w; (w = next_replicated());) {
        if (connections[w->fd] && connections[w->fd]->generation == w->generation) send_all(w->fd, w->answer, w->size, 0);
        free(w->answer);
    }
}

static void list_offsets(struct reader *r) {
    get32(r);
    int32_t topic_total = get32(r);
    put32(topic_total);
    for (int32_t i = 0; i < topic_total; i++) {
        struct topic *t = read_topic(r);
        put_string(t->name);
        int32_t parts = get32(r);
        put32(parts);
        for (int32_t j = 0; j < parts; j++) {
            int32_t index = get32(r);
            int64_t timestamp = get64(r);
            put32(index);
            put16(0);
            put64(-1);
            put64(timestamp == -2 ? 0 : t->partitions[index].next_offset);
        }
    }
}

/* Sends its own answer: header bytes, then file ranges. */
static void fetch(int fd, struct reader *r, int version, int32_t correlation) {
    struct { struct partition *p; int64_t position, size; } ranges[1024];
    size_t header_end[1024];
    int count = 0;
    r->at += 12;
    int64_t left = get32(r), total = 0;
    r->at += version >= 7 ? 9 : 1; /* isolation, session */
    put32(0);
    put32(correlation);
    put32(0);
    if (version >= 7) { put16(0); put32(0); }
    int32_t topic_total = get32(r);
    put32(topic_total);
    for (int32_t i = 0; i < topic_total; i++) {
        struct topic *t = read_topic(r);
        put_string(t->name);
        int32_t parts = get32(r);
        put32(parts);
        for (int32_t j = 0; j < parts && count < 1024; j++) {
            int32_t index = get32(r);
            if (version >= 9) r->at += 4; /* leader epoch */
            int64_t offset = get64(r);
            if (version >= 5) r->at += 8; /* log start offset */
            int64_t most = get32(r);
            struct partition *p = &t->partitions[index];
            int64_t position = offset >= p->next_offset ? p->size : position_of(p, offset), size = p->size - position;
            if (size > most) size = most;
            if (size > left) size = left;
            left -= size;
            total += size;
            put32(index);
            put16(0);
            put64(p->next_offset);
            put64(p->next_offset);
            if (version >= 5) put64(0);
            put32(-1);
            put32((int32_t)size);
            ranges[count].p = p;
            ranges[count].position = position;
            ranges[count].size = size;
            header_end[count++] = answer_size;
        }
    }
    uint32_t length = htonl((uint32_t)(answer_size - 4 + (size_t)total));
    memcpy(answer, &length, 4);
    size_t from = 0;
    for (int i = 0; i < count; i++) {
        send_all(fd, answer + from, header_end[i] - from, MSG_MORE);
        send_file(fd, ranges[i].p->fd, ranges[i].position, ranges[i].size);
        from = header_end[i];
    }
    send_all(fd, answer + from, answer_size - from, 0);
}

static void handle(int fd, const unsigned char *frame, int32_t size) {
    struct reader r = {frame, frame + size};
    struct link *link = link_of(fd);
    if (link) { confirmed(link, &r); return; }
    int16_t api = get16(&r), version = get16(&r);
    int32_t correlation = get32(&r);
    skip_string(&r);
    answer_size = 0;
    if (api == 1) { fetch(fd, &r, version, correlation); return; }
    if (api == FORWARD_API) { append_forwarded(fd, &r); return; }
    put32(0);
    put32(correlation);
    int answered = ANSWER;
    if (api == 18) api_versions(version > 3 ? 0 : version);
    else if (api == 3) metadata(&r, version);
    else if (api == 0) answered = produce(&r, version);
    else if (api == 2) list_offsets(&r);
    else { fprintf(stderr, "api %d is not served\n", api); exit(1); }
    uint32_t length = htonl((uint32_t)(answer_size - 4));
    memcpy(answer, &length, 4);
    if (answered == ANSWER) send_all(fd, answer, answer_size, 0);
    else if (answered == ANSWER_WHEN_REPLICATED) wait_for_others(fd, connections[fd]->generation, answer, answer_size);
}

static int readable(int fd) {
    struct connection *c = connections[fd];
    if (c->room - c->used < 65536) { c->room *= 2; c->buffer = realloc(c->buffer, c->room); }
    ssize_t n = receive(fd, c->buffer + c->used, c->room - c->used);
    if (n < 0) return errno == EAGAIN;
    if (n == 0) return 0;
    c->used += (size_t)n;
    size_t at = 0;
    while (c->used - at >= 4) {
        struct reader r = {c->buffer + at, c->buffer + c->used};
        int32_t size = get32(&r);
        if (size < 0) return 0;
        if (c->used - at - 4 < (size_t)size) break;
        handle(fd, c->buffer + at + 4, size);
        at += 4 + (size_t)size;
    }
    memmove(c->buffer, c->buffer + at, c->used - at);
    c->used -= at;
    confirm(fd, c);
    return has_pending(fd) ? readable(fd) : 1;
}

static void add_connection(int fd) {
    struct connection *c = connections[fd] = calloc(1, sizeof *c);
    c->room = SLAB;
    c->buffer = malloc(c->room);
    c->generation = ++generations;
    open_session(fd);
}

int main(int argc, char **argv) {
    if (argc != 4 && argc != 6 && argc != 5 + NODES) {
        fprintf(stderr, "usage: ceiling PORT DATA_DIR PARTITIONS [NODE PORT PORT PORT | CERTIFICATE KEY]\n");
        return 2;
    }
    port = atoi(argv[1]);
    data_dir = argv[2];
    partition_count = atoi(argv[3]);
    if (partition_count < 1 || partition_count > MAX_PARTITIONS) return 2;
    if (argc == 6) use_certificate(argv[4], argv[5]);
    if (argc == 5 + NODES) {
        own_node = atoi(argv[4]);
        if (own_node < 0 || own_node >= NODES) return 2;
        for (int i = 0; i < NODES; i++) ports[i] = atoi(argv[5 + i]);
    }
    crc32c_variant = crc32c_prepare();
    mkdir(data_dir, 0700);
    int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1, epoll = epoll_create1(0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1024)) die("listen");
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    if (is_forwarding()) {
        dial_others(epoll);
        for (int i = 0; i < NODES; i++)
            if (i != own_node) add_connection(links[i].fd);
    }
    puts("ready");
    fflush(stdout);
    for (;;) {
        struct epoll_event events[64];
        int ready = epoll_wait(epoll, events, 64, -1);
        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) {
                int client = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
                if (client < 0 || client >= MAX_FDS) continue;
                setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
                add_connection(client);
                struct epoll_event added = {.events = EPOLLIN, .data.fd = client};
                epoll_ctl(epoll, EPOLL_CTL_ADD, client, &added);
            } else if (events[i].events != EPOLLOUT && !readable(fd)) {
                if (link_of(fd)) return 0; /* the cluster is being stopped */
                close_session(fd);
                free(connections[fd]->buffer);
                free(connections[fd]);
                connections[fd] = NULL;
                close(fd);
            }
        }
        if (is_forwarding()) flush_links(epoll);
    }
}
