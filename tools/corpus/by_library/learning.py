"""Programs that learn from rewards, from forces and from data that a model explains."""

import math

import jax
import jax.numpy as jnp
from arguments import KEY, S, entering_when_asked, ints
from jax import lax, nn, random
from steps import layers, shapes

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def numpyro_volatility_annealed_guide():
    import numpyro
    import numpyro.distributions as dist
    import optax
    from numpyro.infer import SVI, Trace_ELBO
    from numpyro.infer.autoguide import AutoDAIS

    t, assets = 80, 3

    def model(returns, seen):
        drift = numpyro.sample("drift", dist.Normal(0, 0.1).expand((assets,)).to_event(1))
        level = numpyro.sample("level", dist.Normal(-1, 1).expand((assets,)).to_event(1))
        stay = numpyro.sample("stay", dist.Beta(20.0, 1.5).expand((assets,)).to_event(1))
        wild = numpyro.sample("wild", dist.HalfNormal(0.5).expand((assets,)).to_event(1))
        tail = numpyro.sample("tail", dist.Gamma(2.0, 0.1))
        low = numpyro.sample("low", dist.LKJCholesky(assets, 2.0))
        noise = numpyro.sample("noise", dist.Normal(0, 1).expand((t, assets)).to_event(2))

        def one(h, at):
            e, y, seen = at
            h = level + stay * (h - level) + wild * (low @ e)
            fit = dist.StudentT(tail + 2, drift, jnp.exp(h / 2)).log_prob(y)
            return h, jnp.where(seen, fit, 0.0).sum()

        start = level + wild * lax.rsqrt(1 - jnp.minimum(stay, 0.999) ** 2)
        last, fits = lax.scan(one, start, (noise, returns, seen))
        numpyro.factor("fit", fits.sum())
        numpyro.deterministic("next", last)

    guide = AutoDAIS(model, K=4, init_scale=0.05)
    rate = optax.cosine_decay_schedule(1e-2, 2000)
    svi = SVI(model, guide, optax.chain(optax.clip(10.0), optax.adam(rate)), Trace_ELBO(num_particles=2))
    data = S(t, assets), S(t, assets, dtype=bool)
    state = shapes(svi.init(random.PRNGKey(0), *(jnp.ones(x.shape, x.dtype) for x in data)))

    def run(state, *data):
        def one(state, _):
            return svi.stable_update(state, *data)

        return lax.scan(one, state, None, length=5)

    return run, (state, *data)


