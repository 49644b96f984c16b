"""Programs of no library but JAX on images and sound."""

import jax
import jax.numpy as jnp
import numpy as np
from arguments import KEY, S, entering_when_asked
from jax import lax, nn, random
from steps import layers, perceptron

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def residual_codec_spectra():
    sizes = (7, 1, 16, 1), (8, 16, 32, 4), (8, 32, 48, 4)
    params = {"down": [S(k, n, m) for k, n, m, _ in sizes], "up": [S(k, m, n) for k, n, m, _ in sizes[::-1]]}
    books, dims = S(4, 64, 48), ("NWC", "WIO", "NWC")

    def quantize(books, z):
        rest, total, which, lost = z, 0.0, [], 0.0
        for book in books:
            far = jnp.sum(rest**2, -1, keepdims=True) - 2 * rest @ book.T + jnp.sum(book**2, -1)
            index = jnp.argmin(far, -1)
            found = book[index]
            lost = lost + jnp.mean((rest - lax.stop_gradient(found)) ** 2)
            which.append((index, lax.stop_gradient(rest)))
            total, rest = total + found, rest - found
        return z + lax.stop_gradient(total - z), which, lost

    def spectra(x, n):
        start = np.arange(0, x.shape[1] - n + 1, n // 4)[:, None] + np.arange(n)
        frames = x[:, start] * np.hanning(n).astype(np.float32)
        return jnp.sqrt(jnp.square(jnp.abs(jnp.fft.rfft(frames))) + 1e-7)

    def loss(p, books, wave):
        x = wave[..., None]
        for w, (*_, stride) in zip(p["down"], sizes):
            x = lax.conv_general_dilated(nn.elu(x), w, (stride,), "SAME", dimension_numbers=dims)
        x, which, lost = quantize(books, x)
        for w, (*_, stride) in zip(p["up"], sizes[::-1]):
            x = lax.conv_transpose(nn.elu(x), w, (stride,), "SAME", dimension_numbers=dims)
        again, total = jnp.tanh(x[..., 0]), 0.0
        for n in (64, 256, 512):
            a, b = spectra(wave, n), spectra(again, n)
            total = total + jnp.mean(jnp.abs(jnp.log(a) - jnp.log(b)))
            total = total + jnp.linalg.norm(a - b) / jnp.linalg.norm(a)
        return total + jnp.abs(wave - again).mean() + 0.25 * lost, which

    def step(p, m, books, counts, sums, key, wave):
        (value, which), grads = jax.value_and_grad(loss, has_aux=True)(p, books, wave)
        m = jax.tree.map(lambda m, g: 0.9 * m + jnp.clip(g, -1, 1), m, grads)
        p = jax.tree.map(lambda p, m: p - 1e-3 * m, p, m)
        hot = jnp.stack([nn.one_hot(i.ravel(), 64) for i, _ in which])
        rows = jnp.stack([r.reshape(-1, 48) for _, r in which])
        counts = 0.99 * counts + 0.01 * hot.sum(1)
        sums = 0.99 * sums + 0.01 * jnp.einsum("qnk,qnd->qkd", hot, rows)
        size = counts.sum(-1, keepdims=True)
        smooth = (counts + 1e-5) / (size + 64e-5) * size
        fresh = rows[:, random.randint(key, (64,), 0, rows.shape[1])]
        books = jnp.where((counts < 0.05)[..., None], fresh, sums / smooth[..., None])
        return p, m, books, counts, sums, value

    return step, (params, params, books, S(4, 64), books, KEY, S(4, 2048))


@program
def hash_grid_radiance():
    levels, size, rays, samples = 6, 2**12, 256, 32
    scales = [int(8 * 1.5**n) for n in range(levels)]
    corners = np.stack(np.meshgrid([0, 1], [0, 1], [0, 1], indexing="ij"), -1).reshape(8, 3)
    params = {"table": S(levels, size, 2), "density": layers(12, 32, 16), "colour": layers(16 + 9, 32, 32, 3)}

    def encode(grid, x):
        out = []
        for n, scale in enumerate(scales):
            cell = jnp.floor(x * scale).astype(jnp.uint32)
            part = x * scale - cell
            index = cell[..., None, :] + corners.astype(np.uint32)
            hashed = (
                index[..., 0]
                ^ (index[..., 1] * np.uint32(2654435761))
                ^ (index[..., 2] * np.uint32(805459861))
            )
            found = grid[n][hashed % size]
            weight = jnp.prod(jnp.where(corners == 1, part[..., None, :], 1 - part[..., None, :]), -1)
            out.append(jnp.sum(found * weight[..., None], -2))
        return jnp.concatenate(out, -1)

    def harmonics(d):
        x, y, z = d[..., 0], d[..., 1], d[..., 2]
        every = jnp.ones_like(x), y, z, x, x * y, y * z, 3 * z**2 - 1, x * z, x**2 - y**2
        return jnp.stack(every, -1)

    def render(p, key, origin, way):
        t = jnp.linspace(0.0, 1.0, samples + 1)[:-1] + random.uniform(key, (rays, samples)) / samples
        points = jnp.clip(origin[:, None] + t[..., None] * way[:, None], 0, 0.999)
        h = perceptron(p["density"], encode(p["table"], points))
        density = jnp.exp(jnp.clip(h[..., 0] - 1, -15, 15))
        apart = jnp.diff(t, axis=-1, append=jnp.ones((rays, 1)))
        alpha = 1 - jnp.exp(-density * apart)
        through = jnp.cumprod(jnp.concatenate([jnp.ones((rays, 1)), 1 - alpha + 1e-10], -1), -1)[:, :-1]
        weight = alpha * through
        seen = jnp.broadcast_to(harmonics(way)[:, None], (rays, samples, 9))
        colour = nn.sigmoid(perceptron(p["colour"], jnp.concatenate([h, seen], -1)))
        out = jnp.sum(weight[..., None] * colour, 1) + 1 - weight.sum(1, keepdims=True)
        spread = jnp.sum(weight[:, :, None] * weight[:, None] * jnp.abs(t[:, :, None] - t[:, None]), (1, 2))
        return out, jnp.sum(weight * t, -1), spread.mean()

    def step(p, m, v, at, key, origin, way, goal):
        def loss(p):
            out, depth, spread = render(p, key, origin, way)
            apart = out - goal
            each = jnp.where(jnp.abs(apart) < 0.1, 5 * apart**2, jnp.abs(apart) - 0.05)
            return each.mean() + 1e-3 * spread, depth

        (value, depth), g = jax.value_and_grad(loss, has_aux=True)(p)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g**2, v, g)
        rate = 1e-2 * 0.33 ** (at // 1000)
        new = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-15), p, m, v)
        return new, m, v, at + 1, value, depth

    ray = S(rays, 3)
    return step, (params, params, params, S(dtype=jnp.int32), KEY, ray, ray, ray)
