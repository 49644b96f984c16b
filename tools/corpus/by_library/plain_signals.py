"""Programs of no library but JAX on frames and sound: motion between two, and words heard."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from arguments import BF16, F32, KEY, S, entering_when_asked, ints
from convolutions import IMAGE, convolve
from jax import lax, nn, random
from steps import labelled

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def recurrent_flow_correlation_step():
    import optax

    features, hidden, radius, rounds, levels = 48, 32, 2, 4, 2
    conv = lambda k, i, o: {"w": S(*k, i, o), "b": S(o)}
    threes, ones = (3, 3), (1, 1)
    encoder = [conv((5, 5), 3, 24), conv(threes, 24, 32), conv(threes, 32, 48), conv(ones, 48, features)]
    seen = levels * (2 * radius + 1) ** 2
    params = {"features": encoder, "context": [*encoder[:3], conv(ones, 48, 2 * hidden)]}
    params |= {"corr": conv(ones, seen, 32), "flow": conv(threes, 2, 16), "motion": conv(threes, 48, 30)}
    params |= {"gru": [{g: conv(k, 2 * hidden + 32, hidden) for g in "zrq"} for k in ((1, 5), (5, 1))]}
    params |= {"head": [conv(threes, hidden, 32), conv(threes, 32, 2)]}
    params |= {"mask": [conv(threes, hidden, 32), conv(ones, 32, 16 * 9)]}

    def layer(p, x, stride=1):
        return convolve(x, p["w"].astype(x.dtype), stride) + p["b"].astype(x.dtype)

    def encode(p, x, normal):
        for i, w in enumerate(p[:3]):
            x = layer(w, x, 2 if i < 2 else 1)
            if normal:
                wide = x.astype(F32)
                mean, var = wide.mean((1, 2), keepdims=True), wide.var((1, 2), keepdims=True)
                x = ((wide - mean) * lax.rsqrt(var + 1e-5)).astype(x.dtype)
            x = nn.relu(x)
        return layer(p[3], x)

    def look(volume, places):
        """Bilinear reading of [h, w] at [n, 2], nothing outside."""
        h, w = volume.shape
        low = jnp.floor(places)
        part = places - low
        total = 0.0
        for dy in (0, 1):
            for dx in (0, 1):
                x, y = low[:, 0] + dx, low[:, 1] + dy
                inside = (x >= 0) & (x < w) & (y >= 0) & (y < h)
                at = jnp.clip(y, 0, h - 1).astype(jnp.int32), jnp.clip(x, 0, w - 1).astype(jnp.int32)
                weight = (part[:, 0] if dx else 1 - part[:, 0]) * (part[:, 1] if dy else 1 - part[:, 1])
                total = total + jnp.where(inside, weight * volume[at], 0.0)
        return total

    span = np.arange(-radius, radius + 1, dtype=np.float32)
    around = np.stack(np.meshgrid(span, span), -1).reshape(-1, 2)

    def gated(p, h, x):
        for w in p:
            both = jnp.concatenate([h, x], -1)
            z, r = nn.sigmoid(layer(w["z"], both)), nn.sigmoid(layer(w["r"], both))
            q = jnp.tanh(layer(w["q"], jnp.concatenate([r * h, x], -1)))
            h = (1 - z) * h + z * q
        return h

    def finer(flow, mask):
        b, h, w, _ = flow.shape
        mask = nn.softmax(mask.reshape(b, h, w, 9, 4, 4), 3)
        parts = lax.conv_general_dilated_patches(4 * flow, threes, (1, 1), "SAME", dimension_numbers=IMAGE)
        parts = parts.reshape(b, h, w, 2, 9)
        return jnp.einsum("bhwkyx,bhwck->bhywxc", mask, parts).reshape(b, 4 * h, 4 * w, 2)

    def flows(p, one, two):
        b = one.shape[0]
        both = encode(p["features"], jnp.concatenate([one, two]).astype(BF16), True).astype(F32)
        a, c = jnp.split(both, 2)
        h, w = a.shape[1:3]
        volume = jnp.einsum("bhwc,bijc->bhwij", a, c) / math.sqrt(features)
        volume = volume.reshape(-1, h, w)
        pyramid = [volume]
        for _ in range(levels - 1):
            coarse = lax.reduce_window(pyramid[-1], 0.0, lax.add, (1, 2, 2), (1, 2, 2), "VALID")
            pyramid.append(coarse / 4)
        context = encode(p["context"], one.astype(BF16), False)
        state, context = jnp.tanh(context[..., :hidden]), nn.relu(context[..., hidden:])
        grid = jnp.stack(jnp.meshgrid(jnp.arange(w), jnp.arange(h)), -1).astype(F32)

        @jax.checkpoint
        def round_(carry, _):
            state, place = carry
            place = lax.stop_gradient(place)
            centres = place.reshape(-1, 1, 2)
            read = [jax.vmap(look)(v, centres / 2**i + around) for i, v in enumerate(pyramid)]
            read = jnp.concatenate(read, -1).reshape(b, h, w, -1).astype(BF16)
            flow = place - grid
            x = [nn.relu(layer(p["corr"], read)), nn.relu(layer(p["flow"], flow.astype(BF16)))]
            x = nn.relu(layer(p["motion"], jnp.concatenate(x, -1)))
            x = jnp.concatenate([context, x, flow.astype(BF16)], -1)
            state = gated(p["gru"], state, x)
            step = layer(p["head"][1], nn.relu(layer(p["head"][0], state)))
            place = place + step.astype(F32)
            mask = 0.25 * layer(p["mask"][1], nn.relu(layer(p["mask"][0], state)))
            return (state, place), finer(place - grid, mask.astype(F32))

        start = jnp.broadcast_to(grid, (b, h, w, 2))
        return lax.scan(round_, (state, start), None, length=rounds)[1]

    def loss(p, one, two, flow, valid):
        guesses = flows(p, one / 127.5 - 1, two / 127.5 - 1)
        valid = valid & (jnp.linalg.norm(flow, axis=-1) < 400)
        weight = 0.8 ** jnp.arange(rounds - 1, -1, -1)
        each = jnp.abs(guesses - flow).mean(-1)
        each = jnp.where(valid, each, 0.0).mean((1, 2, 3))
        far = jnp.sqrt(jnp.sum((guesses[-1] - flow) ** 2, -1) + 1e-12)
        count = jnp.maximum(valid.sum(), 1)
        share = lambda z: jnp.sum(jnp.where(valid, z, 0.0)) / count
        return weight @ each, (share(far), share(far < 1), share(far < 3))

    tx = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adamw(optax.linear_onecycle_schedule(1000, 4e-4, 0.05), weight_decay=1e-4, eps=1e-8),
    )
    state = jax.eval_shape(tx.init, params)

    def step(p, state, key, one, two, flow, valid):
        k1, k2 = random.split(key)
        noise = random.uniform(k1, (), maxval=5.0)
        one, two = (
            jnp.clip(x.astype(F32) + noise * random.normal(k, x.shape), 0, 255)
            for x, k in zip((one, two), random.split(k2))
        )
        (value, more), grads = jax.value_and_grad(loss, has_aux=True)(p, one, two, flow, valid)
        updates, state = tx.update(grads, state, p)
        return optax.apply_updates(p, updates), state, value, more

    u8 = S(2, 48, 64, 3, dtype=jnp.uint8)
    return step, (params, state, KEY, u8, u8, S(2, 48, 64, 2), S(2, 48, 64, dtype=bool))


@program
def keyword_spotting_soap_step():
    frame, hop, mels, d, classes, rate = 400, 160, 40, 48, 12, 16000
    block = {"wide": S(9, 1, d), "point": S(d, d), "scales": S(4, d)}
    params = {
        "in": S(3, mels, d),
        "blocks": [block] * 2,
        "query": S(d),
        "out": S(2 * d, classes),
        "b": S(classes),
    }
    tone = lambda hz: 2595 * np.log10(1 + hz / 700)
    ends = 700 * (10 ** (np.linspace(tone(60), tone(7600), mels + 2) / 2595) - 1)
    bins = np.linspace(0, rate / 2, frame // 2 + 1)[:, None]
    up, down = (bins - ends[:-2]) / np.diff(ends)[:-1], (ends[2:] - bins) / np.diff(ends)[1:]
    bank = np.maximum(0, np.minimum(up, down)).astype(np.float32)
    matrix = lambda x: x.ndim == 2 and x.shape[0] > 8 and x.shape[1] > 8
    flat = lambda x: x.reshape(-1, x.shape[-1]) if x.ndim == 3 and x.shape[1] > 1 else x

    def spectra(sound):
        sound = sound - 0.97 * jnp.pad(sound, ((0, 0), (1, 0)))[:, :-1]
        at = np.arange(0, sound.shape[1] - frame + 1, hop)[:, None] + np.arange(frame)
        power = jnp.abs(jnp.fft.rfft(sound[:, at] * np.hanning(frame).astype(np.float32))) ** 2
        x = jnp.log(power @ bank + 1e-6)
        return (x - x.mean(1, keepdims=True)) / (x.std(1, keepdims=True) + 1e-5)

    def spoiled(key, sound):
        kind, k1, k2 = random.split(key, 3)
        shift = random.randint(k1, (sound.shape[0],), -1600, 1600)
        sound = jax.vmap(jnp.roll)(sound, shift)

        def noisy(x):
            return x + 0.05 * jnp.std(x, -1, keepdims=True) * random.normal(k2, x.shape)

        def echo(x):
            line = jnp.exp(-jnp.arange(400) / 80.0) * random.normal(k2, (400,))
            line = line.at[0].set(1.0)
            size = x.shape[1] + 512
            return jnp.fft.irfft(jnp.fft.rfft(x, size) * jnp.fft.rfft(line, size), size)[:, : x.shape[1]]

        def slow(x):
            n = x.shape[1]
            at = jnp.arange(n) * random.uniform(k2, (), minval=0.9, maxval=1.1)
            return jax.vmap(lambda x: jnp.interp(at, jnp.arange(n), x, right=0.0))(x)

        return lax.switch(random.randint(kind, (), 0, 4), [lambda x: x, noisy, echo, slow], sound)

    def masked(key, x):
        k = random.split(key, 4)
        for axis, most, a, b in ((1, 20, k[0], k[1]), (2, 8, k[2], k[3])):
            size = random.randint(a, (x.shape[0], 1), 0, most)
            first = random.randint(b, (x.shape[0], 1), 0, x.shape[axis] - most)
            line = jnp.arange(x.shape[axis])
            hidden = (line >= first) & (line < first + size)
            x = jnp.where(hidden[:, :, None] if axis == 1 else hidden[:, None], 0.0, x)
        return x

    def net(p, x):
        conv = lambda x, w, stride, groups: lax.conv_general_dilated(
            x, w, (stride,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"), feature_group_count=groups
        )

        def norm(x, scale, shift):
            mean, var = x.mean((0, 1)), x.var((0, 1))
            return (x - mean) * lax.rsqrt(var + 1e-5) * scale + shift

        x = nn.relu(conv(x, p["in"], 2, 1))
        for w in p["blocks"]:
            s = w["scales"]
            y = norm(conv(x, w["wide"], 1, d), s[0], s[1])
            x = x + nn.hard_swish(norm(y @ w["point"], s[2], s[3]))
        weight = nn.softmax(jnp.tanh(x) @ p["query"], 1)[..., None]
        mean = jnp.sum(weight * x, 1)
        spread = jnp.sqrt(jnp.maximum(jnp.sum(weight * x**2, 1) - mean**2, 1e-6))
        return jnp.concatenate([mean, spread], -1) @ p["out"] + p["b"]

    def basis(stat, old):
        """Eigenvectors followed with one power step and a QR, the largest first."""
        order = jnp.argsort(-jnp.einsum("ij,ik,kj->j", old, stat, old))
        return jnp.linalg.qr(stat @ old[:, order])[0], order

    def update(at, p, m, v, sides, g):
        m = 0.95 * m + 0.05 * g
        if sides is None:
            v = 0.95 * v + 0.05 * g**2
            return 3e-3 * m / (jnp.sqrt(v) + 1e-8), m, v, None
        left, right, a, b = sides
        g2, m2 = flat(g), flat(m)
        v = 0.95 * v + 0.05 * (a.T @ g2 @ b) ** 2
        turned = a.T @ m2 @ b / (jnp.sqrt(v) + 1e-8)
        move = 3e-3 * (a @ turned @ b.T)
        left, right = 0.95 * left + 0.05 * g2 @ g2.T, 0.95 * right + 0.05 * g2.T @ g2

        def again(_):
            one, rows = basis(left, a)
            two, columns = basis(right, b)
            return one, two, v[rows][:, columns]

        def whole(_):
            return jnp.linalg.eigh(left)[1][:, ::-1], jnp.linalg.eigh(right)[1][:, ::-1], v

        when = jnp.where(at == 0, 2, jnp.where(at % 10 == 0, 1, 0))
        a, b, v = lax.switch(when, [lambda _: (a, b, v), again, whole], None)
        return move.reshape(p.shape), m, v, (left, right, a, b)

    def step(at, p, state, key, sound, label):
        k1, k2 = random.split(key)
        x = masked(k2, spectra(spoiled(k1, sound.astype(F32) / 32768)))

        def loss(p):
            logits = net(p, x)
            sure = jnp.mean(jnp.sum(nn.softmax(logits) * nn.log_softmax(logits), -1))
            return labelled(logits, label) + 0.05 * sure, jnp.mean(logits.argmax(-1) == label)

        (value, right), grads = jax.value_and_grad(loss, has_aux=True)(p)
        leaves, tree = jax.tree.flatten(p)
        moved, after = [], []
        for w, old, g in zip(leaves, state, jax.tree.leaves(grads)):
            move, *new = update(at, w, *old, g)
            moved.append(w - jnp.where(at == 0, 0.0, move) - 1e-4 * w)
            after.append(tuple(new))
        return at + 1, jax.tree.unflatten(tree, moved), after, value, right

    state = []
    for w in jax.tree.leaves(params):
        x = jax.eval_shape(flat, w)
        sides = (S(x.shape[0], x.shape[0]), S(x.shape[1], x.shape[1])) * 2 if matrix(x) else None
        state.append((w, x if sides else w, sides))
    return step, (ints(), params, state, KEY, S(8, rate, dtype=jnp.int16), ints(8))
