"""Writes a message as a Cython extension type, with a stub for Python's type checker.

Part of the generator: standard library only. The classes have the same attributes and methods as the Python classes of
`generator_classes.py`, but numbers are C fields, and structs read and write each other without Python calls. Extension
types cannot be nested. The class of a nested struct therefore precedes the message's class, its name begins with the
name of the message's class, and it is an attribute of the message's class.
"""

from kafkapy.protocol.generator_classes import ClassWriter
from kafkapy.protocol.generator_notation import Field, Message, Struct

C_TYPES = {
    "bool": "bint", "int8": "int8_t", "int16": "int16_t", "uint16": "uint16_t", "int32": "int32_t",
    "uint32": "uint32_t", "int64": "int64_t", "float64": "double", "string": "str",
}  # fmt: skip


class CompiledClassWriter(ClassWriter):
    """Writes a message as Cython extension types, whose source code it collects in `lines`."""

    def write(self) -> list[str]:
        for struct in [*self.message.structs.values(), self.message.root]:
            self.line("@cython.final")
            self.line(f"cdef class {self.class_name(struct)}(Message):")
            self.depth += 1
            if struct is self.message.root:
                self.write_docstring()
                self.write_constants()
                for nested in self.message.structs.values():
                    self.line(f"{nested.name} = {self.class_name(nested)}")
            self.write_body(struct)
            self.depth -= 1
            self.line()
        return self.lines

    def write_body(self, struct: Struct) -> None:
        self.line(f"FIELDS = {self.field_names(struct)}")
        for field in struct.fields:
            self.line(f"cdef public {self.c_type(field)} {field.attribute}")
        self.line("cdef public object unknown_tagged_fields")
        self.line()
        self.write_constructor(struct)
        self.write_reader(struct)
        self.write_writer(struct)
        if any(field.struct is struct and field.tagged and not field.is_array for field in self.all_fields()):
            self.write_is_default(struct)

    def c_type(self, field: Field) -> str:
        if field.is_array:
            return "object"
        return self.class_name(field.struct) if field.struct else C_TYPES.get(field.type, "object")

    def class_name(self, struct: Struct) -> str:
        return struct.name if struct is self.message.root else f"{self.message.name}{struct.name}"

    def annotated(self, field: Field) -> str:
        c_type = "object" if field.struct else self.c_type(field)
        return f"{c_type} {field.attribute}"

    def signature_end(self) -> str:
        return "object unknown_tagged_fields=()"

    def write_constructor(self, struct: Struct) -> None:
        super().write_constructor(struct)
        start = next(i for i in range(len(self.lines) - 1, -1, -1) if self.lines[i].endswith("def __init__("))
        self.lines[start:] = [line.replace(") -> None:", "):") for line in self.lines[start:]]

    def write_reader_head(self, struct: Struct) -> None:
        name = self.class_name(struct)
        self.line("@classmethod")
        self.line("def read(cls, Reader reader, int version):")
        self.line(f"    return {self.read_struct(struct)}")
        self.line()
        self.line(f"cdef {name} fill(self, Reader reader, int version):")
        self.depth += 1
        self.line("cdef Py_ssize_t count")
        self.line("cdef bint flexible")

    def write_writer_head(self, struct: Struct) -> None:
        self.line("def write(self, Writer writer, int version):")
        self.line("    self.put(writer, version)")
        self.line()
        self.line("cdef int put(self, Writer writer, int version) except -1:")
        self.depth += 1
        self.line("cdef Py_ssize_t index, mark")
        self.line("cdef bint flexible" + "".join(f", has_{f.tag}" for f in struct.fields if f.tagged))

    def write_writer(self, struct: Struct) -> None:
        super().write_writer(struct)
        self.line("    return 0")
        self.line()

    def write_tags_head(self, struct: Struct) -> None:
        self.line("cdef int _read_tags(self, Reader reader, int version, Py_ssize_t count) except -1:")
        self.depth += 1
        self.line("cdef uint32_t tag")
        self.line("cdef Py_ssize_t end")
        self.line("cdef list unknown = []")

    def write_is_default_head(self, struct: Struct) -> None:
        self.line("cdef bint is_default(self) except -1:")
        self.depth += 1

    def read_struct(self, struct: Struct) -> str:
        name = self.class_name(struct)
        return f"(<{name}>{name}.__new__({name})).fill(reader, version)"

    def write_struct(self, struct: Struct, value: str) -> str:
        return f"(<{self.class_name(struct)}?>{value}).put(writer, version)"

    def struct_is_default(self, struct: Struct, value: str) -> str:
        return f"(<{self.class_name(struct)}?>{value}).is_default()"


class StubWriter(ClassWriter):
    """Writes the stub (`.pyi`) of a message that is compiled as an extension type."""

    def write_class(self, name: str) -> None:
        self.line("@final")
        super().write_class(name)

    def write_body(self, struct: Struct) -> None:
        for field in struct.fields:
            self.line(f"{field.attribute}: {self.annotation(field)}")
        self.line("unknown_tagged_fields: tuple[tuple[int, bytes], ...]")
        self.line("def __init__(")
        self.line("    self,")
        self.line("    *,")
        for field in struct.fields:
            self.line(f"    {field.attribute}: {self.annotation(field)} = ...,")
        self.line(f"    {self.signature_end().replace('= ()', '= ...')},")
        self.line(") -> None: ...")


def compiled_lines(message: Message) -> list[str]:
    return CompiledClassWriter(message).write()


def stub_lines(message: Message) -> list[str]:
    return StubWriter(message).write()
