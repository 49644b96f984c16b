"""Programs of no library but JAX that write in a loop: what follows a prompt, what a picture shows."""

import jax
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


@program
def captions_beam_attended_cells():
    b, beams, size, d, vocab, length, sizes = 4, 4, 64, 128, 1000, 16, ((3, 32), (32, 64), (64, 128))

    def see(p, images):
        x = images.astype(F32) / 127.5 - 1
        for w, g, s in p:
            x = lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            m, v = x.mean((1, 2), keepdims=True), x.var((1, 2), keepdims=True)
            x = nn.gelu((x - m) * lax.rsqrt(v + 1e-5) * g + s)
        return x.reshape(b, -1, d)

    def cell(p, x, state):
        c, h = state
        i, f, o, u = jnp.split(x @ p["x"] + h @ p["h"] + p["b"], 4, -1)
        c = nn.sigmoid(f + 1) * c + nn.sigmoid(i) * jnp.tanh(u)
        return c, nn.sigmoid(o) * jnp.tanh(c)

    def look(p, h, keys, values):
        score = jnp.tanh(keys + (h @ p["q"])[:, :, None]) @ p["v"]
        share = nn.softmax(score)
        gate = nn.sigmoid(h @ p["gate"])
        return gate * jnp.einsum("bks,bsd->bkd", share, values[:, 0]), share

    def describe(params, images, penalty):
        values = see(params["see"], images)
        mean = values.mean(1)
        start = [jnp.broadcast_to(jnp.tanh(mean @ w)[:, None], (b, beams, d)) for w in params["start"]]
        keys = (values @ params["look"]["k"])[:, None]
        values = values[:, None]

        def one(carry, i):
            tokens, scores, ended, state, covered = carry
            last = lax.dynamic_index_in_dim(tokens, i, 2, False)
            read, share = look(params["look"], state[1], keys, values)
            state = cell(params["cell"], jnp.concatenate([params["embed"][last], read], -1), state)
            logits = jnp.concatenate([state[1], read], -1) @ params["out"]
            logp = nn.log_softmax(logits).at[:, :, 0].set(-1e9)
            stay = jnp.full(vocab, -1e9).at[0].set(0.0)
            logp = jnp.where(ended[..., None], stay, logp)
            total = scores[..., None] + logp
            scores, at = lax.top_k(total.reshape(b, beams * vocab), beams)
            whom, token = at // vocab, (at % vocab).astype(I32)
            take = lambda x: jnp.take_along_axis(x, whom.reshape(b, beams, *[1] * (x.ndim - 2)), 1)
            tokens, ended, covered = take(tokens), take(ended), take(covered + share)
            state = jax.tree.map(take, state)
            tokens = lax.dynamic_update_index_in_dim(tokens, token, i + 1, 2)
            return (tokens, scores, ended | (token == 2), state, covered), take(share)

        tokens = jnp.zeros((b, beams, length + 1), I32).at[..., 0].set(1)
        scores = jnp.where(jnp.arange(beams) == 0, 0.0, -1e9) * jnp.ones((b, 1))
        covered = jnp.zeros((b, beams, keys.shape[2]))
        first = tokens, scores, jnp.zeros((b, beams), bool), tuple(start), covered
        (tokens, scores, _, _, covered), shares = lax.scan(one, first, jnp.arange(length))
        many = jnp.sum(tokens[..., 1:] > 0, -1)
        scores = scores / ((5.0 + many) / 6) ** penalty - 0.1 * jnp.sum((1 - covered) ** 2, -1)
        best = scores.argmax(1)[:, None]
        chosen = jnp.take_along_axis(tokens, best[..., None], 1)[:, 0, 1:]
        return chosen, jnp.take_along_axis(scores, best, 1)[:, 0], shares

    look_p = {"q": S(d, d), "k": S(d, d), "v": S(d), "gate": S(d, d)}
    cell_p = {"x": S(2 * d, 4 * d), "h": S(d, 4 * d), "b": S(4 * d)}
    params = {"see": [(S(3, 3, i, o), S(o), S(o)) for i, o in sizes], "start": [S(d, d)] * 2}
    params |= {"look": look_p, "cell": cell_p, "embed": S(vocab, d), "out": S(2 * d, vocab)}
    return describe, (params, S(b, size, size, 3, dtype=jnp.uint8), S())
