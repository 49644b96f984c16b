"""Products of batches of matrices, each case as XLA's records show it."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("op_name", "users"),
    [
        ("transpose(jvp(bhts,bshd->bthd))/dot_general", ["mul.1", "div.1"]),
        ("transpose(jvp(bhts,bhsd->bhtd))/dot_general", ["div.1", "mul.1"]),
        ("jvp(bthd,bshd->bhts)/dot_general", ["mul.1", "div.1"]),
        ("jvp(bhtd,bhsd->bhts)/dot_general", ["div.1", "mul.1"]),
        ("jvp(Net)/...qhd,...khd->...hqk/dot_general", ["mul.1", "div.1"]),
        ("jvp(Net)/...qd,...kd->...qk/dot_general", ["div.1", "mul.1"]),
        ("jvp()/dot_general", ["div.1", "mul.1"]),
    ],
)
def test_what_the_decomposer_had_to_turn_leaves_its_place_to_the_last(op_name: str, users: list[str]) -> None:
    body = f"""  %p = f32[8,16,4]{{2,1,0}} parameter(0)
  %q = f32[8,4,16]{{2,1,0}} parameter(1)
  %o = f32[2,4,16,16]{{3,2,1,0}} parameter(2)
  %call = (f32[8,16,16]{{2,1,0}}, s8[64]{{0}}) custom-call(%p, %q), custom_call_target="__cublas$lt$matmul"
  %product = f32[8,16,16]{{2,1,0}} get-tuple-element(%call), index=0
  %bitcast.1 = f32[2,4,16,16]{{3,2,1,0}} bitcast(%product){named(op_name)}
  %div.1 = f32[2,4,16,16]{{3,2,1,0}} divide(%bitcast.1, %o){named("div")}
  %mul.1 = f32[2,4,16,16]{{3,2,1,0}} multiply(%bitcast.1, %o){named("mul")}
  ROOT %r = (f32[2,4,16,16]{{3,2,1,0}}, f32[2,4,16,16]{{3,2,1,0}}) tuple(%div.1, %mul.1)"""
    ids = "p q o div.1 mul.1 r bitcast.1 call product"
    assert users_of("bitcast.1", body, ids=ids) == users


@pytest.mark.parametrize(
    ("einsum", "operation", "users"),
    [
        ("sS,Sd->sd", "reshape", ["mul.1", "div.1"]),
        ("sS,Sd->sd", "transpose", ["div.1", "mul.1"]),
        ("hts,hsd->htd", "reshape", ["div.1", "mul.1"]),
    ],
    ids=["by a pass", "by the program", "with a batch of its own"],
)
def test_a_batched_einsum_may_have_had_its_batch_anywhere(
    einsum: str, operation: str, users: list[str]
) -> None:
    """Its name does not say where: the operand that a pass turned does."""
    op_name = f"transpose(jvp())/vmap({einsum})/dot_general"
    body = f"""  %p = f32[16,2,4,16]{{3,2,1,0}} parameter(0)
  %q = f32[8,16,16]{{2,1,0}} parameter(1)
  %o = f32[2,4,16,16]{{3,2,1,0}} parameter(2)
  %turned = f32[2,4,16,16]{{3,2,1,0}} transpose(%p), dimensions={{1,2,0,3}}{named(operation)}
  %left = f32[8,16,16]{{2,1,0}} bitcast(%turned)
  %call = (f32[8,16,16]{{2,1,0}}, s8[64]{{0}}) custom-call(%left, %q), custom_call_target="__cublas$lt$matmul"
  %product = f32[8,16,16]{{2,1,0}} get-tuple-element(%call), index=0
  %bitcast.1 = f32[2,4,16,16]{{3,2,1,0}} bitcast(%product){named(op_name)}
  %div.1 = f32[2,4,16,16]{{3,2,1,0}} divide(%bitcast.1, %o){named("div")}
  %mul.1 = f32[2,4,16,16]{{3,2,1,0}} multiply(%bitcast.1, %o){named("mul")}
  ROOT %r = (f32[2,4,16,16]{{3,2,1,0}}, f32[2,4,16,16]{{3,2,1,0}}) tuple(%div.1, %mul.1)"""
    ids = "p q o div.1 mul.1 r turned left bitcast.1 call product"
    assert users_of("bitcast.1", body, ids=ids) == users


@pytest.mark.parametrize(
    ("operation", "users"),
    [("ragged_dot_general", ["neg.1", "mul.1", "mul.2"]), ("dot_general", ["mul.1", "mul.2", "neg.1"])],
)
def test_a_product_of_groups_of_rows_sums_over_the_groups_as_well(operation: str, users: list[str]) -> None:
    """A mixture of experts: two dimensions that are summed are reshaped to one, and the result to itself."""
    body = f"""  %p = f32[4,8,8]{{2,1,0}} parameter(0)
  %zero = f32[] constant(0)
  %reduce.1 = f32[8,8]{{1,0}} reduce(%p, %zero), dimensions={{0}}, to_apply=%sum{named(operation)}
  %mul.1 = f32[8,8]{{1,0}} sine(%reduce.1){named("mul")}
  %mul.2 = f32[8,8]{{1,0}} cosine(%reduce.1){named("mul")}
  %neg.1 = f32[8,8]{{1,0}} negate(%reduce.1){named("neg")}
  ROOT %r = (f32[8,8]{{1,0}}, f32[8,8]{{1,0}}, f32[8,8]{{1,0}}) tuple(%mul.1, %mul.2, %neg.1)"""
    assert users_of("reduce.1", body) == users


@pytest.mark.parametrize(
    ("left", "right", "users"),
    [
        ("8,4,16", "8,4,32", ["pow.1", "mul.1"]),
        ("32,16", "32,32", ["mul.1", "pow.1"]),
        ("8,4,16", "32,32", ["mul.1", "pow.1"]),
    ],
    ids=["sums over two dimensions", "over one", "one operand is a matrix"],
)
def test_where_a_product_is_the_matrix_that_the_program_has_the_last_user_is_in_front(
    left: str, right: str, users: list[str]
) -> None:
    """As is the case with the sum of what SplitkRewriter made of it."""
    op_name = "transpose(jvp())/dot_general"
    head = """
