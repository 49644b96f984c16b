"""Programs of no library but JAX that make tokens."""

import jax
import jax.numpy as jnp
from arguments import BF16, F32, KEY, S, entering_when_asked, ints
from jax import lax, nn, random
from language import rms

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def speculative_decoding_nucleus_bf16():
    b, vocab, most, ahead = 2, 512, 128, 4

    def sizes(layers, d, heads, kv, hd=32):
        block = {"norm": S(2, d), "q": S(d, heads, hd), "k": S(d, kv, hd), "v": S(d, kv, hd)}
        block |= {"o": S(heads, hd, d), "up": S(2, d, 2 * d), "down": S(2 * d, d)}
        params = {"blocks": [block] * layers, "embed": S(vocab, d), "norm": S(d)}
        cache = [{"k": S(b, most, kv, hd), "v": S(b, most, kv, hd)}] * layers
        narrow = lambda tree: jax.tree.map(lambda x: S(*x.shape, dtype=BF16), tree)
        return narrow(params), narrow(cache)

    def turned(x, place):
        half = x.shape[-1] // 2
        angle = place[..., None, None] / 10000 ** (jnp.arange(half) / half)
        x = x.astype(F32)
        other = jnp.concatenate([-x[..., half:], x[..., :half]], -1)
        cos, sin = (jnp.tile(f(angle), 2) for f in (jnp.cos, jnp.sin))
        return (x * cos + other * sin).astype(BF16)

    def forward(p, cache, tokens, start):
        place = start[:, None] + jnp.arange(tokens.shape[1])
        seen = jnp.arange(most) <= place[..., None]
        x, new = p["embed"][tokens], []
        put = jax.vmap(lambda old, z, i: lax.dynamic_update_slice_in_dim(old, z, i, 0))
        for l, old in zip(p["blocks"], cache):
            y = rms(x, l["norm"][0])
            q, k, v = (jnp.einsum("btd,dhk->bthk", y, l[n]) for n in "qkv")
            k, v = put(old["k"], turned(k, place), start), put(old["v"], v, start)
            new.append({"k": k, "v": v})
            q = turned(q, place).reshape(*q.shape[:2], k.shape[2], -1, q.shape[-1])
            s = jnp.einsum("btkgd,bskd->bkgts", q, k).astype(F32) * q.shape[-1] ** -0.5
            w = nn.softmax(jnp.where(seen[:, None, None], s, -1e30)).astype(BF16)
            y = jnp.einsum("bkgts,bskd->btkgd", w, v).reshape(*x.shape[:2], *l["o"].shape[:2])
            x = x + jnp.einsum("bthk,hkd->btd", y, l["o"])
            y = rms(x, l["norm"][1])
            x = x + (nn.silu(y @ l["up"][0]) * (y @ l["up"][1])) @ l["down"]
        return (rms(x, p["norm"]) @ p["embed"].T).astype(F32), new

    def nucleus(logits, warmth, share):
        p = nn.softmax(logits / warmth)
        order = jnp.argsort(-p, -1)
        ranked = jnp.take_along_axis(p, order, -1)
        kept = jnp.cumsum(ranked, -1) - ranked < share
        kept = jnp.take_along_axis(kept, jnp.argsort(order, -1), -1)
        p = jnp.where(kept, p, 0.0)
        return p / p.sum(-1, keepdims=True)

    def draw(key, p):
        return jnp.argmax(jnp.log(p) + random.gumbel(key, p.shape), -1).astype(jnp.int32)

    def step(draft, target, caches, text, length, key, warmth, share):
        keys = random.split(key, ahead + 2)
        last = jnp.take_along_axis(text, length[:, None] - 1, 1)

        def guess(state, at):
            i, key = at
            cache, token = state
            logits, cache = forward(draft, cache, token, length - 1 + i)
            p = nucleus(logits[:, 0], warmth, share)
            token = draw(key, p)[:, None]
            return (cache, token), (token[:, 0], p)

        (small, _), (tokens, q) = lax.scan(guess, (caches[0], last), (jnp.arange(ahead), keys[2:]))
        tokens, q = tokens.T, q.swapaxes(0, 1)
        logits, large = forward(target, caches[1], jnp.concatenate([last, tokens], 1), length - 1)
        p = nucleus(logits, warmth, share)
        of = lambda z: jnp.take_along_axis(z[:, :ahead], tokens[..., None], -1)[..., 0]
        right = random.uniform(keys[0], tokens.shape) < of(p) / of(q)
        count = jnp.cumprod(right.astype(jnp.int32), 1).sum(1)
        at = count[:, None, None]
        here = jnp.take_along_axis(p, at, 1)[:, 0]
        there = jnp.take_along_axis(jnp.pad(q, ((0, 0), (0, 1), (0, 0))), at, 1)[:, 0]
        rest = jnp.maximum(here - there, 0)
        rest = rest / jnp.maximum(rest.sum(-1, keepdims=True), 1e-9)
        extra = draw(keys[1], rest)
        made = jnp.where(
            jnp.arange(ahead + 1) == count[:, None], extra[:, None], jnp.pad(tokens, ((0, 0), (0, 1)))
        )
        made = jnp.where(jnp.arange(ahead + 1) <= count[:, None], made, 0)
        text = jax.vmap(lambda t, m, i: lax.dynamic_update_slice(t, m, (i,)))(text, made, length)
        return (small, large), text, length + count + 1

    (draft, small), (target, large) = sizes(1, 64, 2, 1), sizes(3, 128, 8, 2)
    return step, (draft, target, (small, large), ints(b, most), ints(b), KEY, S(), S())
