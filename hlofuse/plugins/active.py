"""The packages that take part in a replay, asked as one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hlofuse.ir.graph import Instruction
from hlofuse.plugins.entries import Candidate, CustomFusion, FusionRule, Package, make_package
from hlofuse.plugins.rewrite import call_plugin, custom_kernel_name
from hlofuse.rules.catalogue import Rule
from hlofuse.rules.verdict import Verdict


@dataclass(frozen=True, slots=True)
class ActiveRules:
    """Packages in the order they were named; `Settings(outside=…)` takes them into a replay."""

    packages: tuple[Package, ...]
    pass_name: str = ""
    target: str = ""
    _applicable: tuple[FusionRule, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, *entries: FusionRule | CustomFusion, name: str = "entries") -> ActiveRules:
        """Entries that no installed package registers, as in a test or a notebook."""
        return cls((make_package(name, "", entries),))

    @property
    def rules(self) -> Mapping[str, Rule]:
        """The catalogue entries of all, by code."""
        return {code: rule for package in self.packages for code, rule in package.rules.items()}

    @property
    def names(self) -> tuple[str, ...]:
        """The packages in words."""
        return tuple(map(str, self.packages))

    def fusions(self, target: str) -> Sequence[CustomFusion]:
        """Custom fusions for a target, in the order they are registered."""
        return [
            e for p in self.packages for e in p.entries if isinstance(e, CustomFusion) and _for(e, target)
        ]

    def in_pass(self, name: str, target: str, disabled: Collection[str] = ()) -> ActiveRules:
        """Those that are about a pass (XLA's name) of a target, the disabled ones left out."""
        applicable = tuple(
            e
            for p in self.packages
            for e in p.entries
            if isinstance(e, FusionRule)
            and e.code not in disabled
            and _for(e, target)
            and (not e.passes or name in e.passes)
        )
        return replace(self, pass_name=name, target=target, _applicable=applicable)

    def verdict(self, producer: Instruction, consumer: Instruction) -> Verdict | None:
        """What the first rule says that applies."""
        for entry in self._applicable:
            candidate = Candidate(producer, consumer, self.pass_name, self.target)
            answer = call_plugin(entry.code, "the condition", entry.applies, candidate)
            if answer:
                figures = dict(answer) if isinstance(answer, Mapping) else {}
                return Verdict(self.rules[entry.code], figures)
        return None

    def kernel_refusal(self, producer: Instruction, consumer: Instruction) -> Verdict | None:
        """A custom kernel stays as it is."""
        for instruction in (producer, consumer):
            code = self._kernels().get(custom_kernel_name(instruction) or "")
            if code is not None:
                reason = f"{instruction.name} is a custom kernel and takes part in no other fusion"
                return Verdict(replace(self.rules[code], allows=False), message=reason)
        return None

    def _kernels(self) -> dict[str, str]:
        return {e.kernel: e.code for e in self.fusions(self.target)}


def _for(entry: FusionRule | CustomFusion, target: str) -> bool:
    return not entry.targets or target in entry.targets
