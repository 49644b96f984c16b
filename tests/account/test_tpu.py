"""Bytes, times and memory of XLA:TPU's final modules."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ("f32[256,64]{0,1:T(8,128)}", 256 * 64 * 4),
        ("f32[256,64]{1,0:T(8,128)}", 256 * 128 * 4),  # half of each line is padding
        ("f32[9,128]{1,0:T(8,128)}", 16 * 128 * 4),
        ("bf16[9,100]{1,0:T(8,128)(2,1)S(1)}", 16 * 128 * 2),
        ("pred[30,130]{1,0:T(8,128)(4,1)}", 32 * 256),
        ("s4[16,300]{1,0:T(8,128)(8,1)E(4)}", 16 * 384 // 2),
        ("bf16[5,100]{1,0:T(4,128)(2,1)}", 8 * 128 * 2),
        ("s32[1000]{0:T(1024)}", 1024 * 4),
        ("bf16[100]{0:T(256)(128)(2,1)}", 256 * 2),
        ("f32[]{:T(128)}", 128 * 4),
        ("f32[3,5,7]{2,1,0:T(8,128)}", 3 * 8 * 128 * 4),
        ("f32[3,5,7]{2,1,0:T(*,8,128)}", 16 * 128 * 4),  # 3 × 5 rows as one dimension
        ("f32[3,5,7]{2,1,0:T(*,16)}", 3 * 48 * 4),
        ("f32[0,7]{1,0:T(8,128)}", 0),
        ("f32[9,100]{1,0}", 9 * 100 * 4),
    ],
)
def test_tiles_pad_the_bytes_of_an_array(shape: str, size: int) -> None:
    module = parse_module(f"HloModule m\nENTRY e {{\n  ROOT p = {shape} parameter(0)\n}}\n")
    assert module.entry.root.shape.buffer_size == size
