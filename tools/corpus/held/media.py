"""Programs on what fills space: a simulator of meshes, waves in the ground, a search for what is best."""

import jax
import jax.numpy as jnp
from arguments import KEY, S, entering_when_asked, ints
from jax import lax, nn, random
from jax.scipy.linalg import cho_solve, solve_triangular
from jax.scipy.stats import norm as gauss
from steps import haiku_train

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def haiku_cloth_mesh_simulator_normalised():
    import haiku as hk
    import optax

    nodes, edges, near, d, rounds, kinds = 400, 2000, 600, 64, 4, 4

    def mlp(x, out=d, normed=True):
        y = hk.nets.MLP([d, d, out], activation=nn.relu)(x)
        return hk.LayerNorm(-1, True, True)(y) if normed else y

    class Online(hk.Module):
        def __call__(self, x, learn=True):
            zeros = lambda name, *n: hk.get_state(name, n, init=jnp.zeros)
            count, total, squares = zeros("count"), zeros("sum", x.shape[-1]), zeros("squares", x.shape[-1])
            more = jnp.where(count < 1e6, 1.0, 0.0) if learn else 0.0
            count, total = count + more * len(x), total + more * x.sum(0)
            squares = squares + more * (x**2).sum(0)
            for name, v in ("count", count), ("sum", total), ("squares", squares):
                hk.set_state(name, v)
            safe = jnp.maximum(count, 1)
            mean = total / safe
            return mean, jnp.maximum(jnp.sqrt(jnp.maximum(squares / safe - mean**2, 0)), 1e-8)

    def net(batch):
        now, before, rest, kind, src, dst, a, c, _ = batch
        noise = 3e-3 * random.normal(hk.next_rng_key(), now.shape) * (kind == 0)[:, None]
        now = now + noise
        speed = now - before
        mean, sd = Online(name="speed")(speed)
        h = jnp.concatenate([(speed - mean) / sd, nn.one_hot(kind, kinds)], -1)
        size = lambda v: jnp.linalg.norm(v + 1e-12, axis=-1, keepdims=True)
        flat, apart = rest[src] - rest[dst], now[src] - now[dst]
        e = jnp.concatenate([apart, size(apart), flat, size(flat)], -1)
        mean, sd = Online(name="mesh")(e)
        e = mlp((e - mean) / sd)
        apart = now[a] - now[c]
        w = jnp.concatenate([apart, size(apart)], -1)
        mean, sd = Online(name="world")(w)
        reach = (size(apart) < 0.03).astype(w.dtype)
        w, h = mlp((w - mean) / sd), mlp(h)
        for _ in range(rounds):
            e_new = mlp(jnp.concatenate([e, h[src], h[dst]], -1))
            w_new = mlp(jnp.concatenate([w, h[a], h[c]], -1))
            mine = jax.ops.segment_sum(e_new, dst, nodes)
            theirs = jax.ops.segment_sum(w_new * reach, c, nodes)
            h_new = mlp(jnp.concatenate([h, mine, theirs], -1))
            e, w, h = e + e_new, w + w_new, h + h_new
        return mlp(h, 3, False), now, speed

    def full(batch):
        out, now, speed = net(batch)
        wanted = batch[-1] - now - speed
        mean, sd = Online(name="out")(wanted)
        return out, (wanted - mean) / sd, now + speed + out * sd + mean

    def loss(made, kind, after):
        out, wanted, reached = made
        free = (kind == 0).astype(out.dtype)
        each = jnp.sum((out - lax.stop_gradient(wanted)) ** 2, -1)
        far = lax.stop_gradient(jnp.sum((reached - after) ** 2, -1))
        return jnp.sum(each * free) / jnp.maximum(free.sum(), 1) + 0 * far.mean()

    rate = optax.exponential_decay(1e-4, 100000, 0.1)
    places = S(nodes, 3)
    batch = places, places, S(nodes, 2), ints(nodes), ints(edges), ints(edges), ints(near), ints(near), places
    return haiku_train(full, optax.adam(lambda i: rate(i) + 1e-6), loss, batch, ints(nodes), places)


