"""CRC-32C one byte at a time, from the definition one bit at a time: the oracle for _core.crc32c."""

POLYNOMIAL = 0x82F63B78


def of_byte(state: int) -> int:
    for _ in range(8):
        state = (state >> 1) ^ (POLYNOMIAL if state & 1 else 0)
    return state


OF_BYTE = [of_byte(byte) for byte in range(256)]


def crc32c(data: bytes, crc: int = 0) -> int:
    state = crc ^ 0xFFFFFFFF
    for byte in data:
        state = (state >> 8) ^ OF_BYTE[(state ^ byte) & 0xFF]
    return state ^ 0xFFFFFFFF
