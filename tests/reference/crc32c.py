"""CRC-32C one bit at a time: the oracle for _core.crc32c."""

POLYNOMIAL = 0x82F63B78


def crc32c(data: bytes, crc: int = 0) -> int:
    state = crc ^ 0xFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = (state >> 1) ^ (POLYNOMIAL if state & 1 else 0)
    return state ^ 0xFFFFFFFF
