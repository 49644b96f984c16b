"""Programs that learn and make tokens: text, and what was looked at in sessions."""

import jax
import jax.numpy as jnp
from arguments import BF16, F32, KEY, S, entering_when_asked, ints
from jax import lax, nn, random
from language import attend_where, rms_norm

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def nnx_sessions_sampled_softmax():
    import optax
    from flax import nnx

    items, tags, d, heads, b, t, negatives, spans = 4000, 300, 64, 4, 16, 40, 128, 32

    class Unit(nnx.Module):
        def __init__(self, rngs):
            self.norm, self.after = nnx.LayerNorm(d, rngs=rngs), nnx.LayerNorm(d, rngs=rngs)
            self.wide, self.out = nnx.Linear(d, 4 * d, rngs=rngs), nnx.Linear(d, d, rngs=rngs)
            self.near = nnx.Param(jnp.zeros((heads, 2 * t - 1)))
            self.late = nnx.Param(jnp.zeros((heads, spans)))

        def __call__(self, x, when, real):
            u, v, q, k = jnp.split(nn.silu(self.wide(self.norm(x))), 4, -1)
            q, k, v = (z.reshape(b, t, heads, -1) for z in (q, k, v))
            apart = jnp.arange(t)[:, None] - jnp.arange(t) + t - 1
            waited = jnp.abs(when[:, :, None] - when[:, None]).astype(F32)
            span = jnp.clip(jnp.log(jnp.maximum(waited, 1.0)) / 0.301, 0, spans - 1).astype(jnp.int32)
            bias = self.near[...][:, apart][None] + jnp.moveaxis(self.late[...][:, span], 0, 1)
            score = nn.silu(jnp.einsum("bqhc,bkhc->bhqk", q, k) + bias) / t
            score = score * (jnp.tril(jnp.ones((t, t))) * real[:, None, None])
            y = jnp.einsum("bhqk,bkhc->bqhc", score, v).reshape(b, t, d)
            return x + self.out(self.after(y) * u)

    class Sessions(nnx.Module):
        def __init__(self, rngs):
            self.items, self.tags = nnx.Embed(items, d, rngs=rngs), nnx.Embed(tags, d, rngs=rngs)
            self.hours = nnx.Embed(24, d, rngs=rngs)
            self.units = nnx.List([Unit(rngs) for _ in range(3)])
            self.norm = nnx.LayerNorm(d, rngs=rngs)

        def __call__(self, seen, flat, owner, when):
            rows = b * t
            count = jax.ops.segment_sum(jnp.ones(flat.shape), owner, rows, indices_are_sorted=True)
            total = jax.ops.segment_sum(self.tags(flat), owner, rows, indices_are_sorted=True)
            bags = (total / jnp.maximum(count, 1)[:, None]).reshape(b, t, d)
            real = seen > 0
            x = (self.items(seen) + bags + self.hours(when // 3600 % 24)) * real[..., None]
            for unit in self.units:
                x = unit(x, when, real.astype(F32))
            x = self.norm(x)
            return x / jnp.maximum(jnp.linalg.norm(x, axis=-1, keepdims=True), 1e-6)

    def loss(model, seen, flat, owner, when, goal, drawn, often):
        x = model(seen, flat, owner, when)
        table = model.items.embedding[...]
        table = table / jnp.maximum(jnp.linalg.norm(table, axis=-1, keepdims=True), 1e-6)
        right = jnp.sum(x * table[goal], -1) / 0.05 - jnp.log(often[goal])
        wrong = x @ table[drawn].T / 0.05 - jnp.log(negatives * often[drawn])
        wrong = jnp.where(drawn == goal[..., None], -1e9, wrong)
        each = nn.logsumexp(jnp.concatenate([right[..., None], wrong], -1), -1) - right
        weight = (goal > 0) * 0.98 ** (t - 1 - jnp.arange(t))
        best = lax.top_k(lax.stop_gradient(x[:, -1] @ table.T), 10)[1]
        hit = best == goal[:, -1:]
        gain = jnp.sum(hit / jnp.log2(jnp.arange(10) + 2), -1).mean()
        value = jnp.sum(each * weight) / jnp.maximum(weight.sum(), 1)
        return value, gain

    tx = optax.chain(
        optax.clip(1.0),
        optax.partition(
            {"rows": optax.adagrad(0.05), "rest": optax.adamw(1e-3, b2=0.98)},
            lambda p: jax.tree.map_with_path(
                lambda n, _: "rows" if "embedding" in jax.tree_util.keystr(n) else "rest", p
            ),
        ),
    )

    def both():
        model = Sessions(nnx.Rngs(0))
        return model, nnx.Optimizer(model, tx, wrt=nnx.Param)

    graph, state = nnx.split(nnx.eval_shape(both))

    def step(state, *batch):
        model, optimizer = nnx.merge(graph, state)
        (value, gain), grads = nnx.value_and_grad(loss, has_aux=True)(model, *batch)
        optimizer.update(model, grads)
        return nnx.state((model, optimizer)), value, gain

    batch = ints(b, t), ints(b * t * 3), ints(b * t * 3), ints(b, t), ints(b, t), ints(negatives), S(items)
    return step, (state, *batch)


@program
def masked_diffusion_text_int8_bf16():
    count, d, heads, ff, vocab, b, asked, made, size, rounds = 3, 192, 6, 512, 3072, 4, 32, 64, 32, 8
    hd, t, mask, end = d // heads, asked + made, vocab - 1, 2
    narrow = lambda *n: {"w": S(count, *n, dtype=jnp.int8), "scale": S(count, n[-1], dtype=BF16)}
    layer = {"norms": S(count, 2, d, dtype=BF16), "qkv": narrow(d, 3 * d), "out": narrow(d, d)}
    layer |= {"up": narrow(d, 2 * ff), "down": narrow(ff, d)}
    params = {"embed": S(vocab, d, dtype=BF16), "layers": layer, "norm": S(d, dtype=BF16)}
    dense = lambda p, x: (x @ p["w"].astype(BF16)) * p["scale"]

    def network(params, tokens, real):
        angle = jnp.arange(t)[:, None] / 500000 ** (jnp.arange(hd // 2) / (hd // 2))
        turn = lax.complex(jnp.cos(angle), jnp.sin(angle))[:, None]

        def rotated(x):
            a, b = jnp.split(x.astype(F32), 2, -1)
            z = lax.complex(a, b) * turn
            return jnp.concatenate([z.real, z.imag], -1).astype(BF16)

        def block(x, p):
            q, k, v = jnp.split(dense(p["qkv"], rms_norm(x, p["norms"][0])), 3, -1)
            q, k, v = (z.reshape(*x.shape[:2], heads, hd) for z in (q, k, v))
            y = attend_where(rotated(q), rotated(k), v, real[:, None, None])
            x = x + dense(p["out"], y.reshape(x.shape))
            gate, up = jnp.split(dense(p["up"], rms_norm(x, p["norms"][1])), 2, -1)
            return x + dense(p["down"], nn.silu(gate) * up), None

        x, _ = lax.scan(block, params["embed"][tokens], params["layers"])
        return (rms_norm(x, params["norm"]) @ params["embed"].T).astype(F32)

    def generate(params, prompt, lengths, key, heat, guided):
        tokens = jnp.concatenate([prompt, jnp.full((b, made), mask)], 1)
        place = jnp.arange(t)
        real = (place < lengths[:, None]) | (place >= asked)
        given = real & (place < asked)

        def block(carry, i):
            tokens, key = carry
            here = (place >= asked + i * size) & (place < asked + (i + 1) * size)

            def one(j, carry):
                tokens, key, sure = carry
                key, k1, k2 = random.split(key, 3)
                blind = jnp.where(given, mask, tokens)
                both = network(params, jnp.concatenate([tokens, blind]), jnp.concatenate([real, real]))
                with_, without = jnp.split(both, 2)
                logits = (without + (guided + 1) * (with_ - without)).at[..., mask].set(-jnp.inf)
                noise = -jnp.log(random.exponential(k1, logits.shape))
                new = jnp.argmax(logits + heat * noise, -1)
                p = nn.softmax(logits)
                best = lax.top_k(p, 2)[0]
                chosen = jnp.take_along_axis(p, new[..., None], -1)[..., 0]
                trust = jnp.where(heat > 0, chosen, best[..., 0] - best[..., 1])
                trust = trust + 1e-6 * random.uniform(k2, trust.shape)
                open_ = (tokens == mask) & here
                left = open_.sum(1)
                take = jnp.ceil(left / (rounds - j)).astype(jnp.int32)
                ranked = -jnp.sort(-jnp.where(open_, trust, -jnp.inf), 1)
                floor = jnp.take_along_axis(ranked, jnp.maximum(take - 1, 0)[:, None], 1)
                fill = open_ & ((trust >= floor) | (trust > 0.95))
                sure = jnp.where(fill, trust, sure)
                return jnp.where(fill, new, tokens), key, sure

            tokens, key, sure = lax.fori_loop(0, rounds, one, (tokens, key, jnp.zeros(tokens.shape)))
            ended = jnp.cumsum(tokens == end, 1) - (tokens == end) > 0
            tokens = jnp.where(ended & (place >= asked), end, tokens)
            return (tokens, key), jnp.sum(sure * here, 1) / size

        (tokens, _), sure = lax.scan(block, (tokens, key), jnp.arange(made // size))
        return tokens[:, asked:], sure.T, jnp.argmax(tokens[:, asked:] == end, 1)

    return generate, (params, ints(b, asked), ints(b), KEY, S(), S())
