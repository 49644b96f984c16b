"""Modules for target `gpu-legacy` with what XLA 0.4.35 made of them, pass by pass, and what it logged."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from hlofuse.reports.verify.cases import name_of_run
from ..fixtures import texts_of
from .cases import DATA

ARCHIVES = ("gpu-legacy.tar.xz", "gpu-legacy-order.tar.xz")
"""The second: grouped-query attention, and more reductions than `std::sort` inserts one by one."""


@dataclass(slots=True)
class Case:
    """What XLA was given, what it made of it pass by pass, and what it said."""

    before: str = ""
    passes: list[tuple[str, str]] = field(default_factory=list)
    log: list[str] = field(default_factory=list)


@cache
def cases() -> dict[str, Case]:
    found: dict[str, Case] = {}
    for archive in ARCHIVES:
        for name, texts in texts_of(DATA / archive).items():
            case = found.setdefault(name, Case())
            for file, text in texts.items():
                if file == "before.hlo":
                    case.before = text
                elif file == "decisions.log":
                    case.log = text.splitlines()
                elif file.endswith(".hlo"):
                    case.passes.append((name_of_run(file[3:].removesuffix(".hlo"), "gpu-legacy"), text))
    return found
