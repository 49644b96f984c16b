"""Who made an instruction last: calls that were inlined, loops and computations that were cloned."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.front_end_names import named_by_front_end
from hlofuse.pipelines.likely_ids.maker import Maker
from hlofuse.pipelines.likely_ids.makers_in_turn import makers_in_turn

from .made import MUL, PARAMETERS, maker, op

KEPT = "\n".join(
    f"  %constant.{k}.0 = f32[] constant({k})\n  %broadcast.{k}.0 = f32[8]{{0}} broadcast(%constant.{k}.0), "
    "dimensions={}"
    for k in range(20, 24)
)


THREE = (Maker.FRONT_END, Maker.INLINER, Maker.SIMPLIFIER)


@pytest.mark.parametrize("path", ["jit(silu)/mul", "jvp(jit(silu))/mul", "while/body/eval_jaxpr/mul"])
def test_what_was_called_was_inlined(path: str) -> None:
    assert (
        maker("mul.2.0", MUL, f"%mul.2.0 = f32[8]{{0}} multiply(%mul.5.0, %p), {op(path)}") == Maker.INLINER
    )


@pytest.mark.parametrize(("number", "expected"), [(6, Maker.FRONT_END), (0, Maker.INLINER)])
def test_a_number_in_a_branch_is_the_programs_if_the_framework_inlined_that(
    number: int, expected: Maker
) -> None:
    name = f"mul.{number}.0"
    spread = f"%{name} = f32[8]{{0}} broadcast(%zero), dimensions={{}}, {op('cond/branch_0_fun/mul')}"
    product = f"%mul.7.0 = f32[8]{{0}} multiply(%mul.5.0, %{name}), {op('mul')}"
    assert maker(name, MUL, spread, product) == expected


def test_an_entry_of_which_next_to_all_was_made_anew_is_no_clone() -> None:
    """ReshapeMover does so with the normalizations of a network that only infers."""
    lines = [
        f"%neg.0.0 = f32[8]{{0}} negate(%p), {op('neg')}",
        f"%sub.0.0 = f32[8]{{0}} subtract(%neg.0.0, %p), {op('sub')}",
        f"%sum.1.0 = f32[] reduce(%sub.0.0, %zero), dimensions={{0}}, to_apply=%region, {op('sum')}",
    ]
    assert maker("neg.0.0", *lines) == Maker.SIMPLIFIER_AGAIN
    assert maker("sum.1.0", *lines) == Maker.FRONT_END


def test_a_loop_in_a_function_is_not_what_the_function_is() -> None:
    loop = f"""HloModule m

%body {{
  %p = f32[8]{{0}} parameter(0)
  ROOT %mul.6.0 = f32[8]{{0}} multiply(%p, %p), {op("jit(g)/while/body/mul")}
}}

