"""One file isolates one rule: the module, what the rule says about it, and XLA's answer beside it.

The first lines of NAME.hlo are comments: the command, then `CODE settles` (some decision rests on the
rule) or `CODE passes over` (none does). NAME.expected.hlo is what XLA made of the module.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines import replay
from hlofuse.rules.catalogue import catalogue
from hlofuse.verifier import verify_module

FOLDER = Path(__file__).parent
FILES = sorted(
    p.name.removesuffix(".hlo") for p in FOLDER.glob("*.hlo") if not p.name.endswith(".expected.hlo")
)
_COMMAND = re.compile(r"// replay --target ([\w-]+)(?: --option ([\w-]+))?(?: --device (\w+))?")
_CLAIM = re.compile(r"// ([A-Z]+\d+) (settles|passes over)")


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    target: str
    option: str | None
    device: str | None
    settles: frozenset[str]
    passes_over: frozenset[str]


def read(name: str) -> Question:
    text = (FOLDER / f"{name}.hlo").read_text(encoding="utf-8")
    head = [line for line in text.splitlines() if line.startswith("//")]
    command = _COMMAND.fullmatch(head[0])
    claims = [_CLAIM.fullmatch(line) for line in head[1:]]
    assert command, f"{name}: the first line is not a command"
    assert claims, f"{name}: nothing is said about a rule"
    assert all(claims), f"{name}: a comment is not a claim about a rule"
    said = [(m[1], m[2]) for m in claims if m]
    return Question(
        text,
        command[1],
        command[2],
        command[3],
        frozenset(code for code, verb in said if verb == "settles"),
        frozenset(code for code, verb in said if verb == "passes over"),
    )


@pytest.mark.parametrize("name", FILES)
def test_as_xla_answered(name: str) -> None:
    question = read(name)
    expected = parse_module((FOLDER / f"{name}.expected.hlo").read_text(encoding="utf-8"))
    v = verify_module(
        parse_module(question.text),
        expected,
        target=question.target,
        option=question.option,
        device=question.device,
    )
    assert v.exact, str(v.difference)
    # On GPU ties go by unique ids, which a text does not carry, and names show which came first.
    assert v.fusion_names == v.fusions or question.target == "gpu"


@pytest.mark.parametrize("name", FILES)
def test_the_rule_speaks_or_does_not(name: str) -> None:
    question = read(name)
    module = parse_module(question.text)
    events = replay(module, question.target, option=question.option, device=question.device).events
    spoke = {e.rule for e in events}
    assert question.settles <= spoke
    assert not question.passes_over & spoke


# Rules no module that XLA lets through to its fusion passes can reach; `tests/passes` asks them directly.
# PF032 is the verdict of the cost model, not of a rule: see `tests/explainer`.
_ASKED_DIRECTLY = {
    "CPU011", "IF003", "IF010", "IF011", "IF021", "IF022", "IF030", "MO002", "MO012", "MO013", "MO022",
    "CS001", "CS002", "CS003", "CS004", "DC001", "DC002", "DC003", "DC004", "TS001", "TS002",
    "GI014", "GI018", "GM018", "PF001", "PF004", "GM020", "GM032", "PF032",
}  # fmt: skip


def test_every_rule_has_its_modules() -> None:
    questions = [read(name) for name in FILES]
    settled = frozenset().union(*(q.settles for q in questions))
    passed_over = frozenset().union(*(q.passes_over for q in questions))
    # Who runs a kernel is asked after fusion: tests/explainer/test_kernel_rules.py.
    rules = {code for code, rule in catalogue().items() if not rule.runs}
    assert settled | passed_over <= rules
    assert rules - settled - _ASKED_DIRECTLY == set()
    assert rules - passed_over - _ASKED_DIRECTLY == set()
