"""Lists of users in the bodies of loops and around random keys, each case as XLA's records show it."""

from __future__ import annotations

import pytest

from .lists import loop_of, named, places_in_source, users_in, users_of

# ---------------------------------------------------------------- scatters of one window


def _scatter(frame: int) -> str:
    at, read = named("scatter", frame=frame), named("read", frame=7)
    return f"""  %p = s32[] parameter(0)
  %x = f32[4,7]{{1,0}} parameter(1)
  %w = f32[1,7]{{1,0}} parameter(2)
  %zero = s32[] constant(0)
  %i.1 = s32[] negate(%p){named("select_n", frame=7)}
  %bitcast.1 = s32[1]{{0}} bitcast(%i.1){named("select_n", frame=7)}
  %lt.1 = s32[1]{{0}} abs(%bitcast.1)
  %old.1 = f32[1,7]{{1,0}} dynamic-slice(%x, %i.1, %zero), dynamic_slice_sizes={{1,7}}
  %sum.1 = f32[1,7]{{1,0}} add(%old.1, %w)
  %new.1 = f32[4,7]{{1,0}} dynamic-update-slice(%x, %sum.1, %i.1, %zero){at}
  %read.1 = f32[1,7]{{1,0}} dynamic-slice(%x, %i.1, %zero), dynamic_slice_sizes={{1,7}}{read}
  ROOT %r = (s32[1]{{0}}, f32[4,7]{{1,0}}, f32[1,7]{{1,0}}) tuple(%lt.1, %new.1, %read.1)"""


def test_the_window_that_is_put_back_takes_the_place_of_the_element() -> None:
    assert users_of("i.1", _scatter(7)) == ["bitcast.1", "new.1", "read.1", "old.1"]


def test_a_place_that_was_found_again_for_the_scatter_had_its_own_users_first() -> None:
    assert users_of("i.1", _scatter(8)) == ["read.1", "bitcast.1", "new.1", "old.1"]


@pytest.mark.parametrize(
    ("kept", "users"),
    [
        ("dynamic-update-slice(%l, %kept.1, %p, %zero)", ["kept.1", "bitcast.1", "new.1", "old.1"]),
        ("add(%kept.1, %kept.1)", ["bitcast.1", "new.1", "kept.1", "old.1"]),
    ],
    ids=["a list of the loop", "nothing that is kept"],
)
def test_what_a_loop_keeps_of_a_place_for_its_derivative_is_in_front(kept: str, users: list[str]) -> None:
    kind = "s32[4,1]{1,0}" if "update" in kept else "s32[1,1]{1,0}"
    body = _scatter(7).replace("  %w = ", "  %l = s32[4,1]{1,0} parameter(3)\n  %w = ")
    body = body.replace(
        "  %read.1 = f32[1,7]{1,0} dynamic-slice(%x, %i.1, %zero), dynamic_slice_sizes={1,7}",
        f"  %kept.1 = s32[1,1]{{1,0}} bitcast(%i.1)\n  %list.1 = {kind} {kept}\n"
        "  %read.1 = f32[1,7]{1,0} negate(%w)",
    )
    body = body.replace("(s32[1]{0}, ", f"({kind}, s32[1]{{0}}, ").replace("tuple(", "tuple(%list.1, ")
    assert users_of("i.1", body) == users


@pytest.mark.parametrize(
    ("compared", "users"),
    [
        ("%i.1, %high.1", ["under.1", "number.1", "bitcast.1", "over.1"]),
        ("%high.1, %i.1", ["bitcast.1", "number.1", "over.1", "under.1"]),
    ],
    ids=["both were moved", "one was not"],
)
def test_the_bounds_of_a_place_that_was_kept_are_around_its_reshapes(compared: str, users: list[str]) -> None:
    body = f"""  %i.1 = s32[1,1]{{1,0}} parameter(0)
  %x = f32[4]{{0}} parameter(1)
  %bitcast.1 = s32[1]{{0}} bitcast(%i.1)
  %number.1 = s32[] bitcast(%i.1)
  %low.1 = s32[1,1]{{1,0}} constant({{ {{0}} }})
  %high.1 = s32[1,1]{{1,0}} constant({{ {{3}} }})
  %over.1 = pred[1,1]{{1,0}} compare(%i.1, %low.1), direction=GE{named("ge")}
  %under.1 = pred[1,1]{{1,0}} compare({compared}), direction=LE{named("le")}
  %old.1 = f32[1]{{0}} dynamic-slice(%x, %number.1), dynamic_slice_sizes={{1}}
  %new.1 = f32[4]{{0}} dynamic-update-slice(%x, %old.1, %number.1){named("scatter-add")}
  ROOT %r = (s32[1]{{0}}, f32[4]{{0}}, pred[1,1]{{1,0}}, pred[1,1]{{1,0}})\
 tuple(%bitcast.1, %new.1, %over.1, %under.1)"""
    assert users_of("i.1", body) == users


