"""Programs of no library but JAX that simulate on grids: a gas, and spins."""

import jax
import jax.numpy as jnp
from arguments import F32, KEY, S, entering_when_asked, ints
from jax import lax, nn, random

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def euler_weno_hllc_rollout():
    nx, ny, gamma, steps = 96, 64, 1.4, 16

    def primitive(u):
        rho = jnp.maximum(u[0], 1e-6)
        vx, vy = u[1] / rho, u[2] / rho
        p = jnp.maximum((gamma - 1) * (u[3] - 0.5 * rho * (vx**2 + vy**2)), 1e-6)
        return jnp.stack([rho, vx, vy, p])

    def conserved(w):
        rho, vx, vy, p = w
        return jnp.stack([rho, rho * vx, rho * vy, p / (gamma - 1) + 0.5 * rho * (vx**2 + vy**2)])

    def weno(a, b, c, d, e):
        """The value at the face between the third and the fourth of five cells."""
        s0 = 13 / 12 * (a - 2 * b + c) ** 2 + 0.25 * (a - 4 * b + 3 * c) ** 2
        s1 = 13 / 12 * (b - 2 * c + d) ** 2 + 0.25 * (b - d) ** 2
        s2 = 13 / 12 * (c - 2 * d + e) ** 2 + 0.25 * (3 * c - 4 * d + e) ** 2
        tau = jnp.abs(s0 - s2)
        w0, w1, w2 = (g * (1 + (tau / (s + 1e-6)) ** 2) for g, s in ((0.1, s0), (0.6, s1), (0.3, s2)))
        q0 = (2 * a - 7 * b + 11 * c) / 6
        q1 = (-b + 5 * c + 2 * d) / 6
        q2 = (2 * c + 5 * d - e) / 6
        return (w0 * q0 + w1 * q1 + w2 * q2) / (w0 + w1 + w2)

    def hllc(left, right, axis):
        across = 1 + axis
        rl, rr, pl, pr = left[0], right[0], left[3], right[3]
        vl, vr = left[across], right[across]
        cl, cr = jnp.sqrt(gamma * pl / rl), jnp.sqrt(gamma * pr / rr)
        guess = jnp.maximum(0.5 * (pl + pr) - 0.125 * (vr - vl) * (rl + rr) * (cl + cr), 1e-6)
        q = lambda p: jnp.where(guess > p, jnp.sqrt(1 + (gamma + 1) / (2 * gamma) * (guess / p - 1)), 1.0)
        sl, sr = vl - cl * q(pl), vr + cr * q(pr)
        middle = (pr - pl + rl * vl * (sl - vl) - rr * vr * (sr - vr)) / (rl * (sl - vl) - rr * (sr - vr))

        def side(w, s):
            u, v = conserved(w), w[across]
            flux = u * v
            flux = flux.at[across].add(w[3]).at[3].add(w[3] * v)
            star = u.at[across].set(w[0] * middle)
            star = star.at[3].add(w[0] * (middle - v) * (middle + w[3] / (w[0] * (s - v))))
            return flux, flux + s * (star * (s - v) / (s - middle) - u)

        fl, fl_star = side(left, sl)
        fr, fr_star = side(right, sr)
        inner = jnp.where(middle >= 0, fl_star, fr_star)
        return jnp.where(sl >= 0, fl, jnp.where(sr <= 0, fr, inner))

    def slope(u, axis, size):
        w = primitive(u)
        if axis == 0:
            wide = jnp.pad(w, ((0, 0), (3, 3), (0, 0)), "wrap")
        else:
            wide = jnp.pad(w, ((0, 0), (0, 0), (3, 3)), "symmetric")
            mirror = jnp.ones((4, 1, ny + 6)).at[2, :, :3].set(-1.0).at[2, :, -3:].set(-1.0)
            wide = wide * mirror
        n = u.shape[1 + axis] + 1
        cut = lambda i: lax.slice_in_dim(wide, i, i + n, axis=1 + axis)
        cells = [cut(i) for i in range(6)]
        left, right = weno(*cells[:5]), weno(*cells[:0:-1])
        good = lambda w, plain: jnp.where((w[0] > 1e-4) & (w[3] > 1e-4), w, plain)
        flux = hllc(good(left, cells[2]), good(right, cells[3]), axis)
        return -jnp.diff(flux, axis=1 + axis) / size

    def step(carry, _):
        u, time = carry
        rho, vx, vy, p = primitive(u)
        c = jnp.sqrt(gamma * p / rho)
        dt = 0.4 / jnp.max((jnp.abs(vx) + c) * nx + (jnp.abs(vy) + c) * ny)

        def rate(u):
            pull = jnp.zeros_like(u).at[2].set(-0.1 * u[0]).at[3].set(-0.1 * u[2])
            return slope(u, 0, 1 / nx) + slope(u, 1, 1 / ny) + pull

        u1 = u + dt * rate(u)
        u2 = 0.75 * u + 0.25 * (u1 + dt * rate(u1))
        u = u / 3 + 2 / 3 * (u2 + dt * rate(u2))
        turn = jnp.gradient(u[2] / u[0], axis=0) * nx - jnp.gradient(u[1] / u[0], axis=1) * ny
        told = dt, u[0].mean(), u[3].mean(), jnp.mean(turn**2), jnp.sqrt((vx**2 + vy**2) / c**2).max()
        return (u, time + dt), told

    def run(key, tops, shear):
        x, y = jnp.meshgrid((jnp.arange(nx) + 0.5) / nx, (jnp.arange(ny) + 0.5) / ny, indexing="ij")
        bumps = random.normal(key, (4, 2)) @ jnp.stack([jnp.ones(nx), jnp.zeros(nx)])
        waves = jnp.sin(2 * jnp.pi * (jnp.arange(1, 5)[:, None] * x[:, 0] + bumps)).sum(0)
        edge = nn.sigmoid((y - 0.5 - 0.01 * waves[:, None]) * 60)
        rho = 1 + (tops - 1) * edge
        w = jnp.stack([rho, shear * (edge - 0.5), 0.0 * y, 2.5 - 0.1 * rho * (y - 0.5)])
        (u, time), told = lax.scan(step, (conserved(w), 0.0), None, length=steps)
        steep = jnp.hypot(*jnp.gradient(u[0]))
        return primitive(u), time, jnp.exp(-10 * steep / steep.max()), told

    return run, (KEY, S(), S())


