"""The parts of a text that a newer XLA may have written, by kind."""

from msgspec import Struct

KINDS = (
    "opcode",
    "element type",
    "layout property",
    "attribute",
    "metadata field",
    "header field",
    "backend_config field",
)
"""Parts of a text that a newer XLA may have more of, in the order in which they are named."""
_NAMED = 5
OPAQUE = ("custom_call_target", "custom_call_has_side_effect")
"""Attributes of an instruction of an unknown opcode that the text does not have (`Instruction.is_opaque`)."""


class Unknown(Struct):
    """The parts of a text that are not known: names by kind, in the order of the text."""

    names: dict[str, dict[str, None]] = {}

    def add(self, kind: str, name: str) -> None:
        self.names.setdefault(kind, {})[name] = None

    @property
    def note(self) -> str:
        """`3 attributes not known: perhaps of a newer XLA (a, b, c)`; empty where all is known."""
        found = [(kind, self.names[kind]) for kind in KINDS if kind in self.names]
        if not found:
            return ""
        is_mixed = len(found) > 1
        names = [f"{kind} {name}" if is_mixed else name for kind, own in found for name in own]
        what = ("name" if is_mixed else found[0][0]) + "s" * (len(names) > 1)
        more = f", … {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        return f"{len(names)} {what} not known: perhaps of a newer XLA ({', '.join(names[:_NAMED])}{more})"
