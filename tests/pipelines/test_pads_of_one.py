"""Pads of a single element that had gaps to begin with."""

from __future__ import annotations

import pytest

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.pads_of_one import pads_of_one


def _found(*pads: tuple[int, str, int], path: str = "transpose(jvp())/pad") -> list[int]:
    """The numbers of those of these (number, padding and size of what they read) that had gaps."""
    at = f'metadata={{op_name="jit(f)/{path}" stack_frame_id=7}}'
    lines = [
        f"  %pad.{number}.0 = f32[{_padded(size, padding)}]{{0}} pad(%p{size}, %zero),"
        f" padding={padding}, {at}"
        for number, padding, size in pads
    ]
    number, padding, size = pads[0]
    text = "\n".join(
        (
            "HloModule m\n\nENTRY %main {\n  %zero = f32[] constant(0)",
            *(f"  %p{size} = f32[{size}]{{0}} parameter({k})" for k, size in enumerate({p[2] for p in pads})),
            *lines,
            f"  ROOT %neg.1.0 = f32[{_padded(size, padding)}]{{0}} negate(%pad.{number}.0)\n}}\n",
        )
    )
    return sorted(int(x.name.split(".")[1]) for x in pads_of_one(parse_module(text).entry))


def _padded(size: int, padding: str) -> int:
    low, high, *interior = map(int, padding.split("_"))
    return low + size + (size - 1) * sum(interior) + high


_GAPS = (90, "0_1_1", 2)


def test_a_pad_of_one_element_beside_pads_with_gaps_had_some() -> None:
    assert _found((5, "1_1", 1), _GAPS) == [5]
    assert _found((5, "1_1", 1)) == []
    assert _found((5, "0_2", 2), _GAPS) == []


@pytest.mark.parametrize("padding", ["0_3", "3_0", "1_2", "-1_2"])
def test_not_where_every_other_element_were_more_than_one(padding: str) -> None:
    assert _found((5, padding, 1), _GAPS) == []


def test_in_a_derivative_what_is_in_front_of_all_comes_behind_those_of_odd_numbers() -> None:
    """A slice of all but the last is a pad in front as well: of two elements that is one, too."""
    assert _found((4, "0_1", 1), (5, "1_0", 1), (6, "0_1", 1), _GAPS) == [5, 6]
    assert _found((5, "2_1", 1), (6, "0_1", 1), _GAPS) == [5]
    assert _found((4, "0_1", 1), (5, "1_0", 1), _GAPS, path="jvp()/pad") == [4, 5]
