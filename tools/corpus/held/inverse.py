"""Programs that solve for what is not seen: images, displacements and trees."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from arguments import F32, KEY, S, entering_when_asked, ints
from jax import lax, nn, random

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


@program
def hyperelastic_elements_newton():
    nx, ny = 24, 12
    place = np.stack(np.meshgrid(np.linspace(0, 2, nx + 1), np.linspace(0, 1, ny + 1), indexing="ij"), -1)
    number = np.arange((nx + 1) * (ny + 1)).reshape(nx + 1, ny + 1)
    corners = [number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]]
    corners = np.stack(corners, -1).reshape(-1, 4).astype(np.int32)
    points = np.array([[a, b] for a in (-1, 1) for b in (-1, 1)]) / math.sqrt(3)
    signs = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    slopes = np.stack(
        [np.stack([s * (1 + t * q[1]), t * (1 + s * q[0])], -1) / 4 for q in points for s, t in signs]
    )
    slopes = slopes.reshape(4, 4, 2).astype(np.float32)
    nodes = number.size
    rest = jnp.asarray(place.reshape(-1, 2), F32)

    def element(u, x, stiff, squeeze, growth):
        """The energy of one element of four nodes."""

        def at(slope):
            jacobian = x.T @ slope
            gradient = slope @ jnp.linalg.inv(jacobian)
            f = (jnp.eye(2) + u.T @ gradient) / growth
            j = jnp.linalg.det(f)
            first = jnp.sum(f**2)
            log = jnp.log(jnp.maximum(j, 1e-3))
            energy = 0.5 * stiff * (first - 2 - 2 * log) + 0.5 * squeeze * log**2
            return energy * jnp.linalg.det(jacobian)

        return jnp.sum(jax.vmap(at)(jnp.asarray(slopes)))

    def solve(u, stiff, squeeze, growth, shifts, floor):
        fixed = np.zeros((nodes, 2), bool)
        fixed[number[0]] = True
        fixed[number[-1]] = True
        free = jnp.asarray(~fixed, F32)
        each = jnp.asarray(corners)

        def energy(u):
            inner = jax.vmap(element)(u[each], rest[each], stiff, squeeze, growth).sum()
            deep = nn.relu(floor - (rest + u)[:, 1])
            return inner + 50 * jnp.sum(deep**2) + 1e-3 * jnp.sum(u[:, 1])

        def diagonal(u):
            whole = jax.vmap(jax.hessian(element))(u[each], rest[each], stiff, squeeze, growth)
            own = jnp.einsum("eaiai->eai", whole).reshape(-1, 2)
            total = jax.ops.segment_sum(own, each.ravel(), nodes)
            touching = (rest + u)[:, 1] < floor
            return jnp.maximum(total.at[:, 1].add(100.0 * touching), 1e-2)

        slope = jax.grad(energy)

        def newton(state):
            u, i, _, told = state
            residual = -slope(u) * free
            base = diagonal(u)
            apply = lambda v: free * jax.jvp(slope, (u,), (v * free,))[1] + (1 - free) * v
            limit = jnp.minimum(0.1, jnp.sqrt(jnp.linalg.norm(residual)))
            move, _ = jax.scipy.sparse.linalg.cg(apply, residual, tol=limit, maxiter=60, M=lambda v: v / base)
            fall = jnp.vdot(move, residual)
            move = jnp.where(fall > 0, move, residual / base)
            now, fall = energy(u), jnp.abs(fall)

            def shorter(carry):
                size, _ = carry
                return size * 0.5, energy(u + 0.5 * size * move)

            wrong = lambda c: ((c[1] > now - 1e-4 * c[0] * fall) | ~jnp.isfinite(c[1])) & (c[0] > 1e-3)
            size, _ = lax.while_loop(wrong, shorter, (jnp.float32(1), energy(u + move)))
            u = u + size * move
            left = jnp.linalg.norm(slope(u) * free)
            return u, i + 1, left, told.at[i].set(left)

        def load(u, shift):
            u = u.at[number[-1]].set(shift)
            state = u, 0, jnp.float32(jnp.inf), jnp.zeros(15)
            u, i, left, told = lax.while_loop(lambda s: (s[1] < 15) & (s[2] > 1e-5), newton, state)
            pull = slope(u)[number[-1]].sum(0)
            return u, (u, i, left, told, pull, energy(u))

        u, told = lax.scan(load, u, shifts)

        def stress(u, x, stiff, squeeze, growth):
            jacobian = x.T @ slopes.mean(0)
            gradient = slopes.mean(0) @ jnp.linalg.inv(jacobian)
            f = (jnp.eye(2) + u.T @ gradient) / growth
            cauchy = stiff * (f @ f.T - jnp.eye(2)) + squeeze * jnp.log(jnp.linalg.det(f)) * jnp.eye(2)
            return jnp.linalg.eigvalsh(cauchy)

        main = jax.vmap(stress)(u[each], rest[each], stiff, squeeze, growth)
        shared = jax.ops.segment_sum(jnp.repeat(main, 4, 0), each.ravel(), nodes)
        count = jax.ops.segment_sum(jnp.ones(each.size), each.ravel(), nodes)
        return u, told, main, shared / count[:, None]

    cells = S(nx * ny)
    return solve, (S(nodes, 2), cells, cells, cells, S(5, 2), S())


@program
def blackjax_tree_likelihood_chains():
    import blackjax

    taxa, sites, chains, samples, rates = 10, 160, 4, 25, 4
    branches = 2 * taxa - 2

    def quantiles(shape):
        """Means of a gamma distribution's quarters, by Wilson and Hilferty's cube."""
        p = (jnp.arange(rates) + 0.5) / rates
        z = math.sqrt(2) * lax.erf_inv(2 * p - 1)
        r = jnp.maximum(1 - 1 / (9 * shape) + z / (3 * jnp.sqrt(shape)), 0.05) ** 3
        return r / r.mean()

    def model(position, tips, order, weight):
        exchange = jnp.exp(jnp.concatenate([position["exchange"], jnp.zeros(1)]))
        freq = nn.softmax(jnp.concatenate([position["freq"], jnp.zeros(1)]))
        lengths, shape = jnp.exp(position["lengths"]), jnp.exp(position["shape"])
        still = nn.sigmoid(position["still"])
        above = jnp.zeros((4, 4)).at[jnp.triu_indices(4, 1)].set(exchange)
        q = (above + above.T) * freq
        q = q - jnp.diag(q.sum(1))
        q = q / -jnp.sum(freq * jnp.diag(q))
        time = lengths[:, None] * quantiles(shape)
        change = jax.vmap(jax.vmap(lambda t: jax.scipy.linalg.expm(q * t, max_squarings=6)))(time)

        def merge(carry, at):
            partial, scale = carry
            left, right, parent = at
            below = lambda i: jnp.einsum("rij,rsj->rsi", change[i], partial[i])
            both = below(left) * below(right)
            top = both.max((0, 2))
            both = both / top[:, None]
            return (partial.at[parent].set(both), scale + jnp.log(top)), None

        start = jnp.zeros((2 * taxa - 1, rates, sites, 4))
        start = start.at[:taxa].set(jnp.broadcast_to(tips[:, None], (taxa, rates, sites, 4)))
        (partial, scale), _ = lax.scan(merge, (start, jnp.zeros(sites)), order)
        varied = jnp.log(jnp.einsum("rsi,i->s", partial[-1], freq) / rates) + scale
        same = jnp.log(jnp.maximum(jnp.einsum("si,i->s", tips.prod(0), freq), 1e-30))
        site = jnp.logaddexp(jnp.log1p(-still) + varied, jnp.log(still) + same)
        prior = jnp.sum(position["lengths"] - 10 * lengths) - 0.5 * jnp.sum(position["exchange"] ** 2)
        prior += position["shape"] - shape - 0.5 * jnp.sum(position["freq"] ** 2) - position["still"] ** 2
        return jnp.sum(weight * site) + prior

    def sample(position, key, tips, order, weight, size, mass):
        density = lambda position: model(position, tips, order, weight)
        kernel = blackjax.ghmc(density, size, mass, jnp.float32(0.3), jnp.float32(0.1))
        k1, k2 = random.split(key)
        state = jax.vmap(kernel.init)(position, random.split(k1, chains))

        def one(state, key):
            state, info = jax.vmap(kernel.step)(random.split(key, chains), state)
            return state, (state.position, state.logdensity, info.acceptance_rate, info.is_divergent)

        state, (trail, logp, accepted, lost) = lax.scan(one, state, random.split(k2, samples))
        trail = jax.tree.map(lambda x: x.swapaxes(0, 1), trail)
        mixed = jax.tree.map(blackjax.diagnostics.potential_scale_reduction, trail)
        many = blackjax.diagnostics.effective_sample_size(trail["lengths"])
        length = jnp.exp(trail["lengths"]).sum(-1)
        ends = jnp.quantile(length, jnp.array([0.05, 0.5, 0.95]))
        return state, mixed, many, ends, logp, accepted.mean(), lost.sum()

    each = {"lengths": (branches,), "exchange": (5,), "freq": (3,), "shape": (), "still": ()}
    position = {name: S(chains, *shape) for name, shape in each.items()}
    mass = {name: S(*shape) for name, shape in each.items()}
    tree = tuple(ints(taxa - 1) for _ in range(3))
    return sample, (position, KEY, S(taxa, sites, 4), tree, S(sites), S(), mass)
