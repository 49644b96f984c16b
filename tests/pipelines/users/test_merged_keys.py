"""Words of a key that several numbers are mixed with: orders as XLA records them of dropouts."""

from __future__ import annotations

import pytest

from .lists import named, users_of

_KEY = f"""  %p = u32[2]{{0}} parameter(0)
  %k = u32[1]{{0}} slice(%p), slice={{[0:1]}}{named("unstack")}
  %l = u32[1]{{0}} slice(%p), slice={{[1:2]}}{named("unstack")}
  %join = u32[1]{{0}} xor(%k, %l){named("xor")}
"""
_SCATTERED = f"  %zero = f32[] constant(0){named('transpose(jvp())/scatter-add')}\n"


def _call(n: int, count: int) -> str:
    """A count is mixed with both words: `first`, then three sums with each between rounds."""
    sums = f"""  %count.{n} = u32[1]{{0}} constant({{{count}}})
  %first.{n} = u32[1]{{0}} add(%l, %count.{n})
  %mixed.{n} = u32[1]{{0}} add(%k, %first.{n})
"""
    if not count:
        sums = f"""  %mixed.{n} = u32[1]{{0}} add(%k, %l)
  %left.{n} = u32[1]{{0}} shift-left(%l, %join)
  %right.{n} = u32[1]{{0}} shift-right-logical(%l, %join)
  %first.{n} = u32[1]{{0}} or(%left.{n}, %right.{n})
"""
    before, last = f"mixed.{n}", f"first.{n}"
    for name, word in (("b", "l"), ("b", "k"), ("c", "k"), ("c", "l"), ("d", "l"), ("d", "k")):
        turned, summed = f"{word}{name}.turned.{n}", f"{word}{name}.{n}"
        sums += f"  %{turned} = u32[1]{{0}} xor(%{before}, %{last})\n"
        sums += f"  %{summed} = u32[1]{{0}} add(%{turned}, %{word})\n"
        before, last = turned, summed
    return sums


def _mixed(*counts: int, cleared: bool) -> str:
    calls = "".join(_call(n, count) for n, count in enumerate(counts, 1))
    results = ", ".join(f"%kd.{n}" for n in range(1, len(counts) + 1))
    shapes = ", ".join("u32[1]{0}" for _ in counts)
    end = f"  ROOT %r = ({shapes}) tuple({results})"
    return _KEY + calls + (_SCATTERED if cleared else "") + end


@pytest.mark.parametrize(
    ("cleared", "first", "second"),
    [
        (
            True,
            "mixed.2 kb.1 kc.1 kd.1 kc.2 kd.2 kb.2 mixed.1",
            "first.1 lb.1 lc.1 ld.1 ld.2 first.2 lb.2 lc.2",
        ),
        (
            False,
            "mixed.2 kb.1 kc.1 kd.1 kd.2 kb.2 kc.2 mixed.1",
            "first.1 lb.1 lc.1 ld.1 first.2 lb.2 lc.2 ld.2",
        ),
    ],
    ids=["a loop removed took dead reshapes along", "dead reshapes are left"],
)
def test_what_joins_the_words_in_another_call_goes_as_cse_comes_along(
    cleared: bool, first: str, second: str
) -> None:
    program = _mixed(7, 9, cleared=cleared)
    assert users_of("k", program) == ["join", *first.split()]
    assert users_of("l", program) == ["join", *second.split()]


def test_what_read_a_word_and_zero_comes_behind_but_for_the_last_of_it() -> None:
    users = users_of("l", _mixed(7, 0, 9, cleared=True))
    assert users == (
        "join first.1 lb.1 lc.1 ld.1 ld.2 right.2 lb.2 lc.2 ld.3 first.3 lb.3 lc.3 mixed.2 left.2".split()
    )


def test_one_call_leaves_a_word_as_it_reads_it() -> None:
    assert users_of("k", _mixed(7, cleared=True)) == "join mixed.1 kb.1 kc.1 kd.1".split()
