"""Programs of no library but JAX that infer what drives data: states."""

import math

import jax
import jax.numpy as jnp
from arguments import S, entering_when_asked
from jax import lax
from jax.scipy.linalg import solve_triangular

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def kalman_smoother_by_doubling():
    many, steps, d, seen = 8, 16, 4, 2

    def filtering(p, y, first):
        f, q, h, r, m0, p0 = (p[k] for k in ("f", "q", "h", "r", "m0", "p0"))
        predicted = jnp.where(first, p0, q)
        s = h @ predicted @ h.T + r
        gain = jnp.linalg.solve(s, h @ predicted).T
        a = jnp.where(first, 0.0, f - gain @ h @ f)
        mean = jnp.where(first, m0, 0.0)
        b = mean + gain @ (y - h @ mean)
        c = predicted - gain @ s @ gain.T
        back = jnp.linalg.solve(s, h @ f)
        return a, b, c, jnp.where(first, 0.0, back.T @ h @ f), jnp.where(first, 0.0, back.T @ y)

    @jax.vmap
    def chained(one, two):
        a1, b1, c1, j1, e1 = one
        a2, b2, c2, j2, e2 = two
        eye = jnp.eye(d)
        left = jnp.linalg.solve((eye + c1 @ j2).T, a2.T).T
        right = jnp.linalg.solve((eye + j2 @ c1).T, a1).T
        a, b = left @ a1, left @ (b1 + c1 @ e2) + b2
        c, j = left @ c1 @ a2.T + c2, right @ j2 @ a1 + j1
        return a, b, c, j, right @ (e2 - j2 @ b1) + e1

    def smoothing(p, m, v, last):
        f, q = p["f"], p["q"]
        ahead = f @ v @ f.T + q
        e = jnp.where(last, 0.0, jnp.linalg.solve(ahead, f @ v).T)
        return e, m - e @ f @ m, v - e @ ahead @ e.T

    @jax.vmap
    def backed(two, one):
        e1, g1, l1 = one
        e2, g2, l2 = two
        return e1 @ e2, e1 @ g2 + g1, e1 @ l2 @ e1.T + l1

    def series(p, ys):
        at = jnp.arange(steps)
        _, m, v, *_ = lax.associative_scan(chained, jax.vmap(filtering, (None, 0, 0))(p, ys, at == 0))
        mean = jnp.concatenate([p["m0"][None], m[:-1] @ p["f"].T])
        var = jnp.concatenate([p["p0"][None], p["f"] @ v[:-1] @ p["f"].T + p["q"]])
        off = ys - mean @ p["h"].T
        low = jnp.linalg.cholesky(p["h"] @ var @ p["h"].T + p["r"])
        white = jax.vmap(lambda l, x: solve_triangular(l, x, lower=True))(low, off)
        size = jnp.log(jnp.diagonal(low, axis1=1, axis2=2)).sum()
        likely = -0.5 * jnp.sum(white**2) - size - 0.5 * steps * seen * math.log(2 * math.pi)
        items = jax.vmap(smoothing, (None, 0, 0, 0))(p, m, v, at == steps - 1)
        _, smooth, wide = lax.associative_scan(backed, items, reverse=True)
        return likely, smooth, wide, m

    def smoother(raw, ys):
        sym = lambda x: x @ x.T + 1e-4 * jnp.eye(len(x))
        p = {k: sym(v) if k in ("q", "r", "p0") else v for k, v in raw.items()}
        likely, smooth, wide, m = jax.vmap(series, (None, 0))(p, ys)
        told = smooth @ p["h"].T
        sd = jnp.sqrt(jnp.einsum("oi,btij,oj->bto", p["h"], wide, p["h"]))
        inside = jnp.mean(jnp.abs(ys - told) < 1.96 * sd)
        return likely.sum(), smooth, told, sd, inside, jnp.mean((m - smooth) ** 2)

    raw = {"f": S(d, d), "q": S(d, d), "h": S(seen, d), "r": S(seen, seen), "m0": S(d), "p0": S(d, d)}
    return smoother, (raw, S(many, steps, seen))
