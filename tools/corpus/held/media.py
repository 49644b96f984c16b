"""Programs on what fills space: a simulator of meshes, waves in the ground."""

import jax
import jax.numpy as jnp
from arguments import S, entering_when_asked, ints
from jax import lax, nn, random
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
