/* CRC-32C (Castagnoli), bit-reflected: by table, by the processor's instruction (SSE4.2 on x86-64, the CRC32 extension
 * on aarch64), and by three interleaved streams of it.
 *
 * The instruction takes 2 or 3 cycles and a new one can start each cycle, so one chain uses a part of the unit. Three
 * equal lanes A | B | C are run side by side, and joined by shifting A over B and C, and B over C:
 *
 *     crc(A B C) = crc(A) * x^(8 * 2 * lane) + crc(B) * x^(8 * lane) + crc(C)      over GF(2), modulo the polynomial
 *
 * A shift is one carry-less multiplication by a constant, which leaves 63 bits, and one crc32 instruction of 8 bytes,
 * which reduces them and shifts by 32 bits more. A reflected product is one bit short of 64, so the constant for a
 * shift of n bits is x^(n - 33).
 */
#include "crc32c_hardware.h"

#include <string.h>

#define POLYNOMIAL 0x82f63b78u  /* reflected: bit 31 is x^0 */

#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_CRC32_INSTRUCTION 1
#include <immintrin.h>
#define WITH_CRC32 __attribute__((target("sse4.2")))
#define WITH_PRODUCT __attribute__((target("sse4.2,pclmul")))
#elif defined(__aarch64__) && defined(__linux__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define HAVE_CRC32_INSTRUCTION 1
#include <arm_acle.h>
#include <arm_neon.h>
#include <sys/auxv.h>
#define WITH_CRC32 __attribute__((target("+crc")))
#define WITH_PRODUCT __attribute__((target("+crc+crypto")))
#define KERNEL_SAYS_PMULL (1ul << 4)   /* HWCAP_PMULL and HWCAP_CRC32 of Linux's asm/hwcap.h */
#define KERNEL_SAYS_CRC32 (1ul << 7)
#endif

static uint32_t table[8][256];

static void fill_table(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? (crc >> 1) ^ POLYNOMIAL : crc >> 1;
        table[0][byte] = crc;
    }
    for (int row = 1; row < 8; row++)
        for (uint32_t byte = 0; byte < 256; byte++)
            table[row][byte] = (table[row - 1][byte] >> 8) ^ table[0][table[row - 1][byte] & 0xff];
}

/* The state between bytes is the complement of the finished value; the functions below work on the state. */
static uint32_t update_by_table(uint32_t state, const uint8_t *bytes, size_t length)
{
    while (length >= 8) {
        uint32_t low = state ^ ((uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
                                (uint32_t)bytes[3] << 24);
        state = table[7][low & 0xff] ^ table[6][low >> 8 & 0xff] ^ table[5][low >> 16 & 0xff] ^ table[4][low >> 24] ^
                table[3][bytes[4]] ^ table[2][bytes[5]] ^ table[1][bytes[6]] ^ table[0][bytes[7]];
        bytes += 8;
        length -= 8;
    }
    while (length--)
        state = (state >> 8) ^ table[0][(state ^ *bytes++) & 0xff];
    return state;
}

#ifdef HAVE_CRC32_INSTRUCTION

#define LONG_LANE 2048   /* bytes; a multiple of 8 */
#define SHORT_LANE 128

struct lane_shift {
    uint32_t over_one;   /* x^(8 * lane - 33) */
    uint32_t over_two;   /* x^(16 * lane - 33) */
};

static struct lane_shift long_shift, short_shift;

/* x^power modulo the polynomial, reflected. */
static uint32_t power_of_x(uint32_t power)
{
    uint32_t value = 0x80000000u;
    while (power--)
        value = value & 1 ? (value >> 1) ^ POLYNOMIAL : value >> 1;
    return value;
}

static struct lane_shift shift_for(uint32_t lane)
{
    struct lane_shift shift = {power_of_x(8 * lane - 33), power_of_x(16 * lane - 33)};
    return shift;
}

static inline uint64_t load(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, 8);
    return word;
}

#ifdef __x86_64__

WITH_CRC32 static inline uint64_t add_word(uint64_t state, uint64_t word)
{
    return _mm_crc32_u64(state, word);
}

