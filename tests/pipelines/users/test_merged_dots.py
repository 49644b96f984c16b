"""Products that DotMerger made one, each case as XLA's records show it."""

from __future__ import annotations

from .lists import SPLIT, named, users_of


def test_parts_of_a_product_that_were_transposed_come_by_age() -> None:
    """They bear the name of the transpose; slices of anything else are no parts."""
    body = f"""  %p = f32[8,16]{{1,0}} parameter(0)
  %call = (f32[8,16]{{1,0}}, s8[64]{{0}}) custom-call(%p, %p), custom_call_target="__cublas$lt$matmul"
  %product = f32[8,16]{{1,0}} get-tuple-element(%call), index=0
  %convert.1 = bf16[8,16]{{1,0}} convert(SOURCE)
  %slice.3 = bf16[8,8]{{1,0}} slice(%convert.1), slice={{[0:8], [8:16]}}{named("transpose")}
  %slice.2 = bf16[8,8]{{1,0}} slice(%convert.1), slice={{[0:8], [0:8]}}{named("transpose")}
  ROOT %r = (bf16[8,8]{{1,0}}, bf16[8,8]{{1,0}}, f32[8,16]{{1,0}}) tuple(%slice.3, %slice.2, %product)"""
    ids = "p r slice.2 slice.3 call product convert.1"
    assert users_of("convert.1", body.replace("SOURCE", "%product"), ids=ids) == ["slice.2", "slice.3"]
    assert users_of("convert.1", body.replace("SOURCE", "%p"), ids=ids) == ["slice.3", "slice.2"]


_GEMM = """
%gemm (x: f32[16,8], w: f32[8,8], bias: f32[8]) -> f32[16,8] {
  %x = f32[16,8]{1,0} parameter(0)
  %w = f32[8,8]{1,0} parameter(1)
  %bias = f32[8]{0} parameter(2)
  %spread = f32[16,8]{1,0} broadcast(%bias), dimensions={1}
  %sum = f32[16,8]{1,0} add(%x, %spread)
  ROOT %dot.1 = f32[16,8]{1,0} dot(%sum, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


def test_parts_of_a_gemm_that_were_transposed_come_by_age_too() -> None:
    body = f"""  %p = f32[16,8]{{1,0}} parameter(0)
  %q = f32[8,8]{{1,0}} parameter(1)
  %v = f32[8]{{0}} parameter(2)
  %gemm.1 = f32[16,8]{{1,0}} fusion(%p, %q, %v), kind=KIND, calls=%gemm{named("transpose")}
  %slice.3 = f32[8,8]{{1,0}} slice(%gemm.1), slice={{[8:16], [0:8]}}{named("transpose")}
  %slice.2 = f32[8,8]{{1,0}} slice(%gemm.1), slice={{[0:8], [0:8]}}{named("transpose")}
  %gemm.2 = f32[16,8]{{1,0}} fusion(%gemm.1, %q, %v), kind=kCustom, calls=%gemm{named("dot_general")}
  ROOT %r = (f32[16,8], f32[8,8], f32[8,8]) tuple(%gemm.2, %slice.3, %slice.2)"""
    ids = "p q v r slice.2 slice.3 gemm.1 gemm.2"
    merged = body.replace("KIND", "kCustom")
    assert users_of("gemm.1", merged, head=_GEMM, ids=ids) == ["slice.2", "slice.3", "gemm.2"]
    other = users_of("gemm.1", body.replace("KIND", "kLoop"), head=_GEMM, ids=ids)
    assert other.index("slice.3") < other.index("slice.2")


def test_products_that_were_merged_led_to_an_operand_of_their_own_when_equal_constants_were() -> None:
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %q = f32[8,8]{{1,0}} parameter(1)
  %c = f32[] constant(0)
  %broadcast.1 = f32[8,8]{{1,0}} broadcast(%c), dimensions={{}}
  %max.1 = f32[8,8]{{1,0}} maximum(%p, %broadcast.1){named("jit(relu)/max", frame=1)}
  %max.2 = f32[8,8]{{1,0}} maximum(%q, %broadcast.1){named("jvp()/jit(relu)/max", frame=2)}
  %both.1 = f32[16,8]{{1,0}} concatenate(%max.1, %max.2), dimensions={{0}}
  %call = (f32[16,8]{{1,0}}, s8[64]{{0}}) custom-call(%both.1, %p), custom_call_target="__cublas$lt$matmul"
  %product = f32[16,8]{{1,0}} get-tuple-element(%call), index=0
  %slice.1 = f32[8,8]{{1,0}} slice(%product), slice={{[0:8], [0:8]}}{named("NAME")}
  %slice.2 = f32[8,8]{{1,0}} slice(%product), slice={{[8:16], [0:8]}}{named("NAME")}
  ROOT %r = (f32[8,8]{{1,0}}, f32[8,8]{{1,0}}) tuple(%slice.2, %slice.1)"""
    ids = "p q c r broadcast.1 - max.1 - - - max.2 both.1 call product slice.1 slice.2"
    merged = body.replace("NAME", "dot_general")
    assert users_of("broadcast.1", merged, ids=ids) == ["max.2", "max.1"]
    in_order = merged.replace("tuple(%slice.2, %slice.1)", "tuple(%slice.1, %slice.2)")
    assert users_of("broadcast.1", in_order, ids=ids) == ["max.1", "max.2"]
    assert users_of("broadcast.1", body.replace("NAME", "reshape"), ids=ids) == ["max.1", "max.2"]


