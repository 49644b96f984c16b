"""Programs of flax nnx."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from arguments import BF16, F32, KEY, S, entering_when_asked, ints
from jax import lax, nn, random
from language import sinusoids
from steps import labelled, nnx_model, nnx_train

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


def nnx_decoder(rngs, dtype, layers=2, d=128, heads=4, kv=2, vocab=512, gemma=False):
    """Llama's blocks, or Gemma's: grouped queries, rotary positions, gated units."""
    from flax import nnx

    linear = functools.partial(nnx.Linear, use_bias=False, dtype=dtype, param_dtype=dtype, rngs=rngs)
    norm = functools.partial(nnx.RMSNorm, d, dtype=dtype, param_dtype=dtype, rngs=rngs)
    hd = d // heads

    def rotate(x, pos):
        freq = 10000.0 ** (-jnp.arange(0, hd, 2, dtype=F32) / hd)
        angle = pos[..., None, None] * freq
        a, b = jnp.split(x.astype(F32), 2, axis=-1)
        sin, cos = jnp.sin(angle), jnp.cos(angle)
        return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1).astype(x.dtype)

    class Layer(nnx.Module):
        def __init__(self):
            self.q, self.k, self.v = linear(d, d), linear(d, kv * hd), linear(d, kv * hd)
            self.o, self.up, self.gate, self.down = (
                linear(d, d),
                linear(d, 3 * d),
                linear(d, 3 * d),
                linear(3 * d, d),
            )
            self.norms = nnx.List([norm() for _ in range(4 if gemma else 2)])

        def __call__(self, x, pos, cache=None, at=None):
            b, t, _ = x.shape
            y = self.norms[0](x)
            q = rotate(self.q(y).reshape(b, t, heads, hd), pos)
            k = rotate(self.k(y).reshape(b, t, kv, hd), pos)
            v = self.v(y).reshape(b, t, kv, hd)
            if cache is not None:
                k = lax.dynamic_update_slice_in_dim(cache[0], k, at, 1)
                v = lax.dynamic_update_slice_in_dim(cache[1], v, at, 1)
                cache = k, v
                mask = (jnp.arange(k.shape[1]) <= at)[None, None, None]
            else:
                mask = jnp.tril(jnp.ones((t, t), bool))[None, None]
            y = jax.nn.dot_product_attention(q, k, v, mask=mask) if not gemma else self.capped(q, k, v, mask)
            y = self.o(y.reshape(b, t, d))
            x = x + (self.norms[2](y) if gemma else y)
            y = self.norms[1](x)
            y = self.down((nn.gelu if gemma else nn.silu)(self.gate(y)) * self.up(y))
            return x + (self.norms[3](y) if gemma else y), cache

        def capped(self, q, k, v, mask):
            q = q.reshape(*q.shape[:2], kv, heads // kv, hd) * hd**-0.5
            s = 50.0 * jnp.tanh(jnp.einsum("btkgh,bskh->bkgts", q, k) / 50.0)
            p = nn.softmax(jnp.where(mask[:, :, None], s, -2e38).astype(F32)).astype(q.dtype)
            return jnp.einsum("bkgts,bskh->btkgh", p, v)

    class Net(nnx.Module):
        def __init__(self):
            self.embed = nnx.Embed(vocab, d, dtype=dtype, param_dtype=dtype, rngs=rngs)
            self.layers, self.norm = nnx.List([Layer() for _ in range(layers)]), norm()

        def __call__(self, tokens, caches=None, at=None):
            pos = jnp.arange(tokens.shape[1])[None] if at is None else jnp.full(tokens.shape, at)
            x = self.embed(tokens) * (d**0.5 if gemma else 1)
            new = []
            for n, layer in enumerate(self.layers):
                x, cache = layer(x, pos, caches and caches[n], at)
                new.append(cache)
            return self.embed.attend(self.norm(x)), new

    return Net()


@program
def nnx_llama_adamw():
    import optax

    make = functools.partial(nnx_decoder, dtype=F32)
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-4, b2=0.95, weight_decay=0.1))
    return nnx_train(make, tx, lambda m, x, y: labelled(m(x)[0], y), ints(4, 64), ints(4, 64))


@program
def nnx_llama_muon_bf16():
    import optax.contrib

    make = functools.partial(nnx_decoder, dtype=BF16, layers=1)
    tx = optax.contrib.muon(0.02)
    return nnx_train(make, tx, lambda m, x, y: labelled(m(x)[0], y), ints(4, 64), ints(4, 64))


@program
def nnx_gemma_prefill_bf16():
    from flax import nnx

    graph, state = nnx_model(functools.partial(nnx_decoder, dtype=BF16, gemma=True))
    return lambda state, x: nnx.merge(graph, state)(x)[0].argmax(-1), (state, ints(2, 64))


@program
def nnx_gemma_decode():
    from flax import nnx

    graph, state = nnx_model(functools.partial(nnx_decoder, dtype=F32, gemma=True))
    caches = [(S(2, 64, 2, 32), S(2, 64, 2, 32))] * 2

    def generate(state, token, caches, at, key):
        model = nnx.merge(graph, state)

        def one(carry, key):
            token, caches, at = carry
            logits, caches = model(token, caches, at)
            best, which = lax.top_k(logits[:, -1], 20)
            token = jnp.take_along_axis(which, random.categorical(key, best / 0.8)[:, None], 1)
            return (token, caches, at + 1), token

        return lax.scan(one, (token, caches, at), random.split(key, 8))

    return generate, (state, ints(2, 1), caches, ints(), KEY)


@program
def nnx_vit_lookahead():
    import optax
    from flax import nnx

    class Net(nnx.Module):
        def __init__(self, rngs, d=96):
            self.patch = nnx.Conv(3, d, (8, 8), (8, 8), rngs=rngs)
            self.cls = nnx.Param(jnp.zeros((1, 1, d)))
            self.pos = nnx.Param(random.normal(rngs.params(), (1, 65, d)) * 0.02)
            self.blocks = nnx.List(
                [
                    nnx.List(
                        [
                            nnx.LayerNorm(d, rngs=rngs),
                            nnx.MultiHeadAttention(4, d, decode=False, rngs=rngs),
                            nnx.LayerNorm(d, rngs=rngs),
                            nnx.Linear(d, 4 * d, rngs=rngs),
                            nnx.Linear(4 * d, d, rngs=rngs),
                            nnx.Dropout(0.1, rngs=rngs),
                        ]
                    )
                    for _ in range(2)
                ]
            )
            self.head = nnx.Linear(d, 10, rngs=rngs)

        def __call__(self, x):
            x = self.patch(x).reshape(x.shape[0], -1, self.cls.shape[-1])
            x = jnp.concatenate([jnp.tile(self.cls[...], (x.shape[0], 1, 1)), x], 1) + self.pos[...]
            for norm, attend, norm2, up, down, drop in self.blocks:
                x = x + drop(attend(norm(x)))
                x = x + drop(down(nnx.gelu(up(norm2(x)))))
            return self.head(x[:, 0])

    def loss(model, x, y):
        smooth = optax.smooth_labels(nn.one_hot(y, 10), 0.1)
        return optax.softmax_cross_entropy(model(x), smooth).mean()

    return nnx_train(Net, optax.chain(optax.radam(1e-3), optax.ema(0.9)), loss, S(8, 64, 64, 3), ints(8))


@program
def nnx_gan_step():
    import optax
    from flax import nnx

    class Generator(nnx.Module):
        def __init__(self, rngs):
            self.line = nnx.Linear(32, 7 * 7 * 32, rngs=rngs)
            self.norm = nnx.BatchNorm(32, rngs=rngs)
            self.up = nnx.ConvTranspose(32, 16, (4, 4), (2, 2), rngs=rngs)
            self.out = nnx.ConvTranspose(16, 1, (4, 4), (2, 2), rngs=rngs)

        def __call__(self, z):
            x = nnx.relu(self.norm(self.line(z).reshape(-1, 7, 7, 32)))
            return jnp.tanh(self.out(nnx.relu(self.up(x))))

    class Discriminator(nnx.Module):
        def __init__(self, rngs):
            self.a = nnx.Conv(1, 16, (4, 4), (2, 2), rngs=rngs)
            self.b = nnx.Conv(16, 32, (4, 4), (2, 2), rngs=rngs)
            self.norm, self.out = nnx.LayerNorm(32, rngs=rngs), nnx.Linear(7 * 7 * 32, 1, rngs=rngs)

        def __call__(self, x):
            x = nnx.leaky_relu(self.norm(self.b(nnx.leaky_relu(self.a(x), 0.2))), 0.2)
            return self.out(x.reshape(x.shape[0], -1))[:, 0]

    def make():
        gen, dis = Generator(nnx.Rngs(0)), Discriminator(nnx.Rngs(1))
        return (
            gen,
            dis,
            nnx.Optimizer(gen, optax.adam(2e-4, b1=0.5), wrt=nnx.Param),
            nnx.Optimizer(dis, optax.adabelief(2e-4), wrt=nnx.Param),
        )

    graph, state = nnx.split(nnx.eval_shape(make))

    def step(state, real, z):
        gen, dis, gen_opt, dis_opt = nnx.merge(graph, state)
        bce = optax.sigmoid_binary_cross_entropy

        def judged(dis, gen):
            fake = dis(gen(z))
            return (bce(dis(real), jnp.ones(16)) + bce(fake, jnp.zeros(16))).mean()

        d, grads = nnx.value_and_grad(judged)(dis, gen)
        dis_opt.update(dis, grads)
        g, grads = nnx.value_and_grad(lambda gen: bce(dis(gen(z)), jnp.ones(16)).mean())(gen)
        gen_opt.update(gen, grads)
        return nnx.state((gen, dis, gen_opt, dis_opt)), d, g

    return step, (state, S(16, 28, 28, 1), S(16, 32))


@program
def nnx_lora_gru_adabelief():
    import optax
    from flax import nnx

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.embed = nnx.Embed(300, 64, rngs=rngs)
            self.rnn = nnx.RNN(nnx.GRUCell(64, 64, rngs=rngs))
            self.lora = nnx.LoRALinear(64, 64, lora_rank=8, rngs=rngs)
            self.norm, self.out = (
                nnx.GroupNorm(64, 8, rngs=rngs),
                nnx.Einsum("btd,dv->btv", (64, 300), rngs=rngs),
            )

        def __call__(self, tokens):
            x = self.rnn(self.embed(tokens))
            return self.out(self.norm(x + nnx.softplus(self.lora(x))))

    return nnx_train(Net, optax.adabelief(1e-3), lambda m, x, y: labelled(m(x), y), ints(8, 16), ints(8, 16))


@program
def nnx_realnvp_lion():
    import optax
    from flax import nnx

    class Coupling(nnx.Module):
        def __init__(self, rngs, c, flip):
            self.flip, self.into = flip, nnx.Conv(c // 2, 32, (3, 3), rngs=rngs)
            self.mid, self.out = nnx.Conv(32, 32, (1, 1), rngs=rngs), nnx.Conv(32, c, (3, 3), rngs=rngs)
            self.log, self.bias = nnx.Param(jnp.zeros(c)), nnx.Param(jnp.zeros(c))
            self.turn = nnx.Param(random.orthogonal(rngs.params(), c))

        def __call__(self, x):
            n = x.shape[1] * x.shape[2]
            x = (x + self.bias[...]) * jnp.exp(self.log[...])
            x = jnp.einsum("bhwc,cd->bhwd", x, self.turn[...])
            total = n * (self.log[...].sum() + jnp.linalg.slogdet(self.turn[...])[1])
            a, b = jnp.split(x, 2, -1)
            a, b = (b, a) if self.flip else (a, b)
            shift, scale = jnp.split(self.out(nn.relu(self.mid(nn.relu(self.into(a))))), 2, -1)
            scale = nn.sigmoid(scale + 2.0)
            b = (b + shift) * scale
            out = jnp.concatenate((b, a) if self.flip else (a, b), -1)
            return out, total + jnp.log(scale).sum((1, 2, 3))

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.levels = nnx.List([nnx.List([Coupling(rngs, c, n % 2) for n in range(2)]) for c in (12, 24)])

        def __call__(self, x):
            total = 0.0
            for level in self.levels:
                b, h, w, c = x.shape
                x = x.reshape(b, h // 2, 2, w // 2, 2, c).transpose(0, 1, 3, 5, 2, 4)
                x = x.reshape(b, h // 2, w // 2, 4 * c)
                for flow in level:
                    x, change = flow(x)
                    total = total + change
                x, out = jnp.split(x, 2, -1)
                total = total - 0.5 * jnp.sum(out**2 + jnp.log(2 * jnp.pi), (1, 2, 3))
            return total - 0.5 * jnp.sum(x**2 + jnp.log(2 * jnp.pi), (1, 2, 3))

    loss = lambda model, x: -model(x).mean() / (16 * 16 * 3 * np.log(2))
    return nnx_train(Net, optax.lion(1e-4, weight_decay=1e-3), loss, S(8, 16, 16, 3))


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
def nnx_recurrent_world_model():
    import optax
    from flax import nnx

    bins = np.linspace(-10, 10, 41).astype(np.float32)
    symlog = lambda x: jnp.sign(x) * jnp.log1p(jnp.abs(x))

    def mixed(logits):
        return jnp.log(0.99 * nn.softmax(logits) + 0.01 / logits.shape[-1])

    def divergence(p, q):
        return jnp.maximum(jnp.sum(jnp.exp(p) * (p - q), (-1, -2)), 1.0).mean()

    class Net(nnx.Module):
        def __init__(self, rngs, h=64):
            self.encode = nnx.Sequential(nnx.Linear(24, h, rngs=rngs), nnx.LayerNorm(h, rngs=rngs), nnx.silu)
            self.into = nnx.Linear(8 * 8 + 4, h, rngs=rngs)
            self.cell = nnx.GRUCell(h, h, rngs=rngs)
            self.prior, self.post = nnx.Linear(h, 64, rngs=rngs), nnx.Linear(2 * h, 64, rngs=rngs)
            self.again = nnx.Linear(h + 64, h, rngs=rngs)
            self.decode = nnx.Sequential(self.again, nnx.silu, nnx.Linear(h, 24, rngs=rngs))
            self.reward, self.goes_on = nnx.Linear(h + 64, 41, rngs=rngs), nnx.Linear(h + 64, 1, rngs=rngs)

        def __call__(self, obs, action, first, key):
            def one(carry, at):
                h, z = carry
                seen, action, first, key = at
                keep = 1 - first[:, None]
                x = nn.silu(self.into(jnp.concatenate([z * keep, action * keep], -1)))
                h, _ = self.cell(h * keep, x)
                prior = mixed(self.prior(h).reshape(-1, 8, 8))
                post = mixed(self.post(jnp.concatenate([h, seen], -1)).reshape(-1, 8, 8))
                hot = nn.one_hot(random.categorical(key, post), 8)
                z = (hot + jnp.exp(post) - lax.stop_gradient(jnp.exp(post))).reshape(-1, 64)
                return (h, z), (h, z, prior, post)

            zero = jnp.zeros((obs.shape[1], 64))
            keys = random.split(key, obs.shape[0])
            steps = self.encode(symlog(obs)), action, first, keys
            _, (h, z, prior, post) = lax.scan(one, (zero, zero), steps)
            return jnp.concatenate([h, z], -1), prior, post

    def loss(model, key, obs, action, reward, first, ended):
        state, prior, post = model(obs, action, first, key)
        stop = lax.stop_gradient
        kl = 0.5 * divergence(stop(post), prior) + 0.1 * divergence(post, stop(prior))
        again = jnp.mean(jnp.sum((model.decode(state) - symlog(obs)) ** 2, -1))
        goal = jnp.clip(symlog(reward), -10, 10)
        low = jnp.clip(jnp.sum(bins <= goal[..., None], -1) - 1, 0, 39)
        part = (goal - jnp.take(bins, low)) / (bins[1] - bins[0])
        hot = nn.one_hot(low, 41) * (1 - part)[..., None] + nn.one_hot(low + 1, 41) * part[..., None]
        won = -jnp.mean(jnp.sum(hot * nn.log_softmax(model.reward(state)), -1))
        over = optax.sigmoid_binary_cross_entropy(model.goes_on(state)[..., 0], 1 - ended).mean()
        return kl + again + won + over

    tx = optax.chain(optax.adaptive_grad_clip(0.3), optax.rmsprop(4e-5, centered=True, momentum=0.9))
    batch = S(16, 16, 24), S(16, 16, 4), S(16, 16), S(16, 16), S(16, 16)
    return nnx_train(Net, tx, loss, KEY, *batch)
