"""Programs of no library but JAX and optax: kinds of attention, trained and decoded with."""

import jax.numpy as jnp
from arguments import BF16, F32, KEY, S, entering_when_asked, ints
from jax import lax, nn, random

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


def scaled(x, weight, eps=1e-6):
    wide = x.astype(F32)
    return (wide * lax.rsqrt(jnp.mean(wide**2, -1, keepdims=True) + eps) * weight).astype(x.dtype)


@program
def latent_attention_decode_fp8():
    F8 = jnp.float8_e4m3fn
    count, d, heads, rank, nope, rope, ff, experts, vocab = 3, 256, 8, 64, 32, 16, 128, 8, 1024
    batch, length = 8, 128
    weight = lambda *shape: {"w": S(count, *shape, dtype=F8), "scale": S(count, shape[-1])}
    layer = {"before": S(count, d), "after": S(count, d), "q_norm": S(count, 96), "kv_norm": S(count, rank)}
    layer |= {"q_down": weight(d, 96), "q_up": weight(96, heads * (nope + rope))}
    layer |= {"kv_down": weight(d, rank + rope), "out": weight(heads * nope, d)}
    layer |= {n: S(count, rank, heads, nope, dtype=BF16) for n in ("up_k", "up_v")}
    layer |= {"router": S(count, d, experts), "bias": S(count, experts)}
    layer |= {"shared": [weight(d, ff), weight(d, ff), weight(ff, d)]}
    layer |= {"experts": [S(count, experts, *n, dtype=F8) for n in ((d, ff), (d, ff), (ff, d))]}
    layer |= {"expert_scales": [S(count, experts, n) for n in (ff, ff, d)]}
    params = {
        "layers": layer,
        "table": S(vocab, d, dtype=BF16),
        "norm": S(d),
        "head": S(d, vocab, dtype=BF16),
    }
    cache = S(count, batch, length, rank, dtype=BF16), S(count, batch, length, rope, dtype=BF16)

    def dense(p, x):
        size = jnp.maximum(jnp.abs(x).max(-1, keepdims=True).astype(F32), 1e-6) / 448.0
        narrow = jnp.clip(x.astype(F32) / size, -448, 448).astype(F8)
        y = lax.dot_general(narrow, p["w"], (((1,), (0,)), ((), ())), preferred_element_type=F32)
        return (y * size * p["scale"]).astype(BF16)

    def turn(x, at):
        angle = at[:, None] / 10000 ** (jnp.arange(rope // 2) / (rope // 2))
        angle = angle.reshape(angle.shape[0], *(1,) * (x.ndim - 2), -1)
        a, b = x[..., ::2].astype(F32), x[..., 1::2].astype(F32)
        cos, sin = jnp.cos(angle), jnp.sin(angle)
        return jnp.stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(x.shape).astype(x.dtype)

    def attended(p, x, at, kept, turned):
        q = dense(p["q_up"], scaled(dense(p["q_down"], x), p["q_norm"])).reshape(batch, heads, -1)
        low, key = jnp.split(dense(p["kv_down"], x), [rank], -1)
        rows = jnp.arange(batch)
        kept = kept.at[rows, at].set(scaled(low, p["kv_norm"]), mode="drop")
        turned = turned.at[rows, at].set(turn(key, at), mode="drop")
        inner = jnp.einsum("bhn,lhn->bhl", q[..., :nope], p["up_k"])
        score = jnp.einsum("bhl,btl->bht", inner, kept) + jnp.einsum(
            "bhr,btr->bht", turn(q[..., nope:], at), turned
        )
        score = score.astype(F32) * (nope + rope) ** -0.5
        score = jnp.where(jnp.arange(length) <= at[:, None, None], score, -jnp.inf)
        mixed = jnp.einsum("bht,btl->bhl", nn.softmax(score).astype(BF16), kept)
        y = jnp.einsum("bhl,lhn->bhn", mixed, p["up_v"]).reshape(batch, -1)
        return dense(p["out"], y), kept, turned

    def expert(p, x):
        score = nn.sigmoid(x.astype(F32) @ p["router"])
        chosen = lax.top_k(score + p["bias"], 2)[1]
        gate = jnp.take_along_axis(score, chosen, 1)
        gate = 2.5 * gate / (gate.sum(-1, keepdims=True) + 1e-9)
        up, side, down = (
            (w[chosen].astype(BF16) * s[chosen][:, :, None].astype(BF16))
            for w, s in zip(p["experts"], p["expert_scales"])
        )
        y = nn.silu(jnp.einsum("bd,bkdf->bkf", x, up)) * jnp.einsum("bd,bkdf->bkf", x, side)
        y = jnp.einsum("bkf,bkfd,bk->bd", y, down, gate.astype(BF16))
        a, b, c = p["shared"]
        return y + dense(c, nn.silu(dense(a, x)) * dense(b, x))

    def decode(p, cache, token, at, key, temperature):
        def block(carry, layer):
            x, at = carry
            layer, kept, turned = layer
            y, kept, turned = attended(layer, scaled(x, layer["before"]), at, kept, turned)
            x = x + y
            return (x + expert(layer, scaled(x, layer["after"])), at), (kept, turned)

        def one(carry, key):
            token, at, done, cache = carry
            (x, _), cache = lax.scan(block, (p["table"][token], at), (p["layers"], *cache))
            logits = (scaled(x, p["norm"]) @ p["head"]).astype(F32)
            best, index = lax.top_k(logits / temperature[:, None], 40)
            likely = nn.softmax(best)
            best = jnp.where(likely >= 0.05 * likely[:, :1], best, -jnp.inf)
            pick = jnp.argmax(best + random.gumbel(key, best.shape), -1)[:, None]
            new = jnp.where(done, 0, jnp.take_along_axis(index, pick, 1)[:, 0])
            logp = jnp.take_along_axis(nn.log_softmax(best), pick, 1)[:, 0]
            done = done | (new == 1)
            return (new, jnp.where(done, at, at + 1), done, cache), (new, jnp.where(done, 0.0, logp))

        done = jnp.zeros(batch, bool)
        (_, at, done, cache), out = lax.scan(one, (token, at, done, cache), random.split(key, 4))
        return cache, at, done, out

    return decode, (params, cache, ints(batch), ints(batch), KEY, S(batch))
