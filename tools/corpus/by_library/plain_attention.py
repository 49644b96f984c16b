"""Programs of no library but JAX and optax that attend within windows and by chunks."""

import jax
import jax.numpy as jnp
from arguments import BF16, F32, I32, KEY, S, entering_when_asked, ints
from jax import lax, nn, random
from language import rms
from steps import labelled

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def windowed_global_masked_lamb_bf16():
    d, heads, block, ahead, count, vocab, length = 128, 4, 32, 8, 3, 800, 256
    each = d // heads
    stacked = lambda *shape: S(count, *shape)
    layer = {
        "qkv": stacked(d, 3 * d),
        "wide": stacked(d, 3 * d),
        "out": stacked(d, d),
        "up": stacked(d, 4 * d),
    }
    layer |= {"down": stacked(4 * d, d), "up_b": stacked(4 * d), "scales": stacked(4, d)}
    params = {
        "layers": layer,
        "table": S(vocab, d),
        "places": S(length, d),
        "head": S(3, d),
        "bias": S(vocab),
    }

    def norm(x, scale, shift):
        wide = x.astype(F32)
        wide = (wide - wide.mean(-1, keepdims=True)) * lax.rsqrt(wide.var(-1, keepdims=True) + 1e-5)
        return (wide * scale + shift).astype(x.dtype)

    def split(x, w):
        y = (x @ w.astype(BF16)).reshape(*x.shape[:2], 3, heads, each)
        return y[:, :, 0] * each**-0.5, y[:, :, 1], y[:, :, 2]

    def windows(x):
        x = x.reshape(x.shape[0], -1, block, *x.shape[2:])
        side = jnp.pad(x, ((0, 0), (1, 1), (0, 0), (0, 0), (0, 0)))
        return jnp.concatenate([side[:, :-2], x, side[:, 2:]], 2)

    def attention(p, x, real):
        b, t, _ = x.shape
        q, k, v = split(x, p["qkv"])
        q = q.reshape(b, -1, block, heads, each)
        near = jnp.einsum("bnqhe,bnkhe->bnhqk", q, windows(k)).astype(F32)
        place = jnp.arange(t).reshape(-1, block)
        other = jnp.arange(3 * block) - block + place[:, :1]
        far = jnp.abs(place[:, :, None] - other[:, None]) > block
        out = (other < ahead) | (other >= t)
        known = windows(real[:, :, None, None])[..., 0, 0]
        hidden = far[None] | out[None, :, None] | ~known[:, :, None]
        near = jnp.where(hidden[:, :, None], -1e9, near)
        first = jnp.einsum("bnqhe,bkhe->bnhqk", q, k[:, :ahead]).astype(F32)
        p_all = nn.softmax(jnp.concatenate([first, near], -1)).astype(BF16)
        y = jnp.einsum("bnhqk,bkhe->bnqhe", p_all[..., :ahead], v[:, :ahead])
        y = y + jnp.einsum("bnhqk,bnkhe->bnqhe", p_all[..., ahead:], windows(v))
        q, k, v = split(x, p["wide"])
        score = jnp.einsum("bqhe,bkhe->bhqk", q[:, :ahead], k).astype(F32)
        score = nn.softmax(jnp.where(real[:, None, None], score, -1e9)).astype(BF16)
        z = jnp.einsum("bhqk,bkhe->bqhe", score, v).reshape(b, ahead, d)
        return jnp.concatenate([z, y.reshape(b, t, d)[:, ahead:]], 1) @ p["out"].astype(BF16)

    def dropped(key, x):
        return jnp.where(random.bernoulli(key, 0.9, x.shape), x / 0.9, 0).astype(x.dtype)

    def loss(p, key, tokens, asked, weight):
        real = tokens > 0
        x = (p["table"][tokens] + p["places"]).astype(BF16)

        @jax.checkpoint
        def one(x, at):
            w, key = at
            k1, k2 = random.split(key)
            x = norm(x + dropped(k1, attention(w, x, real)), w["scales"][0], w["scales"][1])
            y = nn.gelu(x @ w["up"].astype(BF16) + w["up_b"].astype(BF16))
            y = y @ w["down"].astype(BF16)
            return norm(x + dropped(k2, y), w["scales"][2], w["scales"][3]), None

        x, _ = lax.scan(one, x, (p["layers"], random.split(key, count)))
        x = jnp.take_along_axis(x, asked[..., None], 1)
        x = norm(nn.gelu(x * p["head"][0].astype(BF16)), p["head"][1], p["head"][2])
        logits = (x @ p["table"].T.astype(BF16)).astype(F32) + p["bias"]
        truth = jnp.take_along_axis(tokens, asked, 1)
        each = nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, truth[..., None], -1)[..., 0]
        hits = jnp.sum((logits.argmax(-1) == truth) * weight)
        return jnp.sum(each * weight), (weight.sum(), hits)

    def step(p, m, v, at, key, tokens, asked, weight):
        def part(carry, batch):
            grads, sums = carry
            (value, more), new = jax.value_and_grad(loss, has_aux=True)(p, *batch)
            return jax.tree.map(jnp.add, (grads, sums), (new, (value, *more))), None

        start = jax.tree.map(jnp.zeros_like, p), (0.0, 0.0, 0.0)
        parts = random.split(key, tokens.shape[0]), tokens, asked, weight
        (grads, (value, total, hits)), _ = lax.scan(part, start, parts)
        size = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(grads))) / total
        factor = jnp.minimum(1.0, 1.0 / (size + 1e-6)) / total
        rate = 2e-3 * jnp.minimum(at / 100.0, lax.rsqrt(jnp.maximum(at, 1) / 100.0))

        def update(p, m, v, g):
            g = g * factor
            m = (0.9 * m.astype(F32) + 0.1 * g).astype(BF16)
            v = 0.999 * v + 0.001 * g**2
            u = m.astype(F32) / (1 - 0.9**at) / (jnp.sqrt(v / (1 - 0.999**at)) + 1e-6) + 0.01 * p
            a, b = jnp.linalg.norm(p), jnp.linalg.norm(u)
            trust = jnp.where((a > 0) & (b > 0), jnp.minimum(a / b, 10.0), 1.0)
            return p - rate * trust * u, m, v

        new = jax.tree.map(update, p, m, v, grads)
        pick = lambda n: jax.tree.map(lambda z: z[n], new, is_leaf=lambda z: isinstance(z, tuple))
        p, m, v = pick(0), pick(1), pick(2)
        return p, m, v, at + 1, value / total, hits / total, size

    narrow = jax.tree.map(lambda x: S(*x.shape, dtype=BF16), params)
    batch = ints(2, 4, length), ints(2, 4, 40), S(2, 4, 40)
    return step, (params, narrow, params, S(dtype=F32), KEY, *batch)


