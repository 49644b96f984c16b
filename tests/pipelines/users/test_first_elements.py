"""The users of first elements that a scan takes as well, as the played passes leave them."""

from __future__ import annotations

import pytest

from .lists import named, places_in_source, users_of


@pytest.mark.parametrize(
    ("next_place", "users"), [(2, ["tanh.1", "add.1"]), (1, ["add.1", "tanh.1"])], ids=["scanned", "indexed"]
)
def test_what_reads_either_slice_was_moved_in_front_of_its_own_reshape(
    next_place: int, users: list[str]
) -> None:
    """`scan(f, xs[0], xs)`; where all elements are taken in one place there was one, with one reshape."""
    tables = places_in_source(("f", 1, 10, 15), ("f", 2, 10, 25), ("g", 3, 10, 15))
    body = f"""  %p = f32[2,8]{{1,0}} parameter(0)
  %slice.1 = f32[1,8]{{1,0}} slice(%p), slice={{[0:1], [0:8]}}{named("slice", frame=1)}
  %tanh.1 = f32[1,8]{{1,0}} tanh(%slice.1){named("eval_jaxpr/tanh", frame=3)}
  %add.1 = f32[1,8]{{1,0}} add(%tanh.1, %slice.1){named("eval_jaxpr/add", frame=3)}
  %slice.3 = f32[1,8]{{1,0}} slice(%p), slice={{[1:2], [0:8]}}{named("slice", frame=next_place)}
  %add.2 = f32[1,8]{{1,0}} add(%add.1, %slice.3){named("eval_jaxpr/add", frame=3)}
  %mul.9 = f32[2,8]{{1,0}} multiply(%p, %p){named("mul", frame=1)}
  ROOT %r = (f32[1,8]{{1,0}}, f32[2,8]{{1,0}}) tuple(%add.2, %mul.9)"""
    ids = "p slice.1 slice.3 r mul.9 tanh.1 add.1 add.2"
    assert users_of("slice.1", body, tables=tables, ids=ids) == users
