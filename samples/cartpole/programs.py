"""The Cart-pole study: one simulation, written in the ways that "Operator Fusion in XLA" compares.

2,048 Cart-pole environments, 10,000 steps in a loop on the device, each with an action drawn at random. What
fell is put back to a random state near the middle. The physics is the textbook's (Barto, Sutton and Anderson,
1983); the text is ours, the variants are those of the paper (Snider and Liang, arXiv 2301.13062).

`PROGRAMS` has a function and the shapes of its arguments by name. `tools/cartpole_dumps.py` compiles them.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import Array, lax, random

ENVIRONMENTS, STEPS, UNROLLED = 2048, 10_000, 10

_GRAVITY, _POLE_MASS, _HALF_LENGTH, _PUSH, _SECONDS = 9.8, 0.1, 0.5, 10.0, 0.02
_TOTAL_MASS = 1.0 + _POLE_MASS
_MOMENT = _POLE_MASS * _HALF_LENGTH
_EDGE, _TILT, _NEAR = 2.4, 0.2095, 0.05

State = Sequence[Array]
"""Position and speed of the cart, angle and angular speed of the pole, each of all environments."""


def moved(state: State, right: Array) -> list[Array]:
    """The state a step later, the cart pushed to the right or to the left."""
    x, speed, angle, turn = state
    cosine, sine = jnp.cos(angle), jnp.sin(angle)
    push = jnp.where(right, _PUSH, -_PUSH)
    share = (push + _MOMENT * turn**2 * sine) / _TOTAL_MASS
    tipping = (_GRAVITY * sine - cosine * share) / (
        _HALF_LENGTH * (4.0 / 3.0 - _POLE_MASS * cosine**2 / _TOTAL_MASS)
    )
    pulling = share - _MOMENT * tipping * cosine / _TOTAL_MASS
    return [
        x + _SECONDS * speed,
        speed + _SECONDS * pulling,
        angle + _SECONDS * turn,
        turn + _SECONDS * tipping,
    ]


def fell(x: Array, angle: Array) -> Array:
    """The cart left the track or the pole tipped over."""
    return (jnp.abs(x) > _EDGE) | (jnp.abs(angle) > _TILT)


def stacked_step(state: Array, right: Array, fresh: Array) -> tuple[Array, Array]:
    """A step of one array [environment, 4]: taken apart, moved, put together again."""
    after = jnp.stack(moved(list(state.T), right), axis=1)
    done = fell(after[:, 0], after[:, 2])
    return jnp.where(done[:, None], fresh, after), done


def separate_step(state: State, right: Array, fresh: State) -> tuple[list[Array], Array]:
    """The same with the four parts of the state on their own."""
    after = moved(state, right)
    done = fell(after[0], after[2])
    return [jnp.where(done, new, old) for new, old in zip(fresh, after, strict=True)], done


def baseline(state: Array, key: Array) -> tuple[Array, Array]:
    """Random numbers drawn in the loop, the state in one array.

    On GPU by the library call `cu_threefry2x32`, as JAX did by default when the paper was written
    (`jax_threefry_gpu_kernel_lowering`); `tools/cartpole_dumps.py` sets it for this program.
    """

    def body(_: int, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        state, key, falls = carry
        key, now = random.split(key)
        drawn = random.uniform(now, (ENVIRONMENTS, 5), minval=-_NEAR, maxval=_NEAR)
        state, done = stacked_step(state, drawn[:, 4] > 0.0, drawn[:, :4])
        return state, key, falls + done

    start = (state, key, jnp.zeros(ENVIRONMENTS, jnp.int32))
    state, _, falls = lax.fori_loop(0, STEPS, body, start)
    return state, falls


def baseline_today(state: Array, key: Array) -> tuple[Array, Array]:
    """The same program with JAX's setting of today: random numbers are arithmetic, not a library call."""
    return baseline(state, key)


def precomputed_noise(state: Array, actions: Array, noise: Array) -> tuple[Array, Array]:
    """Random numbers drawn beforehand: actions for each step, a fresh state for each environment."""

    def body(step: int, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        state, falls = carry
        state, done = stacked_step(state, actions[step], noise)
        return state, falls + done

    return lax.fori_loop(0, STEPS, body, (state, jnp.zeros(ENVIRONMENTS, jnp.int32)))


def stacked_rows(state: Array, actions: Array, noise: Array) -> tuple[Array, Array]:
    """The same with the state as [4, environment]: joined along the other dimension."""

    def body(step: int, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        state, falls = carry
        after = jnp.stack(moved(list(state), actions[step]), axis=0)
        done = fell(after[0], after[2])
        return jnp.where(done, noise, after), falls + done

    return lax.fori_loop(0, STEPS, body, (state, jnp.zeros(ENVIRONMENTS, jnp.int32)))


def no_concatenate(state: State, actions: Array, noise: State) -> tuple[list[Array], Array]:
    """The parts of the state as arrays of their own: nothing is taken apart or put together."""

    def body(step: int, carry: tuple[list[Array], Array]) -> tuple[list[Array], Array]:
        state, falls = carry
        state, done = separate_step(state, actions[step], noise)
        return state, falls + done

    return lax.fori_loop(0, STEPS, body, (list(state), jnp.zeros(ENVIRONMENTS, jnp.int32)))


def unrolled_10(state: State, actions: Array, noise: State) -> tuple[list[Array], Array]:
    """Ten steps in each turn of the loop."""

    def body(turn: int, carry: tuple[list[Array], Array]) -> tuple[list[Array], Array]:
        state, falls = carry
        for step in range(UNROLLED):
            state, done = separate_step(state, actions[turn * UNROLLED + step], noise)
            falls = falls + done
        return state, falls

    start = (list(state), jnp.zeros(ENVIRONMENTS, jnp.int32))
    return lax.fori_loop(0, STEPS // UNROLLED, body, start)


def scan(state: State, actions: Array, noise: State) -> tuple[list[Array], Array]:
    """A scan over the actions, which also keeps who fell in each step."""

    def body(state: list[Array], right: Array) -> tuple[list[Array], Array]:
        return separate_step(state, right, noise)

    return lax.scan(body, list(state), actions)


def _array(*shape: int, dtype: str = "float32") -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


_WHOLE, _PARTS = _array(ENVIRONMENTS, 4), [_array(ENVIRONMENTS)] * 4
_ROWS = _array(4, ENVIRONMENTS)
_ACTIONS = _array(STEPS, ENVIRONMENTS, dtype="bool")

_KEY = _array(2, dtype="uint32")

PROGRAMS = {
    "baseline": (baseline, (_WHOLE, _KEY)),
    "baseline_today": (baseline_today, (_WHOLE, _KEY)),
    "precomputed_noise": (precomputed_noise, (_WHOLE, _ACTIONS, _WHOLE)),
    "stacked_rows": (stacked_rows, (_ROWS, _ACTIONS, _ROWS)),
    "no_concatenate": (no_concatenate, (_PARTS, _ACTIONS, _PARTS)),
    "unrolled_10": (unrolled_10, (_PARTS, _ACTIONS, _PARTS)),
    "scan": (scan, (_PARTS, _ACTIONS, _PARTS)),
}
