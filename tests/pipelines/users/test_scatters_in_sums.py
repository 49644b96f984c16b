"""The users of what is scattered into something else than zeros since, as XLA's records show them."""

from __future__ import annotations

import pytest

from .lists import named, users_of


@pytest.mark.parametrize(
    ("derivative", "into", "users"),
    [
        ("transpose(jvp())/", "sine.1", ["r", "cosine.1", "negate.1"]),
        ("transpose(jvp())/", "zeros", ["cosine.1", "negate.1", "r"]),
        ("", "sine.1", ["cosine.1", "negate.1", "r"]),
    ],
    ids=["a sum", "zeros", "of the program"],
)
def test_the_last_user_of_a_scatter_takes_the_place_of_the_sum(
    derivative: str, into: str, users: list[str]
) -> None:
    """The gradient of `x[i]` was added to another, which nothing but the updates tell of since."""
    body = f"""  %p = f32[8]{{0}} parameter(0)
  %i = s32[4,1]{{1,0}} parameter(1)
  %u = f32[4]{{0}} parameter(2)
  %zero = f32[] constant(0)
  %zeros = f32[8]{{0}} broadcast(%zero), dimensions={{}}
  %sine.1 = f32[8]{{0}} sine(%p){named("sin")}
  %scatter-add.1 = f32[8]{{0}} scatter(%{into}, %i, %u), update_window_dims={{}}, \
inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, \
to_apply=%sum{named(f"{derivative}scatter-add")}
  %cosine.1 = f32[8]{{0}} cosine(%scatter-add.1){named("cos")}
  %negate.1 = f32[8]{{0}} negate(%scatter-add.1){named("neg")}
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}, f32[8]{{0}}) tuple(%cosine.1, %negate.1, %scatter-add.1)"""
    assert users_of("scatter-add.1", body) == users
