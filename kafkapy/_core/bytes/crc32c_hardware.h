/* CRC-32C in three speeds; all give the same value. crc is the finished value of the bytes before, 0 at the start. */
#ifndef KAFKAPY_CRC32C_HARDWARE_H
#define KAFKAPY_CRC32C_HARDWARE_H

#include <stddef.h>
#include <stdint.h>

enum crc32c_variant {
    CRC32C_TABLE = 0,         /* eight lookups per 8 bytes; any machine */
    CRC32C_ONE_STREAM = 1,    /* the processor's instruction, one dependent chain */
    CRC32C_THREE_STREAMS = 2  /* three chains at once, joined by a carry-less multiplication */
};

/* Prepares the tables; call once before anything else, not from two threads. Returns the fastest variant here. */
int crc32c_prepare(void);
uint32_t crc32c_by(int variant, uint32_t crc, const uint8_t *bytes, size_t length);

#endif
