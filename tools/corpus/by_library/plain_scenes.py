"""Programs of no library but JAX that render scenes, or make them flow."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from arguments import F32, I32, S, entering_when_asked
from jax import lax, nn
from jax.scipy.ndimage import map_coordinates

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def gaussian_splats_adam():
    count, size = 96, 32
    params = {"mean": S(count, 3), "scale": S(count, 3), "turn": S(count, 4), "opacity": S(count)}
    params |= {"harmonics": S(count, 9, 3)}
    rates = {"mean": 2e-4, "scale": 5e-3, "turn": 1e-3, "opacity": 5e-2, "harmonics": 2e-3}

    def harmonics(d):
        x, y, z = d[:, 0], d[:, 1], d[:, 2]
        two = 1.0925 * x * y, -1.0925 * y * z, 0.3154 * (2 * z * z - x * x - y * y), -1.0925 * x * z
        one = -0.4886 * y, 0.4886 * z, -0.4886 * x
        return jnp.stack([jnp.full_like(x, 0.2821), *one, *two, 0.5463 * (x * x - y * y)], -1)

    def rotation(q):
        w, x, y, z = jnp.moveaxis(q / jnp.linalg.norm(q, axis=-1, keepdims=True), -1, 0)
        rows = 1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)
        rows += 2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)
        rows += 2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)
        return jnp.stack(rows, -1).reshape(-1, 3, 3)

    def render(p, nudge, pose, focal):
        at = p["mean"] @ pose[:3, :3].T + pose[:3, 3]
        x, y, z = at[:, 0], at[:, 1], jnp.maximum(at[:, 2], 0.2)
        centre = focal * jnp.stack([x / z, y / z], -1) + size / 2 + nudge
        half = rotation(p["turn"]) * jnp.exp(p["scale"])[:, None]
        zero = jnp.zeros_like(z)
        slope = focal * jnp.stack([1 / z, zero, -x / z**2, zero, 1 / z, -y / z**2], -1).reshape(-1, 2, 3)
        flat = slope @ pose[:3, :3] @ half
        a, b, d = ((flat[:, i] * flat[:, j]).sum(-1) for i, j in ((0, 0), (0, 1), (1, 1)))
        a, d = a + 0.3, d + 0.3
        inverse = jnp.stack([d, -b, a], -1) / (a * d - b * b)[:, None]
        eye = -pose[:3, :3].T @ pose[:3, 3]
        look = p["mean"] - eye
        look = look / jnp.linalg.norm(look, axis=-1, keepdims=True)
        colour = jnp.maximum(jnp.einsum("nh,nhc->nc", harmonics(look), p["harmonics"]) + 0.5, 0)
        order = jnp.argsort(lax.stop_gradient(at[:, 2]))
        pixel = jnp.stack(jnp.meshgrid(jnp.arange(size), jnp.arange(size)), -1).reshape(-1, 1, 2) + 0.5
        u, v = jnp.moveaxis(pixel - centre[order], -1, 0)
        k = inverse[order]
        power = -0.5 * (k[:, 0] * u * u + k[:, 2] * v * v) - k[:, 1] * u * v
        alpha = jnp.minimum(0.99, nn.sigmoid(p["opacity"][order]) * jnp.exp(jnp.minimum(power, 0)))
        alpha = jnp.where((alpha > 1 / 255) & (at[order, 2] > 0.2), alpha, 0)
        through = jnp.cumprod(jnp.pad(1 - alpha, ((0, 0), (1, 0)), constant_values=1), -1)
        image = (alpha * through[:, :-1]) @ colour[order] + through[:, -1:]
        return image.reshape(size, size, 3)

    def similarity(a, b):
        line = np.exp(-(np.arange(-5, 6) ** 2) / 4.5).astype(np.float32)
        kernel = jnp.tile(jnp.asarray(np.outer(line, line) / line.sum() ** 2)[..., None, None], (1, 1, 1, 3))
        blur = lambda x: lax.conv_general_dilated(
            x[None],
            kernel,
            (1, 1),
            "VALID",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=3,
        )
        m, n = blur(a), blur(b)
        aa, bb, ab = blur(a * a) - m * m, blur(b * b) - n * n, blur(a * b) - m * n
        top = (2 * m * n + 1e-4) * (2 * ab + 9e-4)
        return jnp.mean(top / ((m * m + n * n + 1e-4) * (aa + bb + 9e-4)))

    def loss(p, nudge, pose, focal, image):
        made = render(p, nudge, pose, focal)
        return 0.8 * jnp.abs(made - image).mean() + 0.2 * (1 - similarity(made, image))

    def step(p, m, v, moved, t, pose, focal, image):
        nudge = jnp.zeros((count, 2))
        value, (g, shift) = jax.value_and_grad(loss, (0, 1))(p, nudge, pose, focal, image)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        a, b = 1 - 0.9**t, 1 - 0.999**t
        p = {n: p[n] - r * (m[n] / a) / (jnp.sqrt(v[n] / b) + 1e-15) for n, r in rates.items()}
        low = jnp.minimum(p["opacity"], -4.6)
        p["opacity"] = jnp.where(t % 3000 == 0, low, p["opacity"])
        seen = jnp.linalg.norm(shift, axis=-1)
        moved = moved + jnp.stack([seen, (seen > 0).astype(F32)], -1)
        split = moved[:, 0] / jnp.maximum(moved[:, 1], 1) > 2e-4
        return p, m, v, moved, t + 1, value, split

    return step, (params, params, params, S(count, 2), S(), S(4, 4), S(), S(size, size, 3))


@program
def multigrid_smoke_control():
    n, levels = 64, 3

    def laplacian(x):
        y = jnp.pad(x, 1, mode="edge")
        return y[2:, 1:-1] + y[:-2, 1:-1] + y[1:-1, 2:] + y[1:-1, :-2] - 4 * x

    def cycle(b, level=0):
        x = jnp.zeros_like(b)
        smooth = lambda x: lax.fori_loop(0, 2, lambda _, x: x - 0.2 * (b - laplacian(x)), x)
        x = smooth(x)
        if level < levels:
            rest = (b - laplacian(x)).reshape(b.shape[0] // 2, 2, -1, 2).sum((1, 3))
            x = x + jnp.kron(cycle(rest, level + 1), jnp.ones((2, 2)))
        return smooth(x)

    def solve(b):
        """Conjugate gradients of the negative Laplacian, with a cycle of grids ahead of each."""
        b = b - b.mean()

        def more(state):
            return (state[-1] < 30) & (jnp.abs(state[1]).max() > 1e-4)

        def one(state):
            x, r, p, rz, i = state
            q = -laplacian(p)
            a = rz / jnp.maximum(jnp.vdot(p, q), 1e-20)
            r = r - a * q
            z = -cycle(r)
            new = jnp.vdot(r, z)
            return x + a * p, r, z + new / rz * p, new, i + 1

        z = -cycle(b)
        return lax.while_loop(more, one, (jnp.zeros_like(b), b, z, jnp.vdot(b, z), 0))[0]

    pressure = lambda b: lax.custom_linear_solve(
        lambda x: -laplacian(x), b, lambda _, b: solve(b), symmetric=True
    )

    def project(u, v, solid):
        u, v = u * (1 - solid), v * (1 - solid)
        apart = 0.5 * (jnp.roll(u, -1, 0) - jnp.roll(u, 1, 0) + jnp.roll(v, -1, 1) - jnp.roll(v, 1, 1))
        p = pressure(-apart + apart.mean())
        return u - 0.5 * (jnp.roll(p, -1, 0) - jnp.roll(p, 1, 0)), v - 0.5 * (
            jnp.roll(p, -1, 1) - jnp.roll(p, 1, 1)
        )

    def advect(f, u, v, dt):
        x, y = jnp.meshgrid(jnp.arange(n, dtype=F32), jnp.arange(n, dtype=F32), indexing="ij")
        take = functools.partial(map_coordinates, order=1, mode="wrap")
        there = take(f, [x - dt * u, y - dt * v])
        back = take(there, [x + dt * u, y + dt * v])
        around = lax.reduce_window(f, -jnp.inf, lax.max, (3, 3), (1, 1), "SAME")
        below = lax.reduce_window(f, jnp.inf, lax.min, (3, 3), (1, 1), "SAME")
        return jnp.clip(there + 0.5 * (f - back), lax.stop_gradient(below), lax.stop_gradient(around))

    def swirl(u, v, strength):
        w = 0.5 * (jnp.roll(v, -1, 0) - jnp.roll(v, 1, 0) - jnp.roll(u, -1, 1) + jnp.roll(u, 1, 1))
        gx, gy = jnp.gradient(jnp.abs(w))
        size = jnp.sqrt(gx**2 + gy**2 + 1e-6)
        return strength * w * gy / size, -strength * w * gx / size

    def simulate(force, smoke, heat, solid, dt):
        def one(state, force):
            u, v, smoke, heat = state
            a, b = swirl(u, v, 0.3)
            u, v = u + dt * (a + force[0] - 0.05 * smoke + 0.2 * heat), v + dt * (b + force[1])
            u, v = project(u, v, solid)
            u, v, smoke, heat = (advect(f, u, v, dt) for f in (u, v, smoke, heat))
            return (u, v, smoke * 0.999, heat * 0.98), smoke.sum()

        still = jnp.zeros((n, n))
        return lax.scan(jax.checkpoint(one), (still, still, smoke, heat), force)

    def step(knots, velocity, smoke, heat, solid, goal, dt):
        def loss(knots):
            force = jax.image.resize(knots, (8, 2, n, n), "bicubic")
            (*_, last, _), mass = simulate(force, smoke, heat, solid, dt)
            blurred = jax.image.resize(last - goal, (n // 4, n // 4), "linear")
            return jnp.mean((last - goal) ** 2) + jnp.mean(blurred**2) + 1e-4 * jnp.mean(knots**2), mass

        (value, mass), g = jax.value_and_grad(loss, has_aux=True)(knots)
        velocity = 0.9 * velocity - 0.1 * g / (jnp.linalg.norm(g) + 1e-8)
        return knots + velocity, velocity, value, mass, jnp.argmax(mass).astype(I32)

    square = S(n, n)
    return step, (S(4, 2, 8, 8), S(4, 2, 8, 8), square, square, square, square, S())