def _bounds(place: str, kind: str) -> str:
    """Those that `place` is compared with to tell whether the window is within the array."""
    return f"""  %high.1 = {kind} constant({3 if kind == "s32[]" else "{3}"})
  %over.1 = pred{kind[3:]} compare(%low.1, %{place}), direction=LE, metadata={{stack_frame_id=7}}
  %under.1 = pred{kind[3:]} compare(%high.1, %{place}), direction=GE, metadata={{stack_frame_id=7}}
  %and.1 = pred{kind[3:]} and(%over.1, %under.1), metadata={{stack_frame_id=7}}"""


@pytest.mark.parametrize(
    ("frame", "read", "users"),
    [
        (7, 9, ["under.1", "read.1", "new.1", "over.1", "old.1"]),
        (8, 9, ["read.1", "under.1", "new.1", "over.1", "old.1"]),
        (7, 7, ["read.1", "under.1", "new.1", "over.1", "old.1"]),
    ],
)
def test_the_upper_bound_of_a_number_takes_the_place_of_its_reshape(
    frame: int, read: int, users: list[str]
) -> None:
    """What read a number of its own, which CSE made this one, comes behind that reshape.

    Where all is in one place there is nothing to tell it by.
    """
    body = f"""  %p = s32[] parameter(0)
  %x = f32[4]{{0}} parameter(1)
  %low.1 = s32[] constant(0)
  %i.1 = s32[] negate(%p){named("select_n", frame=frame)}
  %read.1 = f32[1]{{0}} dynamic-slice(%x, %i.1), dynamic_slice_sizes={{1}}{named("read", frame=read)}
{_bounds("i.1", "s32[]")}
  %old.1 = f32[1]{{0}} dynamic-slice(%x, %i.1), dynamic_slice_sizes={{1}}
  %inside.1 = pred[1]{{0}} bitcast(%and.1)
  %sum.1 = f32[1]{{0}} select(%inside.1, %read.1, %old.1)
  %new.1 = f32[4]{{0}} dynamic-update-slice(%x, %sum.1, %i.1){named("scatter", frame=7)}
  ROOT %r = (f32[4]{{0}}) tuple(%new.1)"""
    assert users_of("i.1", body) == users


@pytest.mark.parametrize("is_first", [True, False])
def test_places_of_two_scatters_are_read_as_their_loops_left_them(is_first: bool) -> None:
    bounds = _bounds("bitcast.1", "s32[1]")
    other = """  %both.1 = s32[2]{0} concatenate(%low.1, %bitcast.1), dimensions={0}
  %abs.1 = s32[2]{0} abs(%both.1)"""
    results = "%and.1, %abs.1" if is_first else "%abs.1, %and.1"
    kinds = "pred[1]{0}, s32[2]{0}" if is_first else "s32[2]{0}, pred[1]{0}"
    body = f"""  %p = s32[] parameter(0)
  %low.1 = s32[1]{{0}} constant({{0}})
  %bitcast.1 = s32[1]{{0}} bitcast(%p){named("select_n", frame=7)}
{bounds if is_first else other}
{other if is_first else bounds}
  ROOT %r = ({kinds}) tuple({results})"""
    after, before = ["both.1", "under.1", "over.1"], ["under.1", "both.1", "over.1"]
    assert users_of("bitcast.1", body) == (before if is_first else after)


