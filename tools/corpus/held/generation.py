"""Programs of no library but JAX that write in a loop: what follows a prompt."""

import jax.numpy as jnp
from arguments import BF16, F32, I32, KEY, S, entering_when_asked, ints
from jax import lax, nn, random

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def grouped_queries_prompt_then_loop_bf16():
    b, prompt, most, layers, d, heads, kv, hd, wide, vocab = 4, 64, 128, 3, 256, 8, 2, 32, 704, 2048

    def norm(x, g):
        y = x.astype(F32)
        return (y * lax.rsqrt(jnp.mean(y**2, -1, keepdims=True) + 1e-5)).astype(x.dtype) * g

    def rope(x, at):
        angle = at[..., None, None] / 500000.0 ** (jnp.arange(0, hd, 2, dtype=F32) / hd)
        cos, sin = jnp.cos(angle), jnp.sin(angle)
        a, c = x[..., ::2].astype(F32), x[..., 1::2].astype(F32)
        return jnp.stack([a * cos - c * sin, a * sin + c * cos], -1).reshape(x.shape).astype(x.dtype)

    def block(p, x, cache, at, start, mask):
        y = norm(x, p["before"])
        n = x.shape[1]
        q = rope((y @ p["q"]).reshape(b, n, heads, hd), at)
        k = rope((y @ p["k"]).reshape(b, n, kv, hd), at)
        v = (y @ p["v"]).reshape(b, n, kv, hd)
        ks = lax.dynamic_update_slice(cache[0], k, (0, start, 0, 0))
        vs = lax.dynamic_update_slice(cache[1], v, (0, start, 0, 0))
        q = q.reshape(b, n, kv, heads // kv, hd)
        score = jnp.einsum("bqhgd,bkhd->bhgqk", q, ks, preferred_element_type=F32) * hd**-0.5
        share = nn.softmax(jnp.where(mask[:, None, None], score, -1e9)).astype(BF16)
        x = x + jnp.einsum("bhgqk,bkhd->bqhgd", share, vs).reshape(b, n, -1) @ p["o"]
        y = norm(x, p["after"])
        return x + (nn.silu(y @ p["gate"]) * (y @ p["up"])) @ p["down"], (ks, vs)

    def forward(params, tokens, caches, at, start, mask):
        def one(x, layer):
            p, cache = layer
            return block(p, x, cache, at, start, mask)

        x, caches = lax.scan(one, params["embed"][tokens], (params["layers"], caches))
        return (norm(x[:, -1], params["norm"]) @ params["head"]).astype(F32), caches

    def pick(key, logits, warm, k=40, p=0.95):
        best, who = lax.top_k(logits / jnp.maximum(warm, 1e-3)[:, None], k)
        kept = jnp.cumsum(nn.softmax(best), -1) - nn.softmax(best) < p
        at = random.categorical(key, jnp.where(kept, best, -jnp.inf))
        at = jnp.where(warm > 0, at, 0)
        return jnp.take_along_axis(who, at[:, None], 1)[:, 0].astype(I32)

    def generate(params, tokens, lengths, warm, key):
        pads = prompt - lengths
        seen = jnp.arange(most)[None] >= pads[:, None]
        shape = layers, b, most, kv, hd
        caches = jnp.zeros(shape, BF16), jnp.zeros(shape, BF16)
        at = jnp.maximum(jnp.arange(prompt) - pads[:, None], 0)
        causal = jnp.arange(most) <= jnp.arange(prompt)[:, None]
        logits, caches = forward(params, tokens, caches, at, 0, causal & seen[:, None])
        key, k = random.split(key)
        first = pick(k, logits, warm)
        out = jnp.zeros((b, most), I32).at[:, :prompt].set(tokens).at[:, prompt].set(first)

        def going(carry):
            i, _, _, ended, *_ = carry
            return (i < most - 1) & ~ended.all()

        def one(carry):
            i, out, caches, ended, likely, key = carry
            token = lax.dynamic_slice(out, (0, i), (b, 1))
            mask = (jnp.arange(most) <= i) & seen
            logits, caches = forward(params, token, caches, (i - pads)[:, None], i, mask[:, None])
            key, k = random.split(key)
            new = jnp.where(ended, 0, pick(k, logits, warm))
            gain = jnp.take_along_axis(nn.log_softmax(logits), new[:, None], 1)[:, 0]
            out = lax.dynamic_update_slice(out, new[:, None], (0, i + 1))
            return i + 1, out, caches, ended | (new == 2), likely + jnp.where(ended, 0.0, gain), key

        start = jnp.int32(prompt), out, caches, first == 2, jnp.zeros(b), key
        steps, out, _, ended, likely, _ = lax.while_loop(going, one, start)
        return out, steps, ended, likely / jnp.maximum(steps - prompt, 1)

    w = lambda *shape: S(layers, *shape, dtype=BF16)
    layer = {"before": w(d), "after": w(d), "q": w(d, heads * hd), "k": w(d, kv * hd), "v": w(d, kv * hd)}
    layer |= {"o": w(heads * hd, d), "gate": w(d, wide), "up": w(d, wide), "down": w(wide, d)}
    params = {"embed": S(vocab, d, dtype=BF16), "head": S(d, vocab, dtype=BF16), "norm": S(d, dtype=BF16)}
    return generate, (params | {"layers": layer}, ints(b, prompt), ints(b), S(b), KEY)
