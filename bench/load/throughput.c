/* Throughput of one librdkafka client, as fast as it goes.
 *
 *   throughput produce BOOTSTRAP TOPIC MESSAGES BYTES [key=value ...]
 *   throughput consume BOOTSTRAP TOPIC MESSAGES PARTITIONS [key=value ...]
 *   throughput group BOOTSTRAP TOPIC SECONDS GROUP [key=value ...]
 *
 * `produce` counts acknowledged messages, `consume` reads each partition from its beginning, `group` subscribes as a member of
 * GROUP and reads what comes. key=value are librdkafka's own settings, and of `produce` bench.keys (as many different keys;
 * 0: none) and bench.rate (messages a second; 0: no limit). Values are compressible text, as JSON would be. Prints one line of
 * JSON; fails if a message was not delivered.
 */
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static long delivered, failed, keys, rate;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die(const char *what) { fprintf(stderr, "%s\n", what); exit(1); }

static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
    (void)client;
    (void)opaque;
    if (message->err) failed++;
    else delivered++;
}

static rd_kafka_conf_t *configuration(int argc, char **argv, int first, const char *bootstrap) {
    char error[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap, NULL, 0);
    for (int i = first; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (!value) die("settings are key=value");
        *value++ = 0;
        if (strcmp(argv[i], "bench.keys") == 0) keys = atol(value);
        else if (strcmp(argv[i], "bench.rate") == 0) rate = atol(value);
        else if (rd_kafka_conf_set(conf, argv[i], value, error, sizeof error) != RD_KAFKA_CONF_OK) die(error);
    }
    return conf;
}

static void fill(char *value, size_t size, unsigned seed) {
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    for (size_t i = 0; i < size; i++) {
        seed = seed * 1103515245u + 12345u;
        value[i] = i % 4 ? "{\"term\":"[i % 8] : alphabet[(seed >> 16) % 36];
    }
}

/* Waits until the client is connected and knows where the topic is: that is not what is measured. */
static void know_leaders(rd_kafka_t *client, rd_kafka_topic_t *topic) {
    const struct rd_kafka_metadata *metadata;
    if (rd_kafka_metadata(client, 0, topic, &metadata, 30000)) die("no metadata");
    rd_kafka_metadata_destroy(metadata);
}

static void produce(int argc, char **argv) {
    long messages = atol(argv[4]);
    size_t size = (size_t)atol(argv[5]);
    enum { VARIANTS = 512 };
    char error[512], *values = malloc(VARIANTS * size);
    for (unsigned i = 0; i < VARIANTS; i++) fill(values + i * size, size, i);
    rd_kafka_conf_t *conf = configuration(argc, argv, 6, argv[2]);
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rd_kafka_t *client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error, sizeof error);
    if (!client) die(error);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, argv[3], NULL);
    know_leaders(client, topic);
    double start = now();
    for (long i = 0; i < messages; i++) {
        char key[32];
        size_t key_size = keys ? (size_t)snprintf(key, sizeof key, "key-%ld", i * 7919 % keys) : 0;
        while (rate && now() - start < (double)i / (double)rate) rd_kafka_poll(client, 1);
        while (rd_kafka_produce(topic, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, values + (i % VARIANTS) * size, size,
                                keys ? key : NULL, key_size, NULL)) {
            if (rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL) die(rd_kafka_err2str(rd_kafka_last_error()));
            rd_kafka_poll(client, 10);
        }
        if (i % 1000 == 0) rd_kafka_poll(client, 0);
    }
    rd_kafka_flush(client, 120000);
    double took = now() - start;
    printf("{\"messages\": %ld, \"failed\": %ld, \"seconds\": %.3f, \"per_second\": %.0f, \"mb_per_second\": %.1f}\n", delivered,
           messages - delivered, took, (double)delivered / took, (double)delivered * (double)size / took / 1e6);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(client);
    if (failed || delivered != messages) exit(1);
}

static void consume(int argc, char **argv) {
    long messages = atol(argv[4]), bytes = 0, seen = 0;
    int partitions = atoi(argv[5]);
    enum { BATCH = 4096 };
    char error[512];
    rd_kafka_conf_t *conf = configuration(argc, argv, 6, argv[2]);
    rd_kafka_t *client = rd_kafka_new(RD_KAFKA_CONSUMER, conf, error, sizeof error);
    if (!client) die(error);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, argv[3], NULL);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_message_t **batch = malloc(sizeof *batch * BATCH);
    know_leaders(client, topic);
    double start = now(), last_arrival = start;
    for (int p = 0; p < partitions; p++)
        if (rd_kafka_consume_start_queue(topic, p, RD_KAFKA_OFFSET_BEGINNING, queue)) die("consume_start");
    while (seen < messages) {
        /* It waits for as many as it is asked for: more than will come cost the whole timeout. */
        size_t wanted = messages - seen < BATCH ? (size_t)(messages - seen) : BATCH;
        ssize_t n = rd_kafka_consume_batch_queue(queue, 1000, batch, wanted);
        for (ssize_t i = 0; i < n; i++) {
            if (!batch[i]->err) { seen++; bytes += (long)batch[i]->len; }
            rd_kafka_message_destroy(batch[i]);
        }
        if (n > 0) last_arrival = now();
        if (now() - last_arrival > 30) die("no message for 30 s");
    }
    double took = now() - start;
    printf("{\"messages\": %ld, \"failed\": 0, \"seconds\": %.3f, \"per_second\": %.0f, \"mb_per_second\": %.1f}\n", seen, took,
           (double)seen / took, (double)bytes / took / 1e6);
    fflush(stdout);
    _exit(0); /* tearing down a client with a full queue takes longer than the measurement */
}

static void group(int argc, char **argv) {
    double seconds = atof(argv[4]);
    long seen = 0, bytes = 0;
    char error[512];
    rd_kafka_conf_t *conf = configuration(argc, argv, 6, argv[2]);
    rd_kafka_conf_set(conf, "group.id", argv[5], error, sizeof error);
    rd_kafka_t *client = rd_kafka_new(RD_KAFKA_CONSUMER, conf, error, sizeof error);
    if (!client) die(error);
    rd_kafka_poll_set_consumer(client);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, argv[3], RD_KAFKA_PARTITION_UA);
    if (rd_kafka_subscribe(client, topics)) die("subscribe");
    double start = now();
    while (now() - start < seconds) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(client, 100);
        if (!message) continue;
        if (!message->err) { seen++; bytes += (long)message->len; }
        rd_kafka_message_destroy(message);
    }
    double took = now() - start;
    rd_kafka_consumer_close(client);
    printf("{\"messages\": %ld, \"failed\": 0, \"seconds\": %.3f, \"per_second\": %.0f, \"mb_per_second\": %.1f}\n", seen, took,
           (double)seen / took, (double)bytes / took / 1e6);
}

int main(int argc, char **argv) {
    if (argc >= 6 && strcmp(argv[1], "produce") == 0) produce(argc, argv);
    else if (argc >= 6 && strcmp(argv[1], "consume") == 0) consume(argc, argv);
    else if (argc >= 6 && strcmp(argv[1], "group") == 0) group(argc, argv);
    else {
        fprintf(stderr, "usage: throughput produce BOOTSTRAP TOPIC MESSAGES BYTES [key=value ...]\n"
                        "       throughput consume BOOTSTRAP TOPIC MESSAGES PARTITIONS [key=value ...]\n"
                        "       throughput group BOOTSTRAP TOPIC SECONDS GROUP [key=value ...]\n");
        return 2;
    }
    return 0;
}