@pytest.mark.parametrize(
    ("body", "function", "index", "users"),
    [
        ("body.clone.clone", "", 1, ["select_n.1", "add.1", "lt.1"]),
        ("body.clone.clone", "", 2, ["select_n.1", "lt.1", "add.1"]),
        ("body.clone.clone", "eval_jaxpr/", 1, ["add.1", "select_n.1", "lt.1"]),
        ("body.clone.clone", "eval_jaxpr/", 2, ["select_n.1", "add.1", "lt.1"]),
        ("body.clone.clone.clone", "eval_jaxpr/", 2, ["select_n.1", "add.1", "lt.1"]),
        ("body", "", 2, ["lt.1", "add.1", "select_n.1"]),
    ],
    ids=[
        "ahead of what is indexed",
        "behind it",
        "ahead in one",
        "behind in one",
        "dropped since",
        "program's",
    ],
)
def test_what_read_a_counter_that_was_merged_reads_a_sum_that_its_increment_had_read_too(
    body: str, function: str, index: int, users: list[str]
) -> None:
    """XLA does so where a cache that a loop fills counts its steps as the loop itself does."""
    array = 3 - index
    kinds = ["s32[]", "s32[]", "s32[]"]
    kinds[array] = "f32[8]{0}"
    results = ["%next.1", "%start", "%start"]
    results[array] = "%new.1"
    text = f"""  %p = ({", ".join(kinds)}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %x = f32[8]{{0}} get-tuple-element(%p), index={array}
  %start = s32[] get-tuple-element(%p), index={index}
  %one = s32[] constant(1)
  %eight = s32[] constant(8)
  %zero = s32[] constant(0)
  %value = f32[1]{{0}} constant({{1}})
  %add.9 = s32[] add(%start, %i)
  %lt.1 = pred[] compare(%add.9, %zero), direction=LT{named(f"while/body/{function}lt")}
  %add.1 = s32[] add(%add.9, %eight){named(f"while/body/{function}add")}
  %select_n.1 = s32[] select(%lt.1, %add.1, %add.9){named(f"while/body/{function}select_n")}
  %new.1 = f32[8]{{0}} dynamic-update-slice(%x, %value, %select_n.1){named(f"while/body/{function}scatter")}
  %next.1 = s32[] add(%i, %one){named("while/body/add")}
  ROOT %r = ({", ".join(kinds)}) tuple({", ".join(results)})"""
    assert users_of("add.9", text, entry=body) == users


@pytest.mark.parametrize(
    ("called_from", "users"),
    [(2, ["sign.1", "neg.1", "abs.1"]), (0, ["neg.1", "sign.1", "abs.1"])],
    ids=["elsewhere in the body", "ahead of the loop"],
)
def test_what_a_body_computed_twice_of_a_merged_counter_was_made_one_ahead_of_that(
    called_from: int, users: list[str]
) -> None:
    """The gone one stood behind `abs.1`."""
    tables = places_in_source(
        ("f", 1, 1, 2),
        ("body", 2, 1, 2),
        ("g", 3, 1, 2),
        ("h", 4, 1, 2),
        ("g", 5, 1, 2),
        ("h", 4, 1, 2),
        called_from={2: 1, 3: 2, 4: 3, 5: called_from, 6: 5},
    )
    kinds = "(s32[], s32[], s32[3]{0})"
    text = f"""HloModule m
{tables}
%body.clone.clone (p: {kinds}) -> {kinds} {{
  %p = {kinds} parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %start = s32[] get-tuple-element(%p), index=1
  %x = s32[3]{{0}} get-tuple-element(%p), index=2
  %add.9 = s32[] add(%start, %i)
  %abs.1 = s32[] abs(%add.9){named("while/body/abs", frame=4)}
  %sign.1 = s32[] sign(%add.9){named("while/body/sign")}
  %neg.1 = s32[] negate(%add.9){named("while/body/neg")}
  %mul.1 = s32[] multiply(%abs.1, %sign.1)
  %mul.2 = s32[] multiply(%mul.1, %neg.1)
  %all.1 = s32[3]{{0}} broadcast(%mul.2), dimensions={{}}
  %sum.1 = s32[3]{{0}} add(%x, %all.1)
  %one = s32[] constant(1)
  %next.1 = s32[] add(%i, %one){named("while/body/add")}
  ROOT %r = {kinds} tuple(%next.1, %start, %sum.1)
}}

{loop_of("body.clone.clone", kinds)}"""
    assert users_in(text, "add.9", ids_known=True) == users


# ---------------------------------------------------------------- keys


