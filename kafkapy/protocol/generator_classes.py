"""Writes a message as a Python class: `__slots__`, a constructor with Kafka's defaults, `read` and `write`.

Part of the generator: standard library only. The generated code is plain: one statement per field in the order of the
wire, a condition on `version` where versions differ, and no table at run time. `CompiledClassWriter` in
`generator_compiled.py` overrides what differs in Cython.
"""

from collections.abc import Iterator

from kafkapy.protocol.generator_notation import DefinitionError, Field, Message, Struct, Versions, snake_case

ANNOTATIONS = {
    "bool": "bool", "int8": "int", "int16": "int", "uint16": "int", "int32": "int", "uint32": "int", "int64": "int",
    "float64": "float", "string": "str", "bytes": "bytes", "records": "Any", "uuid": "bytes",
}  # fmt: skip
ZERO_DEFAULTS = {"bool": "False", "float64": "0.0", "string": '""', "bytes": 'b""', "uuid": "ZERO_UUID"}
# Kinds of messages that are stored in records: tools show them as JSON, by the names of the definitions. The values are
# the beginnings of their docstrings.
KINDS_IN_RECORDS = {
    "metadata": "The fields of a record of the metadata log",
    "coordinator-key": "The key of a coordinator's record of type {key}",
    "coordinator-value": "The value of a coordinator's record of type {key}",
    "data": "The fields of data that are stored with their version number in front,",
}
# Types with a length, whose encoding differs between plain and compact versions.
SIZED = frozenset(["string", "bytes", "records"])
ARRAYS_IN_ONE_CALL = frozenset(["int8", "int16", "int32", "int64", "uuid", "string"])


def condition(wanted: Versions, given: Versions) -> str:
    """Returns a Python expression that is true if the variable `version` of the generated code is in `wanted`.

    `given` are the versions that `version` can have at this point of the generated code. If all of them are in
    `wanted`, no condition is needed, and the result is "".
    """
    if wanted >= given:
        return ""
    low, high = min(wanted), max(wanted)
    if frozenset(v for v in given if low <= v <= high) != wanted:
        return f"version in {tuple(sorted(wanted))}"
    if high == max(given):
        return f"version >= {low}"
    if low == high:
        return f"version == {low}"
    if low == min(given):
        return f"version <= {high}"
    return f"{low} <= version <= {high}"