ENTRY %main {{
  %q = f32[8]{{0}} parameter(0)
  ROOT %call = f32[8]{{0}} call(%q), to_apply=%body
}}
"""
    module = parse_module(loop)
    body = next(c for c in module.computations if c is not module.entry)
    assert makers_in_turn(body, named_by_front_end(module)).makers[body.root] == Maker.FRONT_END


def test_what_the_entry_has_of_a_branch_was_inlined() -> None:
    inside = f"%mul.2.0 = f32[8]{{0}} multiply(%mul.5.0, %p), {op('cond/branch_1_fun/mul')}"
    assert maker("mul.2.0", MUL, inside) == Maker.INLINER


def test_what_a_loop_of_a_scatter_writes_had_a_dimension_less() -> None:
    constant = "%constant.1.0 = f32[] constant(7)"
    at = "%at = s32[] constant(0)"
    for size, expected in ((1, Maker.SIMPLIFIER_AGAIN), (2, Maker.FRONT_END)):
        spread = f"%broadcast.1.0 = f32[3,{size}]{{1,0}} broadcast(%constant.1.0), dimensions={{}}"
        write = (
            "%dynamic-update-slice.2.0 = f32[8,4]{1,0} dynamic-update-slice(%q, %broadcast.1.0, %at, %at), "
            + op("scatter")
        )
        assert maker("broadcast.1.0", MUL, constant, at, spread, write) == expected
    unread = "%broadcast.1.0 = f32[3,1]{1,0} broadcast(%constant.1.0), dimensions={}"
    assert maker("broadcast.1.0", MUL, constant, unread) == Maker.FRONT_END


def test_what_a_call_without_a_name_brought_in_was_inlined() -> None:
    iota = f"%iota.0.0 = s32[8]{{0}} iota(), iota_dimension=0, {op('iota')}"
    read = f"%sign.5.0 = s32[8]{{0}} sign(%iota.0.0), {op('sign')}"
    assert maker("iota.0.0", iota, read) == Maker.INLINER


@pytest.mark.parametrize(
    ("opcode", "expected"), [("add", Maker.SIMPLIFIER_AGAIN), ("multiply", Maker.SIMPLIFIER)]
)
def test_numbers_of_a_call_that_became_one(opcode: str, expected: Maker) -> None:
    """Sums are of numbers that had to be folded, which is behind the first simplification."""
    root = {"add": "add", "multiply": "mul"}[opcode]
    path = op(f"jit(g)/{root}")
    constant = "%constant.4.0 = f32[] constant(2)"
    spread = f"%broadcast.3.0 = f32[8]{{0}} broadcast(%constant.4.0), dimensions={{}}, {path}"
    x = f"%{root}.6.0 = f32[8]{{0}} {opcode}(%p, %broadcast.3.0), {path}"
    assert maker(f"{root}.6.0", constant, spread, x) == expected
    assert maker("broadcast.3.0", constant, spread, x) == expected
    kept = spread.replace("broadcast.3.0 =", f"{root}.2.0 =")
    assert maker(f"{root}.6.0", constant, kept, x.replace("broadcast.3.0", f"{root}.2.0")) == Maker.INLINER


@pytest.mark.parametrize(
    ("number", "opcode", "expected"),
    [
        (6, "xor", Maker.SIMPLIFIER_AGAIN),
        (5, "xor", Maker.INLINER),
        (6, "or", Maker.INLINER),
    ],
    ids=["of the key", "of the round", "of another sum"],
)
def test_a_word_of_the_key_and_the_number_of_a_round_may_be_one_that_rotates(
    number: int, opcode: str, expected: Maker
) -> None:
    """As those of key 3 in the third round, of threefry: 3 + 3 is spread already."""
    lines = (
        f"%constant.4.0 = u32[] constant({number})",
        f"%broadcast.3.0 = u32[8]{{0}} broadcast(%constant.4.0), dimensions={{}}, {op('jit(_uniform)')}",
        "%word.1.0 = u32[8]{0} constant({1,2,3,4,5,6,7,8})",
        f"%shift.1.0 = u32[8]{{0}} shift-left(%word.1.0, %broadcast.3.0), {op('jit(_uniform)/shift_left')}",
        f"%mix.1.0 = u32[8]{{0}} {opcode}(%word.1.0, %shift.1.0), {op(f'jit(_uniform)/{opcode}')}",
        f"%add.6.0 = u32[8]{{0}} add(%mix.1.0, %broadcast.3.0), {op('jit(_uniform)/add')}",
    )
    assert maker("add.6.0", *lines) == expected


@pytest.mark.parametrize(
    ("name", "reader", "expected"),
    [
        ("rev", "negate", Maker.FRONT_END),
        ("reverse", "negate", Maker.LAYOUT_NORMALIZATION),
        ("reverse", "convert", Maker.WIDENED_PRODUCTS),
    ],
)
def test_only_the_framework_calls_a_reverse_rev(name: str, reader: str, expected: Maker) -> None:
    kind = "f32" if reader == "negate" else "bf16"
    lines = (
        "%kernel = bf16[8]{0} parameter(2)".replace("bf16", kind),
        f"%{name}.1.0 = {kind}[8]{{0}} reverse(%kernel), dimensions={{0}}, {op('rev')}",
        f"%x.1.0 = f32[8]{{0}} {reader}(%{name}.1.0)",
    )
    assert maker(f"{name}.1.0", *lines) == expected


@pytest.mark.parametrize(
    ("keeps_dimension", "expected"), [(True, Maker.SIMPLIFIER_AGAIN), (False, Maker.INLINER)]
)
def test_what_a_call_reads_of_a_sum_that_it_spreads_was_moved(keeps_dimension: bool, expected: Maker) -> None:
    call = "jvp(jit(log_softmax))"
    total = "f32[8]{0} reduce(%q, %zero), dimensions={1}, to_apply=%region"
    lines = [
        f"%sum.1.0 = {total}, {op(f'{call}/reduce_sum')}",
        f"%log.1.0 = f32[8]{{0}} log(%sum.1.0), {op(f'{call}/log')}",
    ]
    if keeps_dimension:
        lines.append(f"%sub.1.0 = f32[8,4]{{1,0}} broadcast(%log.1.0), dimensions={{0}}, {op(f'{call}/sub')}")
    assert maker("log.1.0", *lines) == expected


@pytest.mark.parametrize(("path", "expected"), [("while/body/", Maker.SIMPLIFIER_AGAIN), ("", Maker.INLINER)])
def test_what_reads_a_row_of_a_loop_as_it_was_cut_was_moved(path: str, expected: Maker) -> None:
    """As was what reads that."""
    lines = (
        "%state = (f32[9,4]{1,0}) parameter(2)",
        "%rows = f32[9,4]{1,0} get-tuple-element(%state), index=0",
        "%at = s32[] constant(3)",
        "%row = f32[1,4]{1,0} dynamic-slice(%rows, %at, %at), dynamic_slice_sizes={1,4}, "
        + op(f"{path}jit(dynamic_index_in_dim)/dynamic_slice"),
        f"%exp.1.0 = f32[1,4]{{1,0}} exponential(%row), {op(f'{path}jit(g)/exp')}",
        f"%div.1.0 = f32[1,4]{{1,0}} divide(%exp.1.0, %exp.1.0), {op(f'{path}jit(g)/div')}",
    )
    assert maker("exp.1.0", *lines) == expected
    spread = (
        f"%broadcast.9.0 = f32[1,4]{{1,0}} broadcast(%p), dimensions={{0}}, {op(f'{path}jit(g)/sub')}",
        f"%sub.1.0 = f32[1,4]{{1,0}} subtract(%row, %broadcast.9.0), {op(f'{path}jit(g)/sub')}",
    )
    assert maker("sub.1.0", *lines[:-2], *spread) == Maker.INLINER
    assert maker("div.1.0", *lines) == expected


@pytest.mark.parametrize(("number", "made"), [(3, Maker.SIMPLIFIER), (0, Maker.INLINER)])
def test_what_is_numbered_behind_what_simplification_made_was_not_inlined(number: int, made: Maker) -> None:
    lines = [f"%sub.5.0 = f32[8]{{0}} subtract(%p, %p), {op('sub')}"]
    for k, path in ((1, "sub"), (2, "sub"), (4, "sub"), (number, "jit(silu)")):
        lines.append(f"%broadcast.{k}.0 = f32[8]{{0}} broadcast(%zero), dimensions={{}}, {op(path)}")
        lines.append(f"%sub.{k + 6}.0 = f32[8]{{0}} subtract(%broadcast.{k}.0, %p), {op('sub')}")
    assert maker(f"broadcast.{number}.0", *lines) == made


def test_a_computation_of_mostly_other_numbers_was_cloned_whole() -> None:
    """Of its numbers one happens to lie among those of the program."""

    def lines(number: int, product: int) -> str:
        return f"""  %p = f32[8]{{0}} parameter(0)
  %sin.{number}.0 = f32[8]{{0}} sine(%p), {op("while/body/sin")}
  %tanh.{number}.0 = f32[8]{{0}} tanh(%sin.{number}.0), {op("while/body/tanh")}
  ROOT %mul.{product}.0 = f32[8]{{0}} multiply(%p, %tanh.{number}.0), {op("while/body/mul")}"""

    text = f"HloModule m\n\n%body {{\n{lines(2, 6)}\n}}\n\n%other {{\n{lines(10, 10)}\n}}\n"
    text += "\nENTRY %main {\n  %q = f32[8]{0} parameter(0)\n"
    text += "  %one = f32[8]{0} call(%q), to_apply=%body\n"
    text += "  ROOT %two = f32[8]{0} call(%one), to_apply=%other\n}\n"
    module = parse_module(text)
    body = next(c for c in module.computations if c.name == "body")
    makers = makers_in_turn(body, named_by_front_end(module)).makers
    assert {x.name: made for x, made in makers.items()} == {
        "sin.2.0": Maker.FRONT_END,
        "tanh.2.0": Maker.FRONT_END,
        "mul.6.0": Maker.FRONT_END,
    }


def test_constants_of_the_program_are_the_first_of_a_clone() -> None:
    """Behind the first one of what was called all are a pass's."""
    text = f"""HloModule m

%body.clone {{
  %p = f32[8]{{0}} parameter(0)
  %constant.4.0 = f32[] constant(2)
  %broadcast.6.0 = f32[8]{{0}} broadcast(%constant.4.0), dimensions={{}}
  %mul.9.0 = f32[8]{{0}} multiply(%p, %broadcast.6.0), {op("while/body/mul")}
  %constant.5.0 = f32[] constant(3), {op("while/body/jit(g)")}
  %broadcast.7.0 = f32[8]{{0}} broadcast(%constant.5.0), dimensions={{}}, {op("while/body/jit(g)")}
  %add.9.0 = f32[8]{{0}} add(%mul.9.0, %broadcast.7.0), {op("while/body/jit(g)/add")}
  %constant.6.0 = f32[] constant(4)
  %broadcast.8.0 = f32[8]{{0}} broadcast(%constant.6.0), dimensions={{}}
  ROOT %multiply.0.0 = f32[8]{{0}} multiply(%add.9.0, %broadcast.8.0), {op("while/body/div")}
}}

ENTRY %main {{
  %q = f32[8]{{0}} parameter(0)
{KEPT}
  ROOT %call = f32[8]{{0}} call(%q), to_apply=%body.clone
}}
"""
    module = parse_module(text)
    body = next(c for c in module.computations if c is not module.entry)
    made = {x.name: maker for x, maker in makers_in_turn(body, named_by_front_end(module)).makers.items()}
    assert [made[f"constant.{k}.0"] for k in (4, 5, 6)] == [*THREE]
    assert [made[f"broadcast.{k}.0"] for k in (6, 7, 8)] == [*THREE]


