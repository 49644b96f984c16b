"""Programs of no library but JAX: waves, electrons, and an optimizer that factors matrices."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from arguments import F32, S, entering_when_asked
from jax import lax, nn

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def maxwell_inverse_design_remat():
    n, edge, courant, periods, inner = 32, 6, 0.5, 5, 8
    depth = np.zeros(n, np.float32)
    depth[:edge] = (np.arange(edge, 0, -1) / edge) ** 3
    depth[-edge:] = depth[:edge][::-1]
    loss = 1.2 * depth
    fade = np.exp(-(loss + 0.05) * courant)
    gain = np.where(depth > 0, loss / (loss + 0.05) * (fade - 1), 0).astype(np.float32)
    ball = np.stack(np.meshgrid(*[np.arange(-2, 3)] * 3), -1)
    ball = np.maximum(0, 2.5 - np.linalg.norm(ball, axis=-1)).astype(np.float32)
    ball = ball / ball.sum()

    def along(x, axis, forward):
        """Difference to the neighbour ahead or behind; the walls conduct."""
        wide = [(0, 0)] * 3
        wide[axis] = (0, 1) if forward else (1, 0)
        return jnp.diff(jnp.pad(x, wide), axis=axis)

    def slab(line, axis):
        return jnp.asarray(line, F32).reshape([-1 if i == axis else 1 for i in range(3)])

    def curl(field, memory, forward):
        out, kept = [], []
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            a, b = along(field[k], j, forward), along(field[j], k, forward)
            ma = memory[2 * i] * slab(fade, j) + slab(gain, j) * a
            mb = memory[2 * i + 1] * slab(fade, k) + slab(gain, k) * b
            out.append(a + ma - b - mb)
            kept += [ma, mb]
        return jnp.stack(out), jnp.stack(kept)

    def structure(design, sharp):
        smooth = lax.conv_general_dilated(
            design[None, None],
            jnp.asarray(ball)[None, None],
            (1, 1, 1),
            "SAME",
            dimension_numbers=("NCDHW", "OIDHW", "NCDHW"),
        )[0, 0]
        top = jnp.tanh(sharp * 0.5) + jnp.tanh(sharp * (smooth - 0.5))
        solid = top / (2 * jnp.tanh(sharp * 0.5))
        core = jnp.zeros((n, n, n)).at[:, 13:19, 13:19].set(1.0)
        solid = lax.dynamic_update_slice(core, solid, (8, 8, 8))
        return 2.07 + (12.1 - 2.07) * solid, smooth

    def run(design, sharp, mode, omega):
        eps, smooth = structure(design, sharp)
        inverse = jnp.stack([1 / (0.5 * (eps + jnp.roll(eps, -1, i))) for i in range(3)])

        def one(carry, at):
            e, h, me, mh, seen = carry
            c, mh = curl(e, mh, True)
            h = h - courant * c
            c, me = curl(h, me, False)
            e = e + courant * inverse * c
            time = at * courant
            pulse = jnp.exp(-(((time - 8) / 4) ** 2)) * jnp.sin(omega[0] * time)
            e = e.at[2, 7, 10:22, 10:22].add(-courant * pulse * mode)
            phase = jnp.exp(-1j * omega * time)
            seen = seen + phase[:, None, None] * e[2, 25, 10:22, 10:22]
            return (e, h, me, mh, seen), jnp.sum(e[:, 16] ** 2)

        @jax.checkpoint
        def period(carry, at):
            return lax.scan(one, carry, at)

        field = jnp.zeros((3, n, n, n))
        memory = jnp.zeros((6, n, n, n))
        seen = jnp.zeros((omega.shape[0], 12, 12), jnp.complex64)
        at = jnp.arange(periods * inner, dtype=F32).reshape(periods, inner)
        (*_, seen), energy = lax.scan(period, (field, field, memory, memory, seen), at)
        through = jnp.abs(jnp.einsum("wyz,yz->w", seen, mode)) ** 2 / jnp.sum(mode**2)
        rough = 1e-3 * jnp.mean(smooth * (1 - smooth))
        return nn.logsumexp(-through * 10) / 10 + rough, (through, energy.ravel())

    def step(design, m, v, at, sharp, mode, omega):
        (value, more), grad = jax.value_and_grad(run, has_aux=True)(design, sharp, mode, omega)
        m, v = 0.9 * m + 0.1 * grad, 0.99 * v + 0.01 * grad**2
        move = 0.02 * (m / (1 - 0.9**at)) / (jnp.sqrt(v / (1 - 0.99**at)) + 1e-8)
        design = jnp.clip(design - move, 0, 1)
        design = 0.5 * (design + design[:, ::-1])
        return design, m, v, at + 1, jnp.minimum(sharp * 1.02, 64.0), value, more

    block = S(16, 16, 16)
    return step, (block, block, block, S(), S(), S(12, 12), S(3))


@program
def kohn_sham_self_consistent_mixing():
    n, bands, points, kept, ions = 96, 12, 4, 5, 3
    side = 10.0
    wave = 2 * np.pi * np.fft.fftfreq(n, side / n)
    places = np.arange(n) * side / n
    blochs = (np.arange(points) + 0.5) / points * np.pi / side
    plain = np.eye(n)
    kinetic = np.stack(
        [np.fft.ifft((wave + k)[:, None] ** 2 / 2 * np.fft.fft(plain, axis=0), axis=0) for k in blochs]
    ).astype(np.complex64)

    def attraction(at, charge):
        apart = jnp.asarray(places, F32)[:, None] - at
        apart = apart - side * jnp.round(apart / side)
        return -jnp.sum(charge * lax.rsqrt(apart**2 + 1.0), 1)

    def mean_field(density):
        shape = jnp.asarray(np.where(wave == 0, 0.0, 2 * np.exp(-(wave**2) / 8) / (wave**2 + 0.1)), F32)
        return jnp.fft.ifft(shape * jnp.fft.fft(density)).real * 2 * math.pi

    def exchange(density):
        density = jnp.maximum(density, 1e-9)
        r = 1 / (2 * density)
        return -0.5 * density ** (4 / 3) - density * jnp.log1p(0.3 * r + 0.1 * r**2) / (5.0 + 2.7 * r)

    def filled(levels, count, warm):
        """Occupations whose sum is `count`, the chemical potential found by halving."""
        share = lambda mu: nn.sigmoid((mu - levels) / warm)

        def half(_, ends):
            low, high = ends
            mu = 0.5 * (low + high)
            more = 2 * share(mu).sum() / points < count
            return jnp.where(more, mu, low), jnp.where(more, high, mu)

        low, high = lax.fori_loop(0, 40, half, (levels.min() - 1, levels.max() + 1))
        mu = 0.5 * (low + high)
        return share(mu), mu

    def bands_of(potential):
        system = jnp.asarray(kinetic) + jnp.diag(potential)
        system = 0.5 * (system + system.conj().swapaxes(1, 2))
        levels, waves = jnp.linalg.eigh(system)
        return levels[:, :bands], waves[:, :, :bands]

    def run(at, charge, warm, first):
        outer = attraction(at, charge)
        count = charge.sum()

        def out_of(density):
            potential = outer + mean_field(density) + jax.vmap(jax.grad(exchange))(density)
            levels, waves = bands_of(potential)
            share, mu = filled(levels, count, warm)
            new = jnp.einsum("kb,kxb->x", 2 * share / points, jnp.abs(waves) ** 2) * n / side
            return new, levels, share, mu

        def mixed(pasts, rests, used):
            """The combination of earlier rests that is least."""
            gram = rests @ rests.T
            real = jnp.arange(kept) < used
            gram = jnp.where(real[:, None] & real, gram, jnp.eye(kept) * jnp.trace(gram))
            edge = jnp.concatenate([real, jnp.zeros(1, bool)]).astype(F32)
            system = jnp.pad(gram / (jnp.trace(gram) + 1e-12), ((0, 1), (0, 1)))
            system = system.at[-1].set(edge).at[:, -1].set(edge) + 1e-7 * jnp.eye(kept + 1)
            weight = jnp.linalg.solve(system, jnp.zeros(kept + 1).at[-1].set(1.0))[:kept]
            return jnp.where(real, weight, 0.0) @ (pasts + 0.4 * rests)

        def one(state):
            i, density, pasts, rests, _ = state
            new = out_of(density)[0]
            rest = new - density
            smooth = wave**2 / (wave**2 + 0.8)
            rest_ = jnp.fft.ifft(jnp.asarray(np.maximum(smooth, 0.1), F32) * jnp.fft.fft(rest)).real
            pasts = lax.dynamic_update_index_in_dim(pasts, density, i % kept, 0)
            rests = lax.dynamic_update_index_in_dim(rests, rest_, i % kept, 0)
            simple = lambda _: density + 0.3 * rest_
            pulay = lambda _: mixed(pasts, rests, jnp.minimum(i + 1, kept))
            density = jnp.maximum(lax.cond(i < 2, simple, pulay, None), 1e-8)
            density = density * count / (density.sum() * side / n)
            return i + 1, density, pasts, rests, jnp.sum(jnp.abs(rest)) * side / n

        start = first * count / (first.sum() * side / n)
        state = 0, start, jnp.zeros((kept, n)), jnp.zeros((kept, n)), jnp.float32(jnp.inf)
        state = lax.while_loop(lambda s: (s[0] < 60) & (s[4] > 1e-4), one, state)
        rounds, density, *_, left = state
        _, levels, share, mu = out_of(density)
        inside = lambda f: jnp.where((f > 1e-6) & (f < 1 - 1e-6), f * jnp.log(f) + (1 - f) * jnp.log1p(-f), 0)
        field = mean_field(density)
        each = jax.vmap(jax.value_and_grad(exchange))(density)
        total = 2 * jnp.sum(share * levels) / points + 2 * warm * jnp.sum(inside(share)) / points
        total += jnp.sum(each[0] - density * (each[1] + 0.5 * field)) * side / n
        apart = at[:, None] - at + jnp.eye(ions)
        total += 0.5 * jnp.sum((1 - jnp.eye(ions)) * charge[:, None] * charge / jnp.sqrt(apart**2 + 1))
        force = -jax.grad(lambda at: jnp.sum(attraction(at, charge) * density) * side / n)(at)
        return total, force, density, levels, mu, rounds, left

    return jax.vmap(run, (0, None, None, 0)), (S(4, ions), S(ions), S(), S(4, n))
