"""`tools/lint_imports.py` names a second key of an instruction, search for pairs, and loop over passes."""

from __future__ import annotations

import pytest

from ..running import load_tool

KEY = "def _content(x: Instruction) -> Hashable:\n    return x.opcode\n"
PAIRS = "def pairs(a: Module, b: Module) -> dict[Instruction, Instruction]: ...\n"


@pytest.mark.parametrize(
    ("code", "offences"),
    [
        ('IGNORED = frozenset({"metadata", "sharding", *CALLED})\n', ["attributes that do not count"]),
        ('IGNORED = """\n  metadata calls\n  origin\n""".split()\n', ["attributes that do not count"]),
        ('NAMES = ("metadata", "kind")\n', []),
        (KEY, ["a key of an instruction: _content"]),
        (KEY.replace("_content", "_line"), []),
        (KEY.replace("Instruction", "Module"), []),
        (PAIRS, ["a search for pairs: pairs"]),
        (PAIRS.replace("b: Module", "b: str"), []),
        (PAIRS.replace("dict[Instruction, Instruction]", "bool"), []),
    ],
)
def test_second_matchers_are_named(code: str, offences: list[str]) -> None:
    found = load_tool("lint_imports").second_matchers(code)
    assert [offence for _, offence in found] == offences


LOOP = "for pipeline in before_fusion(target, device):\n    pipeline.run(module, recorder)\n"


@pytest.mark.parametrize(
    ("code", "offences"),
    [
        (LOOP, ["a loop that runs passes"]),
        (LOOP.replace("before_fusion(target, device)", "pipelines"), []),
        ("for p in passes:\n    p.run_with(run)\n", ["a pipeline that is run"]),
        ("names = [s.name for p in before_fusion(target) for s in p.flattened()]\n", []),
    ],
)
def test_second_runners_are_named(code: str, offences: list[str]) -> None:
    found = load_tool("lint_imports").second_runners(code)
    assert [offence for _, offence in found] == offences