@program
def potts_clusters_replica_exchange():
    side, kinds, replicas, rounds = 32, 3, 8, 12
    count = side * side

    def labelled(right, down):
        """The least place in each cluster of bound neighbours."""

        def spread(state):
            label, _ = state
            new = label
            for bound, axis in ((right, 1), (down, 0)):
                ahead = jnp.where(bound, jnp.roll(new, -1, axis), count)
                new = jnp.minimum(new, ahead)
                behind = jnp.where(jnp.roll(bound, 1, axis), jnp.roll(new, 1, axis), count)
                new = jnp.minimum(new, behind)
            new = jnp.minimum(new, new.ravel()[new])
            return new, jnp.any(new != label)

        start = jnp.arange(count).reshape(side, side), True
        return lax.while_loop(lambda s: s[1], spread, start)[0]

    def energy(spins):
        return -jnp.sum((spins == jnp.roll(spins, -1, 0)) + (spins == jnp.roll(spins, -1, 1)))

    def sweep(spins, beta, key):
        k1, k2, k3 = random.split(key, 3)
        p = -jnp.expm1(-beta)
        draw = random.uniform(k1, (2, side, side)) < p
        right = draw[0] & (spins == jnp.roll(spins, -1, 1))
        down = draw[1] & (spins == jnp.roll(spins, -1, 0))
        label = labelled(right, down)
        spins = random.randint(k2, (count,), 0, kinds)[label]
        sizes = jnp.zeros(count, jnp.int32).at[label.ravel()].add(1)
        largest, at = lax.top_k(sizes, 3)

        def half(spins, at):
            parity, key = at
            near = [jnp.roll(spins, s, a) for a in (0, 1) for s in (-1, 1)]
            alike = sum((n[..., None] == jnp.arange(kinds)).astype(F32) for n in near)
            new = random.categorical(key, beta * alike)
            chess = (jnp.arange(side)[:, None] + jnp.arange(side)) % 2 == parity
            return jnp.where(chess, new, spins), None

        spins, _ = lax.scan(half, spins, (jnp.arange(2), random.split(k3)))
        return spins, (largest / count, label.ravel()[at], jnp.sum(sizes > 0))

    def run(spins, betas, key):
        place = jnp.arange(replicas)

        def one(carry, at):
            spins, where = carry
            i, key = at
            k1, k2 = random.split(key)
            beta = betas[where]
            spins, told = jax.vmap(sweep)(spins, beta, random.split(k1, replicas))
            level = jax.vmap(energy)(spins).astype(F32)
            who = jnp.argsort(where)
            partner = jnp.where((place + i) % 2 == 0, place + 1, place - 1)
            partner = jnp.where((partner < 0) | (partner >= replicas), place, partner)
            gain = (betas - betas[partner]) * (level[who] - level[who[partner]])
            chance = jnp.log(random.uniform(k2, (replicas,)))[jnp.minimum(place, partner)]
            new = jnp.where(chance < gain, who[partner], who)
            where = jnp.zeros(replicas, jnp.int32).at[new].set(place)
            share = jax.vmap(lambda s: jnp.bincount(s.ravel(), length=kinds))(spins) / count
            order = (kinds * share.max(-1) - 1) / (kinds - 1)
            wave = jnp.fft.fft2(jnp.exp(2j * jnp.pi * spins / kinds))
            shape = jnp.abs(wave[:, 0, 1]) ** 2 / count
            return (spins, where), (level[new], order[new], shape[new], chance < gain, *told)

        (spins, where), told = lax.scan(one, (spins, place), (jnp.arange(rounds), random.split(key, rounds)))
        level, order = told[0], told[1]
        heat = betas**2 * level.var(0) / count
        binder = 1 - (order**4).mean(0) / (3 * (order**2).mean(0) ** 2)
        centred = level - level.mean(0)
        spectrum = jnp.abs(jnp.fft.rfft(centred, 2 * rounds, axis=0)) ** 2
        memory = jnp.fft.irfft(spectrum, axis=0)[:rounds]
        long = 1 + 2 * jnp.cumsum(memory / jnp.maximum(memory[:1], 1e-9), 0)[1:].max(0)
        return spins, where, heat, binder, long, told

    return run, (ints(replicas, side, side), S(replicas), KEY)