@program
def gated_delta_rule_chunks():
    import optax

    d, heads, each, size, count, vocab = 96, 3, 32, 32, 2, 300
    layer = {
        "norm": S(d),
        "qkv": S(d, 3 * d),
        "conv": S(4, 1, 3 * d),
        "beta": S(d, heads),
        "decay": S(d, heads),
    }
    layer |= {"rate": S(heads), "shift": S(heads), "gate": S(d, d), "inner": S(each), "out": S(d, d)}
    layer |= {"after": S(d), "up": S(d, 4 * d), "down": S(2 * d, d)}
    params = {"layers": [layer] * count, "table": S(vocab, d), "norm": S(d)}

    def rule(q, k, v, beta, decay):
        """The delta rule with a decay, chunk by chunk: [t, each] of one head."""
        q, k, v = (x.reshape(-1, size, each) for x in (q, k, v))
        beta, decay = beta.reshape(-1, size), decay.reshape(-1, size)
        total = jnp.cumsum(decay, -1)
        apart = total[:, :, None] - total[:, None]
        lower = jnp.tril(jnp.ones((size, size), bool))
        fade = jnp.where(lower, jnp.exp(jnp.where(lower, apart, 0.0)), 0.0)
        within = beta[..., None] * jnp.einsum("nik,njk->nij", k, k) * fade
        system = jnp.eye(size) + jnp.tril(within, -1)
        right = jnp.concatenate([v, k * jnp.exp(total)[..., None]], -1) * beta[..., None]
        solved = jax.scipy.linalg.solve_triangular(system, right, lower=True, unit_diagonal=True)
        values, keys = jnp.split(solved, 2, -1)
        local = jnp.einsum("nik,njk->nij", q, k) * fade

        def one(state, at):
            q, k, values, keys, local, total = at
            new = values - keys @ state
            out = (q * jnp.exp(total)[:, None]) @ state + local @ new
            k = k * jnp.exp(total[-1] - total)[:, None]
            return state * jnp.exp(total[-1]) + k.T @ new, out

        start = jnp.zeros((each, each))
        last, out = lax.scan(one, start, (q, k, values, keys, local, total))
        return out.reshape(-1, each), last

    def mixed(p, x):
        b, t, _ = x.shape
        y = x @ p["qkv"]
        y = lax.conv_general_dilated(
            y,
            p["conv"],
            (1,),
            [(3, 0)],
            dimension_numbers=("NWC", "WIO", "NWC"),
            feature_group_count=y.shape[-1],
        )
        q, k, v = (z.reshape(b, t, heads, each).swapaxes(1, 2) for z in jnp.split(nn.silu(y), 3, -1))
        unit = lambda z: z * lax.rsqrt(jnp.sum(z**2, -1, keepdims=True) + 1e-6)
        beta = 2 * nn.sigmoid(x @ p["beta"]).swapaxes(1, 2)
        decay = -jnp.exp(p["rate"]) * nn.softplus(x @ p["decay"] + p["shift"])
        y, last = jax.vmap(jax.vmap(rule))(unit(q) * each**-0.5, unit(k), v, beta, decay.swapaxes(1, 2))
        y = rms(y, p["inner"], 1e-6).swapaxes(1, 2).reshape(b, t, d)
        return (y * nn.silu(x @ p["gate"])) @ p["out"], last

    def loss(p, tokens):
        x = p["table"][tokens[:, :-1]]
        states = []
        for layer in p["layers"]:
            y, last = mixed(layer, rms(x, layer["norm"], 1e-6))
            x = x + y
            a, b = jnp.split(rms(x, layer["after"], 1e-6) @ layer["up"], 2, -1)
            x = x + (nn.silu(a) * b) @ layer["down"]
            states.append(jnp.linalg.norm(last, axis=(-2, -1)).mean())
        logits = rms(x, p["norm"], 1e-6) @ p["table"].T
        shrink = 1e-4 * jnp.mean(nn.logsumexp(logits, -1) ** 2)
        return labelled(logits, tokens[:, 1:]) + shrink, jnp.stack(states)

    schedule = optax.warmup_exponential_decay_schedule(1e-5, 1e-3, 100, 500, 0.9, end_value=1e-5)
    tx = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adamw(
            schedule, b2=0.95, weight_decay=0.1, mask=lambda p: jax.tree.map(lambda x: x.ndim > 1, p)
        ),
    )
    tx = optax.apply_if_finite(tx, 3)
    state = jax.eval_shape(tx.init, params)

    def step(p, ema, state, tokens):
        (value, norms), grads = jax.value_and_grad(loss, has_aux=True)(p, tokens)
        updates, state = tx.update(grads, state, p)
        p = optax.apply_updates(p, updates)
        return p, optax.incremental_update(p, ema, 0.01), state, value, norms, optax.global_norm(grads)

    return step, (params, params, state, S(4, 129, dtype=I32))