def _key(operation: str) -> str:
    return f"""  %p = u32[2]{{0}} parameter(0)
  %q = u32[1]{{0}} slice(%p), slice={{[1:2]}}{named(f"jit(g)/{operation}")}
  %k.1 = u32[1]{{0}} slice(%p), slice={{[0:1]}}{named(f"jit(g)/{operation}")}
  %add.2 = u32[1]{{0}} add(%k.1, %q){named("jit(g)/add")}
  %add.3 = u32[1]{{0}} add(%add.2, %k.1){named("jit(g)/add")}
  %xor.9 = u32[1]{{0}} xor(%k.1, %q){named("jit(g)/xor")}
  %sub.9 = u32[1]{{0}} subtract(%add.3, %xor.9){named("sub")}
  %mul.9 = u32[1]{{0}} multiply(%add.3, %sub.9){named("mul")}
  ROOT %r = (u32[1]{{0}}, u32[1]{{0}}) tuple(%mul.9, %sub.9)"""


_IDS = "p q r k.1 add.2 add.3 mul.9 sub.9 xor.9"


def test_what_is_unstacked_was_reshaped_at_once() -> None:
    """What ReshapeMover made of the reshape's reader took its place, which was the first."""
    named_so = _key("unstack").replace("%k.1", "%unstack.1")
    ids = _IDS.replace("k.1", "unstack.1")
    assert users_of("unstack.1", named_so, ids=ids) == ["xor.9", "add.2", "add.3"]


@pytest.mark.parametrize(("kind", "users"), [("unstack", ["xor.9", "b.1"]), ("slice", ["b.1", "xor.9"])])
def test_what_is_unstacked_of_several_arrays_was_reshaped_at_once_too(kind: str, users: list[str]) -> None:
    at = named(f"jit(g)/vmap()/{kind}")
    body = f"""  %p = u32[4,2]{{1,0}} parameter(0)
  %k.1 = u32[4,1]{{1,0}} slice(%p), slice={{[0:4], [0:1]}}{at}
  %q.1 = u32[4,1]{{1,0}} slice(%p), slice={{[0:4], [1:2]}}{at}
  %b.1 = u32[4]{{0}} bitcast(%k.1){at}
  %xor.9 = u32[4,1]{{1,0}} xor(%k.1, %q.1){named("jit(g)/vmap()/xor")}
  %mul.9 = u32[4,1]{{1,0}} multiply(%q.1, %q.1){named("mul")}
  ROOT %r = (u32[4]{{0}}, u32[4,1]{{1,0}}, u32[4,1]{{1,0}}) tuple(%b.1, %xor.9, %mul.9)"""
    body = body.replace("%k.1", f"%{kind}.1").replace("%q.1", f"%{kind}.2")
    ids = f"p r {kind}.1 {kind}.2 mul.9 xor.9 b.1"
    assert users_of(f"{kind}.1", body, ids=ids) == users


@pytest.mark.parametrize(("reader", "users"), [("mul", ["b.1", "sub.9"]), ("bitcast", ["sub.9", "b.1"])])
def test_what_is_unstacked_was_reshaped_apart_for_a_broadcast(reader: str, users: list[str]) -> None:
    """That reshape was made one with the one that a difference reads, and stood in front of it."""
    at = named("unstack")
    read = "broadcast(%b.1), dimensions={1}" if reader == "mul" else "bitcast(%s.1)"
    body = f"""  %p = f32[2,4]{{1,0}} parameter(0)
  %t = f32[1,4]{{1,0}} parameter(1)
  %s.1 = f32[16]{{0}} parameter(2)
  %unstack.1 = f32[1,4]{{1,0}} slice(%p), slice={{[0:1], [0:4]}}{at}
  %b.1 = f32[4]{{0}} bitcast(%unstack.1){at}
  %c.1 = f32[4]{{0}} cosine(%b.1){named("cos")}
  %d.1 = f32[4,4]{{1,0}} {read}{named("mul")}
  %sub.9 = f32[1,4]{{1,0}} subtract(%t, %unstack.1){named("sub")}
  ROOT %r = (f32[4]{{0}}, f32[4,4]{{1,0}}, f32[1,4]{{1,0}}) tuple(%c.1, %d.1, %sub.9)"""
    if reader == "mul":
        body = body.replace(f"  %c.1 = f32[4]{{0}} cosine(%b.1){named('cos')}\n", "")
        body = body.replace("(f32[4]{0}, ", "(").replace("%c.1, ", "")
    ids = "p t s.1 unstack.1 r sub.9 b.1 c.1 d.1"
    assert users_of("unstack.1", body, ids=ids) == users


