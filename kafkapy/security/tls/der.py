"""A reader and a writer of DER (X.690), as far as keys, certificates and PKCS #12 files need them.

The reader checks every length against the bytes that exist, accepts definite lengths only, and reads nested elements
only when its caller enters them. Its work is linear in the size of the input.
"""

from __future__ import annotations

from collections.abc import Iterable

BOOLEAN = 0x01
INTEGER_TAG = 0x02
BIT_STRING = 0x03
OCTET_STRING = 0x04
NULL = 0x05
OID = 0x06
UTF8_STRING = 0x0C
PRINTABLE_STRING = 0x13
T61_STRING = 0x14
IA5_STRING = 0x16
UTC_TIME = 0x17
GENERALIZED_TIME = 0x18
GENERAL_STRING = 0x1B
UNIVERSAL_STRING = 0x1C
BMP_STRING = 0x1E
SEQUENCE = 0x30
SET = 0x31

# The numbers of an OID that this module reads or writes are below 2^63.
_MOST_OID_NUMBER_BYTES = 9


class DerError(ValueError):
    """Bytes that are not the expected DER."""


def context(number: int) -> int:
    """Returns the tag of a constructed, context-specific element: `[number]`."""
    return 0xA0 | number


class DerReader:
    """A reader of the elements in `data[start:end]`, in order. Raises DerError for anything unexpected."""

    __slots__ = ("_data", "_end", "_position")

    def __init__(self, data: bytes, start: int = 0, end: int | None = None) -> None:
        self._data = data
        self._position = start
        self._end = len(data) if end is None else end

    @property
    def is_at_end(self) -> bool:
        return self._position >= self._end

    def tag(self) -> int:
        """Returns the tag of the next element, or -1 at the end."""
        return -1 if self.is_at_end else self._data[self._position]

    def enter(self, tag: int) -> DerReader:
        """Returns a reader of the content of the next element, which must have the tag `tag`, and moves to the element
        after it.
        """
        start, end = self._content(tag)
        self._position = end
        return DerReader(self._data, start, end)

    def read(self, tag: int) -> bytes:
        """Returns the content of the next element, which must have the tag `tag`, and moves to the element after it."""
        start, end = self._content(tag)
        self._position = end
        return self._data[start:end]

    def element(self) -> bytes:
        """Returns the bytes of the next element, including its tag and length, and moves past it."""
        before = self._position
        _, end = self._content(self.tag())
        self._position = end
        return self._data[before:end]

    def skip(self, tag: int) -> bool:
        """Moves past the next element if it has the tag `tag`; returns whether it has this tag."""
        if self.tag() != tag:
            return False
        self._position = self._content(tag)[1]
        return True

    def integer(self) -> int:
        content = self.read(INTEGER_TAG)
        if not content:
            raise DerError("an integer has no content")
        return int.from_bytes(content, "big", signed=True)

    def oid(self) -> str:
        """Returns the object identifier that is the next element, in dotted form, and moves past it."""
        return oid_text(self.read(OID))

    def bit_string(self) -> bytes:
        """Returns the bytes of the bit string that is the next element, and moves past it.

        Raises DerError if the number of bits is not a multiple of 8.
        """
        content = self.read(BIT_STRING)
        if content[:1] != b"\0":
            raise DerError("a bit string has unused bits")
        return content[1:]

    def _content(self, tag: int) -> tuple[int, int]:
        data, position = self._data, self._position
        if position + 2 > self._end:
            raise DerError("the data end within an element")
        if data[position] != tag:
            raise DerError(f"there is an element with tag 0x{data[position]:02x} where 0x{tag:02x} is expected")
        if tag & 0x1F == 0x1F:
            raise DerError("tags of several bytes are not supported")
        length = data[position + 1]
        position += 2
        if length >= 0x80:
            count = length & 0x7F
            if count == 0:
                raise DerError("the data have indefinite lengths (BER), which are not supported")
            if count > 4 or position + count > self._end:
                raise DerError("the data end within an element")
            length = int.from_bytes(data[position : position + count], "big")
            position += count
        if length > self._end - position:
            raise DerError("the data end within an element")
        return position, position + length


def oid_text(content: bytes) -> str:
    """Returns the dotted form of an object identifier's content."""
    numbers: list[int] = []
    number = length = 0
    for each in content:
        number = number << 7 | each & 0x7F
        length += 1
        if length > _MOST_OID_NUMBER_BYTES:
            raise DerError("an object identifier has a number that is too large")
        if each < 0x80:
            numbers.append(number)
            number = length = 0
    if not numbers or length:
        raise DerError("an object identifier is incomplete")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def element(tag: int, *contents: bytes) -> bytes:
    """Returns an element whose content is the concatenation of `contents`."""
    content = b"".join(contents)
    length = len(content)
    if length < 0x80:
        return bytes((tag, length)) + content
    size = (length.bit_length() + 7) // 8
    return bytes((tag, 0x80 | size)) + length.to_bytes(size, "big") + content


def sequence(*contents: bytes) -> bytes:
    return element(SEQUENCE, *contents)


def integer(value: int) -> bytes:
    return element(INTEGER_TAG, value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))


def oid(text: str) -> bytes:
    """Returns the element of an object identifier in dotted form."""
    first, second, *others = map(int, text.split("."))
    return element(OID, b"".join(map(_base_128, (40 * first + second, *others))))


def _base_128(number: int) -> bytes:
    groups = [number & 0x7F]
    while number := number >> 7:
        groups.append(0x80 | number & 0x7F)
    return bytes(reversed(groups))


def bit_string(content: bytes, unused_bits: int = 0) -> bytes:
    return element(BIT_STRING, bytes((unused_bits,)), content)


def set_of(elements: Iterable[bytes]) -> bytes:
    """Returns a SET OF with its elements in sorted order, as DER requires."""
    return element(SET, *sorted(elements))
