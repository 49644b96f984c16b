"""A file of cases isolates one rule: modules, what the rule says about them, and XLA's answers (EXPECT).

Keys of a case: `target`, `option`, `device`, `xla`; `applied=CODE,…` (some decision rests on the rule) and
`not_applied=CODE,…` (none does). REFUSED lists reasons that XLA's record of its steps gives for refusals.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hlofuse.compilation import Compilation, CompilationInput, compile, replay_config
from hlofuse.ir import replace
from hlofuse.reports.verify.verify import verify_module
from hlofuse.rules.catalogue import catalogue
from hlofuse.rules.settings import AS_XLA, Settings
from ..fixtures import Case, read_cases
from ..tools.module_checks import verify_module as check_graph

CASES = read_cases(Path(__file__).parent)
KEYS = {"target", "option", "device", "xla", "applied", "not_applied"}


def replayed(case: Case, settings: Settings = AS_XLA) -> Compilation:
    """The replay that the header asks for."""
    option, device, xla = (case.options.get(key) for key in ("option", "device", "xla"))
    config = replay_config(case.options["target"], device, xla=xla, option=option)
    return compile(case.module(), replace(config, settings=settings))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_as_xla_answered(case: Case) -> None:
    assert case.options.keys() <= KEYS
    target = case.options["target"]
    option, device, xla = (case.options.get(key) for key in ("option", "device", "xla"))
    config = replay_config(target, device, option=option, xla=xla)
    v = verify_module(CompilationInput(case.module()), case.expected(), config)
    assert v.exact, str(v.difference)
    # On GPU ties go by unique ids, which a text does not carry, and names show which came first.
    assert v.fusion_names == v.fusions or target == "gpu"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_rule_is_applied_or_not(case: Case) -> None:
    events = replayed(case).events
    applied = {e.rule for e in events}
    assert case.values("applied") | case.values("not_applied")
    assert case.values("applied") <= applied
    assert not case.values("not_applied") & applied
    assert set(case.section("REFUSED").splitlines()) <= {e.reason for e in events}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_disabled_rule_is_never_applied(case: Case) -> None:
    rules = catalogue()
    for code in sorted(c for c in case.values("applied") if not rules[c].fixed):
        result = replayed(case, Settings(disabled=frozenset({code})))
        assert code not in {e.rule for e in result.events}
        assert check_graph(result.after) == []


# Rules no module that XLA lets through to its fusion passes can reach; `tests/passes` asks them directly.
# Of target gpu: bitcasts are passed over before PF004 is asked, GM018 and GM020 ask about pairs that a module
# never offers, equal iotas (CS003) and unread inputs (DC003) are gone before fusion.
# PF032 is the verdict of the cost model, not of a rule: see `tests/explain`.
_CALLED_DIRECTLY = {
    "CPU011", "IF003", "IF010", "IF030", "MO002", "MO012", "MO013", "MO022",
    "CS003", "DC003", "TS001", "TS002",
    "GI014", "GI018", "GM018", "PF004", "GM020", "PF032",
}  # fmt: skip


def test_every_rule_has_its_cases() -> None:
    applied = frozenset().union(*(case.values("applied") for case in CASES))
    not_applied = frozenset().union(*(case.values("not_applied") for case in CASES))
    # Who runs a kernel is asked after fusion: tests/explain/test_kernel_rules.py.
    # Passes outside fusion: tests/explain/test_every_pass_recorded.py.
    # Learnt conditions: tests/stages/test_tpu.py.
    rules = {c for c, rule in catalogue().items() if not (rule.runs or rule.pass_name or c.startswith("TP"))}
    assert applied | not_applied <= rules
    assert rules - applied - _CALLED_DIRECTLY == set()
    assert rules - not_applied - _CALLED_DIRECTLY == set()


def test_a_file_holds_cases_of_its_rule() -> None:
    for case in CASES:
        assert case.path.stem in case.values("applied") | case.values("not_applied"), str(case)
