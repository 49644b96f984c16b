"""The age of instructions, guessed where no ids are at hand, as XLA's protos have it."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations

import pytest

from hlofuse.ir import parse_module
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.likely_ids.guess import guess_ids

from .gpu_cases import Case, cases

FROM_JAX = ", allow_spmd_sharding_propagation_to_output={true}"


def by_age(body: str, header: str = FROM_JAX, entry: str = "main") -> list[str]:
    module = parse_module(f"HloModule m{header}\n\nENTRY %{entry} {{\n{body}\n}}\n")
    guess_ids(module)
    ordered = sorted(module.entry.instructions, key=lambda x: x.id)
    return [x.name for x in ordered if x.opcode != "tuple"]


def named(op_name: str) -> str:
    return f', metadata={{op_name="jit(f)/{op_name}"}}'


def test_the_program_is_older_than_what_passes_named_after_opcodes() -> None:
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %multiply.1.0 = f32[8]{{0}} multiply(%p, %p){named("div")}
  %exp.1.0 = f32[8]{{0}} exponential(%p){named("exp")}
  ROOT %tuple.1.0 = (f32[8]{{0}}, f32[8]{{0}}) tuple(%multiply.1.0, %exp.1.0)"""
    assert by_age(body) == ["p", "exp.1.0", "multiply.1.0"]


def test_what_a_pass_cloned_under_its_name_is_young_as_well() -> None:
    """The framework counts from 1; the first clone gets 0."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %mul.NUMBER.0 = f32[8]{{0}} multiply(%p, %p){named("mul")}
  %exp.1.0 = f32[8]{{0}} exponential(%p){named("exp")}
  ROOT %tuple.1.0 = (f32[8]{{0}}, f32[8]{{0}}) tuple(%mul.NUMBER.0, %exp.1.0)"""
    assert by_age(body.replace("NUMBER", "1")) == ["p", "mul.1.0", "exp.1.0"]
    assert by_age(body.replace("NUMBER", "0")) == ["p", "exp.1.0", "mul.0.0"]


