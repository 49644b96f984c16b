"""Programs like models: whole steps of training, inference and control, with few layers.

As in programs.py each entry of PROGRAMS is name -> (function, abstract arguments), to be compiled and never
run. Where it means something a program is there in f32 and in bf16.
"""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
from arguments import BF16, F32, I32, KEY, S, entering, ints
from jax import lax, nn, random

PROGRAMS = {}
program = entering(PROGRAMS)


def both(*args, types=(F32, BF16), name=None):
    """The same program in several types: `args` are functions of the type, or plain arguments."""

    def add(fn):
        for dt in types:
            a = [x(dt) if callable(x) else x for x in args]
            PROGRAMS[f"{name or fn.__name__}_{'f32' if dt == F32 else 'bf16'}"] = (fn, a)
        return fn

    return add


# ------------------------------------------------------------------ optimizers
def sgd(params, grads, lr=0.1, decay=1e-4):
    return jax.tree.map(lambda p, g: p - (lr * (g + decay * p)).astype(p.dtype), params, grads)


def momentum(params, moms, grads, lr=0.1, mu=0.9):
    moms = jax.tree.map(lambda m, g: mu * m + g, moms, grads)
    return jax.tree.map(lambda p, m: p - (lr * m).astype(p.dtype), params, moms), moms


def clip(grads, norm=1.0):
    total = jnp.sqrt(sum(jnp.sum(jnp.square(g.astype(F32))) for g in jax.tree.leaves(grads)))
    scale = jnp.minimum(1.0, norm / (total + 1e-6))
    return jax.tree.map(lambda g: (g * scale).astype(g.dtype), grads)


def adam(params, state, grads, step, lr=1e-3, b1=0.9, b2=0.999, eps=1e-8, decay=0.01):
    m, v = state
    m = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, m, grads)
    v = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, v, grads)
    c1, c2 = 1 - b1**step, 1 - b2**step

    def update(p, m, v):
        return (p - lr * (m / c1 / (jnp.sqrt(v / c2) + eps) + decay * p)).astype(p.dtype)

    return jax.tree.map(update, params, m, v), (m, v)


def factored(params, state, grads, step):
    """Adafactor: factored second moments of matrices, updates clipped by their root mean square."""
    rho = 1 - step**-0.8

    def one(p, s, g):
        g2 = g * g + 1e-30
        if p.ndim < 2:
            v = rho * s[0] + (1 - rho) * g2
            u, new = g * lax.rsqrt(v), (v,)
        else:
            r = rho * s[0] + (1 - rho) * g2.mean(-1)
            c = rho * s[1] + (1 - rho) * g2.mean(-2)
            u = g * lax.rsqrt(r / r.mean(-1, keepdims=True))[..., None] * lax.rsqrt(c)[..., None, :]
            new = (r, c)
        u = u / jnp.maximum(1.0, jnp.sqrt(jnp.mean(u * u)))
        return p - 0.01 * jnp.maximum(1e-3, jnp.sqrt(jnp.mean(p * p))) * u, new

    leaves, tree = jax.tree.flatten(params)
    out = [one(p, s, g) for p, s, g in zip(leaves, state, jax.tree.leaves(grads))]
    return jax.tree.unflatten(tree, [o[0] for o in out]), [o[1] for o in out]


def factored_state(params):
    return [
        (S(*p.shape[:-1]), S(*p.shape[:-2], p.shape[-1])) if len(p.shape) > 1 else (S(*p.shape),)
        for p in jax.tree.leaves(params)
    ]


def like(tree, dtype=None):
    return jax.tree.map(lambda s: S(*s.shape, dtype=dtype or s.dtype), tree)


# ------------------------------------------------------------------ parts
def layer_norm(x, g, b, eps=1e-5):
    x32 = x.astype(F32)
    mean = x32.mean(-1, keepdims=True)
    var = ((x32 - mean) ** 2).mean(-1, keepdims=True)
    return ((x32 - mean) * lax.rsqrt(var + eps)).astype(x.dtype) * g + b


def rms_norm(x, g, eps=1e-6):
    x32 = x.astype(F32)
    y = x32 * lax.rsqrt(jnp.mean(x32 * x32, axis=-1, keepdims=True) + eps)
    return (y * (1 + g.astype(F32))).astype(x.dtype)


def dense(x, p):
    return x @ p["w"] + p["b"]


def lin(i, o, dt=F32):
    return {"w": S(i, o, dtype=dt), "b": S(o, dtype=dt)}


def dropout(key, x, rate=0.1):
    keep = random.bernoulli(key, 1 - rate, x.shape)
    return jnp.where(keep, x / (1 - rate), 0).astype(x.dtype)


def cross_entropy(logits, labels):
    logp = nn.log_softmax(logits.astype(F32))
    return -jnp.take_along_axis(logp, labels[..., None], axis=-1).mean()


def smoothed(logits, labels, eps=0.1):
    n = logits.shape[-1]
    target = nn.one_hot(labels, n) * (1 - eps) + eps / n
    return -(target * nn.log_softmax(logits.astype(F32))).sum(-1).mean()


def rope(x, pos, base=10000.0):
    half = x.shape[-1] // 2
    freq = base ** (-jnp.arange(half, dtype=F32) / half)
    angle = pos[..., None].astype(F32) * freq
    sin, cos = jnp.sin(angle)[..., None, :], jnp.cos(angle)[..., None, :]
    a, b = x[..., :half].astype(F32), x[..., half:].astype(F32)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1).astype(x.dtype)


def heads(x, n):
    return x.reshape(*x.shape[:-1], n, -1)


# ------------------------------------------------------------------ convolutional networks
def conv(x, w, stride=1, groups=1):
    return lax.conv_general_dilated(
        x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups
    )


def batch_norm(x, p, eps=1e-5):
    x32 = x.astype(F32)
    mean = x32.mean((0, 1, 2))
    var = jnp.maximum((x32 * x32).mean((0, 1, 2)) - mean * mean, 0)
    y = (x32 - mean) * (lax.rsqrt(var + eps) * p["g"]) + p["b"]
    stats = {"mean": 0.9 * p["mean"] + 0.1 * mean, "var": 0.9 * p["var"] + 0.1 * var}
    return y.astype(x.dtype), stats


def bn(c):
    return {k: S(c) for k in ("g", "b", "mean", "var")}


def bottleneck_params(i, m, o, dt):
    p = {
        "c1": S(1, 1, i, m, dtype=dt),
        "c2": S(3, 3, m, m, dtype=dt),
        "c3": S(1, 1, m, o, dtype=dt),
        "n1": bn(m),
        "n2": bn(m),
        "n3": bn(o),
    }
    if i != o:
        p |= {"cs": S(1, 1, i, o, dtype=dt), "ns": bn(o)}
    return p


def bottleneck(x, p, stride, stats):
    y, s1 = batch_norm(conv(x, p["c1"]), p["n1"])
    y, s2 = batch_norm(conv(nn.relu(y), p["c2"], stride), p["n2"])
    y, s3 = batch_norm(conv(nn.relu(y), p["c3"]), p["n3"])
    stats += [s1, s2, s3]
    if "cs" in p:
        x, s = batch_norm(conv(x, p["cs"], stride), p["ns"])
        stats.append(s)
    return nn.relu(x + y)


