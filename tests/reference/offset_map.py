"""Offset map in the obvious way: SipHash-2-4-128 word by word, and a dict."""

MASK = (1 << 64) - 1


def rotated(value, by):
    return (value << by | value >> (64 - by)) & MASK


def sip_rounds(v, count):
    for _ in range(count):
        v[0] = (v[0] + v[1]) & MASK
        v[1] = rotated(v[1], 13) ^ v[0]
        v[0] = rotated(v[0], 32)
        v[2] = (v[2] + v[3]) & MASK
        v[3] = rotated(v[3], 16) ^ v[2]
        v[0] = (v[0] + v[3]) & MASK
        v[3] = rotated(v[3], 21) ^ v[0]
        v[2] = (v[2] + v[1]) & MASK
        v[1] = rotated(v[1], 17) ^ v[2]
        v[2] = rotated(v[2], 32)


def siphash(secret, data):
    k0, k1 = int.from_bytes(secret[:8], "little"), int.from_bytes(secret[8:], "little")
    v = [int.from_bytes(word, "big") for word in (b"somepseu", b"dorandom", b"lygenera", b"tedbytes")]
    v = [v[0] ^ k0, v[1] ^ k1 ^ 0xEE, v[2] ^ k0, v[3] ^ k1]
    whole = len(data) // 8 * 8
    words = [int.from_bytes(data[at : at + 8], "little") for at in range(0, whole, 8)]
    words.append(int.from_bytes(data[whole:], "little") | (len(data) & 0xFF) << 56)
    for word in words:
        v[3] ^= word
        sip_rounds(v, 2)
        v[0] ^= word
    v[2] ^= 0xEE
    sip_rounds(v, 4)
    low = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    sip_rounds(v, 4)
    high = v[0] ^ v[1] ^ v[2] ^ v[3]
    return low.to_bytes(8, "little") + high.to_bytes(8, "little")


class OffsetMap:
    def __init__(self, max_entries):
        self.max_entries = max_entries
        self.offsets = {}
        self.latest_offset = -1

    def put(self, key, offset):
        if key not in self.offsets and len(self.offsets) >= self.max_entries:
            return False
        self.offsets[key] = offset
        self.latest_offset = max(self.latest_offset, offset)
        return True

    def get(self, key):
        return self.offsets.get(key, -1)
