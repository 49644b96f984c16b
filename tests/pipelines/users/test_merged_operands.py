"""Values that operands of merged products were made of, each case as XLA's records show it."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.users.products.merged_operands import with_transposes_of_merger_behind

from .lists import HEAD, named, users_of

_GEMM = """%g (a: f32[8,4]) -> f32[8,4] {
  %a = f32[8,4]{1,0} parameter(0)
  ROOT %n = f32[8,4]{1,0} negate(%a)
}
"""


def _body(made: str, young: str) -> str:
    texts = {
        "made": f"  %transpose.2 = f32[4,4,2]{{2,1,0}} transpose(%product), dimensions={{1,2,0}}{made}",
        "program": "  %transpose.1 = f32[4,2,4]{2,1,0} transpose(%product), dimensions={1,0,2}"
        + named("transpose"),
        "sum": "  %reduce.1 = f32[4,4]{1,0} reduce(%product, %zero), dimensions={0}, to_apply=%sum"
        + named("reduce_sum"),
    }
    written = "\n".join(texts[k] for k in ("made", "program", "sum"))
    return f"""  %p = f32[8,4]{{1,0}} parameter(0)
  %zero = f32[] constant(0)
  %gemm = f32[8,4]{{1,0}} fusion(%p), kind=kCustom, calls=%g
  %product = f32[2,4,4]{{2,1,0}} bitcast(%gemm){named("dot_general")}
{written}
  ROOT %r = (f32[4,4,2]{{2,1,0}}, f32[4,2,4]{{2,1,0}}, f32[4,4]{{1,0}}) tuple({young})"""


@pytest.mark.parametrize("made", ["", named("mul")])
def test_what_dot_merger_transposed_comes_behind_the_transpose_of_the_program(made: str) -> None:
    """With a name it is the copy of something else."""
    body = _body(made, "%transpose.2, %transpose.1, %reduce.1")
    users = users_of("product", body, head=_GEMM)
    assert (users == ["transpose.1", "reduce.1", "transpose.2"]) == (not made)


@pytest.mark.parametrize(
    ("age", "is_behind"), [("reduce.1 transpose.2", True), ("transpose.2 reduce.1", False)]
)
def test_it_comes_behind_a_sum_that_is_known_to_be_older(age: str, is_behind: bool) -> None:
    """A younger one was made again, and may have been there before or not."""
    body = _body("", "%transpose.2, %transpose.1, %reduce.1")
    module = parse_module(f"{HEAD}\n{_GEMM}\nENTRY %main {{\n{body}\n}}\n")
    place = age.split()
    module.entry.reorder(
        sorted(module.entry.instructions, key=lambda x: place.index(x.name) if x.name in place else -1)
    )
    by_name = {x.name: x for x in module.entry}
    users = [by_name[name] for name in ("transpose.1", "transpose.2", "reduce.1")]
    order = {x: k for k, x in enumerate(module.entry)}
    found = with_transposes_of_merger_behind(by_name["product"], users, order)
    assert found == ([users[0], users[2], users[1]] if is_behind else users)


@pytest.mark.parametrize(("name", "is_behind"), [("reduce_sum.1", True), ("reduce.1", False)])
def test_it_comes_behind_a_gemm_and_a_sum_of_the_program(name: str, is_behind: bool) -> None:
    """A sum that was made again had read something else before."""
    body = _body("", "%transpose.2, %transpose.1, %reduce.1").replace(
        "  %transpose.1 = f32[4,2,4]{2,1,0} transpose(%product), dimensions={1,0,2}" + named("transpose"),
        "  %transpose.1 = f32[4,2,4]{2,1,0} fusion(%product), kind=kCustom, calls=%h",
    )
    of_gemm = """%h (b: f32[2,4,4]) -> f32[4,2,4] {
  %b = f32[2,4,4]{2,1,0} parameter(0)
  ROOT %t = f32[4,2,4]{2,1,0} transpose(%b), dimensions={1,0,2}
}
"""
    body = body.replace("transpose.1", "gemm.1").replace("reduce.1", name)
    module = parse_module(f"{HEAD}\n{_GEMM}\n{of_gemm}\nENTRY %main {{\n{body}\n}}\n")
    module.entry.reorder(sorted(module.entry.instructions, key=lambda x: x.name == "transpose.2"))
    by_name = {x.name: x for x in module.entry}
    users = [by_name[x] for x in ("gemm.1", "transpose.2", name)]
    order = {x: k for k, x in enumerate(module.entry)}
    found = with_transposes_of_merger_behind(by_name["product"], users, order)
    assert found == ([users[0], users[2], users[1]] if is_behind else users)


@pytest.mark.parametrize(
    ("first", "is_behind"), [("weights", False), ("bias", True), ("other", False), ("none", False)]
)
def test_it_comes_behind_a_sum_in_two_steps_that_was_met_first(first: str, is_behind: bool) -> None:
    """The derivatives of a bias, which ReductionSplitter split since, and of the weights in front of it."""
    merged = """%g.1 (a.1: f32[4,4,2], b.1: f32[4,4,2]) -> f32[8,4,2] {
  %a.1 = f32[4,4,2]{2,1,0} parameter(0)
  %b.1 = f32[4,4,2]{2,1,0} parameter(1)
  ROOT %c.1 = f32[8,4,2]{2,1,0} concatenate(%b.1, %a.1), dimensions={0}
}
"""
    body = _body("", "%transpose.2, %transpose.1, %reduce.1").partition("  ROOT")[0]
    total = "  %total = f32[4]{0} reduce(%reduce.1, %zero), dimensions={0}, to_apply=%sum"
    texts = {
        "weights": "  %w.1 = f32[4,4,2]{2,1,0} slice(%merged), slice={[4:8], [0:4], [0:2]}",
        "other": "  %w.2 = f32[4,4,2]{2,1,0} slice(%merged), slice={[0:4], [0:4], [0:2]}",
        "bias": f"{body.splitlines()[-1]}\n{total}{named('reduce_sum')}",
    }
    if first == "none":  # what the parts are is not known
        texts["weights"] = "  %w.1 = f32[8,4,2]{2,1,0} negate(%merged)"
    written = "\n".join(texts[k] for k in sorted(texts, key=lambda k: (k != first, k == "bias")))
    text = f"""{body.rpartition("  %reduce.1")[0]}
  %like = f32[4,4,2]{{2,1,0}} parameter(1)
  %merged = f32[8,4,2]{{2,1,0}} fusion(%transpose.2, %like), kind=kCustom, calls=%g.1
{written}
  ROOT %r = (f32[4]{{0}}) tuple(%total)"""
    module = parse_module(f"{HEAD}\n{_GEMM}\n{merged}\nENTRY %main {{\n{text}\n}}\n")
    by_name = {x.name: x for x in module.entry}
    users = [by_name[x] for x in ("transpose.1", "transpose.2", "reduce.1")]
    order = {x: k for k, x in enumerate(module.entry)}
    found = with_transposes_of_merger_behind(by_name["product"], users, order)
    assert found == ([users[0], users[2], users[1]] if is_behind else users)


def test_products_of_a_library_give_a_workspace_as_well() -> None:
    """Of cuBLAS's call the product is an element."""
    body = _body("", "%transpose.2, %transpose.1, %reduce.1").replace(
        "  %gemm = f32[8,4]{1,0} fusion(%p), kind=kCustom, calls=%g",
        "  %call = (f32[8,4]{1,0}, s8[64]{0}) custom-call(%p, %p), "
        'custom_call_target="__cublas$lt$matmul"\n'
        "  %gemm = f32[8,4]{1,0} get-tuple-element(%call), index=0",
    )
    assert users_of("product", body) == ["transpose.1", "reduce.1", "transpose.2"]


