"""Programs of no library but JAX."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from arguments import BF16, F32, KEY, S, entering_when_asked, ints
from jax import lax, nn, random

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def leapfrog_bodies_grad():
    def run(mass, position, velocity):
        def pull(x):
            apart = x[None] - x[:, None]
            distance = jnp.sum(apart**2, -1) + 1e-2
            return jnp.einsum("ijd,ij,j->id", apart, distance**-1.5, mass)

        def one(state, _):
            x, v = state
            v = v + 0.005 * pull(x)
            x = x + 0.01 * v
            return (x, v + 0.005 * pull(x)), None

        (x, v), _ = lax.scan(jax.checkpoint(one), (position, velocity), length=16)
        kinetic = 0.5 * jnp.sum(mass * jnp.sum(v**2, -1))
        apart = jnp.sqrt(jnp.sum((x[None] - x[:, None]) ** 2, -1) + 1e-2)
        return kinetic - 0.5 * jnp.sum(mass[:, None] * mass / apart) + jnp.sum(x[0] ** 2)

    return jax.value_and_grad(run, (0, 2)), (S(96), S(96, 3), S(96, 3))


@program
def lattice_boltzmann_cylinder():
    moves = np.array([[x, y] for x in (0, 1, -1) for y in (0, 1, -1)])
    weight = np.array([(4 / 9, 1 / 9, 1 / 36)[abs(m).sum()] for m in moves], np.float32)
    opposite = np.array([int(np.where((moves == -m).all(1))[0][0]) for m in moves])

    def equilibrium(rho, u):
        along = jnp.einsum("id,xyd->xyi", moves.astype(np.float32), u)
        size = jnp.sum(u**2, -1, keepdims=True)
        return rho[..., None] * weight * (1 + 3 * along + 4.5 * along**2 - 1.5 * size)

    def run(f, solid, inlet):
        def one(f, _):
            right = moves[:, 0] == 1
            f = f.at[-1, :, ~right & (moves[:, 0] == -1)].set(f[-2, :, moves[:, 0] == -1])
            rho = f.sum(-1)
            u = jnp.einsum("xyi,id->xyd", f, moves.astype(np.float32)) / rho[..., None]
            u = u.at[0].set(inlet)
            edge = equilibrium(rho, u)
            f = f.at[0, :, right].set(edge[0][:, right].T)
            f = f - (f - edge) / 0.6
            f = jnp.where(solid[..., None], f[..., opposite], f)
            f = jnp.stack([jnp.roll(f[..., i], tuple(m), (0, 1)) for i, m in enumerate(moves)], -1)
            curl = jnp.gradient(u[..., 1], axis=0) - jnp.gradient(u[..., 0], axis=1)
            return f, jnp.sum(curl**2)

        return lax.scan(one, f, length=50)

    return run, (S(128, 48, 9), S(128, 48, dtype=jnp.bool_), S(48, 2))


@program
def spectral_navier_stokes():
    n = 64
    k = np.fft.fftfreq(n, 1 / n).astype(np.float32)
    kx, ky = np.meshgrid(k, k[: n // 2 + 1] * np.where(np.arange(n // 2 + 1) == n // 2, -1, 1), indexing="ij")
    laplace = kx**2 + ky**2
    mask = ((abs(kx) < n / 3) & (abs(ky) < n / 3)).astype(np.float32)

    def run(vorticity, viscosity, force):
        def change(w):
            psi = w / jnp.where(laplace == 0, 1.0, laplace)
            u, v = jnp.fft.irfft2(1j * ky * psi), jnp.fft.irfft2(-1j * kx * psi)
            wx, wy = jnp.fft.irfft2(1j * kx * w), jnp.fft.irfft2(1j * ky * w)
            return mask * jnp.fft.rfft2(force - u * wx - v * wy)

        def one(w, _):
            for scale in (1 / 3, 0.5, 1.0):
                half = 0.005 * scale * viscosity * laplace
                new = (w * (1 - half) + 0.01 * scale * change(w)) / (1 + half)
            energy = jnp.sum(jnp.abs(new) ** 2 / jnp.maximum(laplace, 1.0))
            return new, energy

        w, energy = lax.scan(one, jnp.fft.rfft2(vorticity), length=20)
        return jnp.fft.irfft2(w), energy

    return run, (S(n, n), S(), S(n, n))


@program
def linear_algebra_factorings():
    from jax.scipy import linalg

    def run(a, b, c):
        q, r = jnp.linalg.qr(a)
        x = linalg.solve_triangular(r, q.T @ b)
        cov = a.T @ a + 0.1 * jnp.eye(a.shape[1])
        factor = linalg.cho_factor(cov, lower=True)
        y = linalg.cho_solve(factor, a.T @ b)
        w, v = jnp.linalg.eigh(cov)
        u, s, vt = jnp.linalg.svd(c, full_matrices=False)
        low = (u[:, :8] * s[:8]) @ vt[:8]
        z = jnp.linalg.solve(cov, y) + linalg.expm(-cov / jnp.trace(cov)) @ x
        polar = u @ vt
        return x, z, v @ jnp.diag(jnp.sqrt(w)) @ v.T, low, polar, jnp.linalg.slogdet(cov)[1]

    return run, (S(64, 24), S(64, 5), S(40, 32))


@program
def retrieval_quantized_clusters():
    def search(query, base, centres, codes, owner, rows):
        distance = jnp.sum(query**2, -1)[:, None] - 2 * query @ centres.T + jnp.sum(centres**2, -1)
        _, near = lax.approx_min_k(distance, 4)
        parts = query.reshape(query.shape[0], 8, 4)
        table = jnp.sum((parts[:, :, None] - codes[None]) ** 2, -1)
        each = jax.vmap(lambda t: t[jnp.arange(8), base].sum(-1))(table)
        inside = jnp.any(owner[None, :, None] == near[:, None], -1)
        best, which = lax.top_k(-jnp.where(inside, each, jnp.inf), 32)
        exact = jnp.sum((rows[which] - query[:, None]) ** 2, -1)
        keys = jnp.argsort(exact, -1)[:, :10]
        order = jnp.lexsort((owner[which].astype(F32), exact))
        seen = jnp.cumsum(jnp.sort(which, -1)[:, 1:] != jnp.sort(which, -1)[:, :-1], -1)
        sums = jax.ops.segment_sum(rows, owner, 64) / jnp.maximum(jnp.bincount(owner, length=64), 1)[:, None]
        return jnp.take_along_axis(which, keys, 1), best, order, seen, sums

    return search, (S(16, 32), ints(1024, 8), S(64, 32), S(8, 256, 4), ints(1024), S(1024, 32))


def gpt(dtype, vocab=512, d=96, heads=4, layers=3, length=64):
    block = {"qkv": S(d, 3 * d), "out": S(d, d), "up": S(d, 4 * d), "down": S(4 * d, d)}
    block |= {"up_b": S(4 * d), "down_b": S(d), "ln": S(2, d), "lnb": S(2, d)}
    params = {"wte": S(vocab, d), "wpe": S(length, d), "h": [block] * layers, "lnf": S(2, d)}

    def drop(key, x):
        return jnp.where(random.bernoulli(key, 0.9, x.shape), x / 0.9, 0).astype(x.dtype)

    def normed(x, g, b):
        wide = x.astype(F32)
        mean = wide.mean(-1, keepdims=True)
        var = jnp.square(wide - mean).mean(-1, keepdims=True)
        return ((wide - mean) * lax.rsqrt(var + 1e-5) * g + b).astype(x.dtype)

    def forward(p, tokens, key):
        b, t = tokens.shape
        cast = lambda w: w.astype(dtype)
        x = drop(random.fold_in(key, 99), cast(p["wte"][tokens] + p["wpe"][:t]))
        for n, l in enumerate(p["h"]):
            k1, k2, k3 = random.split(random.fold_in(key, n), 3)
            q, k, v = jnp.split(normed(x, l["ln"][0], l["lnb"][0]) @ cast(l["qkv"]), 3, -1)
            q, k, v = (z.reshape(b, t, heads, -1).transpose(0, 2, 1, 3) for z in (q, k, v))
            s = (q @ k.swapaxes(-1, -2)).astype(F32) / math.sqrt(d // heads)
            s = jnp.where(jnp.tril(jnp.ones((t, t), bool)), s, -jnp.inf)
            y = drop(k1, cast(nn.softmax(s, -1))) @ v
            x = x + drop(k2, y.transpose(0, 2, 1, 3).reshape(b, t, d) @ cast(l["out"]))
            y = nn.gelu(normed(x, l["ln"][1], l["lnb"][1]) @ cast(l["up"]) + cast(l["up_b"]))
            x = x + drop(k3, y @ cast(l["down"]) + cast(l["down_b"]))
        return normed(x, *p["lnf"]) @ cast(p["wte"]).T

    def loss(p, tokens, labels, key):
        logits = forward(p, tokens, key).astype(F32)
        picked = jnp.take_along_axis(logits, labels[..., None], -1)[..., 0]
        return jnp.mean(nn.logsumexp(logits, -1) - picked)

    def step(p, m, v, at, key, tokens, labels):
        def micro(carry, batch):
            total, grads = carry
            value, new = jax.value_and_grad(loss)(p, *batch)
            return (total + value, jax.tree.map(jnp.add, grads, new)), None

        keys = random.split(key, tokens.shape[0])
        zero = 0.0, jax.tree.map(jnp.zeros_like, p)
        (value, grads), _ = lax.scan(micro, zero, (tokens, labels, keys))
        grads = jax.tree.map(lambda g: g / tokens.shape[0], grads)
        norm = jnp.sqrt(sum(jnp.vdot(g, g) for g in jax.tree.leaves(grads)))
        grads = jax.tree.map(lambda g: g * jnp.minimum(1.0, 1.0 / (norm + 1e-6)), grads)
        along = jnp.clip((at - 100) / 900, 0, 1)
        rate = jnp.where(at < 100, 6e-4 * (at + 1) / 100, 6e-5 + 2.7e-4 * (1 + jnp.cos(jnp.pi * along)))
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
        v = jax.tree.map(lambda v, g: 0.95 * v + 0.05 * jnp.square(g), v, grads)

        def update(p, m, v):
            size = m / (1 - 0.9 ** (at + 1)) / (jnp.sqrt(v / (1 - 0.95 ** (at + 1))) + 1e-8)
            return p * (1 - rate * 0.1) - rate * size if p.ndim == 2 else p - rate * size

        return jax.tree.map(update, p, m, v), m, v, at + 1, value / tokens.shape[0], norm

    batch = ints(2, 4, length), ints(2, 4, length)
    return step, (params, params, params, S(), KEY, *batch)


@program
def gpt_dropout_accumulated_bf16():
    return gpt(BF16)
