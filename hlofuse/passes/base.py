"""What every pass is: a small value whose fields are its options."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import ClassVar

from hlofuse.ir.module import Module
from hlofuse.rules.settings import AS_XLA, Settings
from hlofuse.trace import Recorder


@dataclass(frozen=True, kw_only=True)
class Pass:
    """A rewrite of a module that records every decision. `str(pass)` is its text in a pipeline."""

    name: ClassVar[str]
    """XLA's name, as in its dump files."""

    settings: Settings = field(default=AS_XLA, compare=False, repr=False)
    """What a what-if run changes."""

    def run(self, module: Module, recorder: Recorder) -> bool:
        """Rewrite `module`; True if anything changed."""
        raise NotImplementedError

    def __str__(self) -> str:
        options = []
        for f in fields(self):
            value = getattr(self, f.name)
            if f.compare and value != f.default:
                options.append(f"{f.name}={str(value).lower() if isinstance(value, bool) else value}")
        return self.name + (f"({', '.join(options)})" if options else "")