@program
def trust_region_policy_conjugate():
    seen, moves, envs, length = 17, 6, 16, 32
    policy = {"net": layers(seen, 64, 64, moves), "spread": S(moves)}
    value = layers(seen, 64, 64, 1)

    def smooth(p, x):
        for w in p[:-1]:
            x = jnp.tanh(x @ w["w"] + w["b"])
        return x @ p[-1]["w"] + p[-1]["b"]

    def act(p, x):
        mean = smooth(p["net"], x)
        return mean, jnp.broadcast_to(p["spread"], mean.shape)

    def likely(p, x, a):
        mean, spread = act(p, x)
        return jnp.sum(-0.5 * ((a - mean) / jnp.exp(spread)) ** 2 - spread - 0.9189385, -1)

    def apart(old, new):
        (m0, s0), (m1, s1) = old, new
        each = s1 - s0 + (jnp.exp(2 * s0) + (m0 - m1) ** 2) / (2 * jnp.exp(2 * s1)) - 0.5
        return jnp.sum(each, -1).mean()

    def dot(a, b):
        return sum(jnp.vdot(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b)))

    def along(a, s, b):
        return jax.tree.map(lambda x, y: x + s * y, a, b)

    def update(policy, value, m, v, stats, key, obs, action, reward, done, last):
        mean, var, count = stats
        flat = obs.reshape(-1, seen)
        new, size = flat.mean(0), flat.shape[0]
        total = count + size
        var = (var * count + flat.var(0) * size + (new - mean) ** 2 * count * size / total) / total
        mean = mean + (new - mean) * size / total
        fix = lambda x: jnp.clip((x - mean) * lax.rsqrt(var + 1e-8), -10, 10)
        obs, last = fix(obs), fix(last)
        guess = smooth(value, jnp.concatenate([obs, last[None]]))[..., 0]

        def back(gain, at):
            reward, done, now, after = at
            gain = reward + 0.995 * after * (1 - done) - now + 0.995 * 0.97 * (1 - done) * gain
            return gain, gain

        steps = reward, done, guess[:-1], guess[1:]
        _, gain = lax.scan(back, jnp.zeros(envs), steps, reverse=True)
        goal = (gain + guess[:-1]).ravel()
        gain = ((gain - gain.mean()) / (gain.std() + 1e-8)).ravel()
        x, a = obs.reshape(-1, seen), action.reshape(-1, moves)
        before, old = likely(policy, x, a), act(policy, x)

        surrogate = lambda p: jnp.mean(jnp.exp(likely(p, x, a) - before) * gain)
        distance = lambda p: apart(old, act(p, x))
        start, slope = jax.value_and_grad(surrogate)(policy)

        def curved(u):
            return along(jax.jvp(jax.grad(distance), (policy,), (u,))[1], 0.1, u)

        def solve(carry):
            i, u, r, d, rr = carry
            hd = curved(d)
            s = rr / (dot(d, hd) + 1e-8)
            u, r = along(u, s, d), along(r, -s, hd)
            new = dot(r, r)
            return i + 1, u, r, along(r, new / (rr + 1e-12), d), new

        zero = jax.tree.map(jnp.zeros_like, slope)
        carry = 0, zero, slope, slope, dot(slope, slope)
        _, u, _, _, left = lax.while_loop(lambda c: (c[0] < 10) & (c[4] > 1e-10), solve, carry)
        length_ = jnp.sqrt(2 * 0.01 / (dot(u, curved(u)) + 1e-8))
        expected = dot(slope, u) * length_

        def tried(carry):
            i, part, _, _ = carry
            p = along(policy, part * length_, u)
            gained, far = surrogate(p) - start, distance(p)
            good = (gained > 0.1 * part * expected) & (far < 0.015) & jnp.isfinite(gained)
            return i + 1, jnp.where(good, part, part * 0.8), good, far

        search = 0, jnp.float32(1.0), jnp.array(False), jnp.float32(0.0)
        tries, part, good, far = lax.while_loop(lambda c: (c[0] < 15) & ~c[2], tried, search)
        policy = along(policy, jnp.where(good, part * length_, 0.0), u)

        def epoch(carry, key):
            order = random.permutation(key, x.shape[0]).reshape(4, -1)

            def small(carry, index):
                p, m, v, at = carry
                error = lambda p: jnp.mean((smooth(p, x[index])[:, 0] - goal[index]) ** 2)
                cost, g = jax.value_and_grad(error)(p)
                m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
                v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
                rate = 1e-3 * jnp.sqrt(1 - 0.999**at) / (1 - 0.9**at)
                p = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), p, m, v)
                return (p, m, v, at + 1), cost

            return lax.scan(small, carry, order)

        start = value, m, v, jnp.float32(1)
        (value, m, v, _), costs = lax.scan(epoch, start, random.split(key, 3))
        spread = 1 - jnp.var(goal - guess[:-1].ravel()) / (jnp.var(goal) + 1e-8)
        return policy, value, m, v, (mean, var, total), (left, far, tries, costs.mean(), spread)

    rollout = S(length, envs, seen), S(length, envs, moves), S(length, envs), S(length, envs), S(envs, seen)
    stats = S(seen), S(seen), S()
    return update, (policy, value, value, value, stats, KEY, *rollout)