class ClassWriter:
    """Writes the classes of one message. The source code is collected in `lines`."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self.lines: list[str] = []
        self.depth = 0

    # -- lines

    def line(self, text: str = "") -> None:
        self.lines.append("    " * self.depth + text if text else "")

    def write(self) -> list[str]:
        """Writes the classes and returns their lines; the classes of nested structs are in the body of the message's
        class."""
        self.write_class(self.message.name)
        self.depth += 1
        self.write_docstring()
        self.write_constants()
        for struct in self.message.structs.values():
            self.line()
            self.write_class(struct.name)
            self.depth += 1
            self.write_body(struct)
            self.depth -= 1
        self.line()
        self.write_body(self.message.root)
        self.depth -= 1
        return self.lines

    def write_class(self, name: str) -> None:
        self.line(f"class {name}(Message):")

    def write_docstring(self) -> None:
        versions = sorted(self.message.versions)
        span = f" in version {versions[0]}" if len(versions) == 1 else f" in versions {versions[0]} to {versions[-1]}"
        if self.message.flexible:
            is_always = self.message.flexible >= self.message.versions
            span += "; flexible (KIP-482)" + ("" if is_always else f" from version {self.message.first_flexible} on")
        kind = self.message.kind
        subject = KINDS_IN_RECORDS.get(kind, f"The fields of a {kind}").format(key=self.message.key)
        self.line(f'"""{subject}{"" if kind == "coordinator-key" else span}."""')
        self.line()

    def write_constants(self) -> None:
        versions = sorted(self.message.versions)
        gapless = versions == list(range(versions[0], versions[-1] + 1))
        if self.message.key is not None:
            self.line(f"API_KEY = {self.message.key}")
        self.line(f"LOWEST_VERSION = {versions[0]}")
        self.line(f"HIGHEST_VERSION = {versions[-1]}")
        self.line(f"FLEXIBLE_VERSION = {self.message.first_flexible}")
        self.line("VERSIONS = " + (f"range({versions[0]}, {versions[-1] + 1})" if gapless else repr(tuple(versions))))
        for name, first in sorted(self.message.first_versions().items()):
            self.line(f"FIRST_VERSION_WITH_{name.upper()} = {first}")

    def write_body(self, struct: Struct) -> None:
        self.line(f"__slots__ = FIELDS = {self.field_names(struct)}")
        if self.message.kind in KINDS_IN_RECORDS:
            self.write_json_fields(struct)
        self.line()
        self.write_constructor(struct)
        self.write_reader(struct)
        self.write_writer(struct)
        if any(field.struct is struct and field.tagged and not field.is_array for field in self.all_fields()):
            self.write_is_default(struct)

    def write_json_fields(self, struct: Struct) -> None:
        """Appends to `lines` the rows of the message's table of JSON fields, which `protocol/message_json.py` reads.

        A row consists of name, attribute, versions, versions in which the field is tagged, and type.
        """
        self.line("JSON_FIELDS = (")
        for field in struct.fields:
            name = field.name[0].lower() + field.name[1:]
            versions, tagged = tuple(sorted(field.versions)), tuple(sorted(field.tagged))
            row = f'"{name}", "{field.attribute}", {versions}, {tagged}, "{field.type}"'
            self.line(f"    ({row}),")
        self.line(")")

    def all_fields(self) -> Iterator[Field]:
        for struct in [self.message.root, *self.message.structs.values()]:
            yield from struct.fields

    def field_names(self, struct: Struct) -> str:
        names = [*(field.attribute for field in struct.fields), "unknown_tagged_fields"]
        return "(" + ", ".join(f'"{name}"' for name in names) + ("," if len(names) == 1 else "") + ")"

    # -- overridden for Cython

    def class_name(self, struct: Struct) -> str:
        return struct.name if struct is self.message.root else f"{self.message.name}.{struct.name}"

    def annotated(self, field: Field) -> str:
        """Returns `name: type`, the annotated parameter of the constructor for the field."""
        return f"{field.attribute}: {self.annotation(field)}"

    def annotation(self, field: Field) -> str:
        base = self.class_name(field.struct) if field.struct else ANNOTATIONS[field.type]
        base = f"list[{base}]" if field.is_array else base
        return f"{base} | None" if field.nullable or self.default(field) == "None" else base

    def signature_end(self) -> str:
        return "unknown_tagged_fields: tuple[tuple[int, bytes], ...] = ()"

    def write_reader_head(self, struct: Struct) -> None:
        self.line("@classmethod")
        self.line(f"def read(cls, reader: Reader, version: int) -> {self.class_name(struct)}:")
        self.depth += 1
        self.line("self = cls.__new__(cls)")

    def write_writer_head(self, struct: Struct) -> None:
        self.line("def write(self, writer: Writer, version: int) -> None:")
        self.depth += 1

    def write_tags_head(self, struct: Struct) -> None:
        self.line("def _read_tags(self, reader: Reader, version: int, count: int) -> None:")
        self.depth += 1
        self.line("unknown = []")

    def write_is_default_head(self, struct: Struct) -> None:
        self.line("def is_default(self) -> bool:")
        self.depth += 1

    def read_struct(self, struct: Struct) -> str:
        return f"{self.class_name(struct)}.read(reader, version)"

    def write_struct(self, struct: Struct, value: str) -> str:
        return f"{value}.write(writer, version)"

    def struct_is_default(self, struct: Struct, value: str) -> str:
        return f"{value}.is_default()"

    # -- defaults

    def default(self, field: Field) -> str:
        """Returns the Python expression of the field's default value.

        The result is the name EMPTY for a value that each message has to create for itself, such as a list.
        """
        if field.default == "null":
            return "None"
        if field.is_array or field.struct:
            return "EMPTY"
        if field.default is None:
            return ZERO_DEFAULTS.get(field.type, "None" if field.type == "records" else "0")
        if field.type == "bool":
            return field.default.capitalize()
        return field.default if field.default.startswith('"') else str(int(field.default, 0))

    def fresh_default(self, field: Field) -> str:
        default = self.default(field)
        if default != "EMPTY":
            return default
        return "[]" if field.is_array else f"{self.class_name(field.struct)}()" if field.struct else default

    def is_set(self, field: Field) -> str:
        """Returns a Python expression that is true if the field's value is not its default value."""
        value, default = f"self.{field.attribute}", self.default(field)
        if default == "None":
            return f"{value} is not None"
        if field.struct and not field.is_array:
            if not field.tagged:
                return f"{value} != {self.fresh_default(field)}"
            unset = self.struct_is_default(field.struct, value)
            return f"({value} is None or not {unset})" if field.nullable else f"not {unset}"
        if field.type == "bool":
            return f"not {value}" if default == "True" else value
        return f"{value} != {self.fresh_default(field)}"

    def write_constructor(self, struct: Struct) -> None:
        self.line("def __init__(")
        self.line("    self,")
        self.line("    *,")
        for field in struct.fields:
            self.line(f"    {self.annotated(field)} = {self.default(field)},")
        self.line(f"    {self.signature_end()},")
        self.line(") -> None:")
        self.depth += 1
        for field in struct.fields:
            name, default = field.attribute, self.default(field)
            fresh = f"{self.fresh_default(field)} if {name} is EMPTY else {name}" if default == "EMPTY" else name
            self.line(f"self.{name} = {fresh}")
        self.line("self.unknown_tagged_fields = unknown_tagged_fields")
        self.depth -= 1
        self.line()

    def write_is_default(self, struct: Struct) -> None:
        self.line()
        self.write_is_default_head(struct)
        unset = [f"not ({self.is_set(field)})" for field in struct.fields] + ["not self.unknown_tagged_fields"]
        self.line("return " + " and ".join(unset))
        self.depth -= 1

    def presence(self, field: Field) -> str:
        """Returns the kind of marker that precedes a nullable struct and says whether the struct is null.

        It is "tagged_present", an unsigned varint, for a tagged field, and "present", a signed byte, for any other.
        Raises DefinitionError if the field is tagged in some of its versions only.
        """
        if field.tagged and field.tagged != field.versions:
            raise DefinitionError(f"{field.name}: a nullable struct is tagged in all of its versions or in none")
        return "tagged_present" if field.tagged else "present"

    # -- reading

    def flexible(self, struct: Struct) -> str:
        """Returns a Python expression that is true if the version of the message is flexible.

        It is "True" or "False" if the versions of the struct are all flexible or all not flexible. Otherwise it is the
        name of a local variable of the generated code.
        """
        if struct.versions <= self.message.flexible:
            return "True"
        return "flexible" if struct.versions & self.message.flexible else "False"

    def compact(self, field: Field, struct: Struct) -> str:
        return "False" if field.rigid else self.flexible(struct)

    def write_flexible(self, struct: Struct) -> None:
        if self.flexible(struct) == "flexible":
            self.line(f"flexible = version >= {self.message.first_flexible}")

    def write_reader(self, struct: Struct) -> None:
        self.write_reader_head(struct)
        self.write_flexible(struct)
        for field in struct.fields:
            plain = field.versions - field.tagged
            if not plain:
                self.line(f"self.{field.attribute} = {self.fresh_default(field)}")
                continue
            test = condition(plain, struct.versions)
            if test:
                self.line(f"if {test}:")
                self.depth += 1
            self.write_read_field(field, plain, self.compact(field, struct))
            if test:
                self.depth -= 1
                self.line("else:")
                self.line(f"    self.{field.attribute} = {self.fresh_default(field)}")
        self.write_read_tags(struct)
        self.line("return self")
        self.depth -= 1
        self.line()
        if any(field.tagged for field in struct.fields):
            self.write_tag_reader(struct)

    def write_read_field(self, field: Field, versions: Versions, compact: str) -> None:
        """Appends the statements that decode a field to `lines`.

        `versions` are the versions in which the statements are executed; `compact` is the Python expression that is
        true if lengths are encoded in the compact form of flexible versions.
        """
        name = f"self.{field.attribute}"
        nullable = field.nullable & versions
        sometimes = nullable and not nullable >= versions
        if sometimes:
            self.line(f"if {condition(nullable, versions)}:")
            self.depth += 1
        if nullable:
            self.write_read_value(field, name, compact, True)
        if sometimes:
            self.depth -= 1
            self.line("else:")
            self.depth += 1
        if sometimes or not nullable:
            self.write_read_value(field, name, compact, False)
        if sometimes:
            self.depth -= 1

    def write_read_value(self, field: Field, name: str, compact: str, nullable: bool) -> None:
        or_null = "nullable_" if nullable else ""
        if field.is_array and field.type in ARRAYS_IN_ONE_CALL:
            self.line(f"{name} = reader.read_{field.type}_array({compact}, {nullable})")
        elif field.is_array:
            element = self.read_struct(field.struct) if field.struct else f"reader.read_{field.type}()"
            if nullable:
                self.line(f"count = reader.read_nullable_array_length({compact})")
                self.line(f"{name} = None if count < 0 else [{element} for _ in range(count)]")
            else:
                self.line(f"{name} = [{element} for _ in range(reader.read_array_length({compact}))]")
        elif field.struct:
            otherwise = f" if reader.read_{self.presence(field)}() else None" if nullable else ""
            self.line(f"{name} = {self.read_struct(field.struct)}{otherwise}")
        elif field.type in SIZED:
            self.line(f"{name} = reader.read_{or_null}{field.type}({compact})")
        else:
            self.line(f"{name} = reader.read_{field.type}()")

    def write_read_tags(self, struct: Struct) -> None:
        flexible = self.flexible(struct)
        known = any(field.tagged for field in struct.fields)
        if flexible == "False":
            self.line("self.unknown_tagged_fields = ()")
        elif not known:
            otherwise = "" if flexible == "True" else f" if {flexible} else ()"
            self.line(f"self.unknown_tagged_fields = reader.read_unknown_tags(){otherwise}")
        else:
            self.line("self.unknown_tagged_fields = ()")
            if flexible != "True":
                self.line(f"if {flexible}:")
                self.depth += 1
            self.line("count = reader.read_tag_count()")
            self.line("if count:")
            self.line("    self._read_tags(reader, version, count)")
            if flexible != "True":
                self.depth -= 1

    def write_tag_reader(self, struct: Struct) -> None:
        self.write_tags_head(struct)
        self.line("for _ in range(count):")
        self.depth += 1
        self.line("tag = reader.read_tag()")
        self.line("end = reader.read_tag_end()")
        word = "if"
        for field in sorted((field for field in struct.fields if field.tagged), key=lambda field: field.tag):
            test = condition(field.tagged, struct.versions & self.message.flexible)
            self.line(f"{word} tag == {field.tag}" + (f" and {test}:" if test else ":"))
            self.depth += 1
            self.write_read_field(field, field.tagged, "False" if field.rigid else "True")
            self.depth -= 1
            word = "elif"
        self.line("else:")
        self.line("    unknown.append((tag, reader.read_raw(end)))")
        self.line("reader.finish_tag(end)")
        self.depth -= 1
        self.line("self.unknown_tagged_fields = tuple(unknown)")
        self.depth -= 1
        self.line()

    # -- writing

    def write_writer(self, struct: Struct) -> None:
        self.write_writer_head(struct)
        before = len(self.lines)
        self.write_flexible(struct)
        for field in struct.fields:
            plain = field.versions - field.tagged
            test = condition(plain, struct.versions) if plain else "False"
            if plain and test:
                self.line(f"if {test}:")
                self.depth += 1
            if plain:
                self.write_write_field(field, plain, self.compact(field, struct))
            if plain and test:
                self.depth -= 1
            if not field.ignorable and field.versions != struct.versions:
                missing = condition(struct.versions - field.versions, struct.versions - plain)
                clause = " and ".join(part for part in (missing, self.is_set(field)) if part)
                self.line(f"{'elif' if plain else 'if'} {clause}:")
                self.line(f'    raise absent(self, "{field.attribute}", version)')
        self.write_write_tags(struct)
        if len(self.lines) == before:
            self.line("pass")
        self.depth -= 1

    def write_write_field(self, field: Field, versions: Versions, compact: str) -> None:
        value = f"self.{field.attribute}"
        nullable = field.nullable & versions
        sometimes = nullable and not nullable >= versions
        if sometimes:
            self.line(f"if {condition(nullable, versions)}:")
            self.depth += 1
        if nullable:
            self.write_write_value(field, value, compact, True)
        if sometimes:
            self.depth -= 1
            self.line("else:")
            self.depth += 1
        if sometimes or not nullable:
            self.write_write_value(field, value, compact, False)
        if sometimes:
            self.depth -= 1

    def write_write_value(self, field: Field, value: str, compact: str, nullable: bool) -> None:
        or_null = "nullable_" if nullable else ""
        if field.is_array and field.type in ARRAYS_IN_ONE_CALL:
            self.line(f"writer.write_{field.type}_array({value}, {compact}, {nullable})")
        elif field.is_array:
            self.line(f"writer.write_{or_null}array_length({value}, {compact})")
            element = snake_case(field.type)
            self.line(f"for {element} in {value}{' or ()' if field.nullable else ''}:")
            call = f"writer.write_{field.type}({element})"
            statement = self.write_struct(field.struct, element) if field.struct else call
            self.line(f"    {statement}")
        elif field.struct and nullable:
            self.line(f"writer.write_{self.presence(field)}({value})")
            self.line(f"if {value} is not None:")
            self.line(f"    {self.write_struct(field.struct, value)}")
        elif field.struct:
            if field.nullable:
                self.line(f"if {value} is None:")
                self.line(f'    raise absent(self, "{field.attribute}, null", version)')
            self.line(self.write_struct(field.struct, value))
        elif field.type in SIZED:
            self.line(f"writer.write_{or_null}{field.type}({value}, {compact})")
        else:
            self.line(f"writer.write_{field.type}({value})")

    def write_write_tags(self, struct: Struct) -> None:
        flexible = self.flexible(struct)
        if flexible != "False":
            if flexible != "True":
                self.line(f"if {flexible}:")
                self.depth += 1
            self.write_tag_section(struct)
            if flexible != "True":
                self.depth -= 1
        if flexible != "True":
            self.line(f"{'elif' if flexible == 'flexible' else 'if'} self.unknown_tagged_fields:")
            self.line('    raise absent(self, "unknown_tagged_fields", version)')

    def write_tag_section(self, struct: Struct) -> None:
        tagged = sorted((field for field in struct.fields if field.tagged), key=lambda field: field.tag)
        if not tagged:
            self.line("writer.write_unknown_tags(self.unknown_tagged_fields)")
            return
        given = struct.versions & self.message.flexible
        self.line("unknown = self.unknown_tagged_fields")
        for field in tagged:
            tests = [test for test in (condition(field.tagged, given), self.is_set(field)) if test]
            self.line(f"has_{field.tag} = {' and '.join(tests)}")
        total = " + ".join(["len(unknown)", *(f"has_{field.tag}" for field in tagged)])
        self.line(f"writer.write_unsigned_varint({total})")
        self.line("index = 0")
        for field in tagged:
            test = condition(field.tagged, given)
            self.line("if unknown" + (f" and {test}:" if test else ":"))
            self.line(f"    index = writer.write_unknown_tags_below(unknown, index, {field.tag})")
            self.line(f"if has_{field.tag}:")
            self.depth += 1
            self.line(f"mark = writer.begin_tag({field.tag})")
            self.write_write_field(field, field.tagged, "False" if field.rigid else "True")
            self.line("writer.end_tag(mark)")
            self.depth -= 1
        self.line("if unknown:")
        self.line("    writer.write_unknown_tags_below(unknown, index, 1 << 32)")
