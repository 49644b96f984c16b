"""Programs that choose: what is offered, which experts are asked, in which order to go."""

import jax
import jax.numpy as jnp
from arguments import BF16, F32, I32, KEY, U8, S, entering_when_asked, ints
from jax import lax, nn, random
from steps import linen_train

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def linen_tasks_gated_experts_ragged_bags():
    import optax
    from flax import linen

    b, fields, values, slots, d, experts, wide = 256, 5, 1200, 4096, 16, 4, 64

    class Tower(linen.Module):
        @linen.compact
        def __call__(self, x):
            x = linen.Dense(32, use_bias=False)(x)
            x = nn.silu(linen.BatchNorm(use_running_average=False, momentum=0.95)(x))
            return linen.Dense(1)(x)[:, 0]

    class Net(linen.Module):
        @linen.compact
        def __call__(self, batch):
            numbers, ids, rows, weights = batch
            tables = self.param("tables", linen.initializers.normal(0.01), (fields, slots, d))
            hashed = (ids * jnp.int32(40503) ^ (ids >> 7)) % slots

            def bag(table, at, rows, weights):
                total = lambda x: jax.ops.segment_sum(x, rows, b, indices_are_sorted=True)
                found = table[at] * weights[:, None]
                return total(found) / jnp.maximum(total(weights), 1e-3)[:, None]

            bags = jax.vmap(bag, (0, 0, 0, 0), 1)(tables, hashed, rows, weights)
            told = jnp.sign(numbers) * jnp.log1p(jnp.abs(numbers))
            told = linen.LayerNorm()(linen.Dense(d)(told))
            fields_all = jnp.concatenate([bags, told[:, None]], 1)
            pairs = 0.5 * jnp.sum(fields_all.sum(1) ** 2 - jnp.sum(fields_all**2, 1), -1)
            x = start = fields_all.reshape(b, -1)
            for _ in range(2):
                x = start * linen.Dense(x.shape[-1])(x) + x
            many = self.param("experts", linen.initializers.lecun_normal(), (experts, x.shape[-1], wide))
            shared = nn.gelu(jnp.einsum("bi,eio->beo", x, many))
            out = []
            for _ in range(2):
                gate = nn.softmax(linen.Dense(experts)(x) + linen.Dense(experts)(linen.tanh(told)))
                out.append(Tower()(jnp.einsum("be,beo->bo", gate, shared)) + pairs)
            return jnp.stack(out), jnp.mean(tables[:, :64] ** 2)

    def loss(out, clicked, bought):
        (click, buy), size = out
        both = nn.log_sigmoid(click) + nn.log_sigmoid(buy)
        neither = jnp.log1p(-jnp.minimum(jnp.exp(both), 1 - 1e-6))
        first = optax.sigmoid_binary_cross_entropy(click, clicked)
        second = -(4 * bought * both + (1 - bought) * neither)
        return jnp.mean(first + second) + 1e-3 * size

    kinds = lambda p: {k: "table" if k == "tables" else "net" for k in p}
    net = optax.chain(optax.clip_by_global_norm(10.0), optax.adam(optax.exponential_decay(1e-3, 1000, 0.9)))
    tx = optax.multi_transform({"table": optax.adagrad(0.05), "net": net}, kinds)
    ragged = ints(fields, values), ints(fields, values), S(fields, values)
    return linen_train(Net(), tx, loss, (S(b, 8), *ragged), S(b), S(b))