def resnet_params(dt):
    return {
        "stem": S(7, 7, 3, 64, dtype=dt),
        "bn": bn(64),
        "b1": bottleneck_params(64, 64, 256, dt),
        "b2": bottleneck_params(256, 64, 256, dt),
        "b3": bottleneck_params(256, 128, 512, dt),
        "head": lin(512, 1000, dt),
    }


def resnet(p, x):
    stats = []
    y, s = batch_norm(conv(x, p["stem"], 2), p["bn"])
    stats.append(s)
    y = lax.reduce_window(nn.relu(y), -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    for k, stride in (("b1", 1), ("b2", 1), ("b3", 2)):
        y = bottleneck(y, p[k], stride, stats)
    return dense(y.mean((1, 2)), p["head"]), stats


@both(resnet_params, resnet_params, lambda dt: S(32, 224, 224, 3, dtype=dt), ints(32))
def resnet50_train(p, m, x, y):
    (loss, stats), g = jax.value_and_grad(
        lambda p: (lambda o: (cross_entropy(o[0], y), o[1]))(resnet(p, x)), has_aux=True
    )(p)
    p, m = momentum(p, m, g)
    return p, m, loss, stats


@program(resnet_params(F32), S(8, 224, 224, 3))
def resnet50_infer(p, x):
    def norm(x, q):
        return (x - q["mean"]) * (q["g"] * lax.rsqrt(q["var"] + 1e-5)) + q["b"]

    y = nn.relu(norm(conv(x, p["stem"], 2), p["bn"]))
    y = lax.reduce_window(y, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    for k, stride in (("b1", 1), ("b2", 1), ("b3", 2)):
        q, x = p[k], y
        y = nn.relu(norm(conv(x, q["c1"]), q["n1"]))
        y = nn.relu(norm(conv(y, q["c2"], stride), q["n2"]))
        y = norm(conv(y, q["c3"]), q["n3"])
        y = nn.relu(y + (norm(conv(x, q["cs"], stride), q["ns"]) if "cs" in q else x))
    return nn.softmax(dense(y.mean((1, 2)), p["head"]))


def mobile_params(dt):
    def block(i, t, o):
        p = {
            "dw": S(3, 3, 1, i * t, dtype=dt),
            "n2": bn(i * t),
            "pj": S(1, 1, i * t, o, dtype=dt),
            "n3": bn(o),
        }
        return p | ({"ex": S(1, 1, i, i * t, dtype=dt), "n1": bn(i * t)} if t > 1 else {})

    return {
        "stem": S(3, 3, 3, 32, dtype=dt),
        "n": bn(32),
        "b1": block(32, 1, 16),
        "b2": block(16, 6, 24),
        "b3": block(24, 6, 24),
        "last": S(1, 1, 24, 320, dtype=dt),
        "nl": bn(320),
        "head": lin(320, 1000, dt),
    }


def mobile(p, x):
    stats = []

    def norm(x, q):
        y, s = batch_norm(x, q)
        stats.append(s)
        return y

    y = nn.relu6(norm(conv(x, p["stem"], 2), p["n"]))
    for k, stride, skip in (("b1", 1, False), ("b2", 2, False), ("b3", 1, True)):
        q, x = p[k], y
        if "ex" in q:
            y = nn.relu6(norm(conv(y, q["ex"]), q["n1"]))
        y = nn.relu6(norm(conv(y, q["dw"], stride, groups=y.shape[-1]), q["n2"]))
        y = norm(conv(y, q["pj"]), q["n3"])
        y = x + y if skip else y
    y = nn.relu6(norm(conv(y, p["last"]), p["nl"]))
    return dense(y.mean((1, 2)), p["head"]), stats


@both(
    mobile_params,
    lambda dt: (mobile_params(dt), mobile_params(dt)),
    lambda dt: S(16, 96, 96, 3, dtype=dt),
    ints(16),
    S(),
)
def mobilenet_v2_train(p, s, x, y, step):
    (loss, stats), g = jax.value_and_grad(
        lambda p: (lambda o: (smoothed(o[0], y), o[1]))(mobile(p, x)), has_aux=True
    )(p)
    p, s = adam(p, s, g, step)
    return p, s, loss, stats


# ------------------------------------------------------------------ decoders
def gemma_params(dt, layers, stack=False, d=512, h=8, kv=2, hd=64, ff=1024, vocab=2048):
    def w(*s):
        return S(*((layers,) if stack else ()), *s, dtype=dt)

    layer = lambda: {
        "ln1": w(d),
        "q": w(d, h * hd),
        "k": w(d, kv * hd),
        "v": w(d, kv * hd),
        "o": w(h * hd, d),
        "ln2": w(d),
        "gate": w(d, ff),
        "up": w(d, ff),
        "down": w(ff, d),
        "qn": w(hd),
        "kn": w(hd),
    }
    return {
        "emb": S(vocab, d, dtype=dt),
        "layers": layer() if stack else [layer() for _ in range(layers)],
        "ln": S(d, dtype=dt),
    }


def gqa(q, k, v, mask, cap=50.0):
    b, t, h, d = q.shape
    g = h // k.shape[2]
    q = q.reshape(b, t, k.shape[2], g, d) * d**-0.5
    s = jnp.einsum("btkgd,bskd->bkgts", q, k).astype(F32)
    s = jnp.tanh(s / cap) * cap
    s = jnp.where(mask, s, -2.3819763e38)
    return jnp.einsum("bkgts,bskd->btkgd", nn.softmax(s, -1).astype(v.dtype), v).reshape(b, t, h * d)


def gemma_layer(x, p, pos, mask, cache=None, at=None):
    h = rms_norm(x, p["ln1"])
    hd = p["qn"].shape[-1]
    q = rope(rms_norm(heads(h @ p["q"], p["q"].shape[-1] // hd), p["qn"]), pos)
    k = rope(rms_norm(heads(h @ p["k"], p["k"].shape[-1] // hd), p["kn"]), pos)
    v = heads(h @ p["v"], p["v"].shape[-1] // hd)
    if cache is not None:
        k = lax.dynamic_update_slice(cache[0], k, (0, at, 0, 0))
        v = lax.dynamic_update_slice(cache[1], v, (0, at, 0, 0))
    x = x + gqa(q, k, v, mask) @ p["o"]
    h = rms_norm(x, p["ln2"])
    return x + (nn.gelu(h @ p["gate"], approximate=True) * (h @ p["up"])) @ p["down"], (k, v)


def gemma_logits(p, x, cap=30.0):
    logits = (rms_norm(x, p["ln"]) @ p["emb"].T).astype(F32)
    return jnp.tanh(logits / cap) * cap


def causal(t):
    return jnp.tril(jnp.ones((t, t), bool))


def gemma(p, tokens, remat=False):
    x = p["emb"][tokens] * math.sqrt(p["emb"].shape[1])
    x = x.astype(p["emb"].dtype)
    t = tokens.shape[1]
    pos = jnp.broadcast_to(jnp.arange(t), tokens.shape)
    layer = lambda x, q: gemma_layer(x, q, pos, causal(t))[0]
    if remat:
        layer = jax.checkpoint(layer)
    if isinstance(p["layers"], list):
        for q in p["layers"]:
            x = layer(x, q)
    else:
        x, _ = lax.scan(lambda x, q: (layer(x, q), None), x, p["layers"])
    return gemma_logits(p, x)


def lm_step(p, s, tokens, step, apply):
    def loss(p):
        return cross_entropy(apply(p, tokens[:, :-1]), tokens[:, 1:])

    value, g = jax.value_and_grad(loss)(p)
    p, s = adam(p, s, clip(g), step)
    return p, s, value


@both(lambda dt: gemma_params(dt, 2), ints(2, 256))
def gemma_prefill(p, tokens):
    x = (p["emb"][tokens] * math.sqrt(512)).astype(p["emb"].dtype)
    pos = jnp.arange(256)[None]
    caches = []
    for q in p["layers"]:
        x, c = gemma_layer(x, q, pos, causal(256))
        caches.append(c)
    return gemma_logits(p, x[:, -1:]), caches


@both(lambda dt: gemma_params(dt, 2), ints(4, 1), lambda dt: [[S(4, 512, 2, 64, dtype=dt)] * 2] * 2, ints())
def gemma_decode(p, token, caches, at):
    x = (p["emb"][token] * math.sqrt(512)).astype(p["emb"].dtype)
    mask = (jnp.arange(512) <= at)[None, None, None, None]
    new = []
    for q, c in zip(p["layers"], caches):
        x, c = gemma_layer(x, q, jnp.full((4, 1), at), mask, c, at)
        new.append(c)
    return jnp.argmax(gemma_logits(p, x), -1), new


@both(lambda dt: gemma_params(dt, 2), lambda dt: (gemma_params(F32, 2),) * 2, ints(2, 129), S())
def gemma_train(p, s, tokens, step):
    return lm_step(p, s, tokens, step, gemma)


@both(lambda dt: gemma_params(dt, 2), lambda dt: (gemma_params(F32, 2),) * 2, ints(2, 129), S())
def gemma_train_remat(p, s, tokens, step):
    return lm_step(p, s, tokens, step, functools.partial(gemma, remat=True))


@both(
    lambda dt: gemma_params(dt, 4, stack=True),
    lambda dt: (gemma_params(F32, 4, stack=True),) * 2,
    ints(2, 129),
    S(),
)
def gemma_train_scan(p, s, tokens, step):
    return lm_step(p, s, tokens, step, functools.partial(gemma, remat=True))


def llama_params(dt, layers=2, d=512, h=8, kv=4, ff=1408, vocab=4096):
    w = lambda *s: S(*s, dtype=dt)
    hd = d // h
    return {
        "emb": w(vocab, d),
        "head": w(d, vocab),
        "ln": w(d),
        "layers": [
            {
                "ln1": w(d),
                "qkv": w(d, (h + 2 * kv) * hd),
                "o": w(d, d),
                "ln2": w(d),
                "w13": w(d, 2 * ff),
                "w2": w(ff, d),
            }
            for _ in range(layers)
        ],
    }


def llama(p, tokens, h=8, kv=4):
    x = jnp.take(p["emb"], tokens, axis=0)
    b, t, d = x.shape
    hd = d // h
    cis = jnp.exp(1j * jnp.outer(jnp.arange(t), 10000.0 ** (-jnp.arange(0, hd, 2) / hd)))

    def rotate(x):
        z = x.astype(F32).reshape(*x.shape[:-1], -1, 2)
        z = lax.complex(z[..., 0], z[..., 1]) * cis[None, :, None]
        return jnp.stack([z.real, z.imag], -1).reshape(x.shape).astype(x.dtype)

    def norm(x, g):
        x32 = x.astype(F32)
        return (x32 * lax.rsqrt(jnp.mean(jnp.square(x32), -1, keepdims=True) + 1e-5)).astype(x.dtype) * g

    for q in p["layers"]:
        qkv = norm(x, q["ln1"]) @ q["qkv"]
        a, k, v = jnp.split(qkv, [h * hd, (h + kv) * hd], -1)
        a, k, v = rotate(heads(a, h)), rotate(heads(k, kv)), heads(v, kv)
        k, v = jnp.repeat(k, h // kv, 2), jnp.repeat(v, h // kv, 2)
        s = jnp.einsum("bthd,bshd->bhts", a, k) / math.sqrt(hd)
        s = jnp.where(causal(t), s, jnp.finfo(s.dtype).min)
        w = nn.softmax(s.astype(F32), -1).astype(x.dtype)
        x = x + jnp.einsum("bhts,bshd->bthd", w, v).reshape(b, t, d) @ q["o"]
        gate, up = jnp.split(norm(x, q["ln2"]) @ q["w13"], 2, -1)
        x = x + (nn.silu(gate) * up) @ q["w2"]
    return norm(x, p["ln"]) @ p["head"]


@both(llama_params, lambda dt: (llama_params(F32),) * 2, ints(2, 257), S())
def llama_train(p, s, tokens, step):
    return lm_step(p, s, tokens, step, llama)


@both(llama_params, ints(2, 256))
def llama_forward(p, tokens):
    return llama(p, tokens)


@program(llama_params(F32), factored_state(llama_params(F32)), ints(2, 257), S())
def llama_adafactor(p, s, tokens, step):
    loss, g = jax.value_and_grad(lambda p: smoothed(llama(p, tokens[:, :-1]), tokens[:, 1:]))(p)
    p, s = factored(p, s, g, step)
    return p, s, loss


@program(llama_params(BF16), ints(1, 8), KEY)
def llama_sampling(p, tokens, key):
    def step(carry, _):
        tokens, key = carry
        key, sub = random.split(key)
        logits = llama(p, tokens)[:, -1].astype(F32) / 0.8
        top, index = lax.top_k(logits, 40)
        pick = random.categorical(sub, top)
        new = jnp.take_along_axis(index, pick[:, None], -1)
        return (jnp.concatenate([tokens[:, 1:], new], 1), key), new

    return lax.scan(step, (tokens, key), None, length=16)


@program(llama_params(F32), ints(4, 16), S(4), ints())
def beam_search_step(p, beams, scores, at):
    logp = nn.log_softmax(llama(p, beams)[:, -1])
    total = (scores[:, None] + logp).reshape(-1)
    best, flat = lax.top_k(total, 4)
    source, token = flat // 4096, flat % 4096
    beams = beams[source].at[:, at].set(token)
    done = token == 1
    return beams, jnp.where(done, best / ((5.0 + at) / 6.0) ** 0.6, best), jnp.where(done, -1e9, best)


# ------------------------------------------------------------------ encoders
def bert_params(dt, layers=2, d=256, ff=1024, vocab=4096, t=128):
    ln = lambda: {"g": S(d, dtype=dt), "b": S(d, dtype=dt)}
    return {
        "tok": S(vocab, d, dtype=dt),
        "pos": S(t, d, dtype=dt),
        "typ": S(2, d, dtype=dt),
        "ln": ln(),
        "layers": [
            {
                "q": lin(d, d, dt),
                "k": lin(d, d, dt),
                "v": lin(d, d, dt),
                "o": lin(d, d, dt),
                "ln1": ln(),
                "f1": lin(d, ff, dt),
                "f2": lin(ff, d, dt),
                "ln2": ln(),
            }
            for _ in range(layers)
        ],
        "mlm": lin(d, d, dt),
        "lnm": ln(),
        "bias": S(vocab, dtype=dt),
    }


def bert(p, tokens, types, pad, key, rate, n=4):
    x = p["tok"][tokens] + p["pos"] + p["typ"][types]
    x = layer_norm(x, p["ln"]["g"], p["ln"]["b"], 1e-12)
    drop = (lambda x: x) if key is None else None
    keys = iter(random.split(key, 1 + 3 * len(p["layers"]))) if key is not None else None
    d = drop or (lambda x: dropout(next(keys), x, rate))
    x = d(x)
    bias = jnp.where(pad, 0.0, -1e9)[:, None, None, :].astype(x.dtype)
    for q in p["layers"]:
        a, k, v = (heads(dense(x, q[c]), n) for c in "qkv")
        s = jnp.einsum("bthd,bshd->bhts", a, k) / math.sqrt(a.shape[-1]) + bias
        w = d(nn.softmax(s, -1))
        o = jnp.einsum("bhts,bshd->bthd", w, v).reshape(x.shape)
        x = layer_norm(x + d(dense(o, q["o"])), q["ln1"]["g"], q["ln1"]["b"], 1e-12)
        h = nn.gelu(dense(x, q["f1"]), approximate=False)
        x = layer_norm(x + d(dense(h, q["f2"])), q["ln2"]["g"], q["ln2"]["b"], 1e-12)
    return x


@both(
    bert_params,
    lambda dt: (bert_params(dt),) * 2,
    ints(4, 128),
    ints(4, 128),
    S(4, 128, dtype=jnp.bool_),
    ints(4, 20),
    ints(4, 20),
    S(4, 20),
    KEY,
    S(),
)
def bert_train_dropout(p, s, tokens, types, pad, where, labels, weights, key, step):
    def loss(p):
        x = bert(p, tokens, types, pad, key, 0.1)
        x = jnp.take_along_axis(x, where[..., None], 1)
        x = layer_norm(nn.gelu(dense(x, p["mlm"])), p["lnm"]["g"], p["lnm"]["b"])
        logp = nn.log_softmax((x @ p["tok"].T + p["bias"]).astype(F32))
        nll = -(nn.one_hot(labels, 4096) * logp).sum(-1)
        return (nll * weights).sum() / (weights.sum() + 1e-5)

    value, g = jax.value_and_grad(loss)(p)
    p, s = adam(p, s, clip(g), step)
    return p, s, value


@both(bert_params, ints(4, 128), ints(4, 128), S(4, 128, dtype=jnp.bool_))
def bert_infer(p, tokens, types, pad):
    x = bert(p, tokens, types, pad, None, 0)
    return jnp.tanh(dense(x[:, 0], p["mlm"])), (x * pad[..., None]).sum(1) / pad.sum(1, keepdims=True)


def vit_params(dt, layers=2, d=192):
    ln = lambda: {"g": S(d, dtype=dt), "b": S(d, dtype=dt)}
    return {
        "patch": S(16, 16, 3, d, dtype=dt),
        "cls": S(1, 1, d, dtype=dt),
        "pos": S(1, 197, d, dtype=dt),
        "ln": ln(),
        "layers": [
            {
                "ln1": ln(),
                "qkv": lin(d, 3 * d, dt),
                "o": lin(d, d, dt),
                "ln2": ln(),
                "f1": lin(d, 4 * d, dt),
                "f2": lin(4 * d, d, dt),
            }
            for _ in range(layers)
        ],
        "head": lin(d, 1000, dt),
    }


def vit(p, x, n=3):
    x = lax.conv_general_dilated(x, p["patch"], (16, 16), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    b, d = x.shape[0], x.shape[-1]
    x = x.reshape(b, -1, d)
    x = jnp.concatenate([jnp.broadcast_to(p["cls"], (b, 1, d)), x], 1) + p["pos"]
    for q in p["layers"]:
        qkv = dense(layer_norm(x, **q["ln1"]), q["qkv"]).reshape(b, -1, 3, n, d // n)
        a, k, v = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
        w = nn.softmax(jnp.einsum("bthd,bshd->bhts", a, k) * (d // n) ** -0.5, axis=-1)
        x = x + dense(jnp.einsum("bhts,bshd->bthd", w, v).reshape(b, -1, d), q["o"])
        x = x + dense(nn.gelu(dense(layer_norm(x, **q["ln2"]), q["f1"])), q["f2"])
    return dense(layer_norm(x, **p["ln"])[:, 0], p["head"])


@both(vit_params, lambda dt: (vit_params(dt),) * 2, lambda dt: S(8, 224, 224, 3, dtype=dt), ints(8), S())
def vit_train(p, s, x, y, step):
    loss, g = jax.value_and_grad(lambda p: smoothed(vit(p, x), y))(p)
    p, s = adam(p, s, g, step)
    return p, s, loss


def t5_params(dt, d=256, n=4, ff=512, vocab=2048):
    w = lambda *s: S(*s, dtype=dt)
    att = lambda: {"q": w(d, d), "k": w(d, d), "v": w(d, d), "o": w(d, d)}
    return {
        "emb": w(vocab, d),
        "rel": w(32, n),
        "drel": w(32, n),
        "el": w(d),
        "dl": w(d),
        "enc": [{"a": att(), "n1": w(d), "wi": w(d, ff), "wo": w(ff, d), "n2": w(d)} for _ in range(2)],
        "dec": [
            {"a": att(), "c": att(), "n1": w(d), "n2": w(d), "n3": w(d), "wi": w(d, ff), "wo": w(ff, d)}
            for _ in range(2)
        ],
    }


def relative_bias(table, tq, tk, both_ways):
    rel = jnp.arange(tk)[None] - jnp.arange(tq)[:, None]
    n, buckets, base = -rel, 32, 0
    if both_ways:
        buckets = 16
        base = (n < 0).astype(I32) * buckets
        n = jnp.abs(n)
    else:
        n = jnp.maximum(n, 0)
    exact = buckets // 2
    large = exact + (
        jnp.log(n.astype(F32) / exact + 1e-6) / math.log(128 / exact) * (buckets - exact)
    ).astype(I32)
    bucket = base + jnp.where(n < exact, n, jnp.minimum(large, buckets - 1))
    return table[bucket].transpose(2, 0, 1)[None]


def t5_norm(x, g):
    x32 = x.astype(F32)
    return (x32 * lax.rsqrt((x32**2).mean(-1, keepdims=True) + 1e-6)).astype(x.dtype) * g


def t5_attend(x, y, p, bias, n=4):
    q, k, v = heads(x @ p["q"], n), heads(y @ p["k"], n), heads(y @ p["v"], n)
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(F32) + bias
    return jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(s).astype(x.dtype), v).reshape(x.shape) @ p["o"]


def t5(p, src, tgt):
    x = p["emb"][src]
    bias = relative_bias(p["rel"], src.shape[1], src.shape[1], True).astype(F32)
    for q in p["enc"]:
        h = t5_norm(x, q["n1"])
        x = x + t5_attend(h, h, q["a"], bias)
        x = x + nn.relu(t5_norm(x, q["n2"]) @ q["wi"]) @ q["wo"]
    enc = t5_norm(x, p["el"])
    t = tgt.shape[1]
    x = p["emb"][tgt]
    bias = relative_bias(p["drel"], t, t, False).astype(F32) + jnp.where(causal(t), 0, -1e9)
    for q in p["dec"]:
        h = t5_norm(x, q["n1"])
        x = x + t5_attend(h, h, q["a"], bias)
        x = x + t5_attend(t5_norm(x, q["n2"]), enc, q["c"], 0.0)
        x = x + nn.relu(t5_norm(x, q["n3"]) @ q["wi"]) @ q["wo"]
    return (t5_norm(x, p["dl"]) * p["emb"].shape[1] ** -0.5) @ p["emb"].T


@both(t5_params, ints(2, 128), ints(2, 65))
def t5_grad(p, src, tgt):
    def loss(p):
        logits = t5(p, src, tgt[:, :-1]).astype(F32)
        z = nn.logsumexp(logits, -1)
        nll = z - jnp.take_along_axis(logits, tgt[:, 1:, None], -1)[..., 0]
        return (nll + 1e-4 * z**2).mean()

    return jax.value_and_grad(loss)(p)


# ------------------------------------------------------------------ mixtures, recommendation, sequence models
def moe_params(dt, d=256, e=8, ff=512):
    return {
        "router": S(d, e, dtype=dt),
        "up": S(e, d, ff, dtype=dt),
        "gate": S(e, d, ff, dtype=dt),
        "down": S(e, ff, d, dtype=dt),
    }


def moe(p, x, k=2, capacity=64):
    n, e = x.shape[0], p["router"].shape[1]
    probs = nn.softmax((x @ p["router"]).astype(F32))
    weight, chosen = lax.top_k(probs, k)
    weight = weight / weight.sum(-1, keepdims=True)
    onehot = nn.one_hot(chosen, e, dtype=I32)
    place = (jnp.cumsum(onehot.reshape(n * k, e), 0) * onehot.reshape(n * k, e)).reshape(n, k, e) - 1
    kept = (place < capacity) & (place >= 0)
    dispatch = (nn.one_hot(place, capacity) * kept[..., None]).sum(1)
    combine = dispatch * (weight[..., None] * onehot).sum(1)[..., None]
    xs = jnp.einsum("nec,nd->ecd", dispatch.astype(x.dtype), x)
    h = nn.silu(jnp.einsum("ecd,edf->ecf", xs, p["gate"])) * jnp.einsum("ecd,edf->ecf", xs, p["up"])
    y = jnp.einsum("nec,ecd->nd", combine.astype(x.dtype), jnp.einsum("ecf,efd->ecd", h, p["down"]))
    aux = e * (probs.mean(0) * onehot.sum(1).astype(F32).mean(0)).sum()
    return y, aux


@both(moe_params, lambda dt: S(256, 256, dtype=dt), lambda dt: S(256, 256, dtype=dt))
def moe_grad(p, x, target):
    def loss(p, x):
        y, aux = moe(p, x)
        return ((y - target).astype(F32) ** 2).mean() + 0.01 * aux

    return jax.value_and_grad(loss, (0, 1))(p, x)


def dlrm_params():
    mlp = lambda *s: [lin(a, b) for a, b in itertools.pairwise(s)]
    return {
        "tables": [S(10000, 64) for _ in range(8)],
        "bot": mlp(13, 256, 64),
        "top": mlp(64 + 36, 256, 128, 1),
    }


@program(dlrm_params(), S(512, 13), ints(512, 8), S(512))
def dlrm_train(p, x, cats, y):
    def mlp(x, layers, last=False):
        for k, q in enumerate(layers):
            x = dense(x, q)
            x = x if last and k == len(layers) - 1 else nn.relu(x)
        return x

    def loss(p):
        d = mlp(jnp.log1p(x), p["bot"])
        es = [t[cats[:, k]] for k, t in enumerate(p["tables"])]
        z = jnp.stack([d, *es], 1)
        inter = jnp.einsum("bid,bjd->bij", z, z)
        i, j = jnp.tril_indices(9, -1)
        logit = mlp(jnp.concatenate([d, inter[:, i, j]], 1), p["top"], True)[:, 0]
        return (jnp.maximum(logit, 0) - logit * y + jnp.log1p(jnp.exp(-jnp.abs(logit)))).mean()

    value, g = jax.value_and_grad(loss)(p)
    return sgd(p, g), value


def lstm_params(i=128, h=256):
    return {"x": S(i, 4 * h), "h": S(h, 4 * h), "b": S(4 * h), "out": lin(h, 64)}


def lstm(p, xs):
    n = p["h"].shape[0]

    def cell(carry, x):
        h, c = carry
        i, f, g, o = jnp.split(x @ p["x"] + h @ p["h"] + p["b"], 4, -1)
        c = nn.sigmoid(f + 1) * c + nn.sigmoid(i) * jnp.tanh(g)
        h = nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zero = jnp.zeros((xs.shape[1], n), xs.dtype)
    return lax.scan(cell, (zero, zero), xs)[1]


@program(lstm_params(), lstm_params(), S(50, 32, 128), ints(50, 32))
def lstm_train(p, m, xs, ys):
    loss, g = jax.value_and_grad(lambda p: cross_entropy(dense(lstm(p, xs), p["out"]), ys))(p)
    return *momentum(p, m, clip(g)), loss


@both(
    lambda dt: {"xz": S(64, 384, dtype=dt), "hz": S(128, 384, dtype=dt), "bz": S(384, dtype=dt)},
    lambda dt: S(40, 16, 64, dtype=dt),
    S(40, 16, dtype=jnp.bool_),
)
def gru_grad(p, xs, valid):
    def loss(p):
        def cell(h, inp):
            x, ok = inp
            xr, xu, xn = jnp.split(x @ p["xz"] + p["bz"], 3, -1)
            hr, hu, hn = jnp.split(h @ p["hz"], 3, -1)
            r, u = nn.sigmoid(xr + hr), nn.sigmoid(xu + hu)
            new = u * h + (1 - u) * jnp.tanh(xn + r * hn)
            h = jnp.where(ok[:, None], new, h)
            return h, h

        h, hs = lax.scan(cell, jnp.zeros((16, 128), xs.dtype), (xs, valid))
        return (hs.astype(F32) ** 2).mean() + h.astype(F32).sum()

    return jax.value_and_grad(loss)(p)


def mamba_params(dt, d=128, s=16):
    w = lambda *x: S(*x, dtype=dt)
    return {
        "norm": w(d),
        "in": w(d, 4 * d),
        "conv": w(4, 2 * d),
        "cb": w(2 * d),
        "xp": w(2 * d, 8 + 2 * s),
        "dt": w(8, 2 * d),
        "db": w(2 * d),
        "A": S(2 * d, s),
        "D": S(2 * d),
        "out": w(2 * d, d),
    }


def mamba(p, x):
    t = x.shape[1]
    s = p["A"].shape[1]
    u, z = jnp.split(rms_norm(x, p["norm"]) @ p["in"], 2, -1)
    padded = jnp.pad(u, ((0, 0), (3, 0), (0, 0)))
    u = nn.silu(sum(padded[:, k : k + t] * p["conv"][k] for k in range(4)) + p["cb"])
    dt, B, C = jnp.split(u @ p["xp"], [8, 8 + s], -1)
    delta = nn.softplus((dt @ p["dt"] + p["db"]).astype(F32))
    a = jnp.exp(delta[..., None] * -jnp.exp(p["A"]))
    bx = (delta * u.astype(F32))[..., None] * B.astype(F32)[:, :, None]

    def combine(l, r):
        return l[0] * r[0], r[0] * l[1] + r[1]

    _, h = lax.associative_scan(combine, (a, bx), axis=1)
    y = (h * C.astype(F32)[:, :, None]).sum(-1) + p["D"] * u.astype(F32)
    return x + (y.astype(x.dtype) * nn.silu(z)) @ p["out"]


@both(mamba_params, lambda dt: S(2, 64, 128, dtype=dt))
def mamba_grad(p, x):
    return jax.value_and_grad(lambda p, x: mamba(p, x).astype(F32).var(), (0, 1))(p, x)


# ------------------------------------------------------------------ generative models
def unet_params(dt, c=32):
    res = lambda i, o: {
        "g1": S(i, dtype=dt),
        "b1": S(i, dtype=dt),
        "c1": S(3, 3, i, o, dtype=dt),
        "t": lin(128, o, dt),
        "g2": S(o, dtype=dt),
        "b2": S(o, dtype=dt),
        "c2": S(3, 3, o, o, dtype=dt),
        "s": S(1, 1, i, o, dtype=dt),
    }
    return {
        "t1": lin(32, 128, dt),
        "t2": lin(128, 128, dt),
        "in": S(3, 3, 3, c, dtype=dt),
        "d1": res(c, c),
        "down": S(3, 3, c, c, dtype=dt),
        "d2": res(c, 2 * c),
        "qkv": lin(2 * c, 6 * c, dt),
        "o": lin(2 * c, 2 * c, dt),
        "u1": res(3 * c, c),
        "out": S(3, 3, c, 3, dtype=dt),
    }


def unet(p, x, t):
    def group_norm(x, g, b, n=8):
        y = x.astype(F32).reshape(*x.shape[:3], n, -1)
        m, v = y.mean((1, 2, 4), keepdims=True), y.var((1, 2, 4), keepdims=True)
        return ((y - m) * lax.rsqrt(v + 1e-5)).reshape(x.shape).astype(x.dtype) * g + b

    freq = jnp.exp(-math.log(1e4) * jnp.arange(16) / 16)
    e = t[:, None] * freq
    e = jnp.concatenate([jnp.sin(e), jnp.cos(e)], -1).astype(x.dtype)
    e = dense(nn.silu(dense(e, p["t1"])), p["t2"])

    def res(x, q):
        h = conv(nn.silu(group_norm(x, q["g1"], q["b1"])), q["c1"]) + dense(nn.silu(e), q["t"])[:, None, None]
        return conv(x, q["s"]) + conv(nn.silu(group_norm(h, q["g2"], q["b2"])), q["c2"])

    h1 = res(conv(x, p["in"]), p["d1"])
    h = res(conv(h1, p["down"], 2), p["d2"])
    b, hh, ww, c = h.shape
    q, k, v = jnp.split(dense(h.reshape(b, -1, c), p["qkv"]), 3, -1)
    w = nn.softmax(jnp.einsum("btc,bsc->bts", q, k) * c**-0.5)
    h = h + dense(w @ v, p["o"]).reshape(h.shape)
    h = jax.image.resize(h, (b, 2 * hh, 2 * ww, c), "nearest")
    h = res(jnp.concatenate([h, h1], -1), p["u1"])
    return conv(nn.silu(h), p["out"])


@both(unet_params, lambda dt: unet_params(F32), lambda dt: S(4, 32, 32, 3, dtype=dt), KEY)
def unet_diffusion_train(p, ema, x, key):
    k1, k2 = random.split(key)
    t = random.randint(k1, (4,), 0, 1000).astype(F32)
    noise = random.normal(k2, x.shape, x.dtype)
    abar = jnp.cos((t / 1000 + 0.008) / 1.008 * jnp.pi / 2)[:, None, None, None] ** 2
    noisy = (jnp.sqrt(abar) * x + jnp.sqrt(1 - abar) * noise).astype(x.dtype)
    loss, g = jax.value_and_grad(lambda p: jnp.mean((unet(p, noisy, t) - noise).astype(F32) ** 2))(p)
    p = sgd(p, clip(g))
    return p, jax.tree.map(lambda e, q: 0.999 * e + 0.001 * q.astype(F32), ema, p), loss


@program(unet_params(F32), S(2, 32, 32, 3), KEY)
def ddim_sampling(p, x, key):
    def step(i, carry):
        x, key = carry
        t = jnp.full((2,), 50 - i, F32) * 20
        a, b = jnp.cos(t[0] / 640) ** 2, jnp.cos((t[0] - 20) / 640) ** 2
        eps = unet(p, x, t)
        x0 = jnp.clip((x - jnp.sqrt(1 - a) * eps) / jnp.sqrt(a), -1, 1)
        key, k = random.split(key)
        return jnp.sqrt(b) * x0 + jnp.sqrt(1 - b) * eps + 0.01 * random.normal(k, x.shape), key

    return lax.fori_loop(0, 50, step, (x, key))[0]


def vae_params():
    return {
        "e1": lin(784, 400),
        "mu": lin(400, 20),
        "lv": lin(400, 20),
        "d1": lin(20, 400),
        "d2": lin(400, 784),
    }


@program(vae_params(), (vae_params(), vae_params()), S(128, 784), KEY, S())
def vae_train(p, s, x, key, step):
    def loss(p):
        h = nn.relu(dense(x, p["e1"]))
        mu, lv = dense(h, p["mu"]), dense(h, p["lv"])
        z = mu + jnp.exp(0.5 * lv) * random.normal(key, mu.shape)
        y = dense(nn.relu(dense(z, p["d1"])), p["d2"])
        bce = -(x * nn.log_sigmoid(y) + (1 - x) * nn.log_sigmoid(-y)).sum(-1)
        kl = -0.5 * (1 + lv - mu**2 - jnp.exp(lv)).sum(-1)
        return (bce + kl).mean(), (bce.mean(), kl.mean())

    (value, parts), g = jax.value_and_grad(loss, has_aux=True)(p)
    p, s = adam(p, s, g, step, decay=0)
    return p, s, value, parts


def gan_params():
    return (
        {"z": lin(64, 4 * 4 * 128), "g": S(128), "b": S(128), "c1": S(4, 4, 128, 64), "c2": S(4, 4, 64, 3)},
        {"c1": S(4, 4, 3, 64), "c2": S(4, 4, 64, 128), "out": lin(4 * 4 * 128, 1)},
    )


@program(*gan_params(), S(32, 16, 16, 3), KEY)
def gan_step(gen, dis, real, key):
    def generate(p, z):
        h = dense(z, p["z"]).reshape(-1, 4, 4, 128)
        m, v = h.mean((0, 1, 2)), h.var((0, 1, 2))
        h = nn.relu((h - m) / jnp.sqrt(v + 1e-5) * p["g"] + p["b"])
        h = nn.relu(lax.conv_transpose(h, p["c1"], (2, 2), "SAME"))
        return jnp.tanh(lax.conv_transpose(h, p["c2"], (2, 2), "SAME"))

    def judge(p, x):
        h = nn.leaky_relu(conv(x, p["c1"], 2), 0.2)
        h = nn.leaky_relu(conv(h, p["c2"], 2), 0.2)
        return dense(h.reshape(h.shape[0], -1), p["out"])[:, 0]

    z = random.normal(key, (32, 64))
    fake = generate(gen, z)

    def penalty(p):
        g = jax.grad(lambda x: judge(p, x).sum())(real)
        return (g**2).sum((1, 2, 3)).mean()

    ld, gd = jax.value_and_grad(
        lambda p: nn.softplus(judge(p, fake)).mean() + nn.softplus(-judge(p, real)).mean() + 5 * penalty(p)
    )(dis)
    lg, gg = jax.value_and_grad(lambda p: nn.softplus(-judge(dis, generate(p, z))).mean())(gen)
    return sgd(gen, gg, 2e-4), sgd(dis, gd, 2e-4), ld, lg


# ------------------------------------------------------------------ reinforcement learning
def mlp_params(*s):
    return [lin(a, b) for a, b in itertools.pairwise(s)]


def mlp(x, ps, act=jnp.tanh):
    for q in ps[:-1]:
        x = act(dense(x, q))
    return dense(x, ps[-1])


@program(
    mlp_params(8, 256, 256, 4),
    mlp_params(8, 256, 256, 4),
    (mlp_params(8, 256, 256, 4),) * 2,
    S(256, 8),
    ints(256),
    S(256),
    S(256, 8),
    S(256),
    S(),
)
def double_dqn_update(p, target, s, obs, action, reward, following, done, step):
    best = mlp(following, p, nn.relu).argmax(-1)
    q_next = jnp.take_along_axis(mlp(following, target, nn.relu), best[:, None], -1)[:, 0]
    y = reward + 0.99 * (1 - done) * q_next

    def loss(p):
        q = jnp.take_along_axis(mlp(obs, p, nn.relu), action[:, None], -1)[:, 0]
        e = jnp.abs(q - lax.stop_gradient(y))
        return jnp.where(e < 1, 0.5 * e * e, e - 0.5).mean(), e

    (value, errors), g = jax.value_and_grad(loss, has_aux=True)(p)
    p, s = adam(p, s, g, step, decay=0)
    return p, jax.tree.map(lambda a, b: 0.995 * a + 0.005 * b, target, p), s, value, errors


@program(
    {"pi": mlp_params(17, 64, 64, 6), "v": mlp_params(17, 64, 64, 1), "std": S(6)},
    ({"pi": mlp_params(17, 64, 64, 6), "v": mlp_params(17, 64, 64, 1), "std": S(6)},) * 2,
    S(128, 16, 17),
    S(128, 16, 6),
    S(128, 16),
    S(128, 16),
    S(128, 16),
    S(),
)
def ppo_update(p, s, obs, act, old, reward, done, step):
    def logp(p, obs, act):
        mean, std = mlp(obs, p["pi"]), jnp.exp(p["std"])
        return (-0.5 * ((act - mean) / std) ** 2 - p["std"] - 0.5 * math.log(2 * math.pi)).sum(-1)

    v = mlp(obs, p["v"])[..., 0]

    def gae(carry, x):
        adv, nxt = carry
        r, d, val = x
        delta = r + 0.99 * nxt * (1 - d) - val
        adv = delta + 0.99 * 0.95 * (1 - d) * adv
        return (adv, val), adv

    _, adv = lax.scan(gae, (jnp.zeros(16), v[-1]), (reward, done, v), reverse=True)
    ret = adv + v
    adv = (adv - adv.mean()) / (adv.std() + 1e-8)

    def loss(p):
        lp = logp(p, obs, act)
        ratio = jnp.exp(lp - old)
        pg = -jnp.minimum(ratio * adv, jnp.clip(ratio, 0.8, 1.2) * adv).mean()
        vn = mlp(obs, p["v"])[..., 0]
        vc = v + jnp.clip(vn - v, -0.2, 0.2)
        vl = 0.5 * jnp.maximum((vn - ret) ** 2, (vc - ret) ** 2).mean()
        ent = (p["std"] + 0.5 * math.log(2 * math.pi * math.e)).sum()
        return pg + 0.5 * vl - 0.01 * ent, ((ratio - 1) - jnp.log(ratio)).mean()

    (value, kl), g = jax.value_and_grad(loss, has_aux=True)(p)
    p, s = adam(p, s, clip(g, 0.5), step, decay=0)
    return p, s, value, kl


@program(
    {"body": mlp_params(4, 128, 128), "pi": lin(128, 3), "v": lin(128, 1)},
    S(64, 32, 4),
    ints(64, 32),
    S(64, 32),
    S(64, 32),
)
def actor_critic_update(p, obs, act, reward, done):
    def loss(p):
        h = nn.relu(mlp(obs, p["body"], nn.relu))
        logits, v = dense(h, p["pi"]), dense(h, p["v"])[..., 0]
        _, ret = lax.scan(
            lambda r, x: ((x[0] + 0.99 * r * (1 - x[1])),) * 2, v[-1], (reward, done), reverse=True
        )
        logp = nn.log_softmax(logits)
        adv = lax.stop_gradient(ret) - v
        chosen = jnp.take_along_axis(logp, act[..., None], -1)[..., 0]
        ent = -(jnp.exp(logp) * logp).sum(-1)
        return (-chosen * lax.stop_gradient(adv) + 0.5 * adv**2 - 0.01 * ent).mean()

    value, g = jax.value_and_grad(loss)(p)
    return sgd(p, g, 1e-3, 0), value


# ------------------------------------------------------------------ graphs, sound, the rest
@both(
    lambda dt: [{"w": S(64, 64, dtype=dt), "a": S(128, dtype=dt)} for _ in range(2)],
    lambda dt: S(1000, 64, dtype=dt),
    ints(5000),
    ints(5000),
    ints(1000),
)
def graph_attention_grad(ps, x, src, dst, label):
    def loss(ps):
        h = x
        for p in ps:
            z = h @ p["w"]
            score = nn.leaky_relu(jnp.concatenate([z[src], z[dst]], -1) @ p["a"], 0.2)
            top = jax.ops.segment_max(score, dst, 1000)
            e = jnp.exp(score - top[dst])
            norm = jax.ops.segment_sum(e, dst, 1000)
            h = nn.elu(jax.ops.segment_sum((e / (norm[dst] + 1e-9))[:, None] * z[src], dst, 1000))
        return cross_entropy(h, label)

    return jax.value_and_grad(loss)(ps)


@program({"w1": S(32, 64), "w2": S(64, 16)}, S(500, 32), ints(3000), ints(3000), ints(500))
def graph_conv_train(p, x, src, dst, label):
    def loss(p):
        deg = jax.ops.segment_sum(jnp.ones(3000), dst, 500)
        c = lax.rsqrt(jnp.maximum(deg, 1))

        def spread(h):
            return jax.ops.segment_sum((h * c[:, None])[src], dst, 500) * c[:, None]

        return cross_entropy(spread(nn.relu(spread(x @ p["w1"])) @ p["w2"]), label)

    value, g = jax.value_and_grad(loss)(p)
    return sgd(p, g), value


@program(S(8, 16000), S(80, 257), {"c1": S(3, 80, 128), "b1": S(128), "out": lin(128, 32)}, ints(8, 20))
def audio_ctc(wave, mel, p, labels):
    frames = wave[:, jnp.arange(124)[:, None] * 128 + jnp.arange(128 * 4)[None] % 16000 % 16000]
    window = 0.5 - 0.5 * jnp.cos(2 * jnp.pi * jnp.arange(512) / 512)
    power = jnp.abs(jnp.fft.rfft(frames * window)) ** 2
    feats = jnp.log(jnp.maximum(power @ mel.T, 1e-10))
    feats = (feats - feats.mean(1, keepdims=True)) / (feats.std(1, keepdims=True) + 1e-5)

    def loss(p):
        h = nn.relu(
            lax.conv_general_dilated(feats, p["c1"], (2,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"))
            + p["b1"]
        )
        logp = nn.log_softmax(dense(h, p["out"]))
        ext = jnp.zeros((8, 41), I32).at[:, 1::2].set(labels)
        emit = jnp.take_along_axis(logp, ext[:, None].repeat(logp.shape[1], 1), -1)
        skip = (ext != 0) & (ext != jnp.roll(ext, 2, 1))
        alpha0 = jnp.full((8, 41), -1e5).at[:, :2].set(emit[:, 0, :2])

        def step(a, e):
            one = jnp.pad(a[:, :-1], ((0, 0), (1, 0)), constant_values=-1e5)
            two = jnp.where(skip, jnp.pad(a[:, :-2], ((0, 0), (2, 0)), constant_values=-1e5), -1e5)
            return jnp.logaddexp(jnp.logaddexp(a, one), two) + e, None

        a, _ = lax.scan(step, alpha0, emit[:, 1:].transpose(1, 0, 2))
        return -jnp.logaddexp(a[:, -1], a[:, -2]).mean()

    return jax.value_and_grad(loss)(p)


@both(
    lambda dt: {
        "qkv": S(256, 768, dtype=dt),
        "o": S(256, 256, dtype=dt),
        "g": S(256, dtype=dt),
        "b": S(256, dtype=dt),
    },
    lambda dt: S(4, 128, 256, dtype=dt),
)
def alibi_attention_grad(p, x):
    def loss(p, x):
        h = layer_norm(x, p["g"], p["b"])
        q, k, v = (heads(z, 8) for z in jnp.split(h @ p["qkv"], 3, -1))
        slopes = 2.0 ** (-jnp.arange(1, 9))
        dist = jnp.arange(128)[None] - jnp.arange(128)[:, None]
        s = jnp.einsum("bthd,bshd->bhts", q, k).astype(F32) / math.sqrt(32) + slopes[:, None, None] * dist
        s = jnp.where(dist <= 0, s, -jnp.inf)
        y = x + jnp.einsum("bhts,bshd->bthd", nn.softmax(s).astype(v.dtype), v).reshape(x.shape) @ p["o"]
        return jnp.mean(jnp.square(y.astype(F32)))

    return jax.value_and_grad(loss, (0, 1))(p, x)


@both(
    lambda dt: S(512, 1024, dtype=dt),
    lambda dt: S(1024, dtype=dt),
    lambda dt: S(1024, dtype=dt),
    lambda dt: S(512, 1024, dtype=dt),
)
def norm_variants_grad(x, g, b, dy):
    def welford(x, g, b):
        x32 = x.astype(F32)
        mean, mean2 = x32.mean(-1, keepdims=True), (x32**2).mean(-1, keepdims=True)
        return ((x32 - mean) * (lax.rsqrt(mean2 - mean**2 + 1e-6) * g) + b).astype(x.dtype)

    def standard(x, g, b):
        return (nn.standardize(x, epsilon=1e-5) * g + b).astype(x.dtype)

    out = []
    for f in (welford, standard, layer_norm, lambda x, g, b: rms_norm(x, g) + b):
        y, back = jax.vjp(f, x, g, b)
        out.append((y, back(dy)))
    return out


@program(
    {"q": S(64, 64), "k": S(64, 64), "v": S(64, 64), "f1": lin(64, 128), "f2": lin(128, 64)},
    S(8, 16, 64),
    S(8, 64),
)
def maml_step(p, xs, ys):
    def forward(p, x):
        q, k, v = x @ p["q"], x @ p["k"], x @ p["v"]
        h = x + nn.softmax(q @ k.T / 8.0) @ v
        return dense(nn.relu(dense(h, p["f1"])), p["f2"]).mean(0)

    def outer(p):
        def task(x, y):
            loss = lambda p: ((forward(p, x) - y) ** 2).mean()
            return loss(sgd(p, jax.grad(loss)(p), 0.01, 0))

        return jax.vmap(task)(xs, ys).mean()

    value, g = jax.value_and_grad(outer)(p)
    return sgd(p, g, 0.001), value


@program(mlp_params(3, 128, 128, 4), S(1024, 3), S(1024, 3), S(1024, 3), KEY)
def nerf_render_grad(p, origin, direction, color, key):
    t = jnp.linspace(2.0, 6.0, 32) + random.uniform(key, (1024, 32)) * (4 / 32)
    pts = origin[:, None] + direction[:, None] * t[..., None]

    def loss(p):
        raw = mlp(jnp.sin(pts), p, nn.relu)
        rgb, sigma = nn.sigmoid(raw[..., :3]), nn.relu(raw[..., 3])
        dists = jnp.concatenate([t[:, 1:] - t[:, :-1], jnp.full((1024, 1), 1e10)], -1)
        alpha = 1 - jnp.exp(-sigma * dists)
        trans = jnp.cumprod(jnp.concatenate([jnp.ones((1024, 1)), 1 - alpha[:, :-1] + 1e-10], -1), -1)
        w = alpha * trans
        return ((jnp.sum(w[..., None] * rgb, 1) - color) ** 2).mean()

    return jax.value_and_grad(loss)(p)


@program(
    {"img": mlp_params(512, 256, 128), "txt": mlp_params(300, 256, 128), "t": S()}, S(128, 512), S(128, 300)
)
def clip_contrastive_grad(p, a, b):
    def loss(p):
        x, y = mlp(a, p["img"], nn.gelu), mlp(b, p["txt"], nn.gelu)
        x = x / jnp.linalg.norm(x, axis=-1, keepdims=True)
        y = y / jnp.linalg.norm(y, axis=-1, keepdims=True)
        logits = x @ y.T * jnp.exp(p["t"])
        labels = jnp.arange(128)
        return (cross_entropy(logits, labels) + cross_entropy(logits.T, labels)) / 2

    return jax.value_and_grad(loss)(p)
