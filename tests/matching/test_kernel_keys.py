"""Names, order in the text and metadata play no part; everything else does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hlofuse.ir import parse_module
from hlofuse.matching.kernels import KernelKeys

TWO = """HloModule m

%f (q0: f32[8], q1: f32[8]) -> (f32[8], f32[8]) {
  %q0 = f32[8]{0} parameter(0)
  %q1 = f32[8]{0} parameter(1)
  %x = f32[8]{0} exponential(%q0)
  %y = f32[8]{0} multiply(%x, %q1)
  ROOT %t = (f32[8]{0}, f32[8]{0}) tuple(%x, %y)
}

ENTRY %main (p0: f32[8], p1: f32[8]) -> f32[8] {
  %p0 = f32[8]{0} parameter(0)
  %p1 = f32[8]{0} parameter(1)
  %u = (f32[8]{0}, f32[8]{0}) fusion(%p0, %p1), kind=kLoop, calls=%f
  %a = f32[8]{0} get-tuple-element(%u), index=0
  %b = f32[8]{0} get-tuple-element(%u), index=1
  ROOT %r = f32[8]{0} subtract(%a, %b), metadata={op_name="here"}
}
"""


def same(a: str, b: str, *, output_order: bool = True) -> bool:
    structures = KernelKeys(output_order=output_order)
    return structures.module(parse_module(a)).key == structures.module(parse_module(b)).key


def test_elements_count_where_they_are_used() -> None:
    """XLA writes `%u#1` there and no line for the element itself."""
    unused = TWO.replace("  ROOT %r", "  %c = f32[8]{0} get-tuple-element(%u), index=1\n  ROOT %r")
    twice = unused.replace("subtract(%a, %b)", "subtract(%b, %c)")
    once = TWO.replace("subtract(%a, %b)", "subtract(%b, %b)")
    assert same(TWO, unused)
    assert same(once, twice)
    assert not same(TWO, once)


def test_of_an_element_only_its_place_counts() -> None:
    """`%u#1` has no room for what else may be said of it, such as a sharding."""
    attributes = TWO.replace("index=1\n", "index=1, sharding={replicated}\n")
    assert attributes != TWO
    assert same(TWO, attributes)


def test_names_and_metadata_do_not_count() -> None:
    renamed = re.sub(r"%(\w+)", r"%z_\1.7", TWO).replace('op_name="here"', 'op_name="there"')
    renamed = re.sub(r"\((q0|p0): f32\[8\], (q1|p1): f32\[8\]\)", "(a: f32[8], b: f32[8])", renamed)
    assert same(TWO, renamed)


def test_the_order_of_a_fusions_parameters_does_not_count() -> None:
    swapped = TWO.replace("fusion(%p0, %p1)", "fusion(%p1, %p0)")
    swapped = swapped.replace("%q0 = f32[8]{0} parameter(0)", "%q0 = f32[8]{0} parameter(1)", 1)
    swapped = swapped.replace("%q1 = f32[8]{0} parameter(1)", "%q1 = f32[8]{0} parameter(0)", 1)
    assert same(TWO, swapped)


def test_the_order_of_results_counts_when_asked() -> None:
    swapped = TWO.replace("tuple(%x, %y)", "tuple(%y, %x)")
    swapped = (
        swapped.replace("index=0", "index=9").replace("index=1", "index=0").replace("index=9", "index=1")
    )
    assert not same(TWO, swapped)
    assert same(TWO, swapped, output_order=False)
    # Results swapped but not their uses: another program, however one looks.
    wrong = TWO.replace("tuple(%x, %y)", "tuple(%y, %x)")
    assert not same(TWO, wrong)
    assert not same(TWO, wrong, output_order=False)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("exponential(%q0)", "negate(%q0)"),
        ("kind=kLoop", "kind=kOutput"),
        ("multiply(%x, %q1)", "multiply(%q1, %x)"),
        ("multiply(%x, %q1)", "multiply(%x, %x)"),
        ("subtract(%a, %b)", "subtract(%b, %a)"),
    ],
)
def test_one_change_is_seen(old: str, new: str) -> None:
    assert old in TWO
    for order in (True, False):
        assert not same(TWO, TWO.replace(old, new), output_order=order)


def test_work_done_twice_is_not_work_done_once() -> None:
    once = TWO
    twice = TWO.replace(
        "%y = f32[8]{0} multiply(%x, %q1)",
        "%x2 = f32[8]{0} exponential(%q0)\n  %y = f32[8]{0} multiply(%x2, %q1)",
    )
    assert not same(once, twice)


def test_every_sample_equals_itself_only(samples: Path) -> None:
    structures = KernelKeys()
    keys = [structures.module(parse_module(p.read_text())).key for p in sorted(samples.rglob("*.hlo"))]
    texts = {p.read_text() for p in samples.rglob("*.hlo")}
    assert len(set(keys)) == len(texts)