WITH_CRC32 static inline uint32_t add_byte(uint32_t state, uint8_t byte)
{
    return _mm_crc32_u8(state, byte);
}

/* The lower half of the carry-less product. */
WITH_PRODUCT static inline uint64_t shifted(uint64_t state, uint32_t constant)
{
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)state), _mm_cvtsi64_si128((long long)constant),
                                           0);
    return (uint64_t)_mm_cvtsi128_si64(product);
}

static int fastest_variant(void)
{
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("sse4.2"))
        return CRC32C_TABLE;
    return __builtin_cpu_supports("pclmul") ? CRC32C_THREE_STREAMS : CRC32C_ONE_STREAM;
}

#else

WITH_CRC32 static inline uint64_t add_word(uint64_t state, uint64_t word)
{
    return __crc32cd((uint32_t)state, word);
}

WITH_CRC32 static inline uint32_t add_byte(uint32_t state, uint8_t byte)
{
    return __crc32cb(state, byte);
}

/* The lower half of the carry-less product. */
WITH_PRODUCT static inline uint64_t shifted(uint64_t state, uint32_t constant)
{
    return vgetq_lane_u64(vreinterpretq_u64_p128(vmull_p64((poly64_t)state, (poly64_t)constant)), 0);
}

static int fastest_variant(void)
{
    unsigned long capabilities = getauxval(AT_HWCAP);
    if (!(capabilities & KERNEL_SAYS_CRC32))
        return CRC32C_TABLE;
    return capabilities & KERNEL_SAYS_PMULL ? CRC32C_THREE_STREAMS : CRC32C_ONE_STREAM;
}

#endif

WITH_CRC32 static uint32_t update_by_instruction(uint32_t state, const uint8_t *bytes, size_t length)
{
    uint64_t wide = state;
    while (length >= 8) {
        wide = add_word(wide, load(bytes));
        bytes += 8;
        length -= 8;
    }
    state = (uint32_t)wide;
    while (length--)
        state = add_byte(state, *bytes++);
    return state;
}

/* One round over three lanes. */
WITH_PRODUCT
static inline uint64_t update_lanes(uint64_t state, const uint8_t *bytes, size_t lane, const struct lane_shift *shift)
{
    uint64_t first = state, second = 0, third = 0;
    for (size_t at = 0; at < lane; at += 8) {
        first = add_word(first, load(bytes + at));
        second = add_word(second, load(bytes + lane + at));
        third = add_word(third, load(bytes + 2 * lane + at));
    }
    return add_word(0, shifted(first, shift->over_two) ^ shifted(second, shift->over_one)) ^ third;
}

WITH_PRODUCT static uint32_t update_by_three_streams(uint32_t state, const uint8_t *bytes, size_t length)
{
    uint64_t wide = state;
    while (length >= 3 * LONG_LANE) {
        wide = update_lanes(wide, bytes, LONG_LANE, &long_shift);
        bytes += 3 * LONG_LANE;
        length -= 3 * LONG_LANE;
    }
    while (length >= 3 * SHORT_LANE) {
        wide = update_lanes(wide, bytes, SHORT_LANE, &short_shift);
        bytes += 3 * SHORT_LANE;
        length -= 3 * SHORT_LANE;
    }
    return update_by_instruction((uint32_t)wide, bytes, length);
}

#endif

int crc32c_prepare(void)
{
    fill_table();
#ifdef HAVE_CRC32_INSTRUCTION
    long_shift = shift_for(LONG_LANE);
    short_shift = shift_for(SHORT_LANE);
    return fastest_variant();
#else
    return CRC32C_TABLE;
#endif
}

uint32_t crc32c_by(int variant, uint32_t crc, const uint8_t *bytes, size_t length)
{
    uint32_t state = ~crc;
#ifdef HAVE_CRC32_INSTRUCTION
    if (variant == CRC32C_THREE_STREAMS)
        return ~update_by_three_streams(state, bytes, length);
    if (variant == CRC32C_ONE_STREAM)
        return ~update_by_instruction(state, bytes, length);
#else
    (void)variant;
#endif
    return ~update_by_table(state, bytes, length);
}
