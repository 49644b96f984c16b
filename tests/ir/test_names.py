"""Names come out as XLA's `NameUniquer` makes them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hlofuse.ir.names import NameUniquer

NAMES = st.from_regex(r"\A[ab](\.[a0-3]{1,2}){0,2}\Z")


def given_out(*names: str) -> list[str]:
    uniquer = NameUniquer()
    return [uniquer.unique(n) for n in names]


def test_a_free_number_is_granted() -> None:
    assert given_out("add.7", "add.3", "add") == ["add.7", "add.3", "add"]


def test_a_taken_number_gives_the_lowest_free_one_from_where_the_last_search_ended() -> None:
    assert given_out("add", "add", "add", "add.1") == ["add", "add.1", "add.2", "add.3"]
    assert given_out("add.1", "add", "add", "add") == ["add.1", "add", "add.2", "add.3"]
    assert given_out("add.5", "add.5", "add.5", "add.5") == ["add.5", "add.0", "add.1", "add.2"]


def test_leading_zeros_are_no_part_of_a_number() -> None:
    assert given_out("add.01", "add.1") == ["add.1", "add.0"]


def test_only_the_last_part_is_a_number_and_only_if_it_fits_64_bits() -> None:
    assert given_out("a.1.b", "a.1.b") == ["a.1.b", "a.1.b.1"]
    assert given_out("a.99999999999999999999", "a.99999999999999999999") == [
        "a.99999999999999999999",
        "a.99999999999999999999.1",
    ]
    assert given_out(".5", "x.") == [".5", "x."]


@given(st.lists(NAMES, max_size=30))
def test_no_name_is_given_out_twice(names: list[str]) -> None:
    out = given_out(*names)
    assert len(set(out)) == len(out)


@given(
    st.sets(st.sampled_from([f"{r}.{n}" for r in "ab" for n in range(1, 9)])), st.lists(NAMES, max_size=10)
)
def test_reserving_is_handing_out(taken: set[str], names: list[str]) -> None:
    reserved, handed = NameUniquer(), NameUniquer()
    reserved.reserve(taken)
    for name in taken:
        handed.unique(name)
    copy = reserved.copy()
    expected = [handed.unique(n) for n in names]
    assert [reserved.unique(n) for n in names] == expected
    assert [copy.unique(n) for n in names] == expected


@given(st.lists(st.tuples(NAMES, st.booleans()), max_size=30))
def test_a_skipped_name_is_taken_like_any_other(requested: list[tuple[str, bool]]) -> None:
    uniquer, skipping = NameUniquer(), NameUniquer()
    for name, seen in requested:
        given = uniquer.unique(name)
        if seen:
            assert skipping.unique(name) == given
        else:
            skipping.skip((name,))


@given(st.lists(st.tuples(st.integers(0, 2) | NAMES, st.booleans()), max_size=30))
def test_a_parameter_has_the_name_of_its_number(requested: list[tuple[int | str, bool]]) -> None:
    uniquer, by_number = NameUniquer(), NameUniquer()
    by_number.reserve(["param_1", "param_2.1"])
    uniquer.reserve(["param_1", "param_2.1"])
    for what, seen in requested:
        if isinstance(what, str):
            assert by_number.unique(what) == uniquer.unique(what)
        else:
            given = uniquer.unique(f"param_{what}")
            if seen:
                assert by_number.parameter(what) == given
            else:
                by_number.skip_parameter(what)
