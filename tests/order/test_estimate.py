"""The estimate of ids from a text: which phase created what, and in which order."""

from __future__ import annotations

from collections import Counter

import pytest

from hlofuse.compilation import compile
from hlofuse.ir import parse_module
from hlofuse.order import estimate
from hlofuse.order.estimate import estimate_order, processing_order
from hlofuse.trace.priority_record import FusionStep
from ..pipelines.gpu_cases import cases

CASES = cases("gpu") | cases("gpu-models")


def created(body: str, more: str = "") -> list[str]:
    module = parse_module(f"HloModule m\n{more}\nENTRY %main {{\n{body}\n}}\n")
    estimate_order(module)
    return [x.name for x in sorted(module.entry, key=lambda x: x.id) if x.opcode != "tuple"]


def named(op_name: str) -> str:
    return f', metadata={{op_name="jit(f)/{op_name}"}}'


def test_the_program_is_older_than_what_passes_named_after_opcodes() -> None:
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %multiply.1.0 = f32[8]{{0}} multiply(%p, %p){named("div")}
  %exp.1.0 = f32[8]{{0}} exponential(%p){named("exp")}
  ROOT %tuple.1.0 = (f32[8]{{0}}, f32[8]{{0}}) tuple(%multiply.1.0, %exp.1.0)"""
    assert created(body) == ["p", "exp.1.0", "multiply.1.0"]


def test_a_number_outside_of_the_windows_is_a_clones() -> None:
    """The framework counts from 1; the first clone gets 0."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %mul.NUMBER.0 = f32[8]{{0}} multiply(%p, %p){named("mul")}
  %exp.1.0 = f32[8]{{0}} exponential(%p){named("exp")}
  ROOT %tuple.1.0 = (f32[8]{{0}}, f32[8]{{0}}) tuple(%mul.NUMBER.0, %exp.1.0)"""
    assert created(body.replace("NUMBER", "1")) == ["p", "mul.1.0", "exp.1.0"]
    assert created(body.replace("NUMBER", "0")) == ["p", "exp.1.0", "mul.0.0"]


def test_callees_are_inlined_after_the_program() -> None:
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %neg.1.0 = f32[8]{{0}} negate(%p){named("jit(relu)/neg")}
  %exp.1.0 = f32[8]{{0}} exponential(%p){named("exp")}
  ROOT %tuple.1.0 = (f32[8]{{0}}, f32[8]{{0}}) tuple(%neg.1.0, %exp.1.0)"""
    assert created(body) == ["p", "exp.1.0", "neg.1.0"]


def test_numbers_of_a_stem_tell_the_order_of_the_program() -> None:
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %exp.2.0 = f32[8]{{0}} exponential(%p){named("exp")}
  %exp.3.0 = f32[8]{{0}} exponential(%exp.2.0){named("exp")}
  %q = f32[8]{{0}} parameter(1)
  %exp.1.0 = f32[8]{{0}} exponential(%q){named("exp")}
  ROOT %tuple.1.0 = (f32[8]{{0}}, f32[8]{{0}}) tuple(%exp.3.0, %exp.1.0)"""
    ids = created(body)
    assert ids.index("exp.2.0") < ids.index("exp.3.0")
    assert ids[:2] == ["p", "q"]


def test_bitcasts_go_by_their_numbers() -> None:
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %bitcast.9.0 = f32[2,4]{{1,0}} bitcast(%p)
  %exp.1.0 = f32[2,4]{{1,0}} exponential(%bitcast.9.0){named("exp")}
  ROOT %bitcast.3.0 = f32[8]{{0}} bitcast(%exp.1.0)"""
    assert created(body) == ["p", "exp.1.0", "bitcast.3.0", "bitcast.9.0"]


def test_elements_come_right_after_their_tuple() -> None:
    body = f"""  %p = (f32[8]{{0}}, f32[8]{{0}}) parameter(0)
  %exp.1.0 = f32[8]{{0}} exponential(%p#1){named("exp")}
  ROOT %mul.1.0 = f32[8]{{0}} multiply(%exp.1.0, %p#0){named("mul")}"""
    assert created(body) == ["p", "p_1", "p_0", "exp.1.0", "mul.1.0"]


def test_without_an_op_name_the_order_of_the_text_stays() -> None:
    body = """  %b = f32[8]{0} parameter(1)
  %a = f32[8]{0} parameter(0)
  ROOT %add.1 = f32[8]{0} add(%b, %a)"""
    assert created(body) == ["b", "a", "add.1"]


def test_computations_go_by_their_numbers_and_the_entry_last() -> None:
    text = """HloModule m

%region_7.9 {
  %a = f32[] parameter(0)
  ROOT %n = f32[] negate(%a)
}

%region_2.3 {
  %b = f32[] parameter(0)
  ROOT %e = f32[] exponential(%b)
}

ENTRY %main.1 {
  %p = f32[] parameter(0)
  %x = f32[] call(%p), to_apply=%region_7.9
  ROOT %y = f32[] call(%x), to_apply=%region_2.3
}
"""
    order = processing_order(parse_module(text))
    assert [c.name for c in order] == ["region_2.3", "region_7.9", "main.1"]


@pytest.mark.parametrize("name", sorted(CASES)[::9])
def test_an_estimate_reorders_and_keeps_all(name: str) -> None:
    module = parse_module(CASES[name].before)
    before = {c.name: Counter(x.name for x in c) for c in module.computations}
    estimate_order(module)
    assert {c.name: Counter(x.name for x in c) for c in module.computations} == before
    for computation in module.computations:
        ids = [x.id for x in sorted(computation, key=lambda x: x.id)]
        assert ids == sorted(set(ids))


PASS = "priority-fusion"


def orders(*, estimated: bool) -> int:
    """How many modules have their fusions in XLA's order; else with that of the text."""
    found = 0
    for name in sorted(CASES)[::9]:
        case = CASES[name]
        module = parse_module(case.before)
        if estimated:
            estimate_order(module)
        module.order_source = "text"
        steps = [(s.producer, s.consumer) for s in case.record.steps if isinstance(s, FusionStep)]
        done = compile(module, "gpu", device=case.device)
        actual = [(e.producer, e.consumer) for e in done.events if e.event == "fuse" and e.pass_name == PASS]
        found += steps == actual
    return found


def test_the_estimate_is_worth_its_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ninth of the modules at hand; the order of the program has to show at least once."""
    whole, text = orders(estimated=True), orders(estimated=False)
    assert whole >= 1.25 * text
    monkeypatch.setattr(estimate, "program_order", list)
    assert orders(estimated=True) < whole


def test_constants_of_the_front_end_come_first() -> None:
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %constant.1.0 = f32[] constant(2)
  %broadcast.1.0 = f32[8]{{0}} broadcast(%constant.1.0), dimensions={{}}
  %exp.1.0 = f32[8]{{0}} exponential(%p){named("exp")}
  ROOT %mul.1.0 = f32[8]{{0}} multiply(%exp.1.0, %broadcast.1.0){named("mul")}"""
    assert created(body) == ["p", "constant.1.0", "broadcast.1.0", "exp.1.0", "mul.1.0"]
