"""The base of values, and names of common types."""

import dataclasses
import os
from collections.abc import Callable
from reprlib import Repr
from typing import Any, TypeAlias, TypeVar, dataclass_transform

from msgspec import Struct, field, structs

T = TypeVar("T")
Json: TypeAlias = dict[str, Any]  # a JSON object, or another table of values by name
Strings: TypeAlias = tuple[str, ...]
AnyPath: TypeAlias = str | os.PathLike[str]
Progress: TypeAlias = Callable[[int, int], None]  # called with how many steps are done, of how many
_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 60
_SHORT.maxtuple = _SHORT.maxlist = _SHORT.maxdict = 2


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Record(Struct, frozen=True):
    """A value: its fields, in the order of their declaration, compared and hashed by them; none can be
    changed. The class is ready at once, where a dataclass compiles its methods at every start."""

    def __repr__(self) -> str:
        shown = (f"{name}={_SHORT.repr(getattr(self, name))}" for name in self.__struct_fields__)
        return f"{type(self).__name__}({', '.join(shown)})"


def replace(value: T, /, **changes: Any) -> T:
    """A copy with some fields changed (`copy.replace`, which Python has from 3.13); else TypeError."""
    by = structs.replace if isinstance(value, Struct) else dataclasses.replace
    return by(value, **changes)  # type: ignore[type-var]