@program
def waves_through_ground_inversion_remat():
    import optax

    shots, nx, nz, steps, every, heard, edge = 4, 96, 64, 120, 12, 32, 10
    taps = jnp.array([-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560])

    def second(u, axis):
        out = taps[0] * u
        for i in range(1, 5):
            out = out + taps[i] * (jnp.roll(u, i, axis) + jnp.roll(u, -i, axis))
        return out

    def sponge():
        x, z = jnp.arange(nx), jnp.arange(nz)
        deep = lambda v, n: jnp.maximum(jnp.maximum(edge - v, v - (n - 1 - edge)), 0) / edge
        return 0.3 * (deep(x, nx)[:, None] ** 2 + deep(z, nz)[None] ** 2)

    def shoot(slow, source, wavelet, mics):
        dt, dx = 1e-3, 10.0
        speed2 = 1 / slow**2
        damp = sponge()
        at = jnp.zeros((nx, nz)).at[source[0], source[1]].set(1.0)

        def one(carry, w):
            now, before = carry
            laplace = (second(now, 0) + second(now, 1)) / dx**2
            new = (2 * now - (1 - damp) * before + dt**2 * speed2 * (laplace + w * at)) / (1 + damp)
            return (new, now), new[mics[:, 0], mics[:, 1]]

        @jax.checkpoint
        def some(carry, ws):
            return lax.scan(one, carry, ws)

        start = jnp.zeros((nx, nz)), jnp.zeros((nx, nz))
        _, traces = lax.scan(some, start, wavelet.reshape(-1, every))
        return traces.reshape(steps, heard)

    def smooth(g, sigma=2.0):
        r = jnp.arange(-6, 7)
        k = jnp.exp(-0.5 * (r / sigma) ** 2)
        k = k / k.sum()
        along = lambda v: jnp.convolve(v, k, mode="same")
        return jax.vmap(along, 1, 1)(jax.vmap(along)(g))

    def misfit(model, sources, wavelet, mics, seen):
        slow = 1 / (1500 + 3000 * nn.sigmoid(model))
        made = jax.vmap(shoot, (None, 0, None, 0))(slow, sources, wavelet, mics)
        unit = lambda t: t / (jnp.sqrt(jnp.sum(t**2, 1, keepdims=True)) + 1e-6)
        off = unit(made) - unit(seen)
        across, down = model[1:] - model[:-1], model[:, 1:] - model[:, :-1]
        rough = jnp.mean(jnp.sqrt(across[:, 1:] ** 2 + down[1:] ** 2 + 1e-6))
        return 0.5 * jnp.sum(off**2) / shots + 1e-2 * rough, made

    tx = optax.chain(optax.scale_by_adam(), optax.scale(-0.05))

    def step(model, state, sources, wavelet, mics, seen):
        band = jnp.fft.rfft(wavelet)
        low = jnp.exp(-((jnp.fft.rfftfreq(steps, 1e-3) / 25) ** 2))
        wavelet = jnp.fft.irfft(band * low, steps)
        (value, made), grad = jax.value_and_grad(misfit, has_aux=True)(model, sources, wavelet, mics, seen)
        light = jnp.max(jnp.abs(grad))
        grad = smooth(grad / (light + 1e-12)) * (jnp.arange(nz) > 8)
        updates, state = tx.update(grad, state, model)
        new = jnp.clip(optax.apply_updates(model, updates), -6, 6)
        return new, state, value, jnp.mean((made - seen) ** 2, (1, 2))

    model = S(nx, nz)
    return step, (
        model,
        jax.eval_shape(tx.init, model),
        ints(shots, 2),
        S(steps),
        ints(shots, heard, 2),
        S(shots, steps, heard),
    )


