"""Programs of flax linen on text and sound."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from arguments import BF16, F32, KEY, S, entering_when_asked, ints
from jax import lax, nn, random
from language import maxtext, wmt
from steps import labelled, linen_train

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def linen_lstm_language_model():
    import optax
    from flax import linen

    class Net(linen.Module):
        @linen.compact
        def __call__(self, tokens):
            x = linen.Embed(1000, 64)(tokens)
            x = linen.RNN(linen.OptimizedLSTMCell(128))(x)
            x = linen.Dropout(0.2, deterministic=False)(x)
            return linen.Dense(1000)(linen.RNN(linen.GRUCell(64))(x))

    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.rmsprop(1e-3, momentum=0.9))
    return linen_train(Net(), tx, labelled, ints(8, 24), ints(8, 24))


def linen_blocks(scan, dtype):
    from flax import linen

    class Block(linen.Module):
        @linen.compact
        def __call__(self, x, _):
            y = linen.LayerNorm(dtype=dtype)(x)
            mask = linen.make_causal_mask(jnp.ones(x.shape[:2]))
            x = x + linen.MultiHeadDotProductAttention(4, dtype=dtype, dropout_rate=0.1, deterministic=False)(
                y, y, mask=mask
            )
            y = linen.LayerNorm(dtype=dtype)(x)
            y = linen.Dense(64, dtype=dtype)(linen.gelu(linen.Dense(256, dtype=dtype)(y)))
            return x + linen.Dropout(0.1, deterministic=False)(y), None

    class Net(linen.Module):
        @linen.compact
        def __call__(self, tokens):
            x = linen.Embed(512, 64, dtype=dtype)(tokens)
            x = x + self.param("positions", linen.initializers.normal(0.02), (64, 64)).astype(dtype)
            if scan:
                layers = linen.scan(
                    linen.remat(Block, prevent_cse=False),
                    variable_axes={"params": 0},
                    split_rngs={"params": True, "dropout": True},
                    length=3,
                )
                x, _ = layers()(x, None)
            else:
                for _ in range(2):
                    x, _ = Block()(x, None)
            return linen.Dense(512, dtype=dtype)(linen.LayerNorm(dtype=dtype)(x))

    return Net()


@program
def linen_transformer_adamw():
    import optax

    tx = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adamw(
            optax.warmup_cosine_decay_schedule(0.0, 1e-3, 100, 1000),
            mask=lambda p: jax.tree.map(lambda x: x.ndim > 1, p),
        ),
    )
    return linen_train(linen_blocks(False, F32), tx, labelled, ints(4, 64), ints(4, 64))


@program
def linen_transformer_scan_remat_bf16():
    import optax

    return linen_train(linen_blocks(True, BF16), optax.adafactor(1e-3), labelled, ints(4, 64), ints(4, 64))


@program
def linen_seq2seq_teacher_forcing():
    import optax
    from flax import linen

    class Decoder(linen.Module):
        @functools.partial(
            linen.scan,
            variable_broadcast="params",
            in_axes=1,
            out_axes=1,
            split_rngs={"params": False, "dropout": True},
        )
        @linen.compact
        def __call__(self, carry, x):
            state, last = carry
            x = last if self.is_initializing() else x
            state, y = linen.LSTMCell(128)(state, x)
            logits = linen.Dense(15)(y)
            drawn = random.categorical(self.make_rng("dropout"), logits)
            return (state, nn.one_hot(drawn, 15)), (logits, drawn)

    class Net(linen.Module):
        @linen.compact
        def __call__(self, batch):
            source, target, lengths = batch
            rnn = linen.RNN(linen.LSTMCell(128), return_carry=True)
            state, _ = rnn(source, seq_lengths=lengths)
            _, out = Decoder()((state, target[:, 0]), target[:, :-1])
            return out[0]

    def loss(logits, target):
        mask = jnp.cumsum(target[..., 1], 1) < 1
        each = optax.softmax_cross_entropy(logits, target[:, 1:])
        return jnp.sum(each * mask[:, 1:]) / jnp.sum(mask[:, 1:])

    batch = (S(16, 8, 15), S(16, 6, 15), ints(16))
    return linen_train(Net(), optax.adam(3e-3), loss, batch, S(16, 6, 15))


@program
def linen_translation_bf16():
    import optax

    def loss(logits, target):
        logp = nn.log_softmax(logits)
        confident, low = 0.9, 0.1 / 255
        soft = nn.one_hot(target, 256) * (confident - low) + low
        weight = (target > 0).astype(F32)
        return -(soft * logp).sum(-1).ravel() @ weight.ravel() / weight.sum()

    rate = optax.join_schedules(
        [optax.linear_schedule(0.0, 2e-3, 100), lambda s: 2e-3 * (100 / (s + 100)) ** 0.5], [100]
    )
    tx = optax.adamw(rate, b2=0.98, eps=1e-9, weight_decay=1e-4)
    return linen_train(wmt(dtype=BF16), tx, loss, (ints(4, 32), ints(4, 32)), ints(4, 32))


@program
def maxtext_scan_remat_bf16():
    import optax

    def loss(logits, target, weight):
        top = nn.logsumexp(logits, -1)
        each = top - jnp.take_along_axis(logits, target[..., None], -1)[..., 0] + 1e-4 * top**2
        return jnp.sum(each * weight) / (jnp.sum(weight) + 1e-8)

    rate = optax.warmup_cosine_decay_schedule(0.0, 3e-4, 100, 1000, 3e-5)
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(rate, 0.9, 0.95, weight_decay=0.1))
    batch = ints(4, 64), ints(4, 64), ints(4, 64)
    return linen_train(maxtext(BF16)(), tx, loss, batch, ints(4, 64), S(4, 64))


@program
def linen_bert_question_answering():
    import optax
    from flax import linen

    class Layer(linen.Module):
        @linen.compact
        def __call__(self, x, mask):
            drop = linen.Dropout(0.1, deterministic=False)
            q, k, v = (linen.DenseGeneral((4, 32), name=n)(x) for n in ("query", "key", "value"))
            s = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(32) + mask
            y = jnp.einsum("bhqk,bkhd->bqhd", drop(nn.softmax(s)), v)
            x = linen.LayerNorm(1e-12)(x + drop(linen.DenseGeneral(128, axis=(-2, -1))(y)))
            y = linen.Dense(128)(nn.gelu(linen.Dense(512)(x), approximate=False))
            return linen.LayerNorm(1e-12)(x + drop(y))

    class Net(linen.Module):
        @linen.compact
        def __call__(self, batch):
            ids, kinds, attend = batch
            x = linen.Embed(2000, 128)(ids) + linen.Embed(2, 128)(kinds)
            x = x + linen.Embed(64, 128)(jnp.arange(64))[None]
            x = linen.Dropout(0.1, deterministic=False)(linen.LayerNorm(1e-12)(x))
            mask = (1.0 - attend[:, None, None].astype(F32)) * jnp.finfo(F32).min
            for _ in range(2):
                x = Layer()(x, mask)
            return linen.Dense(2)(x)

    def loss(out, start, end):
        start_logits, end_logits = out[..., 0], out[..., 1]
        return (labelled(start_logits, start) + labelled(end_logits, end)) / 2

    decayed = lambda p: jax.tree.map_with_path(lambda path, _: "LayerNorm" not in str(path), p)
    rate = optax.linear_schedule(5e-5, 0.0, 1000)
    tx = optax.MultiSteps(
        optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(rate, weight_decay=0.01, mask=decayed)), 2
    )
    return linen_train(Net(), tx, loss, (ints(4, 64), ints(4, 64), ints(4, 64)), ints(4), ints(4))


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
def linen_graph_transformer_edges():
    import optax
    from flax import linen

    nodes, edges, graphs, d, heads = 120, 320, 8, 64, 4

    class Layer(linen.Module):
        @linen.compact
        def __call__(self, h, e, sender, receiver, real):
            norm = lambda z: linen.BatchNorm(use_running_average=False, momentum=0.9)(z)
            feed = lambda z: norm(z + linen.Dense(d)(linen.relu(linen.Dense(2 * d)(z))))
            split = lambda z: linen.DenseGeneral((heads, d // heads), use_bias=False)(z)
            q, k, v, w = split(h), split(h), split(h), split(e)
            s = q[receiver] * k[sender] * (d // heads) ** -0.5 * w
            logits = jnp.where(real[:, None], jnp.clip(s.sum(-1), -5, 5), -1e9)
            top = jax.ops.segment_max(logits, receiver, nodes)
            p = jnp.exp(logits - top[receiver]) * real[:, None]
            total = jax.ops.segment_sum(p, receiver, nodes)[..., None]
            out = jax.ops.segment_sum(p[..., None] * v[sender], receiver, nodes) / (total + 1e-6)
            out = linen.Dropout(0.1, deterministic=False)(out.reshape(nodes, d))
            h = norm(h + linen.Dense(d)(out))
            e = norm(e + linen.Dense(d)(s.reshape(edges, d)))
            return feed(h), feed(e)

    class Net(linen.Module):
        @linen.compact
        def __call__(self, graph):
            atoms, bonds, sender, receiver, which = graph
            real = bonds > 0
            links = jnp.zeros((nodes, nodes)).at[sender, receiver].add(real.astype(jnp.float32))
            walk = links / jnp.maximum(links.sum(1, keepdims=True), 1)
            again = lambda power, _: (power @ walk, jnp.diagonal(power))
            _, places = jax.lax.scan(again, walk, length=8)
            h = linen.Embed(28, d)(atoms) + linen.Dense(d)(places.T)
            e = linen.Embed(5, d)(bonds)
            for _ in range(2):
                h, e = Layer()(h, e, sender, receiver, real)
            count = jax.ops.segment_sum(jnp.ones(nodes), which, graphs)[:, None]
            x = jax.ops.segment_sum(h, which, graphs) / jnp.maximum(count, 1)
            for n in (32, 16):
                x = linen.relu(linen.Dense(n)(x))
            return linen.Dense(1)(x)[:, 0]

    rate = optax.schedules.linear_onecycle_schedule(1000, 2e-3)
    tx = optax.chain(optax.clip_by_global_norm(2.0), optax.adan(rate, weight_decay=1e-5))
    graph = ints(nodes), ints(edges), ints(edges), ints(edges), ints(nodes)
    return linen_train(Net(), tx, lambda out, y: jnp.mean(jnp.abs(out - y)), graph, S(graphs))
