"""Layers out of the names that frameworks give operations (as keras, flax and equinox on JAX wrote them)."""

from __future__ import annotations

import pytest

from hlofuse.format.paths import layer_of


@pytest.mark.parametrize(
    ("op_name", "layer"),
    [
        ("jit(f)/expanded_conv_4_expand_bn/add", "expanded_conv_4_expand_bn"),
        ("jit(f)/activation_7/jit(hard_silu)/jit(hard_sigmoid)/div", "activation_7"),
        ("jit(f)/jvp(LM)/layer_1/Dense_1/dot_general", "LM/layer_1/Dense_1"),
        ("jit(f)/transpose(jvp(LM))/layer_0/LayerNorm_1/mul", "LM/layer_0/LayerNorm_1, backward"),
        (
            "jit(f)/transpose(jvp(LM))/jvp(LM)/checkpoint/rematted_computation/layer_1/add",
            "LM/layer_1, backward",
        ),
        ("jit(f)/jvp(LM)/eval_jaxpr/block/Dropout_0/jit(_bernoulli)/lt", "LM/block/Dropout_0"),
        ("jit(f)/jvp(LM)/linen.<locals>.fn.<locals>.f/add", "LM"),
        ("jit(f)/jvp(BiRNN)/bt,bth->bh/dot_general", "BiRNN"),
        ("jit(f)/while/body/closed_call/cell/tanh", "cell"),
        ("jit(f)/jvp(vmap(vmap(eqx.nn.LayerNorm)))/div", "eqx.nn.LayerNorm"),
        ("jit(f)/jvp(outer/inner)/exp;jit(f)/other/exp", "outer/inner"),
        ("jit(f)/transpose(jvp())/mul", ""),
        ("jit(f)/cond/branch_0_fun/mul", ""),
        ("jit(f)/exp", ""),
        ("xs[0]['layer_1']['bias']", ""),
        ("reduce_sum", ""),
        ("jit(f)/jvp(half/mul", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_the_scopes_around_an_operation(op_name: str | None, layer: str) -> None:
    assert layer_of(op_name) == layer
