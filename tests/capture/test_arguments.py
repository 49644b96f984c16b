"""How arguments are written on the command line."""

from __future__ import annotations

from typing import Any

import pytest

from hlofuse.capture.arguments import parse_arguments, parse_mesh
from hlofuse.ir.errors import HlofuseError


def array(dtype: str, *shape: int) -> dict[str, Any]:
    return {"array": {"dtype": dtype, "shape": list(shape)}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("f32[128,512]", [array("float32", 128, 512)]),
        ("float32[4], i32[2]", [array("float32", 4), array("int32", 2)]),
        ("f32[2] s32[] pred[3]", [array("float32", 2), array("int32"), array("bool", 3)]),
        ("bf16[ ]", [array("bfloat16")]),
        ("{'w': f32[2], 'b': u8[1]}", [{"dict": [["w", array("float32", 2)], ["b", array("uint8", 1)]]}]),
        ("f32[2] {'w': f32[3]}", [array("float32", 2), {"dict": [["w", array("float32", 3)]]}]),
        ("[f32[1], f64[2]]", [{"list": [array("float32", 1), array("float64", 2)]}]),
        ("(f32[1],)", [{"tuple": [array("float32", 1)]}]),
        (
            "f32[8@data,4], bf16[8@(data,model)]",
            [
                {"array": {"dtype": "float32", "shape": [8, 4], "axes": [["data"], []]}},
                {"array": {"dtype": "bfloat16", "shape": [8], "axes": [["data", "model"]]}},
            ],
        ),
        ("3, -1.5, True, None, 'relu'", [{"value": v} for v in (3, -1.5, True, None, "relu")]),
    ],
)
def test_what_is_read(text: str, expected: list[dict[str, Any]]) -> None:
    assert parse_arguments(text) == expected


@pytest.mark.parametrize(
    ("text", "attributes"),
    [
        ("f31[2]", "no element type f31; did you mean"),
        ("f32[2", "expected shapes such as"),
        ("f32[n]", "expected an integer dimension"),
        ("f32[n@data]", "expected an integer dimension"),
        ("f32[2@3]", "expected the name of a mesh axis"),
        ("f32[-2]", "expected an integer dimension"),
        ("f32[True]", "expected an integer dimension"),
        ("exit()", "neither a shape nor a plain value"),
        ("__import__('os')", "neither a shape nor a plain value"),
        ("-'a'", "neither a shape nor a plain value"),
        ("[" * 5000, "--args"),
        ("\0", "expected shapes such as"),
    ],
)
def test_what_is_not(text: str, attributes: str) -> None:
    with pytest.raises(HlofuseError, match=attributes):
        parse_arguments(text)


@pytest.mark.parametrize(
    ("text", "axes"),
    [("4", ((None, 4),)), ("data=2", (("data", 2),)), ("data=2, model=4", (("data", 2), ("model", 4)))],
)
def test_a_mesh(text: str, axes: tuple[tuple[str | None, int], ...]) -> None:
    assert parse_mesh(text) == axes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a number of devices, or axes such as data=2,model=4"),
        ("0", "expected a number of devices"),
        ("=4", "expected a number of devices"),
        ("data=two", "expected a number of devices"),
        ("2,2", "axis names must be distinct"),
        ("a=2,a=2", "axis names must be distinct"),
    ],
)
def test_what_is_no_mesh(text: str, message: str) -> None:
    with pytest.raises(HlofuseError, match=message):
        parse_mesh(text)
