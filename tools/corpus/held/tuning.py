"""Programs that train language models: small factors beside frozen weights, experts asked by twos."""

import jax
import jax.numpy as jnp
from arguments import BF16, F32, KEY, S, entering_when_asked, ints
from jax import lax, nn, random

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


def norm(x, g):
    wide = x.astype(F32)
    return (wide * lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6) * g).astype(x.dtype)


@program
def low_rank_factors_accumulated_bf16():
    import optax

    micro, b, n, layers, d, heads, kv, wide, vocab, rank = 4, 2, 96, 4, 192, 6, 2, 512, 1536, 8
    hd = d // heads

    def turned(x):
        angle = jnp.arange(n)[:, None] / 10000 ** (jnp.arange(hd // 2) / (hd // 2))
        cos, sin = (jnp.tile(f(angle), 2)[None, :, None].astype(x.dtype) for f in (jnp.cos, jnp.sin))
        half = jnp.concatenate([-x[..., hd // 2 :], x[..., : hd // 2]], -1)
        return x * cos + half * sin

    def beside(w, lora, key, x):
        drop = random.bernoulli(key, 0.95, x.shape)
        small = jnp.where(drop, x / 0.95, 0).astype(BF16) @ lora["a"].astype(BF16)
        return x @ w + (2 * rank / rank) * (small @ lora["b"].astype(BF16))

    def block(x, layer, mask):
        w, lora, key = layer
        keys = dict(zip("qkvo", random.split(key, 4)))
        y = norm(x, w["before"])
        q, k, v = (beside(w[s], lora[s], keys[s], y).reshape(b, n, -1, hd) for s in "qkv")
        q = turned(q).reshape(b, n, kv, heads // kv, hd)
        score = jnp.einsum("bqhgs,bkhs->bhgqk", q, turned(k)).astype(F32) * hd**-0.5
        share = nn.softmax(jnp.where(mask[:, :, None], score, -1e30)).astype(BF16)
        y = jnp.einsum("bhgqk,bkhs->bqhgs", share, v)
        x = x + beside(w["o"], lora["o"], keys["o"], y.reshape(b, n, d))
        y = norm(x, w["after"])
        return x + (nn.silu(y @ w["gate"]) * (y @ w["up"])) @ w["down"]

    def loss(lora, frozen, key, tokens, asked):
        mask = jnp.tril(jnp.ones((n, n), bool)) & (tokens > 0)[:, None, None]
        policy = jax.checkpoint_policies.dots_with_no_batch_dims_saveable

        @jax.checkpoint
        def one(x, layer):
            return jax.checkpoint(block, policy=policy)(x, layer, mask), None

        x = frozen["embed"][tokens]
        x, _ = lax.scan(one, x, (frozen["layers"], lora, random.split(key, layers)))
        logits = (norm(x, frozen["norm"]) @ frozen["embed"].T).astype(F32)
        weight = (~asked & (tokens > 0))[:, 1:].astype(F32)
        each = optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], tokens[:, 1:])
        return jnp.sum(each * weight), jnp.sum(weight)

    tx = optax.chain(
        optax.clip_by_global_norm(0.3),
        optax.scale_by_adam(0.9, 0.999, mu_dtype=BF16),
        optax.add_decayed_weights(0.01),
        optax.scale_by_learning_rate(optax.linear_schedule(2e-4, 0, 1000)),
    )

    def step(lora, state, frozen, key, tokens, asked):
        def one(carry, batch):
            total, many, grads = carry
            (value, count), new = jax.value_and_grad(loss, has_aux=True)(lora, frozen, *batch)
            return (total + value, many + count, jax.tree.map(jnp.add, grads, new)), value / count

        start = jnp.zeros(()), jnp.zeros(()), jax.tree.map(jnp.zeros_like, lora)
        (total, many, grads), each = lax.scan(one, start, (random.split(key, micro), tokens, asked))
        grads = jax.tree.map(lambda g: g / jnp.maximum(many, 1), grads)
        updates, state = tx.update(grads, state, lora)
        return optax.apply_updates(lora, updates), state, total / many, each, optax.global_norm(grads)

    outs = {"q": d, "k": kv * hd, "v": kv * hd, "o": d}
    w = lambda *shape: S(layers, *shape, dtype=BF16)
    frozen = {s: w(d, o) for s, o in outs.items()} | {"before": w(d), "after": w(d)}
    frozen |= {"gate": w(d, wide), "up": w(d, wide), "down": w(wide, d)}
    frozen = {"layers": frozen, "embed": S(vocab, d, dtype=BF16), "norm": S(d, dtype=BF16)}
    lora = {s: {"a": S(layers, d, rank), "b": S(layers, rank, o)} for s, o in outs.items()}
    asked = S(micro, b, n, dtype=bool)
    return step, (lora, jax.eval_shape(tx.init, lora), frozen, KEY, ints(micro, b, n), asked)


@program
def experts_two_each_capacity_adafactor_bf16():
    import optax

    b, n, layers, d, heads, wide, vocab, experts, most = 4, 64, 2, 128, 4, 256, 1024, 8, 24
    hd = d // heads

    def attend(p, x):
        q, k, v = jnp.einsum("bnd,dchs->cbhns", x, p["qkv"])
        q, k = (norm(y, p[s]) for y, s in ((q, "gq"), (k, "gk")))
        slope = 2.0 ** -(8 * (jnp.arange(heads) + 1) / heads)
        apart = jnp.arange(n)[:, None] - jnp.arange(n)
        score = jnp.einsum("bhqs,bhks->bhqk", q, k).astype(F32) * hd**-0.5 - slope[:, None, None] * apart
        share = nn.softmax(jnp.where(apart >= 0, score, -jnp.inf)).astype(BF16)
        return jnp.einsum("bhqk,bhks,hsd->bqd", share, v, p["o"])

    def ask(p, x, key):
        logits = x.astype(F32) @ p["route"]
        logits = logits * random.uniform(key, logits.shape, minval=0.99, maxval=1.01)
        chance = nn.softmax(logits)
        best, who = lax.top_k(chance, 2)
        best = best / best.sum(-1, keepdims=True)
        hot = nn.one_hot(who, experts, dtype=jnp.int32)
        flat = hot.transpose(0, 2, 1, 3).reshape(b, 2 * n, experts)
        place = (jnp.cumsum(flat, 1) - 1) * flat
        place = place.reshape(b, 2, n, experts).transpose(0, 2, 1, 3)
        kept = hot * (place < most)
        slot = nn.one_hot(jnp.where(kept > 0, place, -1), most, dtype=BF16)
        weight = jnp.einsum("bnk,bnkec->bnec", best.astype(BF16), slot)
        into = jnp.einsum("bnkec,bnd->ebcd", slot, x)
        up, gate = jnp.einsum("ebcd,edgf->gebcf", into, p["up"])
        out = jnp.einsum("ebcf,efd->ebcd", nn.gelu(gate) * up, p["down"])
        share = jnp.mean(hot[:, :, 0].astype(F32), 1) * jnp.mean(chance, 1)
        even = experts * jnp.mean(jnp.sum(share, -1))
        lost = 1 - kept.sum() / (2 * b * n)
        size = jnp.mean(nn.logsumexp(logits, -1) ** 2)
        return jnp.einsum("bnec,ebcd->bnd", weight, out), (even, size, lost)

    def loss(params, key, tokens, targets):
        cast = jax.tree.map(lambda p: p.astype(BF16), params["layers"])
        cast["route"] = params["layers"]["route"]

        @jax.checkpoint
        def one(x, layer):
            p, key = layer
            x = x + attend(p, norm(x, p["g1"]))
            y, told = ask(p, norm(x, p["g2"]), key)
            return x + y, told

        x = params["embed"][tokens].astype(BF16) * d**0.5
        x, (even, size, lost) = lax.scan(one, x, (cast, random.split(key, layers)))
        logits = 30 * jnp.tanh((norm(x, params["g"]) @ params["embed"].T.astype(BF16)).astype(F32) / 30)
        total = nn.logsumexp(logits, -1)
        off = total - jnp.take_along_axis(logits, targets[..., None], -1)[..., 0]
        weight = (targets > 0).astype(F32)
        value = jnp.sum((off + 1e-4 * total**2) * weight) / weight.sum()
        return value + 1e-2 * even.sum() + 1e-3 * size.sum(), (value, lost.mean())

    tx = optax.adafactor(1e-3, min_dim_size_to_factor=64)

    def step(params, state, key, tokens, targets):
        (_, told), grads = jax.value_and_grad(loss, has_aux=True)(params, key, tokens, targets)
        updates, state = tx.update(grads, state, params)
        fine = jnp.isfinite(optax.global_norm(grads))
        new = optax.apply_updates(params, updates)
        return jax.tree.map(lambda a, b: jnp.where(fine, a, b), new, params), state, told

    w = lambda *shape: S(layers, *shape)
    layer = {
        "qkv": w(d, 3, heads, hd),
        "o": w(heads, hd, d),
        "gq": w(hd),
        "gk": w(hd),
        "g1": w(d),
        "g2": w(d),
    }
    layer |= {"route": w(d, experts), "up": w(experts, d, 2, wide), "down": w(experts, wide, d)}
    params = {"layers": layer, "embed": S(vocab, d), "g": S(d)}
    return step, (params, jax.eval_shape(tx.init, params), KEY, ints(b, n), ints(b, n))
