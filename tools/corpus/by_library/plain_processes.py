"""Programs of no library but JAX and optax that infer a process behind data."""

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