@pytest.mark.parametrize(
    ("spread", "users"),
    [("mul.2.0", ["mul.9.0", "mul.6.0"]), ("mul.5.0", ["mul.6.0", "mul.9.0"])],
)
def test_the_last_takes_the_place_of_a_product_moved_in_front_of_a_reshape(
    spread: str, users: list[str]
) -> None:
    """The scalar was spread for a product that is gone, or for one that is there."""
    body = f"""  %p = f32[] parameter(0)
  %x = f32[8]{{0}} parameter(1)
  %y = f32[8]{{0}} parameter(2)
  %{spread} = f32[8]{{0}} broadcast(%p), dimensions={{}}{named("mul")}
  %mul.6.0 = f32[8]{{0}} multiply(%x, %{spread}){named("mul")}
  %mul.9.0 = f32[8]{{0}} multiply(%y, %{spread}){named("mul")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%mul.6.0, %mul.9.0)"""
    assert users_of(spread, body, ids=f"p x y {spread} - mul.6.0 - mul.9.0 r") == users


def test_what_is_sliced_alone_may_have_been_reshaped_for_one() -> None:
    named_so = _key("slice").replace("%k.1", "%slice.1")
    ids = _IDS.replace("k.1", "slice.1")
    assert users_of("slice.1", named_so, ids=ids) == ["add.2", "add.3", "xor.9"]


def _number(count: int) -> str:
    shape = f"u32[{count}]{{0}}"
    return f"""  %all = u32[16]{{0}} parameter(0)
  %p = {shape} slice(%all), slice={{[0:{count}]}}{named("jit(g)/unstack")}
  %q = {shape} slice(%all), slice={{[8:{8 + count}]}}{named("jit(g)/unstack")}
  %xor.9 = {shape} xor(%p, %q){named("jit(g)/xor")}
  %add.2 = {shape} add(%xor.9, %q){named("jit(g)/add")}
  %add.3 = {shape} add(%add.2, %xor.9){named("jit(g)/add")}
  %mul.9 = {shape} multiply(%add.3, %q){named("mul")}
  ROOT %r = ({shape}) tuple(%mul.9)"""


def test_one_number_that_was_computed_later_in_its_array_had_a_reshape_behind_it() -> None:
    ids = "all p q r add.2 add.3 mul.9 xor.9"
    assert users_of("xor.9", _number(1), ids=ids) == ["add.3", "add.2"]
    assert users_of("xor.9", _number(8), ids=ids) == ["add.2", "add.3"]


# ---------------------------------------------------------------- constants and exponents


