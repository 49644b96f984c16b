"""What a module says of its arguments' memory: which results lie there, and which arguments are given up.

Mirrors `xla/hlo/ir/hlo_input_output_alias_config.h` (`HloInputOutputAliasConfig`, `HloBufferDonorConfig`),
which the first line of a module's text holds as `input_output_alias` and `buffer_donor`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hlofuse.analysis.shape_tree import Index
from hlofuse.ir.attributes.attributes import Attributes
from hlofuse.ir.graph import Module

Argument = tuple[int, Index]
"""A parameter of the entry computation, or an element of it."""

_ALIAS = re.compile(r"\{([\d,\s]*)\}:\s*\(\s*(\d+)\s*,\s*\{([\d,\s]*)\}\s*(?:,\s*([\w-]+)\s*)?\)")
_DONOR = re.compile(r"\(\s*(\d+)\s*,\s*\{([\d,\s]*)\}\s*\)")


@dataclass
class InputOutputAlias:
    """Results that lie in the memory of an argument, and further arguments that may be overwritten."""

    aliases: dict[Index, Argument] = field(default_factory=dict)
    kinds: dict[Index, str] = field(default_factory=dict)
    donors: dict[Argument, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._aliased = set(self.aliases.values())

    def is_aliased(self, argument: Argument) -> bool:
        """True if a result lies there (`ParameterHasAlias`)."""
        return argument in self._aliased

    def set_up(self, output: Index, argument: Argument) -> None:
        """The result at `output` shall lie there; the argument is no longer a donor (`SetUpAlias`)."""
        self.aliases[output], self.kinds[output] = argument, "may-alias"
        self._aliased.add(argument)
        self.donors.pop(argument, None)


def alias_config(module: Module) -> InputOutputAlias:
    """What the module's first line says."""
    aliases: dict[Index, Argument] = {}
    kinds: dict[Index, str] = {}
    for output, number, index, kind in _ALIAS.findall(module.attributes.raw("input_output_alias") or ""):
        aliases[_index(output)] = (int(number), _index(index))
        kinds[_index(output)] = kind or "may-alias"
    donors = _DONOR.findall(module.attributes.raw("buffer_donor") or "")
    return InputOutputAlias(aliases, kinds, dict.fromkeys((int(n), _index(index)) for n, index in donors))


def write_alias_config(module: Module, config: InputOutputAlias) -> None:
    """Have the module say it."""
    raw = {
        name: value
        for name, value in module.attributes.raw_items.items()
        if name not in ("input_output_alias", "buffer_donor")
    }
    written: dict[str, str] = {}
    if config.aliases:
        parts = [
            f"{_text(output)}: ({number}, {_text(index)}, {config.kinds[output]})"
            for output, (number, index) in sorted(config.aliases.items())
        ]
        written["input_output_alias"] = f"{{ {', '.join(parts)} }}"
    if config.donors:
        parts = [f"({number}, {_text(index)})" for number, index in sorted(config.donors)]
        written["buffer_donor"] = f"{{ {', '.join(parts)} }}"
    first = {"is_scheduled": raw.pop("is_scheduled")} if "is_scheduled" in raw else {}
    module.attributes = Attributes(raw={**first, **written, **raw})


def _index(text: str) -> Index:
    return tuple(int(x) for x in re.findall(r"\d+", text))


def _text(index: Index) -> str:
    return "{" + ", ".join(map(str, index)) + "}"
