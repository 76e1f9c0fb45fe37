# cython: language_level=3
"""Message: the base class of the protocol's generated classes.

A generated class reads and writes its own fields; this base class converts between bytes and messages, compares and
prints. Structs within messages are Messages too, but only whole messages have `VERSIONS`. Not thread-safe.
"""
from kafkapy._core.bytes.wire cimport Reader, Writer

from kafkapy._core.bytes.wire import AbsentFieldError, EncodeError
from kafkapy.errors import ProtocolViolation

# The default of parameters whose value is a new empty list or struct.
EMPTY = object()
# Fields whose values `repr` hides: tokens of SASL, HMACs of delegation tokens, keys of SCRAM, forwarded requests.
_SECRET_FIELDS = frozenset({"auth_bytes", "hmac", "salted_password", "stored_key", "server_key", "request_data"})
_NO_FIELDS = frozenset()
# Values of configuration keys may be passwords.
_SECRET_FIELDS_BY_CLASS = {name: frozenset({"value"}) for name in ("AlterableConfig", "ConfigRecord")}


def absent(message, str field, int version):
    """Returns the AbsentFieldError to raise if `field` is set, but does not exist in `version` of the message."""
    return AbsentFieldError(f"{type(message).__qualname__} version {version} has no field {field}, which is set")


cdef class Message:
    """A protocol message, or a struct within one: plain fields without behaviour. The fields may be changed; the
    message belongs to its creator.

    Every generated class has

        read(cls, reader, version)       returns the message at the position of `reader`
        write(self, writer, version)     appends the message; raises EncodeError if this version cannot carry it
    """

    FIELDS = ()
    VERSIONS = range(0)
    API_KEY = -1

    @classmethod
    def decode(cls, buffer, int version, Py_ssize_t pos=0, end=None):
        """Returns the message that fills `buffer[pos:end]`.

        Raises ProtocolViolation if the bytes are not a message of this class and version.
        """
        if version not in cls.VERSIONS:
            raise ProtocolViolation(f"{cls.__qualname__} has no version {version}")
        cdef Reader reader = Reader(buffer, pos, end)
        message = cls.read(reader, version)
        reader.finish()
        return message

    def encode(self, int version):
        """Returns the message as bytes.

        Raises EncodeError (a ValueError) if this version cannot carry it: AbsentFieldError if the version lacks a field
        that is set.
        """
        cdef Writer writer = Writer()
        write_whole(self, writer, version)
        return writer.getvalue()

    def encode_chunks(self, int version, prefix=b""):
        """Returns `prefix` and the message as a list of chunks to send; large record bytes and file ranges are not
        copied.
        """
        cdef Writer writer = Writer()
        writer.write_raw(prefix)
        write_whole(self, writer, version)
        return writer.chunks()

    def __eq__(self, other):
        if type(self) is not type(other):
            return NotImplemented
        return all([getattr(self, name) == getattr(other, name) for name in self.FIELDS])

    def __repr__(self):
        """Returns the fields as text, without the values of secrets, because messages appear in errors and logs."""
        name = type(self).__qualname__
        hidden = _SECRET_FIELDS | _SECRET_FIELDS_BY_CLASS.get(name.rpartition(".")[2], _NO_FIELDS)
        fields = ", ".join([f"{each}={_shown(getattr(self, each), each in hidden)}" for each in self.FIELDS])
        return f"{name}({fields})"


def _shown(value, is_hidden):
    return "[hidden]" if is_hidden and value else repr(value)


cdef int write_whole(Message message, Writer writer, int version) except -1:
    if version not in message.VERSIONS:
        raise EncodeError(f"{type(message).__qualname__} has no version {version}")
    try:
        message.write(writer, version)
    except AbsentFieldError:
        raise
    except (AttributeError, EncodeError, OverflowError, TypeError, UnicodeEncodeError) as error:
        raise EncodeError(f"{type(message).__qualname__} version {version} cannot be written: {error}") from error
    return 0
