"""Constant values (`xla/literal.h`), stored as written and read on demand."""

import re
from dataclasses import dataclass
from functools import cached_property

from .shape import Shape

ELIDED = "{...}"  # The text of a constant whose elements the dump leaves out
_TOKEN = re.compile(r"[^\s{},/]+")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True)
class Literal:
    """A value with its shape; `text` is the text between `constant(` and `)`."""

    shape: Shape
    text: str

    @property
    def is_elided(self) -> bool:
        """True when the dump leaves the elements out (`{...}`)."""
        return "..." in self.text

    @cached_property
    def canonical_text(self) -> str:
        """The text without comments and spaces: equal for literals printed by the same XLA."""
        return "".join(_COMMENT.sub("", self.text).split())

    @cached_property
    def scalar(self) -> int | float | bool | None:
        """The value of a one-element real literal; None for anything else."""
        tokens = _TOKEN.findall(_COMMENT.sub("", self.text))
        if len(tokens) != 1 or not self.shape.is_effective_scalar or "(" in tokens[0]:
            return None
        word: str = tokens[0]
        if word in ("true", "false"):
            return word == "true"
        try:
            return int(word)
        except ValueError:
            try:
                return float(word)
            except ValueError:
                return None