def test_in_a_loop_all_may_be_clones() -> None:
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %mul.0.0 = f32[8]{{0}} multiply(%p, %p){named("while/body/eval_jaxpr/mul")}
  %exp.1.0 = f32[8]{{0}} exponential(%p){named("while/body/eval_jaxpr/exp")}
  ROOT %tuple.1.0 = (f32[8]{{0}}, f32[8]{{0}}) tuple(%mul.0.0, %exp.1.0)"""
    assert by_age(body) == ["p", "mul.0.0", "exp.1.0"]


def test_elements_are_as_old_as_the_tuple_that_they_are_of() -> None:
    body = f"""  %p = (f32[8]{{0}}, f32[8]{{0}}) parameter(0)
  %exp.1.0 = f32[8]{{0}} exponential(%p#1){named("exp")}
  ROOT %mul.1.0 = f32[8]{{0}} multiply(%exp.1.0, %p#0){named("mul")}"""
    assert by_age(body) == ["p", "p_1", "p_0", "exp.1.0", "mul.1.0"]


def test_gathers_are_made_simple_ahead_of_scatters() -> None:
    body = f"""  %p = f32[8,4]{{1,0}} parameter(0)
  %i = s32[2,2]{{1,0}} parameter(1)
  %u = f32[2,1,1]{{2,1,0}} parameter(2)
  %scatter.1.0 = f32[8,4]{{1,0}} scatter(%p, %i, %u), update_window_dims={{1,2}}, inserted_window_dims={{}},
    scatter_dims_to_operand_dims={{0,1}}, index_vector_dim=1, to_apply=%region{named("scatter")}
  %gather.1.0 = f32[2,1,1]{{2,1,0}} gather(%p, %i), offset_dims={{1,2}}, collapsed_slice_dims={{}},
    start_index_map={{0,1}}, index_vector_dim=1, slice_sizes={{1,1}}{named("gather")}
  ROOT %tuple.1.0 = (f32[8,4]{{1,0}}, f32[2,1,1]{{2,1,0}}) tuple(%scatter.1.0, %gather.1.0)"""
    region = "\n\n%region {\n%a = f32[] parameter(0)\nROOT %b = f32[] parameter(1)\n}"
    assert by_age(body, FROM_JAX + region) == ["p", "i", "u", "gather.1.0", "scatter.1.0"]


def test_bitcasts_go_by_their_numbers_alone() -> None:
    """The operand is the younger one: another pass put it there."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %bitcast.9.0 = f32[2,4]{{1,0}} bitcast(%p)
  %exp.1.0 = f32[2,4]{{1,0}} exponential(%bitcast.9.0){named("exp")}
  ROOT %bitcast.3.0 = f32[8]{{0}} bitcast(%exp.1.0)"""
    assert by_age(body) == ["p", "exp.1.0", "bitcast.3.0", "bitcast.9.0"]


def test_a_bitcast_of_a_reduction_is_remade_where_dimensions_of_size_one_were_dropped_only() -> None:
    """What is reduced then is a bitcast; ScatterExpander reduces what it has compared."""
    body = f"""  %p = pred[1,8]{{1,0}} parameter(0)
  %q = pred[8]{{0}} parameter(1)
  %INPUT = pred[8]{{0}} SOURCE
  %true.0 = pred[] constant(true)
  %reduce.1.0 = pred[] reduce(%INPUT, %true.0), dimensions={{0}}, to_apply=%and
  %bitcast.1.0 = pred[1]{{0}} bitcast(%reduce.1.0)
  %bitcast.2.0 = pred[8]{{0}} bitcast(%p)
  %exp.1.0 = f32[8]{{0}} convert(%bitcast.2.0){named("exp")}
  ROOT %tuple.1.0 = (pred[1]{{0}}, f32[8]{{0}}) tuple(%bitcast.1.0, %exp.1.0)"""
    combine = """%and {
  %a = pred[] parameter(0)
  %b = pred[] parameter(1)
  ROOT %c = pred[] and(%a, %b)
}
"""

    def bitcasts(name: str, source: str) -> list[str]:
        text = f"HloModule m{FROM_JAX}\n\n{combine}\nENTRY %main {{\n{body}\n}}\n"
        module = parse_module(text.replace("INPUT", name).replace("SOURCE", source))
        guess_ids(module)
        ordered = sorted(module.entry.instructions, key=lambda x: x.id)
        return [x.name for x in ordered if x.name in ("bitcast.1.0", "bitcast.2.0")]

    assert bitcasts("bitcast.9.0", "bitcast(%p)") == ["bitcast.2.0", "bitcast.1.0"]
    assert bitcasts("and.9.0", "and(%q, %q)") == ["bitcast.1.0", "bitcast.2.0"]


def test_what_was_given_as_a_text_has_parameters_and_constants_in_front_as_well() -> None:
    """It was turned into StableHLO, of which the compiler has the program as from JAX."""
    body = f"""  %a = f32[8]{{0}} parameter(1)
  %exp.3.0 = f32[8]{{0}} exponential(%a){named("exp")}
  %b = f32[8]{{0}} parameter(0)
  %sin.1.0 = f32[8]{{0}} sine(%b){named("sin")}
  %constant.1.0 = f32[] constant(2)
  %broadcast.1.0 = f32[8]{{0}} broadcast(%constant.1.0), dimensions={{}}
  %mul.1.0 = f32[8]{{0}} multiply(%sin.1.0, %broadcast.1.0){named("mul")}
  %exp.2.0 = f32[8]{{0}} exponential(%b){named("exp")}
  ROOT %tuple.1.0 = (f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}) tuple(%exp.3.0, %mul.1.0, %exp.2.0)"""
    ages = by_age(body, header="")
    assert ages[:4] == ["b", "a", "constant.1.0", "broadcast.1.0"]
    assert ages.index("exp.2.0") < ages.index("exp.3.0")
    assert ages == by_age(body)


OF_OLDER_FRONT_END = f"""  %Arg_0.1 = f32[8]{{0}} parameter(0)
  %Arg_1.2 = f32[8]{{0}} parameter(1)
  %divide.23.0 = f32[8]{{0}} divide(%Arg_0.1, %Arg_1.2){named("div")}
  %exponential.0.0 = f32[8]{{0}} exponential(%divide.23.0){named("pow")}
  %negate.25.0 = f32[8]{{0}} negate(%exponential.0.0){named("neg")}
  %sine.24.0 = f32[8]{{0}} sine(%Arg_1.2){named("sin")}
  ROOT %tuple.26.0 = (f32[8]{{0}}, f32[8]{{0}}) tuple(%negate.25.0, %sine.24.0)"""


def test_of_an_older_front_end_numbers_rise_with_the_data() -> None:
    """It named after opcodes, as passes do, but all numbers of the module are different ones."""
    ordered = by_age(OF_OLDER_FRONT_END, header="", entry="main.27")
    assert ordered == ["Arg_0.1", "Arg_1.2", "divide.23.0", "negate.25.0", "sine.24.0", "exponential.0.0"]


def test_a_clone_is_numbered_anew_in_the_order_of_the_text() -> None:
    """What a pass made behind that begins at the top again."""
    body = f"""  %p.1 = (f32[8]{{0}}) parameter(0)
  %x.1 = f32[8]{{0}} get-tuple-element(%p.1), index=0
  %divide.A.0 = f32[8]{{0}} divide(%x.1, %x.1){named("while/body/sub")}
  %divide.B.0 = f32[8]{{0}} divide(%divide.A.0, %x.1){named("while/body/sub")}
  %divide.1.0 = f32[8]{{0}} divide(%divide.B.0, %x.1){named("while/body/div")}
  %divide.2.0 = f32[8]{{0}} divide(%divide.1.0, %x.1){named("while/body/div")}
  %negate.1.0 = f32[8]{{0}} negate(%divide.2.0){named("while/body/neg")}
  ROOT %tuple.1.0 = (f32[8]{{0}}) tuple(%negate.1.0)"""

    def ages(first: str, second: str) -> list[str]:
        text = body.replace(".A.0", f".{first}").replace(".B.0", f".{second}")
        main = "%t = (f32[8]{0}) parameter(0)\n  ROOT %w = (f32[8]{0}) call(%t), to_apply=%body.3.clone"
        module = parse_module(
            f"HloModule m\n\n%body.3.clone {{\n{text}\n}}\n\nENTRY %main.9 {{\n  {main}\n}}\n"
        )
        guess_ids(module)
        clone = next(c for c in module.computations if c is not module.entry)
        ordered = sorted(clone.instructions, key=lambda x: x.id)
        return [x.name for x in ordered if x.opcode in ("divide", "negate")]

    assert ages("5.0", "6.0") == ["divide.1.0", "divide.2.0", "negate.1.0", "divide.5.0", "divide.6.0"]
    assert ages("0.0", "0.1") == ["divide.0.0", "divide.0.1", "divide.1.0", "divide.2.0", "negate.1.0"]


def test_a_computation_of_which_nothing_is_known_keeps_the_order_of_the_text() -> None:
    body = """  %p = f32[8]{0} parameter(0)
  %b = f32[8]{0} negate(%p)
  ROOT %a = f32[8]{0} negate(%b)"""
    assert by_age(body) == ["p", "b", "a"]


def pairs_in_order(case: Case) -> tuple[int, int]:
    """Of pairs that may cost the same (one shape, or two bitcasts): how many stand as in XLA, of how many."""
    module = parse_module(case.before)
    guess_ids(module)
    assert case.ids is not None
    right = total = 0
    for computation in module.computations:
        known = case.ids.computations.get(computation.name)
        if computation.fusion is not None or known is None:
            continue
        alike: dict[str, list[Instruction]] = defaultdict(list)
        for x in computation:
            if x.opcode not in ("parameter", "constant", "tuple") and x.name in known.by_name:
                alike["bitcast" if x.opcode == "bitcast" else str(x.shape)].append(x)
        for group in alike.values():
            for a, b in combinations(group, 2):
                total += 1
                right += (a.id < b.id) == (known.by_name[a.name] < known.by_name[b.name])
    return right, total


@pytest.mark.parametrize(("archive", "share"), [("gpu", 0.98), ("gpu-models", 0.94)])
def test_nearly_all_pairs_stand_as_in_xla(archive: str, share: float) -> None:
    counts = [pairs_in_order(case) for case in cases(archive).values()]
    total = sum(total for _, total in counts)
    assert total > 10_000
    assert sum(right for right, _ in counts) >= share * total
