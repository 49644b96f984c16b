"""Programs on points in space: molecules of nnx, point sets of equinox."""

import itertools

import jax
import jax.numpy as jnp
from arguments import KEY, S, entering_when_asked, ints
from jax import lax, nn, random
from steps import eqx_train, labelled, nnx_model

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def nnx_molecule_diffusion_averaged():
    import optax
    from flax import nnx

    mols, atoms, kinds, d, edges, times = 8, 12, 5, 64, 640, 1000
    nodes = mols * atoms

    class Layer(nnx.Module):
        def __init__(self, rngs):
            lin = lambda i, o, **k: nnx.Linear(i, o, rngs=rngs, **k)
            self.a, self.b, self.gate = lin(2 * d + 2, d), lin(d, d), lin(d, 1)
            self.c, self.e = lin(2 * d, d), lin(d, d)
            small = nnx.initializers.variance_scaling(1e-3, "fan_avg", "uniform")
            self.f, self.push = lin(d, d), lin(d, 1, use_bias=False, kernel_init=small)
            self.norm = nnx.LayerNorm(d, rngs=rngs)

        def __call__(self, h, x, start, src, dst, alive):
            apart = x[src] - x[dst]
            far = jnp.sum(apart**2, -1, keepdims=True)
            far0 = jnp.sum((start[src] - start[dst]) ** 2, -1, keepdims=True)
            m = nnx.silu(self.a(jnp.concatenate([h[src], h[dst], far, far0], -1)))
            m = nnx.silu(self.b(m))
            m = m * nnx.sigmoid(self.gate(m)) * alive
            way = apart / (jnp.sqrt(far + 1e-8) + 1) * jnp.tanh(self.push(nnx.silu(self.f(m)))) * alive
            x = x + jax.ops.segment_sum(way, dst, nodes) / 10
            y = jax.ops.segment_sum(m, dst, nodes) / 10
            y = self.e(nnx.silu(self.c(jnp.concatenate([self.norm(h), y], -1))))
            return h + y, x

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.enter = nnx.Linear(kinds + 1, d, rngs=rngs)
            self.leave = nnx.Linear(d, kinds, rngs=rngs)
            self.layers = nnx.List([Layer(rngs) for _ in range(3)])

        def __call__(self, h, x, t, src, dst, alive):
            h = self.enter(jnp.concatenate([h, t], -1))
            start = x
            for layer in self.layers:
                h, x = layer(h, x, start, src, dst, alive)
            return self.leave(h), x - start

    def both():
        model = Net(nnx.Rngs(0))
        return model, nnx.Optimizer(model, tx, wrt=nnx.Param)

    tx = optax.chain(optax.adaptive_grad_clip(0.1), optax.amsgrad(1e-4, b2=0.99))
    graph, state = nnx.split(nnx.eval_shape(both))
    _, net = nnx_model(Net)

    def step(state, mean, key, h, x, src, dst, alive, mol, real):
        model, optimizer = nnx.merge(graph, state)
        k1, k2, k3 = random.split(key, 3)
        total = lambda v: jax.ops.segment_sum(v, mol, mols, indices_are_sorted=True)
        count = total(real)
        centred = lambda v: (v - (total(v * real) / jnp.maximum(count, 1))[mol]) * real
        t = random.randint(k1, (mols, 1), 0, times + 1)
        s = (t / times).astype(jnp.float32)
        alpha = (1 - 2e-5) * (1 - s**2) ** 2 + 1e-5
        a, b = jnp.sqrt(alpha)[mol], jnp.sqrt(1 - alpha)[mol]
        nx, nh = centred(random.normal(k2, x.shape)), random.normal(k3, h.shape) * real
        zx, zh = a * centred(x) + b * nx, a * h / 4 + b * nh

        def loss(model):
            eh, ex = model(zh, zx, s[mol], src, dst, alive)
            off = jnp.sum((centred(ex) - nx) ** 2, -1) + jnp.sum((eh * real - nh) ** 2, -1)
            each = total(off[:, None])[:, 0] / (jnp.maximum(count[:, 0], 1) * (3 + kinds))
            return jnp.mean(jnp.where(t[:, 0] == 0, 2.0, 1.0) * each), each

        (value, each), grads = nnx.value_and_grad(loss, has_aux=True)(model)
        optimizer.update(model, grads)
        _, now = nnx.split(model)
        mean = jax.tree.map(lambda m, p: m + (1 - 0.999) * (p - m), mean, now)
        bins = jax.ops.segment_sum(each, t[:, 0] * 10 // (times + 1), 10)
        return nnx.state((model, optimizer)), mean, value, bins

    data = S(nodes, kinds), S(nodes, 3), ints(edges), ints(edges), S(edges, 1), ints(nodes), S(nodes, 1)
    return step, (state, net, KEY, *data)


@program
def eqx_point_sets_farthest_groups():
    import equinox as eqx
    import optax

    b, n, parts = 4, 512, 8

    def apart(x, y):
        return jnp.sum(x**2, -1)[:, None] + jnp.sum(y**2, -1) - 2 * x @ y.T

    def farthest(x, m):
        def one(i, carry):
            chosen, far = carry
            last = x[chosen[i - 1]]
            far = jnp.minimum(far, jnp.sum((x - last) ** 2, -1))
            return chosen.at[i].set(jnp.argmax(far).astype(jnp.int32)), far

        start = jnp.zeros(m, jnp.int32), jnp.full(len(x), 1e10)
        return lax.fori_loop(1, m, one, start)[0]

    class Shared(eqx.Module):
        lins: list
        norms: list

        def __init__(self, sizes, key):
            keys = random.split(key, len(sizes))
            pairs = list(itertools.pairwise(sizes))
            self.lins = [eqx.nn.Linear(i, o, key=k) for (i, o), k in zip(pairs, keys)]
            self.norms = [eqx.nn.LayerNorm(o) for _, o in pairs]

        def __call__(self, x):
            for lin, norm in zip(self.lins, self.norms):
                x = nn.relu(norm(lin(x)))
            return x

    def gathered(net, x, f, m, k, radius):
        centres = x[farthest(lax.stop_gradient(x), m)]
        far = lax.stop_gradient(apart(centres, x))
        near, at = lax.top_k(-far, k)
        at = jnp.where(-near > radius**2, at[:, :1], at)
        local = (x[at] - centres[:, None]) / radius
        both = jnp.concatenate([local, f[at]], -1)
        return centres, jax.vmap(jax.vmap(net))(both).max(1)

    def spread(net, x, y, f, g):
        near, at = lax.top_k(-lax.stop_gradient(apart(x, y)), 3)
        w = 1 / jnp.maximum(-near, 1e-8)
        w = w / w.sum(-1, keepdims=True)
        mixed = jnp.sum(g[at] * w[..., None], 1)
        return jax.vmap(net)(jnp.concatenate([f, mixed], -1))

    class Net(eqx.Module):
        down: list
        up: list
        drop: eqx.nn.Dropout
        out: eqx.nn.Linear

        def __init__(self, key):
            k = random.split(key, 5)
            self.down = [Shared((6, 32, 32, 64), k[0]), Shared((67, 64, 128), k[1])]
            self.up = [Shared((192, 64), k[2]), Shared((67, 64, 64), k[3])]
            self.drop = eqx.nn.Dropout(0.4)
            self.out = eqx.nn.Linear(64, parts, key=k[4])

        def __call__(self, x, f, key):
            x1, f1 = gathered(self.down[0], x, f, 128, 16, 0.2)
            x2, f2 = gathered(self.down[1], x1, f1, 32, 16, 0.4)
            f1 = spread(self.up[0], x1, x2, f1, f2)
            y = spread(self.up[1], x, x1, f, f1)
            return jax.vmap(self.out)(self.drop(y, key=key))

    def loss(model, key, x, f, y):
        k1, k2, k3, k4 = random.split(key, 4)
        angle = random.uniform(k1, (b,), maxval=2 * jnp.pi)
        c, s, z = jnp.cos(angle), jnp.sin(angle), jnp.zeros(b)
        turn = jnp.stack([c, -s, z, s, c, z, z, z, z + 1], -1).reshape(b, 3, 3)
        x = x * random.uniform(k2, (b, 1, 3), minval=0.8, maxval=1.25) @ turn
        x = x + jnp.clip(0.01 * random.normal(k3, x.shape), -0.05, 0.05)
        out = jax.vmap(model)(x, f, random.split(k4, b))
        chance = nn.softmax(out)
        hot = nn.one_hot(y, parts)
        over = (chance * hot).sum((0, 1)) / (chance + hot - chance * hot).sum((0, 1))
        return labelled(out, y) + 1 - over.mean()

    rate = optax.piecewise_constant_schedule(0.05, {400: 0.3, 800: 0.3})
    tx = optax.chain(optax.add_decayed_weights(1e-4), optax.sgd(rate, 0.9, nesterov=True))
    return eqx_train(Net, tx, loss, S(b, n, 3), S(b, n, 3), ints(b, n))
