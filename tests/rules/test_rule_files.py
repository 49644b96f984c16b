"""One file isolates one rule: the module, what the rule says about it, and XLA's answer beside it.

The first lines of NAME.hlo are comments: the command, then `CODE settles` (some decision rests on the
rule) or `CODE passes over` (none does), and `says REASON` where XLA's record of its steps gives that reason
for a refusal. NAME.expected.hlo is what XLA made of the module.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from hlofuse.ir import parse_module
from hlofuse.ir.verifier import verify_module as check_graph
from hlofuse.replay import replay
from hlofuse.reports.verify import verify_module
from hlofuse.rules.catalogue import catalogue
from hlofuse.rules.settings import Settings

FOLDER = Path(__file__).parent
FILES = sorted(
    p.name.removesuffix(".hlo") for p in FOLDER.glob("*.hlo") if not p.name.endswith(".expected.hlo")
)
_COMMAND = re.compile(r"// replay --target ([\w-]+)(?: --option ([\w-]+))?(?: --device (\w+))?")
_CLAIM = re.compile(r"// ([A-Z]+\d+) (settles|passes over)")
_SAYS = re.compile(r"// says (.+)")


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    target: str
    option: str | None
    device: str | None
    settles: frozenset[str]
    passes_over: frozenset[str]
    says: frozenset[str]


def read(name: str) -> Question:
    text = (FOLDER / f"{name}.hlo").read_text(encoding="utf-8")
    head = [line for line in text.splitlines() if line.startswith("//")]
    command = _COMMAND.fullmatch(head[0])
    words = [m[1] for line in head[1:] if (m := _SAYS.fullmatch(line))]
    claims = [_CLAIM.fullmatch(line) for line in head[1 : len(head) - len(words)]]
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
        frozenset(words),
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
    assert question.says <= {e.reason for e in events}


@pytest.mark.parametrize("name", FILES)
def test_a_rule_switched_off_says_nothing(name: str) -> None:
    question = read(name)
    module = parse_module(question.text)
    rules = catalogue()
    for code in sorted(c for c in question.settles if not rules[c].fixed):
        settings = Settings(disabled=frozenset({code}))
        result = replay(
            module, question.target, option=question.option, device=question.device, settings=settings
        )
        assert code not in {e.rule for e in result.events}
        assert check_graph(result.after) == []


# Rules no module that XLA lets through to its fusion passes can reach; `tests/passes` asks them directly.
# Of target gpu: bitcasts are passed over before PF004 is asked, GM018 and GM020 ask about pairs that a module
# never offers, equal iotas (CS003) and unread inputs (DC003) are gone before fusion.
# PF032 is the verdict of the cost model, not of a rule: see `tests/explain`.
_ASKED_DIRECTLY = {
    "CPU011", "IF003", "IF010", "IF021", "IF022", "IF030", "MO002", "MO012", "MO013", "MO022",
    "CS003", "DC003", "TS001", "TS002",
    "GI014", "GI018", "GM018", "PF004", "GM020", "PF032",
}  # fmt: skip


def test_every_rule_has_its_modules() -> None:
    questions = [read(name) for name in FILES]
    settled = frozenset().union(*(q.settles for q in questions))
    passed_over = frozenset().union(*(q.passes_over for q in questions))
    # Who runs a kernel is asked after fusion: tests/explain/test_kernel_rules.py.
    rules = {code for code, rule in catalogue().items() if not rule.runs}
    assert settled | passed_over <= rules
    assert rules - settled - _ASKED_DIRECTLY == set()
    assert rules - passed_over - _ASKED_DIRECTLY == set()
