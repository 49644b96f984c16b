"""Programs that solve for what is not seen: images."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from arguments import F32, S, entering_when_asked
from jax import lax, random

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def tomography_total_variation_primal_dual():
    n, angles, rounds = 64, 36, 30

    def project(image, turns):
        centre = (n - 1) / 2
        y, x = jnp.meshgrid(jnp.arange(n) - centre, jnp.arange(n) - centre, indexing="ij")

        def one(turn):
            cos, sin = jnp.cos(turn), jnp.sin(turn)
            at = [cos * y - sin * x + centre, sin * y + cos * x + centre]
            return jax.scipy.ndimage.map_coordinates(image, at, order=1, mode="constant").sum(0)

        return jax.vmap(one)(turns)

    def slopes(image):
        down = jnp.diff(image, axis=0, append=image[-1:])
        across = jnp.diff(image, axis=1, append=image[:, -1:])
        return jnp.stack([down, across])

    def filtered(sinogram):
        wide = 2 * n
        ramp = np.abs(np.fft.rfftfreq(wide)) * (0.54 + 0.46 * np.cos(2 * np.pi * np.fft.rfftfreq(wide)))
        wave = jnp.fft.rfft(sinogram, wide, axis=1) * jnp.asarray(2 * ramp, F32)
        return jnp.fft.irfft(wave, wide, axis=1)[:, :n]

    def reconstruct(counts, dark, turns, strength, truth):
        sinogram = -jnp.log(jnp.maximum(counts - dark, 1.0) / jnp.maximum(counts.max(1, keepdims=True), 1.0))
        weight = jnp.maximum(counts - dark, 1.0)
        weight = weight / weight.mean()
        forward = lambda image: project(image, turns)
        back = lambda s: jax.linear_transpose(forward, jax.ShapeDtypeStruct((n, n), F32))(s)[0]
        spread = lambda d: jax.linear_transpose(slopes, jax.ShapeDtypeStruct((n, n), F32))(d)[0]

        def power(_, carry):
            image, _ = carry
            image = back(forward(image)) + spread(slopes(image))
            size = jnp.linalg.norm(image)
            return image / size, size

        first = random.normal(random.key(0), (n, n))
        _, size = lax.fori_loop(0, 8, power, (first / jnp.linalg.norm(first), jnp.float32(1)))
        tau = sigma = 0.95 / jnp.sqrt(size)

        def one(carry, _):
            image, ahead, dual, dual_slope = carry
            dual = (dual + sigma * (forward(ahead) - sinogram)) / (1 + sigma / weight)
            dual_slope = dual_slope + sigma * slopes(ahead)
            over = jnp.sqrt(jnp.sum(dual_slope**2, 0)) / strength
            dual_slope = dual_slope / jnp.maximum(1.0, over)
            new = jnp.maximum(image - tau * (back(dual) + spread(dual_slope)), 0)
            off = 0.5 * jnp.sum(weight * (forward(new) - sinogram) ** 2)
            rough = strength * jnp.sum(jnp.sqrt(jnp.sum(slopes(new) ** 2, 0)))
            return (new, 2 * new - image, dual, dual_slope), (off, rough, jnp.linalg.norm(new - image))

        start = jnp.maximum(back(filtered(sinogram)) * math.pi / (2 * angles), 0)
        carry = start, start, jnp.zeros((angles, n)), jnp.zeros((2, n, n))
        (image, *_), told = lax.scan(one, carry, None, length=rounds)

        def alike(a, b):
            box = lambda x: lax.reduce_window(x, 0.0, lax.add, (7, 7), (1, 1), "VALID") / 49
            ma, mb = box(a), box(b)
            va, vb, both = box(a * a) - ma**2, box(b * b) - mb**2, box(a * b) - ma * mb
            top = (2 * ma * mb + 1e-4) * (2 * both + 9e-4)
            return jnp.mean(top / ((ma**2 + mb**2 + 1e-4) * (va + vb + 9e-4)))

        edges, levels = jnp.histogram(image, 32)
        below = jnp.cumsum(edges)
        split = jnp.argmax(below * (below[-1] - below))
        noise = -10 * jnp.log10(jnp.mean((image - truth) ** 2) / truth.max() ** 2)
        return image, told, noise, alike(image, truth), image > levels[split + 1]

    return reconstruct, (S(angles, n), S(), S(angles), S(), S(n, n))