@pytest.mark.parametrize(
    ("convert", "users"),
    [
        ("convert(%product)", ["transpose.2", "transpose.1"]),
        ("convert(%product), NAMED", ["transpose.1", "transpose.2"]),
        ("copy(%narrow)", ["transpose.1", "transpose.2"]),
    ],
    ids=["narrowed", "named", "no-convert"],
)
def test_the_transpose_of_the_program_is_in_front_of_the_one_made_where_neither_has_a_name(
    convert: str, users: list[str]
) -> None:
    body = f"""  %p = f32[2,4,8,16]{{3,2,1,0}} parameter(0)
  %narrow = bf16[2,4,8,16]{{3,2,1,0}} parameter(1)
  %call = (f32[2,4,8,16]{{3,2,1,0}}, s8[64]{{0}}) custom-call(%p, %p), custom_call_target="__cublas$lt$matmul"
  %product = f32[2,4,8,16]{{3,2,1,0}} get-tuple-element(%call), index=0
  %convert.1 = bf16[2,4,8,16]{{3,2,1,0}} {convert.partition(", NAMED")[0]}
  %transpose.1 = bf16[4,16,2,8]{{3,2,1,0}} transpose(%convert.1), dimensions={{1,3,0,2}}
  %transpose.2 = bf16[2,8,4,16]{{3,2,1,0}} transpose(%convert.1), dimensions={{0,2,1,3}}NAME
  ROOT %r = (bf16[4,16,2,8]{{3,2,1,0}}, bf16[2,8,4,16]{{3,2,1,0}}) tuple(%transpose.1, %transpose.2)"""
    body = body.replace("NAME", named("transpose") if "NAMED" in convert else "")
    assert users_of("convert.1", body) == users