@pytest.mark.parametrize(("first", "made"), [(5, Maker.SIMPLIFIER_AGAIN), (9, Maker.FRONT_END)])
def test_in_front_of_the_first_in_a_clone_numbers_are_missing_anyhow(first: int, made: Maker) -> None:
    """They were given to what was cloned for another computation."""
    text = f"""HloModule m

%region {{
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}}

%body.clone {{
{PARAMETERS}
  %add.{first}.0 = f32[8]{{0}} add(%p, %p), {op("while/body/add")}
  %reduce_sum.5.0 = f32[] reduce(%p, %zero), dimensions={{0}}, to_apply=%region, {op("while/body/reduce_sum")}
  %rsqrt.5.0 = f32[] rsqrt(%reduce_sum.5.0), {op("while/body/rsqrt")}
  %add.8.0 = f32[8]{{0}} broadcast(%rsqrt.5.0), dimensions={{}}, {op("while/body/add")}
  ROOT %add.10.0 = f32[8]{{0}} add(%add.8.0, %add.{first}.0), {op("while/body/add")}
}}

ENTRY %main {{
{PARAMETERS}
  ROOT %c = f32[8]{{0}} call(%p, %q), to_apply=%body.clone
}}
"""
    module = parse_module(text)
    body = next(c for c in module.computations if c.name == "body.clone")
    makers = makers_in_turn(body, named_by_front_end(module)).makers
    assert next(found for x, found in makers.items() if x.name == "add.8.0") == made


