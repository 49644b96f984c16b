"""Programs of no library but JAX on text and other sequences."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from arguments import BF16, F32, KEY, S, entering_when_asked, ints
from by_library.plain import gpt
from jax import lax, nn, random
from language import rms

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def gpt_dropout_accumulated_f32():
    return gpt(F32)


@program
def blockwise_attention_prefill_bf16():
    b, t, heads, kv, hd, d, size = 2, 256, 8, 2, 32, 128, 64
    layer = {"norms": S(4, d), "q": S(d, heads, hd), "k": S(d, kv, hd), "v": S(d, kv, hd)}
    layer |= {"o": S(heads, hd, d), "gate": S(d, 384), "up": S(d, 384), "down": S(384, d)}
    narrow = lambda tree: jax.tree.map(lambda x: S(2, *x.shape, dtype=BF16), tree)

    def rotary(x, place):
        turn = place[..., None] / 10000 ** (jnp.arange(0, hd, 2) / hd)
        z = lax.complex(x[..., ::2].astype(F32), x[..., 1::2].astype(F32))
        z = z * jnp.exp(1j * turn)[:, :, None]
        return jnp.stack([z.real, z.imag], -1).reshape(x.shape).astype(x.dtype)

    def attend(q, k, v, lengths, local):
        q = q.reshape(b, t // size, size, kv, heads // kv, hd).transpose(1, 0, 3, 4, 2, 5)
        k, v = (z.reshape(b, t // size, size, kv, hd).transpose(1, 0, 3, 2, 4) for z in (k, v))

        def row(_, at):
            i, q = at

            def column(carry, at):
                out, top, total = carry
                j, k, v = at
                s = jnp.einsum("bkgqd,bksd->bkgqs", q, k, preferred_element_type=F32) * hd**-0.5
                s = 50 * jnp.tanh(s / 50)
                rows, cols = i * size + jnp.arange(size)[:, None], j * size + jnp.arange(size)
                seen = (cols <= rows) & (~local | (rows - cols < 96))
                seen = seen[None] & (cols < lengths[:, None, None])
                s = jnp.where(seen[:, None, None], s, -1e30)
                high = jnp.maximum(top, s.max(-1))
                p, keep = jnp.exp(s - high[..., None]), jnp.exp(top - high)
                out = out * keep[..., None] + jnp.einsum("bkgqs,bksd->bkgqd", p.astype(BF16), v)
                return (out, high, total * keep + p.sum(-1)), None

            none = jnp.full(q.shape[:-1], -1e30)
            start = jnp.zeros(q.shape), none, jnp.zeros_like(none)
            (out, _, total), _ = lax.scan(column, start, (jnp.arange(t // size), k, v))
            return _, (out / total[..., None]).astype(BF16)

        _, out = lax.scan(row, None, (jnp.arange(t // size), q))
        return out.transpose(1, 0, 4, 2, 3, 5).reshape(b, t, heads, hd)

    def prefill(params, cache, tokens, lengths):
        x = params["embed"][tokens] * jnp.asarray(d**0.5, BF16)
        place = jnp.tile(jnp.arange(t), (b, 1))

        def one(x, at):
            l, cache, local = at
            y = rms(x, 1 + l["norms"][0])
            q, k, v = (jnp.einsum("btd,dhk->bthk", y, l[n]) for n in "qkv")
            q, k = rotary(q, place), rotary(k, place)
            y = jnp.einsum("bthk,hkd->btd", attend(q, k, v, lengths, local), l["o"])
            x = x + rms(y, 1 + l["norms"][1])
            y = rms(x, 1 + l["norms"][2])
            y = (nn.gelu(y @ l["gate"]) * (y @ l["up"])) @ l["down"]
            new = {n: lax.dynamic_update_slice(cache[n], z, (0, 0, 0, 0)) for n, z in (("k", k), ("v", v))}
            return x + rms(y, 1 + l["norms"][3]), new

        x, cache = lax.scan(one, x, (params["layers"], cache, jnp.array([True, False])))
        last = jnp.take_along_axis(x, (lengths - 1)[:, None, None], 1)[:, 0]
        logits = (rms(last, 1 + params["norm"]) @ params["embed"].T).astype(F32)
        return 30 * jnp.tanh(logits / 30), cache

    params = {"embed": S(512, d, dtype=BF16), "norm": S(d, dtype=BF16), "layers": narrow(layer)}
    cache = narrow({"k": S(b, 512, kv, hd), "v": S(b, 512, kv, hd)})
    return prefill, (params, cache, ints(b, t), ints(b))


@program
def t5_bucketed_sampling():
    d, heads, vocab, most = 64, 4, 300, 20
    block = {n: S(d, d) for n in "qkvo"} | {"up": S(2, d, 160), "down": S(160, d), "norm": S(3, d)}
    block |= {"c" + n: S(d, d) for n in "qkvo"}

    def bucket(apart, both):
        half = 16 if both else 32
        start = half * (apart > 0) if both else 0
        apart = jnp.abs(apart) if both else -jnp.minimum(apart, 0)
        far = half // 2 + jnp.log(jnp.maximum(apart, 1) / (half // 2)) / math.log(128 / (half // 2)) * (
            half // 2
        )
        far = jnp.minimum(far.astype(jnp.int32), half - 1)
        return start + jnp.where(apart < half // 2, apart, far)

    def split(x):
        return x.reshape(*x.shape[:2], heads, -1)

    def attend(q, k, v, bias):
        s = jnp.einsum("bqhd,bkhd->bhqk", split(q), split(k)) + bias
        return jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(s), split(v)).reshape(q.shape)

    def feed(l, x):
        y = rms(x, l["norm"][2])
        return x + (nn.gelu(y @ l["up"][0]) * (y @ l["up"][1])) @ l["down"]

    def encode(p, source):
        x = p["embed"][source]
        apart = jnp.arange(source.shape[1])[None] - jnp.arange(source.shape[1])[:, None]
        bias = p["near"][bucket(apart, True)].transpose(2, 0, 1)[None]
        bias = bias + jnp.where(source > 0, 0, -1e9)[:, None, None]
        for l in p["encoder"]:
            y = rms(x, l["norm"][0])
            x = feed(l, x + attend(y @ l["q"], y @ l["k"], y @ l["v"], bias) @ l["o"])
        return rms(x, p["norm"][0])

    def generate(p, source, key):
        b = source.shape[0]
        memory = encode(p, source)
        hidden = jnp.where(source > 0, 0, -1e9)[:, None, None]
        across = [(memory @ l["ck"], memory @ l["cv"]) for l in p["decoder"]]
        cache = [(jnp.zeros((b, most, d)),) * 2 for _ in p["decoder"]]

        def more(state):
            at, _, done, *_ = state
            return (at < most) & ~done.all()

        def one(state):
            at, text, done, key, cache = state
            x = p["embed"][lax.dynamic_slice_in_dim(text, at, 1, 1)]
            apart = jnp.arange(most) - at
            bias = p["past"][bucket(apart, False)].T[None, :, None] + jnp.where(apart > 0, -1e9, 0)
            new = []
            for l, (k, v), memory in zip(p["decoder"], cache, across):
                y = rms(x, l["norm"][0])
                k = lax.dynamic_update_slice_in_dim(k, y @ l["k"], at, 1)
                v = lax.dynamic_update_slice_in_dim(v, y @ l["v"], at, 1)
                new.append((k, v))
                x = x + attend(y @ l["q"], k, v, bias) @ l["o"]
                y = rms(x, l["norm"][1])
                x = feed(l, x + attend(y @ l["cq"], *memory, hidden) @ l["co"])
            logits = rms(x, p["norm"][1])[:, 0] @ p["embed"].T * d**-0.5
            used = jnp.zeros((b, vocab)).at[jnp.arange(b)[:, None], text].max(1.0)
            logits = jnp.where(used > 0, jnp.where(logits > 0, logits / 1.2, logits * 1.2), logits)
            best, which = lax.top_k(logits, 20)
            key, now = random.split(key)
            pick = jnp.argmax(best + random.gumbel(now, best.shape), -1)
            token = jnp.where(done, 0, jnp.take_along_axis(which, pick[:, None], 1)[:, 0])
            text = lax.dynamic_update_slice_in_dim(text, token[:, None], at + 1, 1)
            return at + 1, text, done | (token == 1), key, new

        text = jnp.zeros((b, most + 1), jnp.int32)
        return lax.while_loop(more, one, (0, text, jnp.zeros(b, bool), key, cache))[1:3]

    params = {"embed": S(vocab, d), "near": S(32, heads), "past": S(32, heads), "norm": S(2, d)}
    params |= {"encoder": [block] * 2, "decoder": [block] * 2}
    return generate, (params, ints(4, 24), KEY)


@program
def soft_alignment_grad():
    n, m, d = 40, 48, 24
    params = {"embed": S(22, d), "conv": S(5, d, d), "gap": S(2)}

    def smooth(x):
        return nn.logsumexp(jnp.stack(x), 0)

    def align(score, open_, extend):
        rows = np.arange(n + m - 1)[:, None] - np.arange(n)[None, :]
        inside = (rows >= 0) & (rows < m)
        skewed = score[jnp.arange(n)[None], jnp.clip(rows, 0, m - 1)]
        low = jnp.full(n, -1e9)
        shift = lambda x: jnp.concatenate([jnp.array([-1e9]), x[:-1]])

        def one(carry, at):
            (m1, x1, y1), (m2, x2, y2) = carry
            s, inside = at
            match = smooth([shift(m2), shift(x2), shift(y2), jnp.zeros(n)]) + s
            x = smooth([shift(m1) - open_, shift(x1) - extend])
            y = smooth([m1 - open_, y1 - extend, x1 - open_])
            new = tuple(jnp.where(inside, z, -1e9) for z in (match, x, y))
            return (new, carry[0]), new[0]

        _, out = lax.scan(one, ((low,) * 3,) * 2, (skewed, inside))
        return nn.logsumexp(jnp.where(inside, out, -1e9))

    def embed(p, x):
        h = p["embed"][x]
        y = lax.conv_general_dilated(h, p["conv"], (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"))
        h = h + nn.gelu(y)
        return h * lax.rsqrt(jnp.mean(h**2, -1, keepdims=True) + 1e-6)

    def loss(p, a, b, places):
        open_, extend = nn.softplus(p["gap"])
        score = jnp.einsum("bnd,bmd->bnm", embed(p, a), embed(p, b)) * d**-0.5
        likely = jax.vmap(jax.grad(align), (0, None, None))(score, open_, extend)
        picked = jnp.take_along_axis(likely, places[..., None], -1)[..., 0]
        return -jnp.mean(jnp.log(picked + 1e-6))

    return jax.value_and_grad(loss), (params, ints(8, n), ints(8, m), ints(8, n))


@program
def int8_encoder_infer():
    d, heads, ff = 128, 4, 512
    packed = lambda n, m: {"w": S(n, m, dtype=jnp.int8), "scale": S(m), "zero": S(m), "b": S(m)}
    block = {"qkv": packed(d, 3 * d), "out": packed(d, d), "ln": S(4, d), "smooth": S(2, d)}
    block |= {
        "up": packed(d, ff),
        "down": {"w": S(8, ff // 16, d, dtype=jnp.uint8), "scale": S(8, d), "b": S(d)},
    }

    def dense(l, x):
        size = jnp.maximum(jnp.max(jnp.abs(x), -1, keepdims=True), 1e-6) / 127
        q = jnp.clip(jnp.round(x / size), -128, 127).astype(jnp.int8)
        y = lax.dot_general(q, l["w"], (((x.ndim - 1,), (0,)), ((), ())), preferred_element_type=jnp.int32)
        sums = jnp.sum(q, -1, keepdims=True, dtype=jnp.int32)
        return (y.astype(F32) - sums * l["zero"]) * size * l["scale"] + l["b"]

    def grouped(l, x):
        low, high = (l["w"] & 15).astype(jnp.int8) - 8, (l["w"] >> 4).astype(jnp.int8) - 8
        w = jnp.stack([low, high], 2).reshape(8, -1, d).astype(BF16) * l["scale"][:, None].astype(BF16)
        return x.astype(BF16) @ w.reshape(-1, d) + l["b"].astype(BF16)

    def norm(x, g, b):
        mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) * lax.rsqrt(var + 1e-12) * g + b

    def run(p, tokens, kinds):
        scale = p["scale"][tokens][..., None]
        x = p["embed"][tokens].astype(F32) * scale + p["place"][: tokens.shape[1]] + p["kind"][kinds]
        x = norm(x, *p["ln"])
        mask = jnp.where(tokens > 0, 0.0, -1e4)[:, None, None]
        for l in p["blocks"]:
            y = dense(l["qkv"], x / l["smooth"][0])
            q, k, v = jnp.moveaxis(y.reshape(*y.shape[:2], 3, heads, -1), 2, 0)
            s = jnp.einsum("bqhd,bkhd->bhqk", q, k) * (d // heads) ** -0.5 + mask
            p8 = jnp.round(nn.softmax(s) * 127).astype(jnp.int8)
            big = jnp.max(jnp.abs(v), (1, 3), keepdims=True) / 127
            v8 = jnp.round(v / big).astype(jnp.int8)
            y = jnp.einsum("bhqk,bkhd->bqhd", p8, v8, preferred_element_type=jnp.int32)
            y = (y.astype(F32) * big / 127).reshape(x.shape)
            x = norm(x + dense(l["out"], y), *l["ln"][:2])
            y = nn.gelu(dense(l["up"], x / l["smooth"][1]), approximate=False)
            x = norm(x + grouped(l["down"], y).astype(F32), *l["ln"][2:])
        first = jnp.tanh(x[:, 0] @ p["pool"])
        kept = (tokens > 0).astype(F32)[..., None]
        mean = jnp.sum(x * kept, 1) / jnp.maximum(kept.sum(1), 1)
        return first, mean / jnp.linalg.norm(mean, axis=-1, keepdims=True)

    params = {
        "embed": S(500, d, dtype=jnp.int8),
        "scale": S(500),
        "place": S(64, d),
        "kind": S(2, d),
        "ln": S(2, d),
    }
    params |= {"blocks": [block] * 2, "pool": S(d, d)}
    return run, (params, ints(8, 48), ints(8, 48))
