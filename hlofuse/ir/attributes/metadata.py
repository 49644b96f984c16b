"""Metadata of an instruction, and the buffers that it shares."""

from hlofuse.ir.record import Record


def quote(text: str) -> str:
    """A string as XLA prints it inside quotes (`absl::CEscape`)."""
    out = []
    for byte in text.encode(errors="surrogateescape"):
        char = chr(byte)
        if char in "\"'\\":
            out.append("\\" + char)
        elif char in "\n\r\t":
            out.append({"\n": "\\n", "\r": "\\r", "\t": "\\t"}[char])
        else:
            out.append(char if 32 <= byte < 127 else f"\\{byte:03o}")
    return '"' + "".join(out) + '"'


_PRINTED = """
    op_type op_name source_file source_line source_end_line source_column source_end_column profile_type
    deduplicated_name preserve_layout stack_frame_id scheduling_name metadata_payload
""".split()


class OpMetadata(Record):
    """Source of an operation in the program (`OpMetadata` in `xla/xla_data.proto`)."""

    op_type: str | None = None
    op_name: str | None = None
    source_file: str | None = None
    source_line: int | None = None
    stack_frame_id: int = 0
    source_end_line: int | None = None
    source_column: int | None = None
    source_end_column: int | None = None
    profile_type: tuple[int, ...] = ()
    deduplicated_name: str | None = None
    scheduling_name: str | None = None
    metadata_payload: str | None = None
    preserve_layout: bool = False

    def __str__(self) -> str:
        parts = []
        for key in _PRINTED:
            value = getattr(self, key)
            if isinstance(value, str):
                parts.append(f"{key}={quote(value)}")
            elif isinstance(value, tuple):
                parts += [f"{key}={{{','.join(map(str, value))}}}"] if value else []
            elif value:
                parts.append(f"{key}={'true' if value is True else value}")
        return "{" + " ".join(parts) + "}"


ShapeIndex = tuple[int, ...]


class InputAlias(Record):
    """A result that shares a parameter's buffer (`HloInputOutputAliasConfig`)."""

    output_index: ShapeIndex
    parameter_number: int
    parameter_index: ShapeIndex
    kind: str = "may-alias"


class DonorEntry(Record):
    """A parameter whose buffer any result may use (`HloBufferDonorConfig`)."""

    parameter_number: int
    parameter_index: ShapeIndex


class OutputAlias(Record):
    """A result that shares an operand's buffer (`OutputOperandAliasing`)."""

    output_index: ShapeIndex
    operand_number: int
    operand_index: ShapeIndex