@program
def eqx_energy_forces_vector_graph():
    import equinox as eqx
    import optax

    atoms, edges, graphs, d, waves, cut = 64, 512, 8, 48, 12, 5.0

    class Message(eqx.Module):
        own: eqx.nn.MLP
        radial: eqx.nn.Linear

        def __init__(self, key):
            k = random.split(key)
            self.own = eqx.nn.MLP(d, 3 * d, d, 1, nn.silu, key=k[0])
            self.radial = eqx.nn.Linear(waves, 3 * d, key=k[1])

        def __call__(self, s, v, wave, fade, unit, sender, receiver):
            both = jax.vmap(self.own)(s)[sender] * jax.vmap(self.radial)(wave) * fade[:, None]
            ds, turn, point = jnp.split(both, 3, -1)
            dv = turn[:, None] * v[sender] + point[:, None] * unit[:, :, None]
            sums = lambda x: jax.ops.segment_sum(x, receiver, atoms, indices_are_sorted=True)
            return s + sums(ds), v + sums(dv)

    class Mix(eqx.Module):
        left: eqx.nn.Linear
        right: eqx.nn.Linear
        own: eqx.nn.MLP
        norm: eqx.nn.LayerNorm

        def __init__(self, key):
            k = random.split(key, 3)
            self.left, self.right = (eqx.nn.Linear(d, d, use_bias=False, key=i) for i in k[:2])
            self.own = eqx.nn.MLP(2 * d, 3 * d, d, 1, nn.silu, key=k[2])
            self.norm = eqx.nn.LayerNorm(d)

        def __call__(self, s, v):
            a, b = jax.vmap(self.left)(v), jax.vmap(self.right)(v)
            size = jnp.sqrt(jnp.sum(b**2, 0) + 1e-8)
            stay, turn, cross = jnp.split(self.own(jnp.concatenate([self.norm(s), size])), 3)
            return s + stay + cross * jnp.sum(a * b, 0), v + turn * a

    class Net(eqx.Module):
        table: eqx.nn.Embedding
        messages: list
        mixes: list
        out: eqx.nn.MLP
        shift: jax.Array

        def __init__(self, key):
            k = random.split(key, 6)
            self.table = eqx.nn.Embedding(20, d, key=k[0])
            self.messages = [Message(i) for i in k[1:3]]
            self.mixes = [Mix(i) for i in k[3:5]]
            self.out = eqx.nn.MLP(d, "scalar", d // 2, 1, nn.silu, key=k[5])
            self.shift = jnp.zeros(20)

        def __call__(self, place, strain, kind, sender, receiver, offset, cell, graph, real):
            turn = jnp.eye(3) + 0.5 * (strain + strain.swapaxes(1, 2))
            place = jnp.einsum("ni,nij->nj", place, turn[graph])
            cell = jnp.einsum("gij,gjk->gik", cell, turn)[graph[sender]]
            apart = place[receiver] - place[sender] + jnp.einsum("ei,eij->ej", offset, cell)
            far = jnp.sqrt(jnp.sum(apart**2, -1) + 1e-9)
            fade = jnp.where(far < cut, 0.5 * (jnp.cos(math.pi * far / cut) + 1), 0.0) * real[sender]
            wave = jnp.sin(far[:, None] * jnp.arange(1, waves + 1) * math.pi / cut) / far[:, None]
            s, v = jax.vmap(self.table)(kind), jnp.zeros((atoms, 3, d))
            for message, mix in zip(self.messages, self.mixes):
                s, v = message(s, v, wave, fade, apart / far[:, None], sender, receiver)
                s, v = jax.vmap(mix)(s, v)
            each = (jax.vmap(self.out)(s) + self.shift[kind]) * real
            return jax.ops.segment_sum(each, graph, graphs)

    model = eqx.filter_eval_shape(Net, KEY)
    arrays, static = eqx.partition(model, lambda x: isinstance(x, jax.ShapeDtypeStruct))
    plan = optax.piecewise_constant_schedule(1e-3, {1000: 0.5, 2000: 0.5})
    tx = optax.chain(optax.clip_by_global_norm(10.0), optax.amsgrad(plan), optax.ema(0.9, debias=False))
    state = jax.eval_shape(tx.init, arrays)

    def step(arrays, average, state, place, rest, energy, force, stress, weight):
        graph, real = rest[-2:]
        count = jnp.maximum(jax.ops.segment_sum(real, graph, graphs), 1)
        volume = jnp.abs(jnp.linalg.det(rest[-3])) + 1e-6

        def loss(arrays):
            net = eqx.combine(arrays, static)
            total = lambda place, strain: (lambda e: (e.sum(), e))(net(place, strain, *rest))
            strain = jnp.zeros((graphs, 3, 3))
            (_, e), (slope, pull) = jax.value_and_grad(total, (0, 1), has_aux=True)(place, strain)
            pull = pull / volume[:, None, None]
            huber = lambda x: optax.losses.huber_loss(x, delta=0.1)
            off = jnp.linalg.norm(slope + force + 1e-12, axis=-1) * real
            parts = (
                jnp.sum(weight * huber((e - energy) / count)) / weight.sum(),
                jnp.sum(off * weight[graph]) / jnp.maximum(real.sum(), 1),
                jnp.mean(weight[:, None, None] * huber(pull - stress)),
            )
            return parts[0] + 10 * parts[1] + 0.1 * parts[2], parts

        (value, parts), grads = jax.value_and_grad(loss, has_aux=True)(arrays)
        updates, state = tx.update(grads, state, arrays)
        arrays = eqx.apply_updates(arrays, updates)
        return arrays, optax.incremental_update(arrays, average, 0.01), state, value, parts

    rest = ints(atoms), ints(edges), ints(edges), S(edges, 3), S(graphs, 3, 3), ints(atoms), S(atoms)
    goals = S(graphs), S(atoms, 3), S(graphs, 3, 3), S(graphs)
    return step, (arrays, arrays, state, S(atoms, 3), rest, *goals)
