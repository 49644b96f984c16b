"""Programs of no library but JAX and optax that infer what drives data: states, and a process."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from arguments import S, entering_when_asked
from jax import lax, nn
from jax.scipy.linalg import cho_solve, solve_triangular

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


@program
def sparse_process_robust_natural_step():
    import optax

    n, inducing, inputs, whole = 256, 32, 4, 10000
    nodes, weights = np.polynomial.hermite.hermgauss(12)

    def matern(p, x, z):
        scale = nn.softplus(p["scale"])
        x, z = x / scale, z / scale
        far = jnp.sum(x**2, -1)[:, None] + jnp.sum(z**2, -1) - 2 * x @ z.T
        r = jnp.sqrt(5 * jnp.maximum(far, 1e-12))
        return nn.softplus(p["high"]) * (1 + r + r * r / 3) * jnp.exp(-r)

    def bound(p, mean, cov, x, y):
        kzz = matern(p, p["z"], p["z"]) + 1e-4 * jnp.eye(inducing)
        low = jnp.linalg.cholesky(kzz)
        a = solve_triangular(low, matern(p, p["z"], x), lower=True)
        b = solve_triangular(low, a, lower=True, trans=1)
        centre = b.T @ mean + x @ p["slope"] + p["level"]
        var = nn.softplus(p["high"]) - jnp.sum(a * a, 0) + jnp.einsum("im,ij,jm->m", b, cov, b)
        at = centre[:, None] + jnp.sqrt(2 * jnp.maximum(var, 1e-6))[:, None] * jnp.asarray(nodes, jnp.float32)
        free, noise = 2 + nn.softplus(p["free"]), nn.softplus(p["noise"])
        off = (y[:, None] - at) / noise
        top = lax.lgamma((free + 1) / 2) - lax.lgamma(free / 2)
        logp = (
            top - 0.5 * jnp.log(free * math.pi) - jnp.log(noise) - (free + 1) / 2 * jnp.log1p(off**2 / free)
        )
        fit = jnp.sum(logp @ jnp.asarray(weights / math.sqrt(math.pi), jnp.float32)) * whole / n
        size = jnp.linalg.slogdet(cov)[1]
        same = 2 * jnp.log(jnp.diagonal(low)).sum() - size
        apart = jnp.trace(cho_solve((low, True), cov)) + mean @ cho_solve((low, True), mean)
        return fit - 0.5 * (same + apart - inducing)

    tx = optax.chain(optax.clip(10.0), optax.adam(optax.cosine_onecycle_schedule(1000, 1e-2)))

    def step(p, state, natural, x, y, rate):
        first, second = natural

        def moments(natural):
            first, second = natural
            low = jnp.linalg.cholesky(-2 * second)
            cov = cho_solve((low, True), jnp.eye(inducing))
            mean = cov @ first
            return mean, cov + jnp.outer(mean, mean)

        def by_moments(p, eta):
            mean, both = eta
            return -bound(p, mean, both - jnp.outer(mean, mean), x, y)

        eta = moments((first, second))
        value, (grads, steep) = jax.value_and_grad(by_moments, (0, 1))(p, eta)
        updates, state = tx.update(grads, state, p)
        p = optax.apply_updates(p, updates)
        new = first - rate * steep[0], second - rate * 0.5 * (steep[1] + steep[1].T)
        well = jnp.all(jnp.linalg.eigvalsh(-2 * new[1]) > 1e-6)
        natural = jax.tree.map(lambda a, b: jnp.where(well, a, b), new, (first, second))
        return p, state, natural, value / whole, jnp.sqrt(optax.global_norm(grads))

    p = {
        "z": S(inducing, inputs),
        "scale": S(inputs),
        "slope": S(inputs),
        **{k: S() for k in ("high", "level", "free", "noise")},
    }
    natural = S(inducing), S(inducing, inducing)
    return step, (p, jax.eval_shape(tx.init, p), natural, S(n, inputs), S(n), S())