@program
def routed_experts_four_bits_decode_bf16():
    b, d, heads, groups, size, window, experts, wide, vocab, block = 8, 256, 8, 2, 32, 128, 4, 512, 1024, 64

    def packed(i, o):
        per = S(i // block, o, dtype=BF16)
        return {"bits": S(i // 2, o, dtype=U8), "scale": per, "low": per}

    def full(w):
        low, high = w["bits"] & 15, w["bits"] >> 4
        bits = jnp.stack([low, high], -2).reshape(-1, w["bits"].shape[-1]).astype(BF16)
        bits = bits.reshape(-1, block, bits.shape[-1])
        return (bits * w["scale"][:, None] + w["low"][:, None]).reshape(-1, bits.shape[-1])

    def norm(x, g):
        wide = x.astype(F32)
        wide = wide * lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-5)
        return (wide * (1 + g)).astype(x.dtype)

    def turned(x, at):
        waves = 10000.0 ** (-jnp.arange(0, size, 2) / size)
        angle = at[:, None, None] * waves
        a, c = jnp.split(x.astype(F32), 2, -1)
        sin, cos = jnp.sin(angle), jnp.cos(angle)
        return jnp.concatenate([a * cos - c * sin, c * cos + a * sin], -1).astype(x.dtype)

    def attend(p, x, cache, at):
        q = turned((x @ full(p["q"])).reshape(b, heads, size), at)
        k, v = jnp.split((x @ full(p["kv"])).reshape(b, 2 * groups, size), 2, 1)
        k = turned(k, at)
        here = at % window
        each = jnp.arange(b)
        kept = {}
        for name, new in ("k", k), ("v", v):
            most = jnp.max(jnp.abs(new).astype(F32), -1, keepdims=True) / 127 + 1e-8
            whole = jnp.round(new / most).astype(jnp.int8)
            kept[name] = cache[name].at[each, here].set(whole)
            kept[name + "s"] = cache[name + "s"].at[each, here].set(most[..., 0].astype(BF16))
        wide = {n: kept[n].astype(BF16) * kept[n + "s"][..., None] for n in ("k", "v")}
        q = q.reshape(b, groups, heads // groups, size)
        score = jnp.einsum("bghd,btgd->bght", q, wide["k"]).astype(F32) * size**-0.5
        score = 30 * jnp.tanh(score / 30)
        seen = jnp.arange(window) <= at[:, None]
        score = jnp.where(seen[:, None, None], score, -1e30)
        top = jnp.maximum(score.max(-1, keepdims=True), p["sink"][None, :, :, None])
        e = jnp.exp(score - top)
        share = e / (e.sum(-1, keepdims=True) + jnp.exp(p["sink"][None, :, :, None] - top))
        out = jnp.einsum("bght,btgd->bghd", share.astype(BF16), wide["v"])
        return out.reshape(b, -1) @ full(p["o"]), kept

    def ask(p, x):
        score = x.astype(F32) @ p["route"]
        best, who = lax.top_k(nn.sigmoid(score) + p["shift"], 2)
        share = jnp.take_along_axis(nn.sigmoid(score), who, 1)
        share = share / share.sum(1, keepdims=True)
        flat = who.reshape(-1)
        order = jnp.argsort(flat)
        rows = x[order // 2]
        mine = flat[order][:, None] == jnp.arange(experts)

        def expert(total, at):
            w, mine = at
            up, gate = jnp.split(rows @ full(w["up"]), 2, -1)
            y = (nn.silu(gate.astype(F32)).astype(BF16) * up) @ full(w["down"])
            return total + jnp.where(mine[:, None], y, 0), None

        y, _ = lax.scan(expert, jnp.zeros_like(rows), (p["experts"], mine.T))
        y = jnp.zeros((2 * b, d), BF16).at[order].set(y, unique_indices=True)
        return jnp.einsum("bkd,bk->bd", y.reshape(b, 2, d), share.astype(BF16)), best

    def decode(params, caches, tokens, at, warm, key):
        x = params["embed"][tokens] * jnp.asarray(d**0.5, BF16)
        new = []
        for p, cache in zip(params["layers"], caches):
            y, cache = attend(p, norm(x, p["g1"]), cache, at)
            x = x + norm(y, p["g2"])
            y, best = ask(p, norm(x, p["g3"]))
            x = x + y
            new.append(cache)
        logits = (norm(x, params["g"]) @ params["embed"].T).astype(F32) / warm[:, None]
        chance = nn.softmax(logits)
        logits = jnp.where(chance < 0.05 * chance.max(-1, keepdims=True), -jnp.inf, logits)
        token = random.categorical(key, logits)
        logp = jnp.take_along_axis(nn.log_softmax(logits), token[:, None], 1)[:, 0]
        return token.astype(I32), logp, new, at + 1, best.mean()

    many = lambda w: jax.tree.map(lambda s: S(experts, *s.shape, dtype=s.dtype), w)
    layer = {
        "q": packed(d, heads * size),
        "kv": packed(d, 2 * groups * size),
        "o": packed(heads * size, d),
        "sink": S(groups, heads // groups),
        "route": S(d, experts),
        "shift": S(experts),
        "experts": many({"up": packed(d, 2 * wide), "down": packed(wide, d)}),
        **{g: S(d) for g in ("g1", "g2", "g3")},
    }
    kept = S(b, window, groups, size, dtype=jnp.int8)
    scales = S(b, window, groups, dtype=BF16)
    cache = {"k": kept, "v": kept, "ks": scales, "vs": scales}
    params = {"embed": S(vocab, d, dtype=BF16), "layers": [layer] * 2, "g": S(d)}
    return decode, (params, [cache] * 2, ints(b), ints(b), S(b), KEY)


@program
def haiku_tours_pointed_reinforce():
    import haiku as hk
    import optax

    b, n, d, heads = 64, 20, 64, 4
    size = d // heads

    def encode(places):
        x = hk.Linear(d)(places)
        for i in range(2):
            q, k, v = (hk.Linear(d, False, name=f"{s}{i}")(x).reshape(b, n, heads, size) for s in "qkv")
            share = nn.softmax(jnp.einsum("bihd,bjhd->bhij", q, k) * size**-0.5)
            y = jnp.einsum("bhij,bjhd->bihd", share, v).reshape(b, n, d)
            x = hk.BatchNorm(True, True, 0.9, name=f"n{i}")(x + hk.Linear(d)(y), True)
            y = hk.Linear(d)(nn.relu(hk.Linear(2 * d)(x)))
            x = hk.BatchNorm(True, True, 0.9, name=f"m{i}")(x + y, True)
        return x

    def net(places, greedy):
        x = encode(places)
        glance = hk.Linear(3 * d, False)(x)
        key, value, point = jnp.split(glance, 3, -1)
        fixed = hk.Linear(d, False)(x.mean(1))
        step = hk.Linear(d, False)
        begin = hk.get_parameter("begin", (2 * d,), init=hk.initializers.RandomUniform(-1, 1))
        out = hk.Linear(d, False)
        step(jnp.zeros((b, 2 * d))), out(jnp.zeros((b, d)))
        weights = step.params_dict(), out.params_dict()
        step_w, out_w = (next(iter(w.values())) for w in weights)

        def one(carry, k):
            gone, first, last, i = carry
            told = jnp.where(i == 0, begin, jnp.concatenate([first, last], -1))
            q = (fixed + told @ step_w).reshape(b, heads, size)
            score = jnp.einsum("bhd,bnhd->bhn", q, key.reshape(b, n, heads, size)) * size**-0.5
            score = jnp.where(gone[:, None], -1e9, score)
            seen = jnp.einsum("bhn,bnhd->bhd", nn.softmax(score), value.reshape(b, n, heads, size))
            logits = jnp.einsum("bd,bnd->bn", seen.reshape(b, d) @ out_w, point) * d**-0.5
            logits = jnp.where(gone, -1e9, 10 * jnp.tanh(logits))
            go = jnp.where(greedy, logits.argmax(-1), random.categorical(k, logits))
            logp = jnp.take_along_axis(nn.log_softmax(logits), go[:, None], 1)[:, 0]
            there = jnp.take_along_axis(x, go[:, None, None], 1)[:, 0]
            gone = gone | nn.one_hot(go, n, dtype=bool)
            return (gone, jnp.where(i == 0, there, first), there, i + 1), (go, logp)

        start = jnp.zeros((b, n), bool), jnp.zeros((b, d)), jnp.zeros((b, d)), 0
        _, (tour, logp) = lax.scan(one, start, random.split(hk.next_rng_key(), n))
        along = jnp.take_along_axis(places, tour.T[..., None], 1)
        far = jnp.linalg.norm(along - jnp.roll(along, -1, 1), axis=-1).sum(1)
        return lax.stop_gradient(far), logp.sum(0)

    model = hk.transform_with_state(net)
    params, stats = jax.eval_shape(model.init, KEY, S(b, n, 2), S(dtype=bool))
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-4))

    def step(params, stats, state, base, key, wins):
        k1, k2, k3 = random.split(key, 3)
        places = random.uniform(k1, (b, n, 2))
        (usual, _), _ = model.apply(base, stats, k2, places, True)

        def objective(params):
            (far, logp), new = model.apply(params, stats, k3, places, False)
            return jnp.mean((far - usual) * logp), (new, far)

        (value, (new, far)), grads = jax.value_and_grad(objective, has_aux=True)(params)
        updates, state = tx.update(grads, state, params)
        params = optax.apply_updates(params, updates)
        better = far.mean() < usual.mean() - 1.96 * jnp.std(far - usual) / b**0.5
        wins = jnp.where(better, wins + 1, 0)
        base = jax.tree.map(lambda p, q: jnp.where(wins >= 3, p, q), params, base)
        return params, new, state, base, wins, (value, far.mean(), usual.mean())

    state = jax.eval_shape(tx.init, params)
    return step, (params, stats, state, params, KEY, ints())
