"""Texts of a newer XLA: a name that no release knows, put at a random place of a dump.

    python -m tests.inputs.newer_texts CORPUS [COUNT] [SEED]

reads COUNT texts of a corpus with such a name each, and counts those whose kernels are right: the kernels of
the text without it, but for those of the instruction concerned.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import hlofuse
from hlofuse import Report
from hlofuse.analysis.kernels import computed_in, kernels
from hlofuse.inputs.many import load_text
from hlofuse.ir.errors import HlofuseError, HloParseError
from hlofuse.ir.graph import Module
from hlofuse.ir.text.printer import print_module

NAMES = ("quantum_hint", "zeta_groups", "warp_affinity", "xyzzy", "tail_budget_v2", "frame_hash", "kq")
OPCODES = ("frobnicate", "quantum-fuse", "zeta-transform", "xyzzy-scan", "block-wave-mma")
TYPES = ("f12e3m8", "s3", "u6", "f5e2m2fn", "q8", "b12")
VALUES = ("3", "true", '"on, {off}"', "{1,2}", '{a={1}, b="x"}', "[2,4]<=[8]", "kFast", "f32[2]{0}")
_NOT_RENAMED = set("parameter constant tuple get-tuple-element while call conditional async-start".split())
"""Without operands that are names; no kernels of their own; they run the kernels of other computations."""
LINE = re.compile(r"^( *(?:ROOT )?%?([\w.\-]+) = )(\S+|\(.*?\)) ([a-z][\w\-]*)\((.*)$", re.MULTILINE)
DEVICES = {
    "gpu-h100_sxm": "h100_sxm",
    "gpu-a100_sxm_40": "a100_sxm_40",
    "gpu-b200": "b200",
    "gpu-v100": "v100",
    "gpu-legacy-a100": "a100_sxm_40",
    "gpu-legacy-v100": "v100",
}
KINDS = ("header field", "attribute", "metadata field", "backend_config field", "element type", "opcode")


@dataclass(frozen=True)
class Invented:
    text: str
    kind: str
    line: int
    instruction: str | None
    """The instruction concerned; None for the header."""


def invent(text: str, kind: str, random: Random) -> Invented | None:
    """The text with an invented name of this kind; None where it has no place for one."""
    name, value = random.choice(NAMES), random.choice(VALUES)
    if kind == "header field":
        end = text.index("\n", text.index("HloModule "))
        places = [
            m.start() for m in re.finditer(r", (?=[a-z_]+=)", text[:end]) if not _is_inside(text, m.start())
        ]
        place = random.choice([*places, end])
        return Invented(f"{text[:place]}, {name}={value}{text[place:]}", kind, _line(text, place), None)
    wanted: dict[str, Callable[[re.Match[str]], bool]] = {
        "metadata field": lambda m: ", metadata={" in m[5],
        "backend_config field": lambda m: ', backend_config={"' in m[5],
        "element type": lambda m: (
            m[3][0] != "(" and m[4] != "tuple" and m[3].split("[")[0] not in ("token", "opaque")
        ),
        "opcode": lambda m: m[4] not in _NOT_RENAMED,
    }
    lines = [m for m in LINE.finditer(text) if kind not in wanted or wanted[kind](m)]
    if not lines:
        return None
    m = random.choice(lines)
    if kind == "element type":
        start, end = m.start(3), m.start(3) + m[3].index("[")
        new = random.choice(TYPES)
    elif kind == "opcode":
        start, end, new = m.start(4), m.end(4), random.choice(OPCODES)
    elif kind == "metadata field":
        start = end = text.index(", metadata={", m.start(5)) + len(", metadata={")
        short = random.choice(("3", '"a {b} c"', "true", "{0,1}"))
        new = f"{name}={short} "
    elif kind == "backend_config field":
        start = end = text.index(", backend_config={", m.start(5)) + len(", backend_config={")
        new = f'"{name}":{random.choice(("1", "true", "{}", chr(34) + "x" + chr(34)))},'
    else:
        start = end = random.choice((m.end(), _after_operands(text, m.start(5))))
        new = f", {name}={value}"
    return Invented(text[:start] + new + text[end:], kind, _line(text, start), m[2])


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _is_inside(text: str, place: int) -> bool:
    start = text.rfind("\n", 0, place) + 1
    before = re.sub(r'"[^"]*"', "", text[start:place])
    return any(before.count(a) != before.count(b) for a, b in ("{}", "()", "[]"))


def _after_operands(text: str, start: int) -> int:
    depth, place, quoted = 1, start, False
    while depth:
        quoted ^= text[place] == '"'
        depth += 0 if quoted else (text[place] == "(") - (text[place] == ")")
        place += 1
    return place


Kernels = dict[str, frozenset[str]]
"""The operations of the input in each kernel, by the kernel's name."""


