"""CRC-32C (Castagnoli), the checksum of record batches since magic 2. Older formats use zlib's CRC-32."""
from libc.stdint cimport uint8_t, uint32_t


# Returns the checksum after `length` more bytes; `crc` is the checksum of the bytes before, 0 at the start. *Borrows*.
cdef uint32_t crc32c_update(uint32_t crc, const uint8_t *bytes, size_t length) noexcept nogil
