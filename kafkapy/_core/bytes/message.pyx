# cython: language_level=3
"""Message: what the generated classes of the protocol have in common.

A generated class knows its fields and writes them straight; this base turns bytes into messages and back, compares and
prints. Structs within messages are Messages too, but only whole messages name their `VERSIONS`. Not thread-safe.
"""
from kafkapy._core.bytes.wire cimport Reader, Writer

from kafkapy._core.bytes.wire import EncodeError
from kafkapy.errors import ProtocolViolation

# Stands for "not given" where the default is a new empty list or struct.
EMPTY = object()


def absent(message, str field, int version):
    """The error for a value that `version` of the message has no place for."""
    return EncodeError(f"{type(message).__qualname__} version {version} has no field {field}, which is set")


cdef class Message:
    """A protocol message or a struct of one: plain fields, no behaviour. Mutable, owned by whoever made it.

    Every class of messages has, generated,

        read(cls, reader, version)       the message that begins where `reader` stands
        write(self, writer, version)     appends it to what `writer` has; EncodeError if this version cannot carry it
    """

    FIELDS = ()
    VERSIONS = range(0)
    API_KEY = -1

    @classmethod
    def decode(cls, buffer, int version, Py_ssize_t pos=0, end=None):
        """The message in `buffer[pos:end]`, all of it. ProtocolViolation if the bytes are not one."""
        if version not in cls.VERSIONS:
            raise ProtocolViolation(f"{cls.__qualname__} has no version {version}")
        cdef Reader reader = Reader(buffer, pos, end)
        message = cls.read(reader, version)
        reader.finish()
        return message

    def encode(self, int version):
        """The message as bytes. EncodeError (a ValueError) if this version cannot carry it."""
        cdef Writer writer = Writer()
        write_whole(self, writer, version)
        return writer.getvalue()

    def encode_chunks(self, int version, prefix=b""):
        """`prefix` and the message in pieces to send; large record bytes and file ranges stay what they are."""
        cdef Writer writer = Writer()
        writer.write_raw(prefix)
        write_whole(self, writer, version)
        return writer.chunks()

    def __eq__(self, other):
        if type(self) is not type(other):
            return NotImplemented
        return all([getattr(self, name) == getattr(other, name) for name in self.FIELDS])

    def __repr__(self):
        fields = ", ".join([f"{name}={getattr(self, name)!r}" for name in self.FIELDS])
        return f"{type(self).__qualname__}({fields})"


cdef int write_whole(Message message, Writer writer, int version) except -1:
    if version not in message.VERSIONS:
        raise EncodeError(f"{type(message).__qualname__} has no version {version}")
    try:
        message.write(writer, version)
    except (EncodeError, OverflowError, TypeError, UnicodeEncodeError) as error:
        raise EncodeError(f"{type(message).__qualname__} version {version} cannot be written: {error}") from error
    return 0