@program
def process_restarts_expected_improvement():
    import optax

    n, dims, restarts, rounds, tried, batch = 64, 5, 6, 40, 256, 3

    def kernel(p, x, y):
        x, y = x / nn.softplus(p["long"]), y / nn.softplus(p["long"])
        far2 = jnp.sum((x[:, None] - y[None]) ** 2, -1)
        far = jnp.sqrt(5 * far2 + 1e-10)
        return nn.softplus(p["high"]) * (1 + far + far**2 / 3) * jnp.exp(-far)

    def factored(p, x, y, real):
        off = (y - p["mean"]) * real
        both = real[:, None] * real
        cov = kernel(p, x, x) * both + jnp.diag((nn.softplus(p["noise"]) + 1e-5) * real + (1 - real))
        low = jnp.linalg.cholesky(cov)
        return low, cho_solve((low, True), off), off

    def unlikely(p, x, y, real):
        low, alpha, off = factored(p, x, y, real)
        prior = jnp.sum((p["long"] - 0.5) ** 2) + 0.5 * p["high"] ** 2 + 0.1 * (p["noise"] + 4) ** 2
        return 0.5 * off @ alpha + jnp.sum(jnp.log(jnp.diagonal(low))) + prior

    tx = optax.chain(optax.zero_nans(), optax.adam(0.05))

    def fitted(p, x, y, real):
        def one(carry, _):
            p, state, best, least = carry
            value, grads = jax.value_and_grad(unlikely)(p, x, y, real)
            better = value < least
            best = jax.tree.map(lambda a, b: jnp.where(better, a, b), p, best)
            updates, state = tx.update(grads, state, p)
            return (optax.apply_updates(p, updates), state, best, jnp.minimum(value, least)), value

        (_, _, best, least), path = lax.scan(one, (p, tx.init(p), p, jnp.inf), None, rounds)
        return best, least, path

    def told(p, x, y, real, at):
        low, alpha, _ = factored(p, x, y, real)
        k = kernel(p, at, x) * real
        half = solve_triangular(low, k.T, lower=True)
        var = nn.softplus(p["high"]) - jnp.sum(half**2, 0)
        return p["mean"] + k @ alpha, jnp.sqrt(jnp.maximum(var, 1e-9))

    def gain(p, x, y, real, at):
        mean, sd = told(p, x, y, real, at)
        best = jnp.min(jnp.where(real > 0, y, jnp.inf))
        z = (best - mean - 0.01) / sd
        return sd * (z * gauss.cdf(z) + gauss.pdf(z))

    def propose(key, x, y, real):
        k1, k2 = random.split(key)
        count = real.sum()
        mean = jnp.sum(y * real) / count
        sd = jnp.sqrt(jnp.sum((y - mean) ** 2 * real) / count) + 1e-6
        y = (y - mean) / sd * real
        starts = {"long": random.normal(k1, (restarts, dims)), "high": jnp.zeros(restarts)}
        starts |= {"noise": jnp.full(restarts, -4.0), "mean": jnp.zeros(restarts)}
        many, least, paths = jax.vmap(fitted, (0, None, None, None))(starts, x, y, real)
        p = jax.tree.map(lambda v: v[jnp.nanargmin(least)], many)

        def one(carry, key):
            x, y, real, i = carry
            at = random.uniform(key, (tried, dims))
            better = jax.grad(lambda at: gain(p, x, y, real, at).sum())

            def climb(_, at):
                g = better(at)
                return jnp.clip(at + 0.02 * g / (jnp.linalg.norm(g, axis=-1, keepdims=True) + 1e-9), 0, 1)

            at = lax.fori_loop(0, 10, climb, at)
            values = gain(p, x, y, real, at)
            new = at[values.argmax()]
            guess = told(p, x, y, real, new[None])[0][0]
            x, y, real = x.at[i].set(new), y.at[i].set(guess), real.at[i].set(1.0)
            return (x, y, real, i + 1), (new, values.max())

        start = x, y, real, count.astype(jnp.int32)
        _, (points, gains) = lax.scan(one, start, random.split(k2, batch))
        return points, gains, p, paths, least

    return propose, (KEY, S(n, dims), S(n), S(n))
