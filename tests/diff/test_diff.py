"""Small programs with one thing to tell, and what holds for real ones."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hlofuse.diff import Added, Changed, FusionKind, Kind, Moved, Removed, diff
from hlofuse.diff.model import final_kernels, measured_changes
from hlofuse.inputs import load
from hlofuse.ir import HlofuseError, Instruction, Module, parse_module
from ..running import find

SAMPLES = Path(__file__).parents[2] / "samples"


def module(entry: str, *computations: str, header: str = "") -> Module:
    lines = "\n".join(f"  {line.strip()}" for line in entry.strip().splitlines())
    return parse_module(
        f"HloModule m{header}\n\n" + "\n\n".join(computations) + f"\n\nENTRY e {{\n{lines}\n}}\n"
    )


ADD = "add_f32 {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}"
MAX = ADD.replace("add_f32", "max_f32").replace("add(", "maximum(")
P = "p = f32[8]{0} parameter(0)"


def fused(name: str, *lines: str) -> str:
    return f"{name} {{\n" + "\n".join(f"  {line}" for line in lines) + "\n}"


def names(instructions: tuple[Instruction, ...]) -> list[str]:
    return [i.name for i in instructions]


# ---------------------------------------------------------------- fusions

CHAIN = (
    "x = f32[8]{0} exponential(p)\ny = f32[8]{0} negate(x)\nz = f32[8]{0} tanh(y)\nROOT w = f32[8]{0} sqrt(z)"
)
UNFUSED = module(f"{P}\n{CHAIN}")
PAIRS = module(
    f"{P}\none = f32[8]{{0}} fusion(p), kind=kLoop, calls=f1\n"
    "ROOT two = f32[8]{0} fusion(one), kind=kLoop, calls=f2",
    fused("f1", "q = f32[8]{0} parameter(0)", "a = f32[8]{0} exponential(q)", "ROOT b = f32[8]{0} negate(a)"),
    fused("f2", "q = f32[8]{0} parameter(0)", "a = f32[8]{0} tanh(q)", "ROOT b = f32[8]{0} sqrt(a)"),
)
TIMES = "negate 20 20,tanh 9 8,sine 1 5,cosine 4 6,exponential 9 3,sqrt 3 5,log 7 7.004,rsqrt 0 0"
MEASURED = {n: (float(a), float(b)) for n, a, b in map(str.split, TIMES.split(","))}
"""Microseconds of each operation before and after."""
ONE = module(
    f"{P}\nROOT all = f32[8]{{0}} fusion(p), kind=kLoop, calls=f1", fused("f1", P, *CHAIN.splitlines())
)
SHORT = module(
    f"{P}\none = f32[8]{{0}} fusion(p), kind=kLoop, calls=f1\n"
    "z = f32[8]{0} tanh(one)\nROOT w = f32[8]{0} sqrt(z)",
    fused("f1", "q = f32[8]{0} parameter(0)", "a = f32[8]{0} exponential(q)", "ROOT b = f32[8]{0} negate(a)"),
)


@pytest.mark.parametrize(
    ("before", "after", "kinds"),
    [
        (UNFUSED, PAIRS, ["new", "new"]),
        (PAIRS, UNFUSED, ["vanished", "vanished"]),
        (PAIRS, ONE, ["merged"]),
        (ONE, PAIRS, ["split"]),
        (SHORT, ONE, ["grown"]),
        (ONE, SHORT, ["shrunk"]),
        (SHORT, PAIRS, ["new"]),
        (ONE, ONE, []),
    ],
)
def test_what_became_of_fusions(before, after, kinds) -> None:  # type: ignore[no-untyped-def]
    found = diff(before, after)
    assert found.same_program
    assert [f.kind for f in found.fusions] == kinds


def test_what_went_together_is_told_once() -> None:
    """Two fusions that both fell apart into the same two are one change, not two and a merge."""
    parameters = ("q = f32[8]{0} parameter(0)", "r = f32[8]{0} parameter(1)")

    def two(*bodies: tuple[str, ...]):  # type: ignore[no-untyped-def]
        return module(
            f"{P}\no = f32[8]{{0}} parameter(1)\n"
            "one = (f32[8]{0}, f32[8]{0}) fusion(p, o), kind=kLoop, calls=f1\n"
            "two = (f32[8]{0}, f32[8]{0}) fusion(p, o), kind=kLoop, calls=f2\n"
            + "\n".join(
                f"{n}{k} = f32[8]{{0}} get-tuple-element({n}), index={k}"
                for n in ("one", "two")
                for k in (0, 1)
            )
            + f"\nROOT all = (f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}) tuple({bodies[2][0]})",
            fused("f1", *parameters, *bodies[0], "ROOT t = (f32[8]{0}, f32[8]{0}) tuple(a, b)"),
            fused("f2", *parameters, *bodies[1], "ROOT t = (f32[8]{0}, f32[8]{0}) tuple(a, b)"),
        )

    sine, cosine = "f32[8]{0} sine(q)", "f32[8]{0} cosine(q)"
    tanh, root = "f32[8]{0} tanh(r)", "f32[8]{0} sqrt(r)"
    before = two(
        (f"a = {sine}", f"b = {tanh}"), (f"a = {cosine}", f"b = {root}"), ("one0, one1, two0, two1",)
    )
    after = two((f"a = {sine}", f"b = {cosine}"), (f"a = {tanh}", f"b = {root}"), ("one0, two0, one1, two1",))
    found = diff(before, after)
    assert found.same_program
    (change,) = found.fusions
    assert change.kind == "regrouped"
    assert names(change.before) == names(change.after) == ["one", "two"]
    assert change.cost_before is not None


def test_a_merge_says_what_and_what_it_saves() -> None:
    (change,) = diff(PAIRS, ONE).fusions
    assert names(change.before) == ["one", "two"]
    assert names(change.after) == ["all"]
    assert change.cost_before is not None
    assert change.cost_after is not None
    assert change.cost_before.bytes_accessed - change.cost_after.bytes_accessed == 64


def test_what_joined_is_named_as_in_before() -> None:
    found = diff(SHORT, ONE)
    (change,) = found.fusions
    assert names(change.joined) == ["z", "w"]
    notes = {x.name: note for x, note in final_kernels(found).notes.items()}
    assert notes == {"one": "grown", "all": "grown", "z": "joined", "w": "joined"}
    notes = {x.name: note for x, note in final_kernels(diff(UNFUSED, PAIRS)).notes.items()}
    assert notes == {"one": "new", "two": "new"}


def test_measured_kernels_stand_by_what_became_slower_then_faster() -> None:
    """Changes below 0.01 µs are none; among equal ones the longer kernel is first."""
    shapes = ", ".join(["f32[8]{0}"] * len(MEASURED))
    lines = [P, *(f"{n} = f32[8]{{0}} {n}(p)" for n in MEASURED)]
    lines.append(f"ROOT t = ({shapes}) tuple({', '.join(MEASURED)})")
    before, after = module("\n".join(lines)), module("\n".join(lines))
    accounts: Any = SimpleNamespace(timing="measured")
    for k, (name, m) in enumerate([("before", before), ("after", after)]):
        rows = [
            SimpleNamespace(instruction=find(m, n), measured_us=times[k]) for n, times in MEASURED.items()
        ]
        setattr(accounts, name, SimpleNamespace(rows=rows))
    found = [c.before[0].instruction.opcode for c in measured_changes(diff(before, after), accounts)]
    assert found == ["sine", "cosine", "sqrt", "exponential", "tanh", "negate", "log"]
    accounts.timing = "estimated"
    assert measured_changes(diff(before, after), accounts) == []


def test_where_an_instruction_ended_up() -> None:
    found = diff(UNFUSED, PAIRS)
    place = found.pairs.after_of(find(UNFUSED, "y"))
    assert [(p.instruction.name, p.fusion and p.fusion.name) for p in place] == [("b", "one")]


def test_duplicated_into_two_fusions() -> None:
    before = module(
        f"{P}\nx = f32[8]{{0}} exponential(p)\ny = f32[8]{{0}} negate(x)\nz = f32[8]{{0}} tanh(x)\n"
        "ROOT t = (f32[8]{0}, f32[8]{0}) tuple(y, z)"
    )
    body = ["q = f32[8]{0} parameter(0)", "a = f32[8]{0} exponential(q)"]
    after = module(
        f"{P}\none = f32[8]{{0}} fusion(p), kind=kLoop, calls=f1\n"
        "two = f32[8]{0} fusion(p), kind=kLoop, calls=f2\n"
        "ROOT t = (f32[8]{0}, f32[8]{0}) tuple(one, two)",
        fused("f1", *body, "ROOT b = f32[8]{0} negate(a)"),
        fused("f2", *body, "ROOT b = f32[8]{0} tanh(a)"),
    )
    found = diff(before, after)
    assert found.same_program
    (duplicated,) = found.duplicated
    assert duplicated.before[0].instruction.name == "x"
    assert [p.fusion.name for p in duplicated.after if p.fusion] == ["one", "two"]


@pytest.mark.parametrize("inside", ["", "bitcast v"])
def test_another_kind_and_config(inside: str) -> None:
    """With or without another shape inside, the details are those of the other direction, swapped."""
    body = fused("f1", P, *CHAIN.splitlines())
    other = body.replace("ROOT w", "v = f32[8]{0} bitcast(z)\n  ROOT w").replace("sqrt(z)", "sqrt(v)")
    root = f"{P}\nROOT all = f32[8]{{0}} fusion(p), calls=f1, kind="
    before = module(f"{root}kLoop", body)
    after = module(root + 'kCustom, backend_config={"warps":4}', other if inside else body)
    (change,), (back,) = diff(before, after).fusions, diff(after, before).fusions
    assert change.kind is back.kind is FusionKind.CHANGED
    details = [(d.name, d.before, d.after) for d in change.details]
    expected = [("inside", None, inside)] if inside else []
    assert details == [*expected, ("kind", "kLoop", "kCustom"), ("backend_config", None, '{"warps":4}')]
    assert [(d.name, d.after, d.before) for d in back.details] == details


def test_a_kernel_that_is_computed_twice() -> None:
    """A second fusion is new, or vanishes, and the same operation of one fusion has copies."""
    body = ["q = f32[8]{0} parameter(0)", "a = f32[8]{0} exponential(q)", "ROOT b = f32[8]{0} negate(a)"]
    lines = [f"{name} = f32[8]{{0}} fusion(p), kind=kLoop, calls={name}" for name in ("one", "two")]
    root = "ROOT t = (f32[8]{0}, f32[8]{0}) tuple(one, %s)"
    two = module("\n".join([P, *lines, root % "two"]), fused("one", *body), fused("two", *body))
    one = module("\n".join([P, lines[0], root % "one"]), fused("one", *body))
    once = ["i = f32[8]{0} iota(), iota_dimension=0", "ROOT s = f32[8]{0} add(i, i)"]
    twice = [once[0], once[0].replace("i =", "j ="), "ROOT s = f32[8]{0} add(i, j)"]
    call = "ROOT r = f32[8]{0} fusion(), kind=kLoop, calls=f"
    shared, copied = (module(call, fused("f", *lines)) for lines in (once, twice))
    for before, after, kind, detail in (
        (one, two, "new", ("computed in", "one", "one")),
        (two, one, "vanished", ("computed in", "one", "one")),
        (shared, copied, "changed", ("copies of i", "1", "2")),
        (copied, shared, "changed", ("copies of i", "2", "1")),
    ):
        (change,) = diff(before, after).fusions
        assert (change.kind, *[(d.name, d.before, d.after) for d in change.details]) == (kind, detail)


def test_defaults_in_a_config_are_no_difference() -> None:
    text = 'ROOT c = f32[8]{{0}} custom-call(p), custom_call_target="t", backend_config={}'
    before = module(f"{P}\n" + text.format('{"a":{"n":"0","flag":false},"b":[1]}'))
    after = module(f"{P}\n" + text.format('{"b":[1]}'))
    assert diff(before, after).same


# ---------------------------------------------------------------- other computations


def test_a_reducer_that_changed_is_one_change() -> None:
    line = f"{P}\nz = f32[] constant(0)\nx = f32[] reduce(p, z), dimensions={{0}}, to_apply=%s\n"
    line += "y = f32[8]{0} exponential(p)\nw = f32[] reduce(y, z), dimensions={0}, to_apply=%s\n"
    line += "ROOT t = (f32[], f32[]) tuple(x, w)"
    both = module(line % ("add_f32", "add_f32"), ADD)
    (edit,) = diff(both, module(line % ("max_f32", "max_f32"), MAX)).edits
    assert isinstance(edit, Changed)
    assert [(d.kind, d.before, d.after) for d in edit.details] == [(Kind.OPCODE, "add", "maximum")]
    # One of two that shared a computation has another now.
    (cause,) = diff(both, module(line % ("add_f32", "max_f32"), ADD, MAX)).causes
    assert isinstance(cause, Changed)
    assert [(d.kind, d.name) for d in cause.details] == [(Kind.CALLEE, "to_apply")]
    # A second copy of the same computation is none.
    assert diff(both, module(line % ("add_f32", "copy_f32"), ADD, ADD.replace("add_f32", "copy_f32"))).same


LOOP = """
body {{
  s = (s32[], f32[8]{{0}}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[8]{{0}} get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  w = f32[8]{{0}} {op}(v)
  ROOT t = (s32[], f32[8]{{0}}) tuple(j, w)
}}

condition {{
  s = (s32[], f32[8]{{0}}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant({n})
  ROOT c = pred[] compare(i, n), direction=LT
}}
"""
CALL = """z = s32[] constant(0)
t = (s32[], f32[8]{0}) tuple(z, p)
l = (s32[], f32[8]{0}) while(t), condition=condition, body=body
ROOT r = f32[8]{0} get-tuple-element(l), index=1"""


def test_a_change_inside_a_loop_is_told_there() -> None:
    before = module(f"{P}\n{CALL}", LOOP.format(op="tanh", n=10))
    (edit,) = diff(before, module(f"{P}\n{CALL}", LOOP.format(op="sqrt", n=10))).edits
    assert isinstance(edit, Changed)
    assert edit.after[0].instruction.name == "w"
    (edit,) = diff(before, module(f"{P}\n{CALL}", LOOP.format(op="tanh", n=11))).edits
    assert [d.kind for d in edit.details] == [Kind.LITERAL]  # type: ignore[union-attr]


def test_an_inlined_call_moves_its_instructions() -> None:
    callee = "f {\n  q = f32[8]{0} parameter(0)\n  a = f32[8]{0} tanh(q)\n  ROOT b = f32[8]{0} sqrt(a)\n}"
    before = module(f"{P}\nROOT c = f32[8]{{0}} call(p), to_apply=f", callee)
    found = diff(before, module(f"{P}\na = f32[8]{{0}} tanh(p)\nROOT b = f32[8]{{0}} sqrt(a)"))
    assert any(isinstance(e, Moved) for e in found.edits)
    assert not any(isinstance(e, Added) for e in found.edits)
    assert [p.instruction.opcode for e in found.causes if isinstance(e, Removed) for p in e.before] == [
        "call"
    ]


def test_what_nothing_calls_is_not_compared() -> None:
    found = diff(UNFUSED, module(f"{P}\n{CHAIN}", ADD))
    assert found.same
    assert found.after.unreachable == 1


def test_two_effects_are_two() -> None:
    call = '{n} = f32[8]{{0}} custom-call(p), custom_call_target="t", custom_call_has_side_effect=true'
    one = module(f"{P}\n{call.format(n='a')}\nROOT r = f32[8]{{0}} negate(p)")
    two = module(f"{P}\n{call.format(n='a')}\n{call.format(n='b')}\nROOT r = f32[8]{{0}} negate(p)")
    (edit,) = diff(one, two).edits
    assert isinstance(edit, Added)


def test_a_second_copy_is_added() -> None:
    one = module(f"{P}\nx = f32[8]{{0}} tanh(p)\nROOT r = f32[8]{{0}} add(x, x)")
    two = module(f"{P}\nx = f32[8]{{0}} tanh(p)\ny = f32[8]{{0}} tanh(p)\nROOT r = f32[8]{{0}} add(x, y)")
    (edit,) = diff(one, two).edits
    assert isinstance(edit, Added)
    assert edit.copy_of is not None
    (edit,) = diff(two, one).edits
    assert isinstance(edit, Removed)


@pytest.mark.parametrize("pair", [("f32[8]", "(f32[8], f32[8])"), ("(f32[8], f32[8])", "(f32[8])")])
def test_a_tuple_in_place_of_an_array_and_a_shorter_one_are_other_shapes(pair: tuple[str, str]) -> None:
    lines = 'p = f32[8] parameter(0)\nc = {} custom-call(p), custom_call_target="c"\n'
    lines += 'ROOT r = f32[] custom-call(c), custom_call_target="d"'
    for before, after in (pair, pair[::-1]):
        (edit,) = diff(*(module(lines.format(text)) for text in (before, after))).edits
        assert isinstance(edit, Changed)
        assert [(d.kind, d.before, d.after) for d in edit.details] == [(Kind.SHAPE, before, after)]


# ---------------------------------------------------------------- metadata, header, trouble


def test_metadata_counts_only_when_asked_for() -> None:
    line = (
        '{P}\nROOT x = f32[8]{{0}} tanh(p), metadata={{op_name="{name}" source_file="f.py" source_line={n}}}'
    )
    one, two = module(line.format(P=P, name="a", n=1)), module(line.format(P=P, name="b", n=2))
    assert diff(one, two).same
    (edit,) = diff(one, two, metadata=True).edits
    assert isinstance(edit, Changed)
    assert [(d.name, d.before, d.after) for d in edit.details] == [
        ("op_name", "a", "b"),
        ("source", "f.py:1", "f.py:2"),
    ]


def test_the_header() -> None:
    found = diff(UNFUSED, module(f"{P}\n{CHAIN}", header=", is_scheduled=true"))
    assert [(d.name, d.before, d.after) for d in found.header] == [("is_scheduled", None, "true")]
    assert not found.same
    layout = ", entry_computation_layout={{(f32[8]{{0:{}}})->f32[8]{{0}}}}"
    one, two = (module(f"{P}\n{CHAIN}", header=layout.format(tile)) for tile in ("T(8)", "T(4)"))
    assert [d.name for d in diff(one, two).header] == ["entry_computation_layout"]
    changed = module(f"{P}\n{CHAIN}".replace("tanh", "sine"), header=layout.format("T(4)"))
    assert diff(one, changed).header == ()
    hashed = ', frontend_attributes={fingerprint_before_lhs="%s"}'
    one, two = (module(f"{P}\n{CHAIN}", header=hashed % h) for h in ("a1", "b2"))
    assert diff(one, two).header == ()


@pytest.mark.parametrize(
    ("before", "after"), [("", "x"), ("x", ""), ("x", "y"), ("x", "x, y"), ("x", "x"), ("", "")]
)
def test_another_order_of_execution_is_a_change(before: str, after: str) -> None:
    lines = f"{P}\nx = f32[8]{{0}} exponential(p)\ny = f32[8]{{0}} tanh(p)\nz = f32[8]{{0}} sine(p)ORDER\n"
    lines += "ROOT t = (f32[8]{0}, f32[8]{0}, f32[8]{0}) tuple(x, y, z)"
    orders = [f", control-predecessors={{{given}}}" if given else "" for given in (before, after)]
    edits = diff(*(module(lines.replace("ORDER", order)) for order in orders)).edits
    details = [d for e in edits if isinstance(e, Changed) for d in e.details]
    expected = [(Kind.CONTROL, before or None, after or None)] if before != after else []
    assert [(d.kind, d.before, d.after) for d in details] == expected


def test_a_damaged_fusion_is_named() -> None:
    with pytest.raises(HlofuseError, match="one has no operand for parameter 1 of f1"):
        diff(
            UNFUSED,
            module(
                f"{P}\nROOT one = f32[8]{{0}} fusion(p), kind=kLoop, calls=f1",
                fused(
                    "f1",
                    "a = f32[8]{0} parameter(0)",
                    "b = f32[8]{0} parameter(1)",
                    "ROOT c = f32[8]{0} add(a, b)",
                ),
            ),
        )


@pytest.mark.parametrize(("depth", "names"), [(300, ["ROOT a"]), (40, ["b", "ROOT a"])])
def test_deeply_nested_fusions(depth: int, names: list[str]) -> None:
    """Two calls at each of 40 levels are 10^12 operations, which nobody looks at."""
    computations = [fused("nest0", "q = f32[8]{0} parameter(0)", "ROOT a = f32[8]{0} tanh(q)")]
    for n in range(1, depth):
        calls = [f"{name} = f32[8]{{0}} fusion(q), kind=kLoop, calls=nest{n - 1}" for name in names]
        computations.append(fused(f"nest{n}", "q = f32[8]{0} parameter(0)", *calls))
    nested = module(f"{P}\nROOT x = f32[8]{{0}} fusion(p), kind=kLoop, calls=nest{depth - 1}", *computations)
    assert diff(nested, nested).same
    assert not diff(nested, UNFUSED).same


# ---------------------------------------------------------------- real modules


CPU = ("cpu", "cartpole/cpu")


@pytest.mark.parametrize("case", sorted(f"{c}/{p.name}" for c in CPU for p in (SAMPLES / c).glob("*/")))
def test_xla_fusion_passes_change_no_program(case: str) -> None:
    def stage(name: str) -> Path:
        return next(p for p in (SAMPLES / case).iterdir() if p.name.startswith(name))

    before, after = load(stage("before.hlo")), load(stage("after.hlo"))
    found = diff(before, after)
    assert found.same_program
    assert diff(before, before).same
    for computation in before.computations:
        for i in computation if computation.fusion is None else ():
            if i.opcode not in ("fusion", "tuple", "get-tuple-element") and (i.users or i.is_root):
                assert found.pairs.after_of(i) or computation.callers == {}, i


OTHER_SHAPES = ["f32[8,16]{0,1}", "f32[8,17]{1,0}", "f16[8,16]{1,0}"]


@pytest.mark.parametrize(
    "caller", ["call(p), to_apply=f", 'custom-call(p), custom_call_target="c", called_computations={f}']
)
@pytest.mark.parametrize("root", OTHER_SHAPES)
@pytest.mark.parametrize("result", OTHER_SHAPES)
def test_a_result_changes_with_the_root_of_its_callee(caller: str, root: str, result: str) -> None:
    """The root is no cause of a result that changes in another way."""
    start = "f32[8,16]{1,0}"

    def program(root: str, result: str) -> Module:
        callee = fused("f", f"q = {start} parameter(0)", f"ROOT r = {root} negate(q)")
        return module(f"p = {start} parameter(0)\nc = {result} {caller}\nROOT t = {result} tanh(c)", callee)

    edits = diff(program(start, start), program(root, result)).edits
    found = {e.before[0].instruction.name: names(e.because) for e in edits if isinstance(e, Changed)}
    assert found == {"r": [], "c": ["r"] if root == result else [], "t": ["c"]}


def test_equal_instructions_with_a_reducer_each_are_the_same_whatever_order_they_stand_in() -> None:
    names = ("a", "b", "c", "d")
    reducers = [ADD.replace("add_f32", f"add_{n}") for n in names]
    reduces = [
        f"r{n} = f32[] reduce({'p' if n in 'ab' else 'q'}, z), dimensions={{0}}, to_apply=add_{n}"
        for n in names
    ]
    start = [P, "q = f32[8]{0} parameter(1)", "z = f32[] constant(0)"]

    def program(order: str) -> Module:
        root = f"ROOT t = ({', '.join(['f32[]'] * 4)}) tuple({', '.join('r' + n for n in order)})"
        return module("\n".join([*start, *reduces, root]), *reducers)

    assert diff(program("abcd"), program("badc")).same


def test_an_instruction_that_one_side_lacks_is_noted() -> None:
    more = """HloModule m
ENTRY e { x = f32[8] parameter(0)
  y = f32[8] negate(x)
  z = f32[8] exponential(y)
  ROOT a = f32[8] add(z, x) }"""
    one, other = parse_module(more), parse_module(more.replace("add(z", "add(y").replace("  z =", "  // z ="))
    for sides, note in (((one, other), "removed"), ((other, one), "added")):
        notes = final_kernels(diff(*sides)).notes
        assert {i.name: text for i, text in notes.items()} == {"z": note}