%split (x: f32[2,16,16], y: f32[2,16,32]) -> f32[2,16,32] {
  %x = f32[2,16,16]{2,1,0} parameter(0)
  %y = f32[2,16,32]{2,1,0} parameter(1)
  ROOT %dot.1 = f32[2,16,32]{2,1,0} dot(%x, %y), lhs_batch_dims={0}, lhs_contracting_dims={1},\
 rhs_batch_dims={0}, rhs_contracting_dims={1}
}
"""
    body = f"""  %p = f32[{left}] parameter(0)
  %q = f32[{right}] parameter(1)
  %o = f32[16,32]{{1,0}} parameter(2)
  %zero = f32[] constant(0)
  %ps = f32[2,16,16]{{2,1,0}} bitcast(%p)
  %qs = f32[2,16,32]{{2,1,0}} bitcast(%q)
  %gemm.1 = f32[2,16,32]{{2,1,0}} fusion(%ps, %qs), kind=kCustom, calls=%split{named(op_name)}
  %reduce.1 = f32[16,32]{{1,0}} reduce(%gemm.1, %zero), dimensions={{0}}, to_apply=%sum{named(op_name)}
  %mul.1 = f32[16,32]{{1,0}} multiply(%reduce.1, %o){named("mul")}
  %pow.1 = f32[16,32]{{1,0}} multiply(%reduce.1, %reduce.1){named("integer_pow")}
  ROOT %r = (f32[16,32]{{1,0}}, f32[16,32]{{1,0}}) tuple(%mul.1, %pow.1)"""
    assert users_of("reduce.1", body, head=head) == users


@pytest.mark.parametrize(
    ("read", "users"),
    [("8,4", ["pow.1", "mul.1"]), ("32,1", ["mul.1", "pow.1"])],
    ids=["sums over two dimensions", "over one"],
)
def test_so_it_is_with_one_that_was_merged_with_another(read: str, users: list[str]) -> None:
    """What both multiply was gathered: it lies there as a matrix since."""
    of = named("transpose(jvp())/dot_general")
    body = f"""  %p = f32[{read},8] parameter(0)
  %q = f32[{read},16] parameter(1)
  %table = f32[9,32]{{1,0}} parameter(2)
  %at = s32[32,1]{{1,0}} parameter(3)
  %o = f32[16,32]{{1,0}} parameter(4)
  %ps = f32[32,8]{{1,0}} bitcast(%p)
  %qs = f32[32,16]{{1,0}} bitcast(%q)
  %left = f32[32,24]{{1,0}} concatenate(%ps, %qs), dimensions={{1}}
  %gather.1 = f32[32,1,32]{{2,1,0}} gather(%table, %at), offset_dims={{1,2}}, collapsed_slice_dims={{}},\
 start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,32}}{named("gather")}
  %right = f32[32,32]{{1,0}} bitcast(%gather.1)
  %call = (f32[24,32]{{1,0}}, s8[64]{{0}}) custom-call(%left, %right), custom_call_target="__cublas$lt$matmul"
  %product = f32[24,32]{{1,0}} get-tuple-element(%call), index=0
  %slice.1 = f32[16,32]{{1,0}} slice(%product), slice={{[8:24], [0:32]}}{of}
  %mul.1 = f32[16,32]{{1,0}} multiply(%slice.1, %o){named("mul")}
  %pow.1 = f32[16,32]{{1,0}} multiply(%slice.1, %slice.1){named("integer_pow")}
  ROOT %r = (f32[16,32]{{1,0}}, f32[16,32]{{1,0}}) tuple(%mul.1, %pow.1)"""
    assert users_of("slice.1", body) == users


@pytest.mark.parametrize(
    ("read", "users"),
    [("8,4", ["cond.1", "finite.1", "sin.1"]), ("32,1", ["finite.1", "cond.1", "sin.1"])],
    ids=["sums over two dimensions", "over one"],
)
def test_where_a_conditional_was_the_last_user_its_branches_are_read_from_in_front(
    read: str, users: list[str]
) -> None:
    """The reshape goes before ConditionalSimplifier puts the branches in place of the conditional."""
    body = f"""  %p = f32[{read},16] parameter(0)
  %q = f32[{read},32] parameter(1)
  %go = pred[16,32]{{1,0}} parameter(2)
  %o = f32[16,32]{{1,0}} parameter(3)
  %ps = f32[32,16]{{1,0}} bitcast(%p)
  %qs = f32[32,32]{{1,0}} bitcast(%q)
  %call = (f32[16,32]{{1,0}}, s8[64]{{0}}) custom-call(%ps, %qs), custom_call_target="__cublas$lt$matmul",\
 metadata={{op_name="jit(f)/transpose(jvp())/dot_general"}}
  %product = f32[16,32]{{1,0}} get-tuple-element(%call), index=0
  %finite.1 = pred[16,32]{{1,0}} is-finite(%product){named("is_finite")}
  %sin.1 = f32[16,32]{{1,0}} sine(%product){named("cond/branch_1_fun/sin")}
  %cos.1 = f32[16,32]{{1,0}} cosine(%sin.1){named("cond/branch_1_fun/cos")}
  %neg.1 = f32[16,32]{{1,0}} negate(%o){named("cond/branch_0_fun/neg")}
  %cond.1 = f32[16,32]{{1,0}} select(%go, %product, %neg.1){named("cond")}
  ROOT %r = (pred[16,32]{{1,0}}, f32[16,32]{{1,0}}, f32[16,32]{{1,0}}) tuple(%finite.1, %cos.1, %cond.1)"""
    assert users_of("product", body) == users