def kernels_of(text: str, **how: Any) -> tuple[Kernels, Report]:
    """The kernels of a text's module: of the replay, or of the module as it is where it is fused."""
    found = hlofuse.open(text, **how)
    if found.loaded.config is None or found.is_fused:
        listed = kernels(found.module)
        return {
            k.name: frozenset({k.name, *(i.name for i in (computed_in(k) if k.opcode == "fusion" else ()))})
            for k in listed
        }, found
    facts = found.facts
    return {name: frozenset(facts.lineage.members(name)) for name in facts.launched_after}, found


def differing(before: Kernels, after: Kernels, near: set[str]) -> list[frozenset[str]]:
    """The sets of operations that are one kernel on one side only, but for those with one of `near`."""
    odd = Counter(before.values())
    odd.subtract(Counter(after.values()))
    return [members for members, count in odd.items() if count and near.isdisjoint(members)]


def neighbours(module: Module, name: str) -> set[str]:
    """An instruction, its operands and its users, by name."""
    x = module.find(name)
    return {name} | ({o.name for o in (*x.operands, *x.users)} if x is not None else set())


def problem_of(text: str, invented: Invented, **how: Any) -> str | None:
    """What is wrong with the answer about an invented text; None where it is right."""
    right, first = kernels_of(text, **how)
    try:
        found, answer = kernels_of(invented.text, **how)
    except HlofuseError as error:
        return f"refused: {error}"
    if "not known: perhaps of a newer XLA" not in " ".join(answer.identity.notes):
        return "no note"
    is_opaque = invented.kind in ("opcode", "element type")
    near = neighbours(first.module, invented.instruction) if is_opaque and invented.instruction else set()
    near = near.union(*(members for members in right.values() if not near.isdisjoint(members)))
    if odd := differing(right, found, near):
        return f"{len(odd)} kernels differ, such as {sorted(odd[0])[:4]}"
    written = load_text(invented.text, strict=False)
    if instructions(print_module(written)) != instructions(invented.text):
        return "printed in another way"
    try:
        load_text(invented.text, strict=True)
    except HloParseError as error:
        return None if error.line == invented.line else f"strict: line {error.line}, not {invented.line}"
    return "strict: no error"


def instructions(text: str) -> Counter[str]:
    """The lines of instructions and of the header; the head of a computation repeats its root's shape."""
    return Counter(line for line in text.split("\n") if " = " in line or line.startswith("HloModule "))


def main(corpus: Path, count: int = 200, seed: int = 1) -> None:
    random = Random(seed)
    files = sorted(p for name in ("before.hlo", "after.hlo") for p in corpus.glob(f"*/*/{name}"))
    tried: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    while sum(tried.values()) < count:
        path, kind = random.choice(files), random.choice(KINDS)
        text = path.read_text()
        invented = invent(text, kind, random)
        if invented is None:
            continue
        group = path.parts[-3]
        target = "gpu-legacy" if "legacy" in group else group.split("-")[0]
        device = DEVICES.get(group)
        how = {"stage": "fusion-input" if path.name == "before.hlo" else "after-fusion"}
        if target != "tpu":
            how |= {"target": target, **({"device": device} if device else {})}
        tried[kind] += 1
        try:
            problem = problem_of(text, invented, **how)
        except Exception as error:
            problem = f"crash: {type(error).__name__}: {error}"
        if problem is not None:
            wrong[kind] += 1
            print(
                f"{path.parent.parent.name}/{path.parent.name}/{path.name}:{invented.line}: {kind}: {problem}"
            )
    print({kind: f"{tried[kind] - wrong[kind]} of {tried[kind]}" for kind in tried})
    print(f"right: {sum(tried.values()) - sum(wrong.values())} of {sum(tried.values())}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