def test_zeros_that_a_remainder_in_a_call_compares_with_are_spread_for_it() -> None:
    """They are merged with those that the call had."""
    lines = (
        "%constant.1.0 = f32[] constant(0), " + op("jit(remainder)"),
        "%broadcast.1.0 = f32[8]{0} broadcast(%constant.1.0), dimensions={}",
    )
    rem = f"pred[8]{{0}} compare(%p, %broadcast.1.0), direction=LT, {op('jit(remainder)/rem')}"
    assert maker("broadcast.1.0", *lines, f"%compare.1.0 = {rem}") == Maker.SIMPLIFIER_AGAIN
    assert maker("broadcast.1.0", *lines, f"%rem.1.0 = {rem}") == Maker.FRONT_END


@pytest.mark.parametrize(("path", "made"), [("jit(g)/gather", Maker.GATHERS), ("gather", Maker.FRONT_END)])
def test_in_a_clone_gathers_that_were_called_are_made_simple_behind_the_calls(path: str, made: Maker) -> None:
    gather = (
        f"%gather.9.0 = f32[8,1,1]{{2,1,0}} gather(%q, %i), offset_dims={{1,2}}, collapsed_slice_dims={{}}, "
        f"start_index_map={{0,1}}, index_vector_dim=1, slice_sizes={{1,1}}, {op(path)}"
    )
    body = "\n".join(("%q = f32[8,4]{1,0} parameter(0)", "%i = s32[8,2]{1,0} parameter(1)", f"ROOT {gather}"))
    entry = "ENTRY %main {\n%a = f32[8,4]{1,0} parameter(0)\n%b = s32[8,2]{1,0} parameter(1)\n"
    call = "ROOT %c = f32[8,1,1]{2,1,0} call(%a, %b), to_apply=%region_1.2.clone\n}\n"
    module = parse_module(f"HloModule m\n\n%region_1.2.clone {{\n{body}\n}}\n\n{entry}{call}")
    clone = next(c for c in module.computations if not c.is_entry)
    assert makers_in_turn(clone, frozenset()).makers[clone.root] == made