@pytest.mark.parametrize(
    ("name", "users"), [("", ["kept", "for.2", "for.1"]), (named("mul"), ["for.1", "kept", "for.2"])]
)
def test_products_that_were_merged_came_last_to_what_is_behind_a_transpose(
    name: str, users: list[str]
) -> None:
    """In the order in which they were, which is that of their slices."""
    products = "\n".join(
        f"""  %turned.{k} = f32[16,4]{{1,0}} bitcast(%for.{k})
  %product.{k} = f32[8,4]{{1,0}} custom-call(%p, %turned.{k}), custom_call_target="__cublas$gemm"{of_dot}
  %slice.{k}1 = f32[4,4]{{1,0}} slice(%product.{k}), slice={{[0:4], [0:4]}}{of_dot}
  %slice.{k}2 = f32[4,4]{{1,0}} slice(%product.{k}), slice={{[4:8], [0:4]}}{of_dot}"""
        for k, of_dot in ((1, named("dot_general")), (2, named("dot_general")))
    )
    body = f"""  %p = f32[8,16]{{1,0}} parameter(0)
  %q = f32[4,4,4]{{2,1,0}} parameter(1)
  %read = f32[4,4,4]{{2,1,0}} negate(%q){named("neg")}
  %for.1 = f32[4,4,4]{{2,1,0}} transpose(%read), dimensions={{1,0,2}}{name}
  %kept = f32[4,4,4]{{2,1,0}} transpose(%read), dimensions={{0,2,1}}{named("transpose")}
  %for.2 = f32[4,4,4]{{2,1,0}} transpose(%read), dimensions={{2,1,0}}
{products}
  ROOT %r = (f32[4,4], f32[4,4], f32[4,4], f32[4,4], f32[4,4,4]) tuple(\
%slice.11, %slice.12, %slice.21, %slice.22, %kept)"""
    ids = "p q read r kept slice.21 slice.22 slice.11 slice.12 for.1 for.2"
    ids += " turned.1 turned.2 product.1 product.2"
    assert users_of("read", body, ids=ids) == users
