/* What the load programs share: the clock, big-endian writing, record batches of one record, dialling, percentiles. */
#ifndef BENCH_LOAD_WIRE_H
#define BENCH_LOAD_WIRE_H
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>

static inline void die(const char *what) { perror(what); exit(1); }

static inline int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static inline uint32_t crc32c(const unsigned char *data, size_t size) {
    uint32_t crc = ~0u;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (0x82f63b78u & -(crc & 1));
    }
    return ~crc;
}

/* A growing frame; big-endian. */
struct writer { unsigned char *at; size_t size; };
static inline void put(struct writer *w, const void *data, size_t size) { memcpy(w->at + w->size, data, size); w->size += size; }
static inline void put8(struct writer *w, int8_t v) { put(w, &v, 1); }
static inline void put16(struct writer *w, int16_t v) { uint16_t raw = htons((uint16_t)v); put(w, &raw, 2); }
static inline void put32(struct writer *w, int32_t v) { uint32_t raw = htonl((uint32_t)v); put(w, &raw, 4); }
static inline void put64(struct writer *w, int64_t v) { put32(w, (int32_t)(v >> 32)); put32(w, (int32_t)v); }
static inline void put_string(struct writer *w, const char *s) { put16(w, (int16_t)strlen(s)); put(w, s, strlen(s)); }
static inline void put_varint(struct writer *w, int32_t v) {
    uint32_t raw = ((uint32_t)v << 1) ^ (uint32_t)(v >> 31);
    for (; raw >= 0x80; raw >>= 7) put8(w, (int8_t)(raw | 0x80));
    put8(w, (int8_t)raw);
}
static inline void set32(unsigned char *at, int32_t v) { uint32_t raw = htonl((uint32_t)v); memcpy(at, &raw, 4); }
static inline int32_t get32(const unsigned char *at) { uint32_t raw; memcpy(&raw, at, 4); return (int32_t)ntohl(raw); }

static inline int64_t get64(const unsigned char *at) { return (int64_t)get32(at) << 32 | (uint32_t)get32(at + 4); }

static inline int varint_size(int32_t v) {
    uint32_t raw = ((uint32_t)v << 1) ^ (uint32_t)(v >> 31);
    int size = 1;
    for (; raw >= 0x80; raw >>= 7) size++;
    return size;
}

/* One record batch of magic 2 with one record of `value_bytes`, no key, no headers. */
static inline void put_batch(struct writer *w, const unsigned char *value, int value_bytes) {
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
    put(w, value, (size_t)value_bytes);
    put_varint(w, 0);
    set32(w->at + start + 8, (int32_t)(w->size - start - 12));
    set32(w->at + crc_from - 4, (int32_t)crc32c(w->at + crc_from, w->size - crc_from));
}

static inline int compare_floats(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

static inline int dial(const char *host, const char *port) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_INET}, *found;
    if (getaddrinfo(host, port, &hints, &found)) die("getaddrinfo");
    int fd = socket(found->ai_family, SOCK_STREAM, 0), on = 1;
    if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen)) die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    freeaddrinfo(found);
    return fd;
}

static inline void arm(int timer, int64_t at_ns) {
    struct itimerspec when = {.it_value = {at_ns / 1000000000LL, at_ns % 1000000000LL}};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
}

/* The quantile of sorted samples; 0 when there are none. */
static inline float quantile(const float *samples, int64_t count, double q) {
    return count ? samples[(int64_t)((double)(count - 1) * q)] : 0;
}

static inline void print_latencies(float *samples, int64_t count) {
    qsort(samples, (size_t)count, sizeof(float), compare_floats);
    printf("\"p50_us\": %.0f, \"p99_us\": %.0f, \"p999_us\": %.0f, \"max_us\": %.0f}\n", quantile(samples, count, 0.5),
           quantile(samples, count, 0.99), quantile(samples, count, 0.999), quantile(samples, count, 1.0));
}
#endif