def test_the_constant_of_a_branch_that_is_in_a_function_is_its_own() -> None:
    """What other functions read of the like was appended to its users, if it is older than its root."""
    branch = "while/body/eval_jaxpr"
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %is = pred[8]{{0}} parameter(1)
  %zero = f32[] constant(0)
  %broadcast.1 = f32[8]{{0}} broadcast(%zero), dimensions={{}}{named(branch)}
  %late.1 = f32[8]{{0}} select(%is, %p, %broadcast.1){named(f"{branch}/cond/branch_1_fun/jit(g)/late")}
  %own.1 = f32[8]{{0}} add(%late.1, %broadcast.1){named(f"{branch}/cond/branch_1_fun/own")}
  ROOT %r = (f32[8]{{0}}) tuple(%own.1)"""
    ids = "p is zero broadcast.1 own.1 r late.1"
    assert users_of("broadcast.1", body, ids=ids) == ["own.1", "late.1"]


def test_an_exponent_is_negated_later_than_it_is_read() -> None:
    """`a / b ** c` becomes `a * b ** -c`, and the power itself is still read."""
    body = f"""  %p = f32[] parameter(0)
  %q = f32[] parameter(1)
  %c.1 = f32[] tanh(%q){named("pow")}
  %negate.1 = f32[] negate(%c.1){named("pow")}
  %power.1 = f32[] power(%p, %negate.1){named("pow")}
  %pow.1 = f32[] power(%p, %c.1){named("pow")}
  ROOT %r = (f32[], f32[]) tuple(%power.1, %pow.1)"""
    assert users_of("c.1", body) == ["pow.1", "negate.1"]


@pytest.mark.parametrize(
    ("read", "users"), [("v", ["mul.1", "exp.1", "negate.1"]), ("q", ["negate.1", "mul.1"])]
)
def test_an_exponent_of_e_is_negated_later_than_it_is_read(read: str, users: list[str]) -> None:
    """`a / exp(v)` becomes `a * exp(-v)`, as XLA's record shows it where `exp(v)` is still read."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %v = f32[8]{{0}} sine(%p){named("sin")}
  %negate.1 = f32[8]{{0}} negate(%v){named("div")}
  %exponential.1 = f32[8]{{0}} exponential(%negate.1){named("exp")}
  %multiply.1 = f32[8]{{0}} multiply(%q, %exponential.1){named("div")}
  %mul.1 = f32[8]{{0}} multiply(%v, %q){named("mul")}
  %exp.1 = f32[8]{{0}} exponential(%{read}){named("exp")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}) tuple(%multiply.1, %mul.1, %exp.1)"""
    ids = "p q v mul.1 exp.1 r negate.1 exponential.1 multiply.1"
    assert users_of("v", body, ids=ids) == users


def test_a_constant_alone_in_a_clone_lost_what_it_was_made_for() -> None:
    """The numbers of a clone are new; that nothing else of the place is there says the same."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %one = f32[] constant(1)
  %mul.1.0 = f32[8]{{0}} broadcast(%one), dimensions={{}}{named("while/body/mul", frame=3)}
  %mul.2.0 = f32[8]{{0}} multiply(%p, %p){named("while/body/jit(g)/mul", frame=4)}
  %add.1 = f32[8]{{0}} add(%mul.2.0, %mul.1.0){named("while/body/jit(g)/add")}
  %sub.1 = f32[8]{{0}} subtract(%add.1, %mul.1.0){named("while/body/jit(h)/sub")}
  ROOT %r = (f32[8]{{0}}) tuple(%sub.1)"""
    ids = "p one mul.1.0 r mul.2.0 add.1 sub.1"
    assert users_of("mul.1.0", body, ids=ids) == ["add.1", "sub.1"]
    assert users_of("mul.1.0", body, ids=ids, entry="body.clone") == ["sub.1", "add.1"]


# ---------------------------------------------------------------- layouts


def test_a_transpose_that_moved_nothing_was_between_what_is_row_major_and_what_was_made_anew() -> None:
    """A copy behind the latter takes the place of the bitcast that was put there first."""
    body = f"""  %p = f32[4,8]{{1,0}} parameter(0)
  %q = f32[8]{{0}} parameter(1)
  %mul.1 = f32[4,8]{{1,0}} multiply(%p, %p){named("mul")}
  %bitcast.1 = f32[8,1]{{1,0}} bitcast(%q){named("x")}
  %add.5 = f32[4,8]{{1,0}} add(%mul.1, %mul.1){named("add")}
  %sqrt.5 = f32[4,8]{{1,0}} sqrt(%add.5){named("sqrt")}
  %transpose.9 = f32[8,4]{{1,0}} transpose(%add.5), dimensions={{1,0}}
  ROOT %r = (f32[4,8]{{1,0}}, f32[8,4]{{1,0}}, f32[8,1]{{1,0}}) tuple(%sqrt.5, %transpose.9, %bitcast.1)"""
    ids = "p q mul.1 r bitcast.1 add.5 sqrt.5 transpose.9"
    assert users_of("add.5", body, ids=ids) == ["transpose.9", "sqrt.5"]


@pytest.mark.parametrize(
    ("place", "users"),
    [
        ("iota(), iota_dimension=0", ["second", "below", "first"]),
        ("negate(%p)", ["below", "first", "second"]),
    ],
    ids=["runs on from zero", "may be negative"],
)
def test_a_place_that_is_not_negative_was_compared_with_zero_first(place: str, users: list[str]) -> None:
    """A scatter of one window looks whether that is within the array; the last took the place."""
    at = named("scatter", frame=1)
    body = f"""  %p = s32[2]{{0}} parameter(0)
  %c = s32[2]{{0}} constant({{4, 5}})
  %place = s32[2]{{0}} {place}
  %below = pred[2]{{0}} compare(%c, %place), direction=GE, metadata={{stack_frame_id=1}}
  %first = s32[1]{{0}} slice(%place), slice={{[0:1]}}{at}
  %second = s32[1]{{0}} slice(%place), slice={{[1:2]}}{at}
  ROOT %r = (pred[2]{{0}}, s32[1]{{0}}, s32[1]{{0}}) tuple(%below, %first, %second)"""
    assert users_of("place", body) == users
