"""What the order of computations tells of the instructions that call them."""

from __future__ import annotations

from hlofuse.ir import parse_module
from hlofuse.pipelines.likely_ids.callers import reductions_as_written, with_callers_as_written
from hlofuse.pipelines.likely_ids.maker import Maker

_REGION = """%NAME {
  %x.NAME = f32[] parameter(0)
  %y.NAME = f32[] parameter(1)
  ROOT %add.NAME = f32[] add(%x.NAME, %y.NAME)
}
"""


def _by_age(regions: str, body: str, guess: str) -> list[str]:
    """The instructions with those that call in their places, of a `guess` at their order."""
    text = "".join(_REGION.replace("NAME", name) for name in regions.split())
    module = parse_module(f"HloModule m\n\n{text}\nENTRY %main {{\n{body}\n}}\n")
    by_name = {x.name: x for x in module.entry}
    written = {c: k for k, c in enumerate(module.computations)}
    return [x.name for x in with_callers_as_written([by_name[name] for name in guess.split()], written)]


def _reduce(name: str, operand: str, region: str, kept: str = "") -> str:
    return f"  %{name} = f32[{kept}] reduce(%{operand}, %zero), dimensions={{0}}, to_apply=%{region}\n"


_HEAD = "  %p = f32[8,4]{1,0} parameter(0)\n  %v = f32[8]{0} parameter(1)\n  %zero = f32[] constant(0)\n"
_ROOT = "  ROOT %end = f32[] add(%one, %two)"


def test_whose_computation_is_written_first_is_older() -> None:
    body = _HEAD + _reduce("one", "v", "r.1") + _reduce("two", "v", "r.2") + _ROOT
    assert _by_age("r.1 r.2", body, "p v zero two one end") == ["p", "v", "zero", "one", "two", "end"]
    assert _by_age("r.2 r.1", body, "p v zero two one end") == ["p", "v", "zero", "two", "one", "end"]


def test_of_those_that_share_one_the_oldest_had_it_written() -> None:
    body = (
        _HEAD + _reduce("one", "v", "r.1") + _reduce("two", "v", "r.2") + _reduce("late", "v", "r.1") + _ROOT
    )
    assert _by_age("r.1 r.2", body, "p v zero one two late end") == [
        "p",
        "v",
        "zero",
        "one",
        "two",
        "late",
        "end",
    ]


def test_both_halves_of_a_split_reduction_are_put_behind() -> None:
    body = (
        _HEAD
        + _reduce("one", "v", "r.1")
        + _reduce("inner", "p", "r.2", "4")
        + _reduce("two", "inner", "r.2")
        + _ROOT
    )
    guess = "p v zero two one inner end"
    assert _by_age("r.1 r.2", body, guess) == ["p", "v", "zero", "one", "inner", "two", "end"]


def _guessed(first: Maker, second: Maker, *, is_named: bool = True) -> list[Maker]:
    """Who made two reductions in the end, the one written first given first."""
    text = "".join(_REGION.replace("NAME", name) for name in ("r.1", "r.2"))
    body = _HEAD + _reduce("one", "v", "r.1") + _reduce("two", "v", "r.2") + _ROOT
    module = parse_module(f"HloModule m\n\n{text}\nENTRY %main {{\n{body}\n}}\n")
    one, two = (x for x in module.entry if x.opcode == "reduce")
    written = {c: k for k, c in enumerate(module.computations)}
    makers = {one: first, two: second}
    makers |= reductions_as_written(makers, frozenset({one, two} if is_named else ()), written)
    return [*makers.values()]


def test_a_reduction_written_ahead_of_older_ones_was_not_made_anew() -> None:
    assert _guessed(Maker.REDUCTIONS, Maker.INLINER) == [Maker.FRONT_END, Maker.INLINER]
    assert _guessed(Maker.INLINER, Maker.REDUCTIONS) == [Maker.INLINER, Maker.REDUCTIONS]
    unnamed = _guessed(Maker.REDUCTIONS, Maker.INLINER, is_named=False)
    assert unnamed == [Maker.REDUCTIONS, Maker.INLINER]


def test_a_reduction_written_behind_that_of_a_product_that_was_split_was_made_anew() -> None:
    assert _guessed(Maker.SPLIT_K, Maker.FRONT_END) == [Maker.SPLIT_K, Maker.REDUCTIONS]
    assert _guessed(Maker.FRONT_END, Maker.SPLIT_K) == [Maker.FRONT_END, Maker.SPLIT_K]
