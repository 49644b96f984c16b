"""Products that DotMerger made one, each case as XLA's records show it."""

from __future__ import annotations

from .lists import named, users_of


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