def test_operands_of_merged_products_were_computed_for_one_after_the_other() -> None:
    """Concatenated they are all in front of either part, and the concatenated is where the product was."""
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %q = f32[8,8]{{1,0}} parameter(1)
  %sin.1 = f32[8,8]{{1,0}} sine(%p){named("sin")}
  %cos.1 = f32[8,8]{{1,0}} cosine(%p){named("cos")}
  %neg.1 = f32[8,8]{{1,0}} negate(%sin.1){named("neg")}
  %both.1 = f32[16,8]{{1,0}} concatenate(%sin.1, %cos.1), dimensions={{0}}
  %call = (f32[16,8]{{1,0}}, s8[64]{{0}}) custom-call(%both.1, %q), custom_call_target="__cublas$lt$matmul"
  %product = f32[16,8]{{1,0}} get-tuple-element(%call), index=0
  %slice.1 = f32[8,8]{{1,0}} slice(%product), slice={{[0:8], [0:8]}}{named("NAME")}
  %slice.2 = f32[8,8]{{1,0}} slice(%product), slice={{[8:16], [0:8]}}{named("NAME")}
  ROOT %r = (f32[8,8]{{1,0}}, f32[8,8]{{1,0}}, f32[8,8]{{1,0}}) tuple(%slice.2, %neg.1, %slice.1)"""
    merged = body.replace("NAME", "dot_general")
    assert users_of("p", merged) == ["cos.1", "sin.1"]
    assert users_of("p", body.replace("NAME", "reshape")) == ["sin.1", "cos.1"]
    assert users_of("sin.1", merged) == ["neg.1", "both.1"]
    in_front = merged.replace("(%slice.2, %neg.1, %slice.1)", "(%slice.2, %slice.1, %neg.1)")
    assert users_of("sin.1", in_front) == ["both.1", "neg.1"]


def test_parts_of_a_product_of_groups_come_by_age_too() -> None:
    body = f"""  %p = f32[4,8,16]{{2,1,0}} parameter(0)
  %zero = f32[] constant(0)
  %reduce.1 = f32[8,16]{{1,0}} reduce(%p, %zero), dimensions={{0}}, to_apply=%sum{named("ragged_dot_general")}
  %slice.3 = f32[8,8]{{1,0}} slice(%reduce.1), slice={{[0:8], [8:16]}}{named("ragged_dot_general")}
  %slice.2 = f32[8,8]{{1,0}} slice(%reduce.1), slice={{[0:8], [0:8]}}{named("ragged_dot_general")}
  ROOT %r = (f32[8,8]{{1,0}}, f32[8,8]{{1,0}}) tuple(%slice.3, %slice.2)"""
    assert users_of("reduce.1", body, ids="p zero r slice.2 slice.3 reduce.1") == ["slice.2", "slice.3"]


def test_parts_of_a_product_in_another_layout_are_as_the_convert_that_made_it_narrow_was_met() -> None:
    """SplitkRewriter's, named as the product, came behind them; FloatNormalization's in front."""
    body = f"""  %p = f32[8,24]{{1,0}} parameter(0)
  %call = (f32[24,8]{{0,1}}, s8[64]{{0}}) custom-call(%p, %p), custom_call_target="__cublas$lt$matmul"
  %product = f32[24,8]{{0,1}} get-tuple-element(%call), index=0
  %bitcast.1 = f32[8,24]{{1,0}} bitcast(%product)
  %convert.1 = bf16[8,24]{{1,0}} convert(%bitcast.1)NAMED
  %slice.1 = bf16[8,8]{{1,0}} slice(%convert.1), slice={{[0:8], [0:8]}}{named("dot_general")}
  %slice.2 = bf16[8,8]{{1,0}} slice(%convert.1), slice={{[0:8], [8:16]}}{named("dot_general")}
  %slice.3 = bf16[8,8]{{1,0}} slice(%convert.1), slice={{[0:8], [16:24]}}{named("dot_general")}
  ROOT %r = (bf16[8,8]{{1,0}}, bf16[8,8]{{1,0}}, bf16[8,8]{{1,0}}) tuple(%slice.1, %slice.2, %slice.3)"""
    ids = "p r call product - - slice.1 slice.2 slice.3"
    split = body.replace("NAMED", named("dot_general"))
    assert users_of("convert.1", split, ids=ids + " bitcast.1 convert.1") == ["slice.3", "slice.1", "slice.2"]
    ids = "p r call product bitcast.1 convert.1 slice.1 slice.2 slice.3"
    assert users_of("convert.1", body.replace("NAMED", ""), ids=ids) == ["slice.2", "slice.1", "slice.3"]


def test_the_last_users_of_what_merged_products_share_are_where_these_were() -> None:
    body = f"""  %p = f32[8,8]{{1,0}} parameter(0)
  %x = f32[16,8]{{1,0}} parameter(1)
  %call = (f32[16,8]{{1,0}}, s8[64]{{0}}) custom-call(%x, %p), custom_call_target="__cublas$lt$matmul"
  %product = f32[16,8]{{1,0}} get-tuple-element(%call), index=0
  %slice.1 = f32[8,8]{{1,0}} slice(%product), slice={{[8:16], [0:8]}}{named("NAME")}
  %slice.2 = f32[8,8]{{1,0}} slice(%product), slice={{[0:8], [0:8]}}{named("NAME")}
  %sin.1 = f32[8,8]{{1,0}} sine(%slice.1){named("sin")}
  %cos.1 = f32[8,8]{{1,0}} cosine(%slice.2){named("cos")}
  %mul.1 = f32[8,8]{{1,0}} multiply(%p, %p){named("mul")}
  %sub.1 = f32[8,8]{{1,0}} subtract(%p, %mul.1){named("sub")}
  ROOT %r = (f32[8,8]{{1,0}}, f32[8,8]{{1,0}}, f32[8,8]{{1,0}}) tuple(%sin.1, %cos.1, %sub.1)"""
    assert users_of("p", body.replace("NAME", "dot_general")) == ["sub.1", "call", "mul.1"]
    assert users_of("p", body.replace("NAME", "reshape")) == ["call", "mul.1", "sub.1"]
    ids = "p x mul.1 sub.1 sin.1 cos.1 r call product slice.1 slice.2"
    assert users_of("p", body.replace("NAME", "dot_general"), ids=ids) == ["call", "mul.1", "sub.1"]


def test_parts_of_a_product_that_was_split_had_been_reshaped_as_those_of_a_whole_one() -> None:
    """Derivatives by the weights of two layers, summed over batch and rows: DotDecomposer reshaped each."""
    dot = named("transpose(jvp(layer))/dot_general")
    body = f"""  %p = f32[2,64,32]{{2,1,0}} parameter(0)
  %q = f32[2,64,32]{{2,1,0}} parameter(1)
  %y = f32[2,64,64]{{2,1,0}} parameter(2)
  %zero = f32[] constant(0)
  %flat.1 = f32[128,32]{{1,0}} bitcast(%p){dot}
  %flat.2 = f32[128,32]{{1,0}} bitcast(%q){dot}
  %joined = f32[128,64]{{1,0}} concatenate(%flat.1, %flat.2), dimensions={{1}}
  %parts.1 = f32[4,32,64]{{2,1,0}} bitcast(%joined){dot}
  %parts.2 = f32[4,32,64]{{2,1,0}} bitcast(%y){dot}
  %gemm.1 = f32[4,64,64]{{2,1,0}} fusion(%parts.1, %parts.2), kind=kCustom, calls=%gemm{dot}
  %reduce.1 = f32[64,64]{{1,0}} reduce(%gemm.1, %zero), dimensions={{0}}, to_apply=%sum{dot}
  %slice.1 = f32[32,64]{{1,0}} slice(%reduce.1), slice={{[0:32], [0:64]}}{dot}
  %slice.2 = f32[32,64]{{1,0}} slice(%reduce.1), slice={{[32:64], [0:64]}}{dot}
  %exp.1 = f32[32,64]{{1,0}} exponential(%slice.2){named("exp")}
  %tanh.1 = f32[32,64]{{1,0}} tanh(%slice.2){named("tanh")}
  ROOT %r = (f32[32,64], f32[32,64], f32[32,64]) tuple(%slice.1, %exp.1, %tanh.1)"""
    assert users_of("slice.2", body, head=SPLIT) == ["tanh.1", "exp.1"]
