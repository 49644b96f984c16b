"""Programs of libraries that nothing of hlofuse was worked out on: a measure of what it makes of unseen ones.

They are like those of libraries.py, and only counted. A program whose modules somebody looks into, to mend
something, belongs there from then on.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from arguments import BF16, F32, KEY, S, entering_when_asked, ints
from jax import lax, nn, random
from language import maxtext, sinusoids, wmt
from steps import (
    IMAGES,
    eqx_train,
    keras_train,
    labelled,
    linen_train,
    nnx_model,
    nnx_train,
    optax_train,
    sparse,
)

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def keras_efficientnet_b0_sgd():
    import keras

    schedule = lambda: keras.optimizers.schedules.ExponentialDecay(0.1, 100, 0.96, staircase=True)
    return keras_train(
        lambda: keras.Sequential(
            [
                keras.layers.Input((64, 64, 3)),
                keras.layers.RandomFlip("horizontal"),
                keras.applications.EfficientNetB0(input_shape=(64, 64, 3), classes=10, **IMAGES),
            ]
        ),
        lambda: keras.optimizers.SGD(schedule(), momentum=0.9, weight_decay=1e-5),
        sparse,
        S(4, 64, 64, 3),
        ints(4),
    )


@program
def linen_translation_beam_search():
    net, beams, length, vocab = wmt(decode=True), 4, 16, 256
    tokens = ints(2 * beams, length)
    made = jax.eval_shape(lambda k, s, t: net.init({"params": k}, (s, t)), KEY, tokens, tokens)

    def search(params, cache, source):
        apply = functools.partial(net.apply, {"params": params})
        encoded = apply(source, method="encode")
        wide = lambda x: jnp.repeat(x, beams, 0)
        encoded, source = wide(encoded), wide(source)

        def more(state):
            at, live, _, done, *_ = state
            return (at < length - 1) & ~jnp.all(live.max(1) / 5.0 < done.min(1))

        def step(state):
            at, live, text, done, kept, cache = state
            token = lax.dynamic_slice_in_dim(text, at, 1, 2).reshape(-1, 1)
            variables = {"params": params, "cache": cache}
            logits, new = net.apply(variables, encoded, source, token, at, method="decode", mutable=["cache"])
            logp = nn.log_softmax(logits[:, 0]).reshape(2, beams, vocab) + live[..., None]
            best, which = lax.top_k(logp.reshape(2, -1), 2 * beams)
            text = jnp.take_along_axis(text, (which // vocab)[..., None], 1)
            text = lax.dynamic_update_slice_in_dim(text, (which % vocab)[..., None], at + 1, 2)
            ended = which % vocab == 2
            live, order = lax.top_k(best - 1e7 * ended, beams)
            finished = jnp.concatenate(
                [done, jnp.where(ended, best / ((5.0 + at + 1) / 6.0) ** 0.6, -1e7)], 1
            )
            kept = jnp.concatenate([kept, text], 1)
            done, first = lax.top_k(finished, beams)
            kept = jnp.take_along_axis(kept, first[..., None], 1)
            parent = jnp.take_along_axis(which // vocab, order, 1) + beams * jnp.arange(2)[:, None]
            cache = jax.tree.map(lambda x: x if x.ndim == 0 else x[parent.ravel()], new["cache"])
            return at + 1, live, jnp.take_along_axis(text, order[..., None], 1), done, kept, cache

        live = jnp.tile(jnp.array([0.0] + [-1e7] * (beams - 1)), (2, 1))
        text = jnp.zeros((2, beams, length), jnp.int32)
        state = jnp.int32(0), live, text, jnp.full((2, beams), -1e7), text, cache
        return lax.while_loop(more, step, state)[3:5]

    return search, (made["params"], made["cache"], ints(2, 24))


@program
def maxtext_int8_decode():
    net = maxtext(BF16, quantized=True, layers=2)(decode=True)
    made = jax.eval_shape(lambda k, x: net.init(k, (x, x, x)), KEY, ints(4, 1))

    def generate(params, cache, token, key):
        def one(carry, key):
            cache, token, place = carry
            variables = {"params": params, "cache": cache}
            logits, new = net.apply(variables, (token, token, place), mutable=["cache"])
            order = jnp.sort(logits[:, 0] / 0.7, axis=-1)[:, ::-1]
            mass = jnp.cumsum(nn.softmax(order), -1)
            least = jnp.take_along_axis(order, jnp.sum(mass < 0.9, -1, keepdims=True), -1)
            token = random.categorical(key, jnp.where(logits[:, 0] < least, -1e30, logits[:, 0]))[:, None]
            return (new["cache"], token, place + 1), token

        return lax.scan(one, (cache, token, jnp.zeros_like(token)), random.split(key, 8))

    return generate, (made["params"], made["cache"], ints(4, 1), KEY)


@program
def linen_dlrm_bags_adagrad():
    import optax
    from flax import linen

    class Net(linen.Module):
        @linen.compact
        def __call__(self, batch):
            dense, ids, rows = batch
            for n in (64, 32):
                dense = linen.relu(linen.Dense(n)(dense))
            bags = [dense]
            for n in range(ids.shape[0]):
                found = linen.Embed(1000, 32)(ids[n] % 1000)
                bags.append(jax.ops.segment_sum(found, rows[n], dense.shape[0], indices_are_sorted=True))
            every = jnp.stack(bags, 1)
            pairs = jnp.einsum("bid,bjd->bij", every, every)
            low = np.tril_indices(every.shape[1], -1)
            x = jnp.concatenate([dense, pairs[:, low[0], low[1]]], -1)
            cross = x
            for _ in range(2):
                cross = x * linen.Dense(x.shape[-1])(linen.Dense(16, use_bias=False)(cross)) + cross
            return linen.Dense(1)(linen.relu(linen.Dense(64)(cross)))[:, 0]

    def loss(out, y):
        return optax.sigmoid_focal_loss(out, y).mean()

    return linen_train(Net(), optax.adagrad(0.02), loss, (S(128, 13), ints(5, 512), ints(5, 512)), S(128))


@program
def linen_rwkv():
    import optax
    from flax import linen

    class Mix(linen.Module):
        @linen.compact
        def __call__(self, x):
            d = x.shape[-1]
            learned = lambda n: self.param(n, linen.initializers.uniform(1.0), (d,))
            past = jnp.pad(x, ((0, 0), (1, 0), (0, 0)))[:, :-1]
            mixed = lambda n: past + (x - past) * learned("mix_" + n)
            k = linen.Dense(d, use_bias=False)(mixed("k"))
            v = linen.Dense(d, use_bias=False)(mixed("v"))
            r = nn.sigmoid(linen.Dense(d, use_bias=False)(mixed("r")))
            w, u = -jnp.exp(learned("decay")), learned("first")

            def one(state, kv):
                a, b, top = state
                k, v = kv
                m = jnp.maximum(top, u + k)
                e, f = jnp.exp(top - m), jnp.exp(u + k - m)
                out = (e * a + f * v) / (e * b + f)
                m = jnp.maximum(top + w, k)
                e, f = jnp.exp(top + w - m), jnp.exp(k - m)
                return (e * a + f * v, e * b + f, m), out

            zero = jnp.zeros((x.shape[0], d))
            _, y = lax.scan(one, (zero, zero, zero - 1e38), (k.swapaxes(0, 1), v.swapaxes(0, 1)))
            return linen.Dense(d, use_bias=False)(r * y.swapaxes(0, 1))

    class Channels(linen.Module):
        @linen.compact
        def __call__(self, x):
            past = jnp.pad(x, ((0, 0), (1, 0), (0, 0)))[:, :-1]
            mix = self.param("mix", linen.initializers.uniform(1.0), (2, x.shape[-1]))
            k, r = (x * m + past * (1 - m) for m in mix)
            y = linen.Dense(x.shape[-1])(jnp.square(nn.relu(linen.Dense(256)(k))))
            return nn.sigmoid(linen.Dense(x.shape[-1])(r)) * y

    class Net(linen.Module):
        @linen.compact
        def __call__(self, tokens):
            x = linen.LayerNorm()(linen.Embed(300, 64)(tokens))
            for _ in range(2):
                x = x + Mix()(linen.LayerNorm()(x))
                x = x + Channels()(linen.LayerNorm()(x))
            return linen.Dense(300)(linen.LayerNorm()(x))

    return linen_train(Net(), optax.adam(6e-4, 0.9, 0.99), labelled, ints(4, 32), ints(4, 32))


@program
def linen_conformer_tagger_crf():
    import optax
    from flax import linen

    class Block(linen.Module):
        @linen.compact
        def __call__(self, x):
            d = x.shape[-1]
            feed = lambda x: linen.Dense(d)(nn.swish(linen.Dense(4 * d)(linen.LayerNorm()(x))))
            x = x + 0.5 * feed(x)
            x = x + linen.MultiHeadDotProductAttention(4, dropout_rate=0.1, deterministic=False)(
                linen.LayerNorm()(x)
            )
            y = nn.glu(linen.Dense(2 * d)(linen.LayerNorm()(x)))
            y = linen.Conv(d, (15,), feature_group_count=d)(y)
            y = nn.swish(linen.BatchNorm(use_running_average=False)(y))
            x = x + linen.Dense(d)(y)
            return linen.LayerNorm()(x + 0.5 * feed(x))

    class Net(linen.Module):
        @linen.compact
        def __call__(self, wave):
            frames = jnp.stack([wave[:, n * 160 : n * 160 + 400] for n in range(64)], 1)
            power = jnp.abs(jnp.fft.rfft(frames * np.hanning(400).astype(np.float32), 512)) ** 2
            mel = self.param("mel", linen.initializers.uniform(0.1), (257, 40))
            x = jnp.log(power @ mel + 1e-6)
            x = linen.relu(linen.Conv(16, (3, 3), (2, 2))(x[..., None]))
            x = linen.Dense(64)(x.reshape(*x.shape[:2], -1))
            for _ in range(2):
                x = Block()(x)
            return linen.Dense(9)(x), self.param("moves", linen.initializers.zeros, (9, 9))

    def loss(out, tags, length):
        score, moves = out
        valid = jnp.arange(32)[None] < length[:, None]

        def forward(alpha, at):
            score, valid = at
            new = nn.logsumexp(alpha[:, :, None] + moves[None], 1) + score
            return jnp.where(valid[:, None], new, alpha), None

        steps = score.swapaxes(0, 1), valid.T
        alpha, _ = lax.scan(forward, steps[0][0], jax.tree.map(lambda x: x[1:], steps))
        single = jnp.take_along_axis(score, tags[..., None], -1)[..., 0] * valid
        pairs = moves[tags[:, :-1], tags[:, 1:]] * valid[:, 1:]
        return jnp.mean(nn.logsumexp(alpha, -1) - single.sum(1) - pairs.sum(1))

    return linen_train(Net(), optax.adan(1e-3), loss, S(4, 10600), ints(4, 32), ints(4))


@program
def linen_molecules_graphs():
    import jraph
    import optax
    from flax import linen

    class Mlp(linen.Module):
        @linen.compact
        def __call__(self, x):
            for _ in range(2):
                x = linen.Dropout(0.1, deterministic=False)(linen.relu(linen.Dense(64)(x)))
            return x

    class Net(linen.Module):
        @linen.compact
        def __call__(self, graph):
            graph = jraph.GraphsTuple(**graph, globals=jnp.zeros((8, 1)))
            graph = jraph.GraphMapFeatures(linen.Dense(64), linen.Dense(64), linen.Dense(64))(graph)
            for _ in range(2):
                update = jraph.concatenated_args(Mlp())
                convolve = jraph.GraphConvolution(update, add_self_edges=True)
                new = convolve(graph)
                graph = graph._replace(nodes=linen.LayerNorm()(new.nodes + graph.nodes))
            owner = jnp.repeat(jnp.arange(8), graph.n_node, total_repeat_length=128)
            return linen.Dense(12)(jraph.segment_mean(graph.nodes, owner, 8))

    def loss(logits, labels):
        known = ~jnp.isnan(labels)
        each = optax.sigmoid_binary_cross_entropy(logits, jnp.where(known, labels, 0.0))
        return jnp.sum(jnp.where(known, each, 0.0)) / known.sum()

    graph = {"nodes": S(128, 9), "edges": S(256, 3), "senders": ints(256), "receivers": ints(256)}
    graph |= {"n_node": ints(8), "n_edge": ints(8)}
    return linen_train(Net(), optax.adam(1e-3), loss, graph, S(8, 12))


@program
def nnx_mixture_of_experts_adamw():
    import optax
    from flax import nnx

    class Layer(nnx.Module):
        def __init__(self, rngs, d=64, experts=4, ff=128):
            self.norms = nnx.List([nnx.RMSNorm(d, rngs=rngs) for _ in range(2)])
            self.attend = nnx.MultiHeadAttention(4, d, decode=False, use_bias=False, rngs=rngs)
            self.router = nnx.Linear(d, experts, use_bias=False, rngs=rngs)
            make = lambda *shape: nnx.Param(random.normal(rngs.params(), shape) * 0.02)
            self.gate, self.up, self.down = (
                make(experts, d, ff),
                make(experts, d, ff),
                make(experts, ff, d),
            )

        def __call__(self, x):
            x = x + self.attend(self.norms[0](x), mask=nnx.make_causal_mask(x[..., 0]))
            y = self.norms[1](x).reshape(-1, x.shape[-1])
            weight = nn.softmax(self.router(y))
            best, which = lax.top_k(weight, 2)
            best = best / best.sum(-1, keepdims=True)
            order = jnp.argsort(which.ravel(), stable=True)
            sorted_rows = y[order // 2]
            sizes = jnp.bincount(which.ravel(), length=4).astype(jnp.int32)
            h = nn.silu(lax.ragged_dot(sorted_rows, self.gate[...], sizes))
            h = h * lax.ragged_dot(sorted_rows, self.up[...], sizes)
            out = lax.ragged_dot(h, self.down[...], sizes)
            out = jnp.zeros_like(out).at[order].set(out).reshape(-1, 2, y.shape[-1])
            share = jnp.mean(nn.one_hot(which, 4).sum(1), 0)
            return x + (out * best[..., None]).sum(1).reshape(x.shape), 4 * jnp.sum(share * weight.mean(0))

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.embed = nnx.Embed(400, 64, rngs=rngs)
            self.layers = nnx.List([Layer(rngs) for _ in range(2)])
            self.norm = nnx.RMSNorm(64, rngs=rngs)

        def __call__(self, tokens):
            x, extra = self.embed(tokens), 0.0
            for layer in self.layers:
                x, balance = layer(x)
                extra += balance
            return self.embed.attend(self.norm(x)), extra

    def loss(model, x, y):
        logits, extra = model(x)
        return labelled(logits, y) + 0.01 * extra

    return nnx_train(Net, optax.adamw(1e-3), loss, ints(4, 32), ints(4, 32))


@program
def nnx_whisper_greedy_decode():
    from flax import nnx

    d, frames = 64, 50

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.convs = nnx.List([nnx.Conv(40, d, (3,), rngs=rngs), nnx.Conv(d, d, (3,), (2,), rngs=rngs)])
            attention = lambda **k: nnx.MultiHeadAttention(4, d, rngs=rngs, **k)
            norms = lambda n: nnx.List([nnx.LayerNorm(d, rngs=rngs) for _ in range(n)])
            feed = lambda: nnx.List([nnx.Linear(d, 4 * d, rngs=rngs), nnx.Linear(4 * d, d, rngs=rngs)])
            self.encoder = nnx.List([nnx.List([norms(2), attention(decode=False), feed()]) for _ in range(2)])
            self.decoder = nnx.List(
                [
                    nnx.List([norms(3), attention(decode=True), attention(decode=False), feed()])
                    for _ in range(2)
                ]
            )
            self.embed, self.place = nnx.Embed(500, d, rngs=rngs), nnx.Embed(32, d, rngs=rngs)
            self.norms = norms(2)

        def encode(self, mel):
            x = mel
            for conv in self.convs:
                x = nn.gelu(conv(x), approximate=False)
            x = x + sinusoids(frames, d)
            for norms, attend, (up, down) in self.encoder:
                x = x + attend(norms[0](x))
                x = x + down(nn.gelu(up(norms[1](x)), approximate=False))
            return self.norms[0](x)

        def __call__(self, token, at, encoded):
            x = self.embed(token) + self.place(at)
            for norms, attend, look, (up, down) in self.decoder:
                x = x + attend(norms[0](x))
                x = x + look(norms[1](x), encoded, encoded)
                x = x + down(nn.gelu(up(norms[2](x)), approximate=False))
            return self.embed.attend(self.norms[1](x))

    def make(rngs):
        model = Net(rngs)
        for block in model.decoder:
            block[1].init_cache((2, 32, d))
        return model

    graph, state = nnx_model(make)

    def transcribe(state, mel):
        encoded = nnx.merge(graph, state).encode(mel)

        def more(carry):
            _, _, at, ended = carry
            return (at < 31) & ~jnp.all(ended)

        def one(carry):
            state, text, at, ended = carry
            model = nnx.merge(graph, state)
            token = lax.dynamic_slice_in_dim(text, at, 1, 1)
            logits = model(token, at[None], encoded)[:, 0]
            token = jnp.where(ended, 3, jnp.where(jnp.arange(500) < 3, -jnp.inf, logits).argmax(-1))
            text = lax.dynamic_update_slice_in_dim(text, token[:, None].astype(jnp.int32), at + 1, 1)
            return nnx.state(model), text, at + 1, ended | (token == 3)

        start = state, jnp.zeros((2, 32), jnp.int32), jnp.int32(0), jnp.zeros(2, bool)
        return lax.while_loop(more, one, start)[1]

    return transcribe, (state, S(2, 2 * frames, 40))


@program
def eqx_linear_recurrent_unit():
    import equinox as eqx
    import optax

    class Unit(eqx.Module):
        nu: jax.Array
        theta: jax.Array
        b: tuple
        c: tuple
        d: jax.Array
        glu: eqx.nn.Linear
        norm: eqx.nn.LayerNorm

        def __init__(self, key, n=32, h=48):
            k = random.split(key, 7)
            self.nu = jnp.log(-0.5 * jnp.log(random.uniform(k[0], (n,)) * 0.2 + 0.8))
            self.theta = jnp.log(6.28 * random.uniform(k[1], (n,)))
            self.b = tuple(random.normal(k[2 + i], (n, h)) / np.sqrt(2 * h) for i in range(2))
            self.c = tuple(random.normal(k[4 + i], (h, n)) / np.sqrt(n) for i in range(2))
            self.d, self.glu = random.normal(k[6], (h,)), eqx.nn.Linear(h, 2 * h, key=k[6])
            self.norm = eqx.nn.LayerNorm(h)

        def __call__(self, x, key):
            y = jax.vmap(self.norm)(x)
            step = jnp.exp(-jnp.exp(self.nu) + 1j * jnp.exp(self.theta))
            scale = jnp.sqrt(1 - jnp.abs(step) ** 2)
            into = (y @ (self.b[0] + 1j * self.b[1]).T) * scale
            join = lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1])
            _, h = lax.associative_scan(join, (jnp.broadcast_to(step, into.shape), into))
            y = (h @ (self.c[0] + 1j * self.c[1]).T).real + self.d * y
            y = jax.vmap(self.glu)(nn.gelu(y))
            y = eqx.nn.Dropout(0.1)(nn.glu(y), key=key)
            return x + y

    class Net(eqx.Module):
        into: eqx.nn.Linear
        units: list
        out: eqx.nn.Linear

        def __init__(self, key):
            k = random.split(key, 4)
            self.into, self.out = eqx.nn.Linear(3, 48, key=k[0]), eqx.nn.Linear(48, 10, key=k[1])
            self.units = [Unit(one) for one in k[2:]]

        def __call__(self, x, key):
            x = jax.vmap(self.into)(x)
            for n, unit in enumerate(self.units):
                x = unit(x, random.fold_in(key, n))
            return self.out(x.mean(0))

    def loss(model, key, x, y):
        return labelled(jax.vmap(model)(x, random.split(key, x.shape[0])), y)

    return eqx_train(Net, optax.adamw(1e-3), loss, S(4, 64, 3), ints(4))


@program
def eqx_selective_scan_ademamix():
    import equinox as eqx
    import optax.contrib

    class Mamba(eqx.Module):
        norm: eqx.nn.RMSNorm
        into: eqx.nn.Linear
        conv: eqx.nn.Conv1d
        project: eqx.nn.Linear
        step: eqx.nn.Linear
        a: jax.Array
        d: jax.Array
        out: eqx.nn.Linear

        def __init__(self, key, d=32, e=64, n=8):
            k = random.split(key, 5)
            self.norm, self.into = eqx.nn.RMSNorm(d), eqx.nn.Linear(d, 2 * e, use_bias=False, key=k[0])
            self.conv = eqx.nn.Conv1d(e, e, 4, padding=3, groups=e, key=k[1])
            self.project = eqx.nn.Linear(e, 4 + 2 * n, use_bias=False, key=k[2])
            self.step, self.out = eqx.nn.Linear(4, e, key=k[3]), eqx.nn.Linear(e, d, key=k[4])
            self.a, self.d = jnp.log(jnp.tile(jnp.arange(1.0, n + 1), (e, 1))), jnp.ones(e)

        def __call__(self, x):
            u, gate = jnp.split(jax.vmap(self.into)(jax.vmap(self.norm)(x)), 2, -1)
            u = nn.silu(self.conv(u.T)[:, : x.shape[0]].T)
            delta, b, c = jnp.split(jax.vmap(self.project)(u), [4, 12], -1)
            delta = nn.softplus(jax.vmap(self.step)(delta))
            decay = jnp.exp(delta[..., None] * -jnp.exp(self.a))
            drive = delta[..., None] * b[:, None] * u[..., None]

            @jax.checkpoint
            def one(h, at):
                decay, drive, c = at
                h = decay * h + drive
                return h, h @ c

            _, y = lax.scan(one, jnp.zeros(decay.shape[1:]), (decay, drive, c), unroll=2)
            return x + jax.vmap(self.out)((y + u * self.d) * nn.silu(gate))

    class Net(eqx.Module):
        embed: eqx.nn.Embedding
        blocks: list
        norm: eqx.nn.RMSNorm

        def __init__(self, key):
            k = random.split(key, 3)
            self.embed = eqx.nn.Embedding(128, 32, key=k[0])
            self.blocks, self.norm = [Mamba(one) for one in k[1:]], eqx.nn.RMSNorm(32)

        def __call__(self, tokens):
            x = jax.vmap(self.embed)(tokens)
            for block in self.blocks:
                x = block(x)
            return jax.vmap(self.norm)(x) @ self.embed.weight.T

    loss = lambda model, key, x, y: labelled(jax.vmap(model)(x), y)
    return eqx_train(Net, optax.contrib.ademamix(1e-3, alpha=5.0), loss, ints(4, 32), ints(4, 32))


@program
def haiku_soft_actor_critic():
    import distrax
    import haiku as hk
    import optax

    def actor(obs):
        mean, scale = jnp.split(hk.nets.MLP([64, 64, 6])(obs), 2, -1)
        base = distrax.MultivariateNormalDiag(mean, jnp.exp(jnp.clip(scale, -20, 2)))
        return distrax.Transformed(base, distrax.Block(distrax.Tanh(), 1))

    def critics(obs, action):
        x = jnp.concatenate([obs, action], -1)
        return jnp.concatenate([hk.nets.MLP([64, 64, 1])(x) for _ in range(2)], -1)

    actor, critics = (hk.without_apply_rng(hk.transform(f)) for f in (actor, critics))
    a = jax.eval_shape(actor.init, KEY, S(1, 11))
    c = jax.eval_shape(critics.init, KEY, S(1, 11), S(1, 3))
    tx = optax.adam(3e-4)
    states = [jax.eval_shape(tx.init, p) for p in (a, c, S())]

    def update(a, c, target, log_alpha, states, key, obs, action, reward, discount, following):
        k1, k2 = random.split(key)
        alpha = jnp.exp(log_alpha)
        new, logp = actor.apply(a, following).sample_and_log_prob(seed=k1)
        value = critics.apply(target, following, new).min(-1) - alpha * logp
        goal = lax.stop_gradient(reward + discount * 0.99 * value)

        def critic_loss(c):
            return jnp.mean((critics.apply(c, obs, action) - goal[:, None]) ** 2)

        def actor_loss(a):
            act, logp = actor.apply(a, obs).sample_and_log_prob(seed=k2)
            return jnp.mean(alpha * logp - critics.apply(c, obs, act).min(-1)), logp.mean()

        lc, gc = jax.value_and_grad(critic_loss)(c)
        (la, entropy), ga = jax.value_and_grad(actor_loss, has_aux=True)(a)
        galpha = jax.grad(lambda x: -jnp.exp(x) * lax.stop_gradient(entropy - 3.0))(log_alpha)
        out = []
        for grad, state, params in zip((ga, gc, galpha), states, (a, c, log_alpha)):
            updates, state = tx.update(grad, state, params)
            out.append((optax.apply_updates(params, updates), state))
        target = optax.incremental_update(out[1][0], target, 0.005)
        return out, target, la, lc

    batch = S(128, 11), S(128, 3), S(128), S(128), S(128, 11)
    return update, (a, c, c, S(), states, KEY, *batch)


@program
def optax_mechanized_madgrad():
    import optax.contrib

    return optax_train(optax.contrib.mechanize(optax.contrib.madgrad(1e-2)), sizes=(64, 128, 128, 10))


@program
def blackjax_tempered_smc():
    import blackjax

    def run(key, particles):
        prior = lambda x: -0.5 * jnp.sum(x**2) / 9
        likelihood = lambda x: nn.logsumexp(
            jnp.array([-2 * jnp.sum((x - 2) ** 2), -2 * jnp.sum((x + 2) ** 2)])
        )
        smc = blackjax.adaptive_tempered_smc(
            prior,
            likelihood,
            blackjax.mala.build_kernel(),
            blackjax.mala.init,
            {"step_size": jnp.full((1,), 0.05)},
            blackjax.smc.resampling.systematic,
            0.5,
            num_mcmc_steps=4,
        )
        more = lambda c: c[0].tempering_param < 1

        def one(carry):
            state, key = carry
            key, now = random.split(key)
            return smc.step(now, state)[0], key

        return lax.while_loop(more, one, (smc.init(particles), key))[0].particles

    return run, (KEY, S(256, 2))


@program
def diffrax_continuous_flow():
    import diffrax
    import equinox as eqx
    import optax

    def loss(model, key, x):
        def field(t, state, given):
            (y, _), (model, noise) = state, given
            f = lambda y: model(jnp.append(y, t))
            value, back = jax.vjp(f, y)
            return value, jnp.sum(back(noise)[0] * noise)

        def one(x, key):
            out = diffrax.diffeqsolve(
                diffrax.ODETerm(field),
                diffrax.Bosh3(),
                1.0,
                0.0,
                -0.1,
                (x, 0.0),
                (model, random.normal(key, x.shape)),
                adjoint=diffrax.BacksolveAdjoint(),
                stepsize_controller=diffrax.ConstantStepSize(),
                max_steps=16,
            )
            z, change = out.ys
            return -0.5 * jnp.sum(z[0] ** 2) - jnp.log(2 * jnp.pi) + change[0]

        return -jax.vmap(one)(x, random.split(key, x.shape[0])).mean()

    make = lambda key: eqx.nn.MLP(3, 2, 32, 2, activation=jnp.tanh, key=key)
    return eqx_train(make, optax.adamw(1e-3), loss, S(64, 2))


@program
def ott_gromov_wasserstein():
    from ott.geometry import pointcloud
    from ott.problems.linear import linear_problem
    from ott.problems.quadratic import quadratic_problem
    from ott.solvers.linear import sinkhorn
    from ott.solvers.quadratic import gromov_wasserstein

    def solve(x, y, a):
        first, second = pointcloud.PointCloud(x), pointcloud.PointCloud(y)
        problem = quadratic_problem.QuadraticProblem(first, second, a=a)
        inner = sinkhorn.Sinkhorn(max_iterations=20)
        solver = gromov_wasserstein.GromovWasserstein(
            linear_solver=inner, epsilon=0.1, max_iterations=5, min_iterations=0
        )
        out = solver(problem)
        fused = linear_problem.LinearProblem(pointcloud.PointCloud(out.matrix @ y, y, epsilon=0.1))
        return out.matrix, inner(fused).f

    return solve, (S(40, 2), S(32, 3), S(40))


@program
def lattice_boltzmann_cylinder():
    moves = np.array([[x, y] for x in (0, 1, -1) for y in (0, 1, -1)])
    weight = np.array([(4 / 9, 1 / 9, 1 / 36)[abs(m).sum()] for m in moves], np.float32)
    opposite = np.array([int(np.where((moves == -m).all(1))[0][0]) for m in moves])

    def equilibrium(rho, u):
        along = jnp.einsum("id,xyd->xyi", moves.astype(np.float32), u)
        size = jnp.sum(u**2, -1, keepdims=True)
        return rho[..., None] * weight * (1 + 3 * along + 4.5 * along**2 - 1.5 * size)

    def run(f, solid, inlet):
        def one(f, _):
            right = moves[:, 0] == 1
            f = f.at[-1, :, ~right & (moves[:, 0] == -1)].set(f[-2, :, moves[:, 0] == -1])
            rho = f.sum(-1)
            u = jnp.einsum("xyi,id->xyd", f, moves.astype(np.float32)) / rho[..., None]
            u = u.at[0].set(inlet)
            edge = equilibrium(rho, u)
            f = f.at[0, :, right].set(edge[0][:, right].T)
            f = f - (f - edge) / 0.6
            f = jnp.where(solid[..., None], f[..., opposite], f)
            f = jnp.stack([jnp.roll(f[..., i], tuple(m), (0, 1)) for i, m in enumerate(moves)], -1)
            curl = jnp.gradient(u[..., 1], axis=0) - jnp.gradient(u[..., 0], axis=1)
            return f, jnp.sum(curl**2)

        return lax.scan(one, f, length=50)

    return run, (S(128, 48, 9), S(128, 48, dtype=jnp.bool_), S(48, 2))


@program
def spectral_navier_stokes():
    n = 64
    k = np.fft.fftfreq(n, 1 / n).astype(np.float32)
    kx, ky = np.meshgrid(k, k[: n // 2 + 1] * np.where(np.arange(n // 2 + 1) == n // 2, -1, 1), indexing="ij")
    laplace = kx**2 + ky**2
    mask = ((abs(kx) < n / 3) & (abs(ky) < n / 3)).astype(np.float32)

    def run(vorticity, viscosity, force):
        def change(w):
            psi = w / jnp.where(laplace == 0, 1.0, laplace)
            u, v = jnp.fft.irfft2(1j * ky * psi), jnp.fft.irfft2(-1j * kx * psi)
            wx, wy = jnp.fft.irfft2(1j * kx * w), jnp.fft.irfft2(1j * ky * w)
            return mask * jnp.fft.rfft2(force - u * wx - v * wy)

        def one(w, _):
            for scale in (1 / 3, 0.5, 1.0):
                half = 0.005 * scale * viscosity * laplace
                new = (w * (1 - half) + 0.01 * scale * change(w)) / (1 + half)
            energy = jnp.sum(jnp.abs(new) ** 2 / jnp.maximum(laplace, 1.0))
            return new, energy

        w, energy = lax.scan(one, jnp.fft.rfft2(vorticity), length=20)
        return jnp.fft.irfft2(w), energy

    return run, (S(n, n), S(), S(n, n))


@program
def linear_algebra_factorings():
    from jax.scipy import linalg

    def run(a, b, c):
        q, r = jnp.linalg.qr(a)
        x = linalg.solve_triangular(r, q.T @ b)
        cov = a.T @ a + 0.1 * jnp.eye(a.shape[1])
        factor = linalg.cho_factor(cov, lower=True)
        y = linalg.cho_solve(factor, a.T @ b)
        w, v = jnp.linalg.eigh(cov)
        u, s, vt = jnp.linalg.svd(c, full_matrices=False)
        low = (u[:, :8] * s[:8]) @ vt[:8]
        z = jnp.linalg.solve(cov, y) + linalg.expm(-cov / jnp.trace(cov)) @ x
        polar = u @ vt
        return x, z, v @ jnp.diag(jnp.sqrt(w)) @ v.T, low, polar, jnp.linalg.slogdet(cov)[1]

    return run, (S(64, 24), S(64, 5), S(40, 32))


@program
def jaxopt_projected_implicit():
    import jaxopt

    def inner(w, c, x, y):
        return jnp.mean(jnp.maximum(0, 1 - y * (x @ w)) ** 2) + jnp.exp(c) * jnp.sum(w**2)

    def outer(c, x, y, xv, yv):
        solver = jaxopt.ProjectedGradient(
            inner, jaxopt.projection.projection_simplex, maxiter=30, implicit_diff=True
        )
        w = solver.run(jnp.full(x.shape[1], 1 / x.shape[1]), c=c, x=x, y=y).params
        return jnp.mean((xv @ w - yv) ** 2)

    return jax.value_and_grad(outer), (S(), S(64, 16), S(64), S(32, 16), S(32))


@program
def retrieval_quantized_clusters():
    def search(query, base, centres, codes, owner, rows):
        distance = jnp.sum(query**2, -1)[:, None] - 2 * query @ centres.T + jnp.sum(centres**2, -1)
        _, near = lax.approx_min_k(distance, 4)
        parts = query.reshape(query.shape[0], 8, 4)
        table = jnp.sum((parts[:, :, None] - codes[None]) ** 2, -1)
        each = jax.vmap(lambda t: t[jnp.arange(8), base].sum(-1))(table)
        inside = jnp.any(owner[None, :, None] == near[:, None], -1)
        best, which = lax.top_k(-jnp.where(inside, each, jnp.inf), 32)
        exact = jnp.sum((rows[which] - query[:, None]) ** 2, -1)
        keys = jnp.argsort(exact, -1)[:, :10]
        order = jnp.lexsort((owner[which].astype(F32), exact))
        seen = jnp.cumsum(jnp.sort(which, -1)[:, 1:] != jnp.sort(which, -1)[:, :-1], -1)
        sums = jax.ops.segment_sum(rows, owner, 64) / jnp.maximum(jnp.bincount(owner, length=64), 1)[:, None]
        return jnp.take_along_axis(which, keys, 1), best, order, seen, sums

    return search, (S(16, 32), ints(1024, 8), S(64, 32), S(8, 256, 4), ints(1024), S(1024, 32))


@program
def evosax_snes_policy():
    from evosax.algorithms import SNES

    search = SNES(population_size=16, solution=jnp.zeros(6 * 8 + 8))
    settings = search.default_params

    def play(weights, key):
        first, last = weights[:48].reshape(6, 8), weights[48:]

        def one(x, key):
            force = jnp.tanh(jnp.tanh(x @ first) @ last)
            x = x + 0.05 * jnp.concatenate([x[3:], -jnp.sin(x[:3]) + force])
            return x + 0.01 * random.normal(key, (6,)), -jnp.sum(x**2)

        return lax.scan(one, random.normal(key, (6,)), random.split(key, 20))[1].sum()

    def run(key, mean):
        def one(state, key):
            a, b, c = random.split(key, 3)
            population, state = search.ask(a, state, settings)
            fitness = -jax.vmap(play, (0, None))(population, b)
            state, _metrics = search.tell(c, population, fitness, state, settings)
            return state, fitness.min()

        return lax.scan(one, search.init(key, mean, settings), random.split(key, 5))[1]

    return run, (KEY, S(56))
