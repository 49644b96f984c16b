"""Programs of no library but JAX and optax that simulate molecules and electrons."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from arguments import F32, KEY, S, entering_when_asked, ints
from jax import lax, nn, random

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def particle_mesh_ewald_langevin():
    n, mesh, side, alpha, cut, order = 384, 24, 2.4, 3.2, 0.9, 4
    bonds, angles = 256, 128
    wave = np.fft.fftfreq(mesh) * mesh
    grid = np.stack(np.meshgrid(wave, wave, wave[: mesh // 2 + 1], indexing="ij"), -1) / side
    grid[..., -1] = np.abs(grid[..., -1])
    square = (grid**2).sum(-1)
    knots = np.array([1 / 6, 4 / 6, 1 / 6])
    line = np.abs(knots @ np.exp(2j * np.pi * np.arange(3)[:, None] * np.arange(mesh) / mesh)) ** 2
    with np.errstate(divide="ignore"):
        green = np.exp(-(math.pi**2) * square / alpha**2) / square / (math.pi * side**3)
    green[0, 0, 0] = 0
    green = green / (line[:, None, None] * line[None, :, None] * line[: mesh // 2 + 1])
    twice = np.full(mesh // 2 + 1, 2.0)
    twice[[0, -1]] = 1.0

    def spline(f):
        """Weights of four points around one that is `f` behind the second."""
        return jnp.stack(
            [
                (1 - f) ** 3 / 6,
                (3 * f**3 - 6 * f**2 + 4) / 6,
                (-3 * f**3 + 3 * f**2 + 3 * f + 1) / 6,
                f**3 / 6,
            ],
            -1,
        )

    def nearest(apart):
        return apart - side * jnp.round(apart / side)

    def far(x, charge):
        at = x / side * mesh
        base = jnp.floor(at)
        weight = spline(at - base)
        index = (base.astype(jnp.int32)[..., None] + jnp.arange(-1, order - 1)) % mesh
        share = jnp.einsum("n,ni,nj,nk->nijk", charge, weight[:, 0], weight[:, 1], weight[:, 2])
        i, j, k = index[:, 0, :, None, None], index[:, 1, None, :, None], index[:, 2, None, None]
        density = jnp.zeros((mesh,) * 3).at[i, j, k].add(share)
        spectrum = jnp.fft.rfftn(density)
        power = spectrum.real**2 + spectrum.imag**2
        return 0.5 * jnp.sum(power * jnp.asarray(green * twice, F32)) - alpha / math.sqrt(math.pi) * jnp.sum(
            charge**2
        )

    def near(x, charge, kind, size, depth, bonded):
        apart = nearest(x[:, None] - x)
        square = jnp.sum(apart**2, -1) + 10 * jnp.eye(n)
        r = jnp.sqrt(square)
        linked = jnp.zeros((n, n), bool).at[bonded[:, 0], bonded[:, 1]].set(True)
        linked = linked | linked.T
        seen = (r < cut) & ~linked
        coulomb = charge[:, None] * charge * lax.erfc(alpha * r) / r
        hidden = charge[:, None] * charge * lax.erf(alpha * r) / r
        s = 0.5 * (size[kind][:, None] + size[kind])
        six = (s**2 / square) ** 3
        lj = 4 * jnp.sqrt(depth[kind][:, None] * depth[kind]) * (six**2 - six)
        u = jnp.clip((r / cut - 0.8) / 0.2, 0, 1)
        fade = 1 - u**3 * (10 - 15 * u + 6 * u**2)
        return 0.5 * jnp.sum(jnp.where(seen, coulomb + lj * fade, 0)) - 0.5 * jnp.sum(
            jnp.where(linked, hidden, 0)
        )

    def held(x, pairs, triples, lengths, bends):
        apart = nearest(x[pairs[:, 0]] - x[pairs[:, 1]])
        r = jnp.sqrt(jnp.sum(apart**2, -1) + 1e-12)
        a = nearest(x[triples[:, 0]] - x[triples[:, 1]])
        b = nearest(x[triples[:, 2]] - x[triples[:, 1]])
        turn = jnp.arctan2(jnp.linalg.norm(jnp.cross(a, b), axis=-1), jnp.sum(a * b, -1))
        return 150 * jnp.sum((r - lengths) ** 2) + 40 * jnp.sum((turn - bends) ** 2)

    def simulate(x, v, key, charge, kind, mass, size, depth, pairs, triples, lengths, bends, heat):
        charge = charge - charge.mean()

        def energy(x):
            parts = far(x, charge), near(x, charge, kind, size, depth, pairs)
            return sum(parts) + held(x, pairs, triples, lengths, bends), parts

        force = lambda x: jax.tree.map(jnp.negative, jax.grad(energy, has_aux=True)(x)[0])
        dt, friction = 2e-3, 1.0
        keep = math.exp(-friction * dt)

        def one(carry, key):
            x, v, f, widest = carry
            v = v + 0.5 * dt * f / mass[:, None]
            x = x + 0.5 * dt * v
            kick = jnp.sqrt(heat * (1 - keep**2) / mass)[:, None]
            v = keep * v + kick * random.normal(key, v.shape)
            x = (x + 0.5 * dt * v) % side
            f = force(x)
            v = v + 0.5 * dt * f / mass[:, None]
            v = v - jnp.sum(mass[:, None] * v, 0) / mass.sum()
            moving = 0.5 * jnp.sum(mass[:, None] * v**2)
            return (x, v, f, jnp.maximum(widest, jnp.abs(f).max())), (moving, 2 * moving / (3 * n))

        (x, v, _, widest), told = lax.scan(one, (x, v, force(x), jnp.float32(0)), random.split(key, 20))
        total, parts = energy(x)
        r = jnp.linalg.norm(nearest(x[:, None] - x) + 10 * jnp.eye(n)[..., None], axis=-1)
        bins = jnp.digitize(r.ravel(), jnp.linspace(0, side / 2, 33))
        near_count = jnp.zeros(34).at[bins].add(1.0)
        return x, v, total, parts, widest, told, near_count

    atoms = S(n, 3), S(n, 3), KEY, S(n), ints(n), S(n), S(4), S(4)
    return simulate, (*atoms, ints(bonds, 2), ints(angles, 3), S(bonds), S(angles), S())


@program
def fermion_wavefunction_monte_carlo_step():
    import optax

    walkers, up, down, wide, thin, determinants = 64, 3, 2, 32, 16, 4
    count, ions = up + down, 2
    one_in, two_in = ions * 4, 4
    layers, n, m = [], one_in, two_in
    for _ in range(2):
        layers.append({"w": S(3 * n + 2 * m, wide), "b": S(wide), "pair": S(m, thin), "pair_b": S(thin)})
        n, m = wide, thin
    orbital = {"w": S(wide, determinants * count), "b": S(determinants * count)}
    orbital |= {"envelope": S(ions, determinants * count), "decay": S(ions, determinants * count)}
    params = {"layers": layers, "up": orbital, "down": orbital, "mix": S(determinants), "cusp": S(2)}

    def logpsi(p, x, atoms):
        x = x.reshape(count, 3)
        away = x[:, None] - atoms
        r = jnp.linalg.norm(away, axis=-1, keepdims=True)
        h = jnp.concatenate([away, r], -1).reshape(count, -1)
        apart = x[:, None] - x
        gap = jnp.linalg.norm(apart + jnp.eye(count)[..., None], axis=-1, keepdims=True)
        gap = gap * (1 - jnp.eye(count)[..., None])
        g = jnp.concatenate([apart, gap], -1)
        for layer in p["layers"]:
            means = [jnp.broadcast_to(z.mean(0), h.shape) for z in (h[:up], h[up:])]
            pairs = [g[:, :up].mean(1), g[:, up:].mean(1)]
            new = jnp.tanh(jnp.concatenate([h, *means, *pairs], -1) @ layer["w"] + layer["b"])
            fine = jnp.tanh(g @ layer["pair"] + layer["pair_b"])
            h = (h + new) / math.sqrt(2) if h.shape == new.shape else new
            g = (g + fine) / math.sqrt(2) if g.shape == fine.shape else fine
        parts = []
        for o, some, far in ((p["up"], h[:up], r[:up]), (p["down"], h[up:], r[up:])):
            fall = jnp.sum(o["envelope"] * jnp.exp(-jnp.abs(far * o["decay"])), 1)
            parts.append(((some @ o["w"] + o["b"]) * fall).reshape(-1, determinants, count))
        matrix = jnp.concatenate(parts).swapaxes(0, 1)
        sign, size = jnp.linalg.slogdet(matrix)
        top = lax.stop_gradient(size.max())
        total = jnp.sum(p["mix"] * sign * jnp.exp(size - top))
        spin = jnp.arange(count) < up
        like = spin[:, None] == spin
        a = nn.softplus(p["cusp"])[like.astype(jnp.int32)]
        jastrow = jnp.where(like, -0.25, -0.5) * a**2 / (a + gap[..., 0])
        return jnp.log(jnp.abs(total)) + top + jnp.sum(jnp.triu(jastrow, 1))

    def local_energy(p, x, atoms, charges):
        slope = jax.grad(lambda x: logpsi(p, x, atoms))

        def along(i, total):
            first, second = jax.jvp(slope, (x,), (jnp.zeros(x.shape).at[i].set(1.0),))
            return total + second[i] + first[i] ** 2

        moving = -0.5 * lax.fori_loop(0, x.shape[0], along, jnp.float32(0))
        y = x.reshape(count, 3)
        ahead = jnp.triu_indices(count, 1)
        repel = jnp.sum(1 / jnp.linalg.norm(y[ahead[0]] - y[ahead[1]], axis=-1))
        attract = jnp.sum(charges / jnp.linalg.norm(y[:, None] - atoms, axis=-1))
        return moving + repel - attract + charges[0] * charges[1] / jnp.linalg.norm(atoms[0] - atoms[1])

    def make_loss(atoms, charges):
        every = lambda p, x: jax.vmap(lambda x: local_energy(p, x, atoms, charges))(x)

        @jax.custom_jvp
        def loss(p, x):
            e = every(p, x)
            return e.mean(), e

        @loss.defjvp
        def _(primals, tangents):
            p, x = primals
            value, e = loss(p, x)
            middle = jnp.median(e)
            width = jnp.mean(jnp.abs(e - middle))
            rest = jnp.clip(e, middle - 5 * width, middle + 5 * width)
            rest = rest - rest.mean()
            both = jax.vmap(lambda p, x: logpsi(p, x, atoms), (None, 0))
            _, move = jax.jvp(both, primals, tangents)
            return (value, e), (jnp.vdot(rest, move) / walkers, jnp.zeros_like(e))

        return loss

    tx = optax.chain(
        optax.clip_by_block_rms(1.0),
        optax.scale_by_adam(),
        optax.scale_by_schedule(lambda t: -1e-2 / (1 + t / 1000)),
    )

    def step(params, state, x, width, key, atoms, charges):
        density = jax.vmap(lambda x: 2 * logpsi(params, x, atoms))

        def move(carry, key):
            x, old, moved = carry
            k1, k2 = random.split(key)
            new = x + width * random.normal(k1, x.shape)
            after = density(new)
            taken = jnp.log(random.uniform(k2, after.shape)) < after - old
            return (
                jnp.where(taken[:, None], new, x),
                jnp.where(taken, after, old),
                moved + taken.mean(),
            ), None

        (x, _, moved), _ = lax.scan(move, (x, density(x), 0.0), random.split(key, 6))
        moved = moved / 6
        width = jnp.where(moved > 0.55, width * 1.1, jnp.where(moved < 0.5, width / 1.1, width))
        loss = make_loss(atoms, charges)
        (value, e), grads = jax.value_and_grad(loss, has_aux=True)(params, x)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state, x, width, value, e.var(), moved

    state = jax.eval_shape(tx.init, params)
    return step, (params, state, S(walkers, count * 3), S(), KEY, S(ions, 3), S(ions))