@pytest.mark.parametrize(("path", "made"), [("while/body/iota", Maker.FRONT_END), ("iota", Maker.INLINER)])
def test_an_iota_of_what_was_cloned_whole_is_as_old_as_the_rest(path: str, made: Maker) -> None:
    """In the entry one with a number of its own came with a call."""
    lines = "\n".join(
        f"  %{name}.9{k}.0 = s32[8]{{0}} {opcode}, {op(path if name == 'iota' else 'while/body/' + name)}"
        for k, (name, opcode) in enumerate(
            [("iota", "iota(), iota_dimension=0"), ("rem", "remainder(%iota.90.0, %p)")]
        )
    )
    name = "region_1.2.clone" if "while" in path else "main"
    text = f"HloModule m\n\nENTRY %{name} {{\n  %p = s32[8]{{0}} parameter(0)\n{lines}\n"
    text += "  ROOT %tuple.1 = (s32[8]{0}) tuple(%rem.91.0)\n}\n"
    if name != "main":
        text = (
            text.replace("ENTRY ", "")
            + f"""
ENTRY %main {{
  %q = s32[8]{{0}} parameter(0)
  ROOT %call = (s32[8]{{0}}) call(%q), to_apply=%{name}
}}
"""
        )
    module = parse_module(text)
    computation = next(c for c in module.computations if c.name == name)
    makers = makers_in_turn(computation, frozenset()).makers
    assert {m for x, m in makers.items() if x.name == "iota.90.0"} == {made}


@pytest.mark.parametrize(
    ("path", "expected"), [("jit(h)/mul", Maker.SIMPLIFIER), ("jit(g)/mul", Maker.INLINER)]
)
def test_a_number_of_a_call_that_only_others_read_as_it_was_is_of_a_pass(path: str, expected: Maker) -> None:
    """CSE gave the product of another call the number that a pass spread for a sum."""
    lines = (
        f"%constant.9.0 = f32[] constant(-1), {op('jit(g)')}",
        f"%broadcast.9.0 = f32[8]{{0}} broadcast(%constant.9.0), dimensions={{}}, {op('jit(g)')}",
        f"%add.8.0 = f32[8]{{0}} add(%p, %broadcast.9.0), {op('jit(g)/sub')}",
        f"%mul.9.0 = f32[8]{{0}} multiply(%add.8.0, %broadcast.9.0), {op(path)}",
    )
    assert maker("broadcast.9.0", MUL, *lines) == expected
