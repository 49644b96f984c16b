"""Programs to order passes on, in plain JAX: `PROGRAMS` for capture, `FAMILY` and `TEST` for the split.

    hlofuse capture benchmarks/pass_ordering/programs.py:PROGRAMS --target cpu -o DIR

Layers are unrolled and small. `TEST` has whole families (`UNSEEN`) and graphs of the others that differ in
depth, in their parts or in the loss; `benchmarks/pass_ordering/pack.py` makes the shipped modules of them.
"""

from __future__ import annotations

import functools
import itertools

import jax
import jax.numpy as jnp
from jax import lax, nn, random

F32, BF16, I32 = jnp.float32, jnp.bfloat16, jnp.int32
KEY = jax.ShapeDtypeStruct((2,), jnp.uint32)
PROGRAMS, FAMILY = {}, {}


def S(*shape, dtype=F32):
    return jax.ShapeDtypeStruct(shape, dtype)


def ints(*shape):
    return S(*shape, dtype=I32)


def enter(family, name, fn, *args):
    PROGRAMS[name], FAMILY[name] = (fn, args), family


def program(family, *args):
    def add(fn):
        enter(family, fn.__name__, fn, *args)
        return fn

    return add


# Optimizers and layers that several programs share.


def like(tree, dtype=None):
    return jax.tree.map(lambda s: S(*s.shape, dtype=dtype or s.dtype), tree)


def sgd(params, grads, lr=0.1):
    return jax.tree.map(lambda p, g: p - (lr * g).astype(p.dtype), params, grads)


def momentum(params, moments, grads, lr=0.1, mu=0.9, decay=1e-4):
    moments = jax.tree.map(lambda m, g, p: mu * m + g + decay * p, moments, grads, params)
    return jax.tree.map(lambda p, m: p - (lr * m).astype(p.dtype), params, moments), moments


def adamw(params, state, grads, step, lr=1e-3, b1=0.9, b2=0.999, eps=1e-8, decay=0.01):
    m, v = state
    m = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, m, grads)
    v = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * jnp.square(g), v, grads)
    c1, c2 = 1 - b1**step, 1 - b2**step

    def update(p, m, v):
        return (p - lr * (m / c1 / (jnp.sqrt(v / c2) + eps) + decay * p)).astype(p.dtype)

    return jax.tree.map(update, params, m, v), (m, v)


def clipped(grads, norm=1.0):
    total = jnp.sqrt(sum(jnp.sum(jnp.square(g.astype(F32))) for g in jax.tree.leaves(grads)))
    return jax.tree.map(lambda g: (g * jnp.minimum(1.0, norm / (total + 1e-6))).astype(g.dtype), grads)


def trained(loss, params, *batch, optimizer="adamw", clip=False):
    """A program of a training step, and its arguments."""

    def step_adamw(params, state, step, *batch):
        value, grads = jax.value_and_grad(loss)(params, *batch)
        params, state = adamw(params, state, clipped(grads) if clip else grads, step)
        return params, state, step + 1, value

    def step_momentum(params, moments, *batch):
        value, grads = jax.value_and_grad(loss)(params, *batch)
        params, moments = momentum(params, moments, clipped(grads) if clip else grads)
        return params, moments, value

    def step_sgd(params, *batch):
        value, grads = jax.value_and_grad(loss)(params, *batch)
        return sgd(params, grads), value

    if optimizer == "adamw":
        return step_adamw, params, (like(params, F32), like(params, F32)), S(), *batch
    if optimizer == "momentum":
        return step_momentum, params, like(params), *batch
    return step_sgd, params, *batch


def lin(i, o, dtype=F32):
    return {"w": S(i, o, dtype=dtype), "b": S(o, dtype=dtype)}


def dense(p, x):
    return x @ p["w"] + p["b"]


def layers(*sizes):
    return [lin(i, o) for i, o in itertools.pairwise(sizes)]


def mlp(ps, x, act=nn.relu):
    for p in ps[:-1]:
        x = act(dense(p, x))
    return dense(ps[-1], x)


def norm_params(d):
    return {"g": S(d), "b": S(d)}


def layer_norm(p, x, eps=1e-5):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(x.var(-1, keepdims=True) + eps) * p["g"] + p["b"]


def rms_norm(g, x, eps=1e-6):
    return x * lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + eps) * g


def cross_entropy(logits, labels):
    return -jnp.take_along_axis(nn.log_softmax(logits.astype(F32)), labels[..., None], -1).mean()


def dropout(key, x, rate=0.1):
    return jnp.where(random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0)


def attention(q, k, v, heads, mask=None):
    b, t, d = q.shape
    q, k, v = (a.reshape(b, a.shape[1], heads, d // heads).transpose(0, 2, 1, 3) for a in (q, k, v))
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / jnp.sqrt(d // heads).astype(q.dtype)
    if mask is not None:
        scores = jnp.where(mask, scores, jnp.finfo(scores.dtype).min)
    mixed = jnp.einsum("bhqk,bhkd->bhqd", nn.softmax(scores, -1), v)
    return mixed.transpose(0, 2, 1, 3).reshape(b, t, d)


# GPT-2.
W, H, T, B, V = 64, 4, 32, 2, 256


def gpt2_params(n, d=W, dtype=F32):
    def block():
        parts = {"qkv": lin(d, 3 * d, dtype), "out": lin(d, d, dtype)}
        parts |= {"up": lin(d, 4 * d, dtype), "down": lin(4 * d, d, dtype)}
        return parts | {"ln1": norm_params(d), "ln2": norm_params(d)}

    top = {"wte": S(V, d, dtype=dtype), "wpe": S(T, d, dtype=dtype), "ln": norm_params(d)}
    return top | {"blocks": [block() for _ in range(n)]}


def gpt2_block(p, x, mask, key=None):
    q, k, v = jnp.split(dense(p["qkv"], layer_norm(p["ln1"], x).astype(x.dtype)), 3, -1)
    mixed = dense(p["out"], attention(q, k, v, H, mask))
    x = x + (mixed if key is None else dropout(key, mixed))
    inner = dense(p["down"], nn.gelu(dense(p["up"], layer_norm(p["ln2"], x).astype(x.dtype))))
    return x + (inner if key is None else dropout(random.fold_in(key, 1), inner))


def gpt2_logits(params, tokens, key=None):
    t = tokens.shape[1]
    x = params["wte"][tokens] + params["wpe"][jnp.arange(t)]
    mask = jnp.tril(jnp.ones((t, t), bool))
    for n, block in enumerate(params["blocks"]):
        x = gpt2_block(block, x, mask, None if key is None else random.fold_in(key, n))
    return layer_norm(params["ln"], x).astype(x.dtype) @ params["wte"].T


def gpt2_loss(params, tokens, key=None):
    return cross_entropy(gpt2_logits(params, tokens[:, :-1], key), tokens[:, 1:])


for depth in range(1, 13):
    enter("gpt2", f"gpt2_train_{depth}", *trained(gpt2_loss, gpt2_params(depth), ints(B, T)))
enter("gpt2", "gpt2_dropout_train", *trained(gpt2_loss, gpt2_params(2), ints(B, T), KEY, clip=True))
enter("gpt2", "gpt2_bf16_train", *trained(gpt2_loss, gpt2_params(2, dtype=BF16), ints(B, T), optimizer="sgd"))
enter("gpt2", "gpt2_infer", gpt2_logits, gpt2_params(3), ints(B, T))


@program("gpt2", gpt2_params(2), *[[S(B, T, W)] * 2] * 2, ints(B, 1), S(dtype=I32))
def gpt2_decode(params, keys, values, token, at):
    """A token with caches of keys and values."""
    x = params["wte"][token] + params["wpe"][at]
    for n, p in enumerate(params["blocks"]):
        q, k, v = jnp.split(dense(p["qkv"], layer_norm(p["ln1"], x)), 3, -1)
        keys[n] = lax.dynamic_update_slice(keys[n], k, (0, at, 0))
        values[n] = lax.dynamic_update_slice(values[n], v, (0, at, 0))
        x = x + dense(p["out"], attention(q, keys[n], values[n], H, jnp.arange(T) <= at))
        x = x + dense(p["down"], nn.gelu(dense(p["up"], layer_norm(p["ln2"], x))))
    return (layer_norm(params["ln"], x) @ params["wte"].T)[:, -1].argmax(-1), keys, values


# BERT.
def bert_params(n, d=W):
    def block():
        parts = {"q": lin(d, d), "k": lin(d, d), "v": lin(d, d), "out": lin(d, d)}
        return parts | {
            "up": lin(d, 4 * d),
            "down": lin(4 * d, d),
            "ln1": norm_params(d),
            "ln2": norm_params(d),
        }

    top = {"words": S(V, d), "places": S(T, d), "kinds": S(2, d), "ln": norm_params(d)}
    return top | {
        "head": lin(d, d),
        "pool": lin(d, d),
        "cls": lin(d, 2),
        "blocks": [block() for _ in range(n)],
    }


def bert_body(params, tokens, kinds, lengths, key=None):
    x = params["words"][tokens] + params["places"][None, : tokens.shape[1]] + params["kinds"][kinds]
    x = layer_norm(params["ln"], x)
    mask = (jnp.arange(tokens.shape[1]) < lengths[:, None])[:, None, None, :]
    for n, p in enumerate(params["blocks"]):
        mixed = dense(p["out"], attention(dense(p["q"], x), dense(p["k"], x), dense(p["v"], x), H, mask))
        if key is not None:
            mixed = dropout(random.fold_in(key, n), mixed)
        x = layer_norm(p["ln1"], x + mixed)
        x = layer_norm(p["ln2"], x + dense(p["down"], nn.gelu(dense(p["up"], x), approximate=False)))
    return x


def bert_masked_loss(params, tokens, kinds, lengths, labels, key=None):
    x = bert_body(params, tokens, kinds, lengths, key)
    logits = nn.gelu(dense(params["head"], x)) @ params["words"].T
    chosen = jnp.take_along_axis(nn.log_softmax(logits), labels[..., None], -1)[..., 0]
    weights = (labels > 0).astype(F32)
    return -(chosen * weights).sum() / jnp.maximum(weights.sum(), 1)


def bert_class(params, tokens, kinds, lengths):
    return dense(
        params["cls"], jnp.tanh(dense(params["pool"], bert_body(params, tokens, kinds, lengths)[:, 0]))
    )


def bert_tuned(params, tokens, kinds, lengths, label):
    return cross_entropy(bert_class(params, tokens, kinds, lengths), label)


TEXT = ints(B, T), ints(B, T), ints(B)
enter("bert", "bert_infer_2", lambda p, *t: nn.softmax(bert_class(p, *t)), bert_params(2), *TEXT)
enter("bert", "bert_infer_6", lambda p, *t: nn.softmax(bert_class(p, *t)), bert_params(6), *TEXT)
enter("bert", "bert_train_1", *trained(bert_masked_loss, bert_params(1), *TEXT, ints(B, T)))
enter("bert", "bert_train_3", *trained(bert_masked_loss, bert_params(3), *TEXT, ints(B, T), KEY))
enter("bert", "bert_tuning_2", *trained(bert_tuned, bert_params(2), *TEXT, ints(B), clip=True))


# Convolutional networks.
def conv(w, x, stride=1, groups=1, padding="SAME"):
    spec = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(
        x, w, (stride, stride), padding, dimension_numbers=spec, feature_group_count=groups
    )


def bn_params(c):
    return {k: S(c) for k in ("g", "b", "mean", "var")}


def bn_infer(p, x):
    return (x - p["mean"]) * lax.rsqrt(p["var"] + 1e-5) * p["g"] + p["b"]


def bn_train(p, x):
    mean, var = x.mean((0, 1, 2)), x.var((0, 1, 2))
    return (x - mean) * lax.rsqrt(var + 1e-5) * p["g"] + p["b"]


def pool(x, size=2, stride=2):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, size, size, 1), (1, stride, stride, 1), "SAME")


def residual_params(i, o, wide):
    if wide:
        parts = {"c1": S(1, 1, i, o // 4), "n1": bn_params(o // 4), "c2": S(3, 3, o // 4, o // 4)}
        parts |= {"n2": bn_params(o // 4), "c3": S(1, 1, o // 4, o), "n3": bn_params(o)}
    else:
        parts = {"c1": S(3, 3, i, o), "n1": bn_params(o), "c2": S(3, 3, o, o), "n2": bn_params(o)}
    return parts | ({"cs": S(1, 1, i, o), "ns": bn_params(o)} if i != o else {})


def residual(p, x, stride, bn):
    y = nn.relu(bn(p["n1"], conv(p["c1"], x, stride)))
    y = bn(p["n2"], conv(p["c2"], y))
    if "c3" in p:
        y = bn(p["n3"], conv(p["c3"], nn.relu(y)))
    return nn.relu(y + (bn(p["ns"], conv(p["cs"], x, stride)) if "cs" in p else x))


def resnet_params(counts, wide, width=16):
    sizes = [width * (2**k) * (4 if wide else 1) for k, n in enumerate(counts) for _ in range(n)]
    blocks = [residual_params(i, o, wide) for i, o in itertools.pairwise([width, *sizes])]
    return {"stem": S(7, 7, 3, width), "bn": bn_params(width), "blocks": blocks, "head": lin(sizes[-1], 10)}


def resnet(params, x, bn=bn_infer):
    x = pool(nn.relu(bn(params["bn"], conv(params["stem"], x, 2))), 3)
    for p in params["blocks"]:
        x = residual(p, x, 2 if "cs" in p and p["c1"].shape[2] > 16 else 1, bn)
    return dense(params["head"], x.mean((1, 2)))


def resnet_loss(params, x, label):
    return cross_entropy(resnet(params, x, bn_train), label)


IMAGES = S(2, 32, 32, 3)
enter("resnet", "resnet18_infer", resnet, resnet_params((2, 2, 2, 2), False), IMAGES)
enter("resnet", "resnet50_infer", resnet, resnet_params((3, 4, 6, 3), True), IMAGES)
enter(
    "resnet",
    "resnet10_train",
    *trained(resnet_loss, resnet_params((1, 1, 1, 1), False), IMAGES, ints(2), optimizer="momentum"),
)
enter(
    "resnet",
    "resnet18_train",
    *trained(resnet_loss, resnet_params((2, 2, 2, 2), False), IMAGES, ints(2), optimizer="momentum"),
)
enter("resnet", "resnet26_train", *trained(resnet_loss, resnet_params((2, 2, 2, 2), True), IMAGES, ints(2)))


# Vision.
VIT = {
    "patch": lin(4 * 4 * 3, W),
    "place": S(65, W),
    "cls": S(W),
    "blocks": gpt2_params(2)["blocks"],
    "ln": norm_params(W),
    "head": lin(W, 10),
}


def patches(x, size=4):
    b, h, w, c = x.shape
    x = x.reshape(b, h // size, size, w // size, size, c).transpose(0, 1, 3, 2, 4, 5)
    return x.reshape(b, -1, size * size * c)


def vit(params, x):
    x = dense(params["patch"], patches(x))
    x = jnp.concatenate([jnp.broadcast_to(params["cls"], (x.shape[0], 1, W)), x], 1) + params["place"]
    for p in params["blocks"]:
        x = gpt2_block(p, x, None)
    return dense(params["head"], layer_norm(params["ln"], x)[:, 0])


enter("vit", "vit_infer", vit, VIT, IMAGES)
enter("vit", "vit_train", *trained(lambda p, x, y: cross_entropy(vit(p, x), y), VIT, IMAGES, ints(2)))

MIXER = {
    "patch": lin(48, W),
    "blocks": [{"t": layers(64, 32, 64), "c": layers(W, 128, W), "n1": norm_params(W), "n2": norm_params(W)}]
    * 3,
    "head": lin(W, 10),
}


def mixer(params, x):
    x = dense(params["patch"], patches(x))
    for p in params["blocks"]:
        x = x + mlp(p["t"], layer_norm(p["n1"], x).swapaxes(1, 2), nn.gelu).swapaxes(1, 2)
        x = x + mlp(p["c"], layer_norm(p["n2"], x), nn.gelu)
    return dense(params["head"], x.mean(1))


enter(
    "vit",
    "mixer_train",
    *trained(lambda p, x, y: cross_entropy(mixer(p, x), y), MIXER, IMAGES, ints(2), clip=True),
)

UNET = {
    "down": [S(3, 3, 3, 8), S(3, 3, 8, 16), S(3, 3, 16, 32)],
    "up": [S(3, 3, 48, 16), S(3, 3, 24, 8)],
    "time": layers(16, 32, 32),
    "out": S(1, 1, 8, 3),
}


def unet(params, x, t):
    angles = t[:, None] * jnp.exp(-jnp.arange(8) / 8 * 9.2)
    embedded = mlp(params["time"], jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1), nn.silu)
    skips = []
    for w in params["down"]:
        x = nn.silu(conv(w, x))
        skips.append(x)
        x = lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4
    x = jax.image.resize(x, skips[2].shape, "nearest") + skips[2] + embedded[:, None, None]
    for w, skip in zip(params["up"], skips[1::-1], strict=True):
        x = jax.image.resize(x, (*skip.shape[:3], x.shape[3]), "nearest")
        x = nn.silu(conv(w, jnp.concatenate([x, skip], -1)))
    return conv(params["out"], x)


def diffusion_loss(params, x, key):
    k1, k2 = random.split(key)
    t, noise = random.uniform(k1, (x.shape[0],)), random.normal(k2, x.shape)
    a = jnp.cos(t * jnp.pi / 2)[:, None, None, None]
    return jnp.square(unet(params, a * x + jnp.sqrt(1 - a * a) * noise, t) - noise).mean()


enter("unet", "unet_infer", unet, UNET, IMAGES, S(2))
enter("unet", "diffusion_train", *trained(diffusion_loss, UNET, IMAGES, KEY))

VGG = {
    "convs": [S(3, 3, i, o) for i, o in itertools.pairwise((3, 8, 8, 16, 16, 32, 32))],
    "head": layers(512, 64, 10),
}


def vgg(params, x):
    for n, w in enumerate(params["convs"]):
        x = nn.relu(conv(w, x))
        x = pool(x) if n % 2 else x
    return mlp(params["head"], x.reshape(x.shape[0], -1))


enter("vgg", "vgg_infer", vgg, VGG, IMAGES)
enter(
    "vgg",
    "vgg_train",
    *trained(lambda p, x, y: cross_entropy(vgg(p, x), y), VGG, IMAGES, ints(2), optimizer="momentum"),
)

MOBILE = [{"up": S(1, 1, 8, 32), "depth": S(3, 3, 1, 32), "down": S(1, 1, 32, 8), "n": bn_params(32)}] * 3


@program("vgg", MOBILE, S(2, 16, 16, 8))
def mobilenet_infer(blocks, x):
    for p in blocks:
        y = jnp.clip(conv(p["up"], x), 0, 6)
        x = x + conv(p["down"], jnp.clip(bn_infer(p["n"], conv(p["depth"], y, groups=32)), 0, 6))
    return x.mean((1, 2))


GAN = {"g": layers(16, 64, 128, 64), "d": layers(64, 128, 64, 1)}


@program("gan", GAN, S(8, 64), KEY)
def gan_step(params, real, key):
    def generated(g):
        return jnp.tanh(mlp(g, random.normal(key, (real.shape[0], 16)), nn.leaky_relu))

    def d_loss(d):
        return nn.softplus(-mlp(d, real)).mean() + nn.softplus(mlp(d, generated(params["g"]))).mean()

    def g_loss(g):
        return nn.softplus(-mlp(params["d"], generated(g))).mean()

    d, g = jax.grad(d_loss)(params["d"]), jax.grad(g_loss)(params["g"])
    return {"g": sgd(params["g"], g), "d": sgd(params["d"], d)}


@program("gan", GAN, S(8, 64), KEY)
def wgan_penalty_step(params, real, key):
    k1, k2 = random.split(key)
    fake = mlp(params["g"], random.normal(k1, (real.shape[0], 16)), nn.leaky_relu)

    def critic(d, x):
        return mlp(d, x, nn.tanh)[..., 0]

    def loss(d):
        mix = random.uniform(k2, (real.shape[0], 1))
        slope = jax.vmap(jax.grad(lambda x: critic(d, x)))(mix * real + (1 - mix) * fake)
        penalty = jnp.square(jnp.sqrt(jnp.square(slope).sum(-1) + 1e-12) - 1).mean()
        return critic(d, fake).mean() - critic(d, real).mean() + 10 * penalty

    return sgd(params["d"], jax.grad(loss)(params["d"]), 1e-3)


VAE = {"e": layers(64, 64, 32), "d": layers(16, 64, 64)}


def vae_loss(params, x, key):
    mean, log_var = jnp.split(mlp(params["e"], x), 2, -1)
    z = mean + jnp.exp(log_var / 2) * random.normal(key, mean.shape)
    logits = mlp(params["d"], z)
    likelihood = jnp.maximum(logits, 0) - logits * x + jnp.log1p(jnp.exp(-jnp.abs(logits)))
    return likelihood.sum(-1).mean() - (1 + log_var - mean**2 - jnp.exp(log_var)).sum(-1).mean() / 2


enter("gan", "vae_train", *trained(vae_loss, VAE, S(8, 64), KEY))

NERF = layers(36, 64, 64, 4)


@program("nerf", NERF, S(16, 3), S(16, 3), S(16, 3))
def nerf_render_grad(params, origin, direction, target):
    def loss(params):
        t = jnp.linspace(0.1, 4.0, 24)
        points = origin[:, None] + t[:, None] * direction[:, None]
        angles = (points[..., None] * 2.0 ** jnp.arange(6)).reshape(*points.shape[:2], -1)
        out = mlp(params, jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1))
        delta = jnp.concatenate([jnp.diff(t), jnp.array([1e3])])
        alpha = 1 - jnp.exp(-nn.relu(out[..., 3]) * delta)
        through = jnp.cumprod(1 - alpha + 1e-10, -1)
        through = jnp.concatenate([jnp.ones_like(through[:, :1]), through[:, :-1]], -1)
        colour = ((alpha * through)[..., None] * nn.sigmoid(out[..., :3])).sum(1)
        return jnp.square(colour - target).mean()

    return jax.value_and_grad(loss)(params)


# Control.
ACTOR = {"pi": layers(8, 64, 64, 4), "v": layers(8, 64, 64, 1)}


def dqn_loss(params, target, s, a, r, s2, done):
    chosen = jnp.take_along_axis(mlp(params, s), a[:, None], -1)[:, 0]
    best = jnp.take_along_axis(mlp(target, s2), mlp(params, s2).argmax(-1)[:, None], -1)[:, 0]
    error = chosen - lax.stop_gradient(r + 0.99 * (1 - done) * best)
    return jnp.where(jnp.abs(error) < 1, error**2 / 2, jnp.abs(error) - 0.5).mean()


STEP = S(32, 8), ints(32), S(32), S(32, 8), S(32)
enter("rl", "dqn_update", *trained(dqn_loss, ACTOR["pi"], ACTOR["pi"], *STEP))


def ppo_loss(params, s, a, old, advantage, returns):
    logp = nn.log_softmax(mlp(params["pi"], s, jnp.tanh))
    ratio = jnp.exp(jnp.take_along_axis(logp, a[:, None], -1)[:, 0] - old)
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    policy = jnp.minimum(ratio * advantage, jnp.clip(ratio, 0.8, 1.2) * advantage).mean()
    value = jnp.square(mlp(params["v"], s, jnp.tanh)[:, 0] - returns).mean()
    return value / 2 - policy + 0.01 * (jnp.exp(logp) * logp).sum(-1).mean()


enter("rl", "ppo_update", *trained(ppo_loss, ACTOR, S(32, 8), ints(32), S(32), S(32), S(32), clip=True))


@program("rl", ACTOR, S(16, 4, 8), ints(16, 4), S(16, 4), S(16, 4))
def actor_critic_grad(params, s, a, r, done):
    def loss(params):
        values = mlp(params["v"], s)[..., 0]

        def back(carry, x):
            r, d, v = x
            carry = r + 0.99 * (1 - d) * carry
            return carry, carry - v

        _, advantage = lax.scan(back, jnp.zeros(4), (r, done, values), reverse=True)
        logp = jnp.take_along_axis(nn.log_softmax(mlp(params["pi"], s)), a[..., None], -1)[..., 0]
        return (jnp.square(advantage) / 2 - logp * lax.stop_gradient(advantage)).mean()

    return jax.grad(loss)(params)


@program("rl", ACTOR["v"], S(8), KEY)
def cem_plan(params, start, key):
    def step(carry, key):
        mean, deviation = carry
        tries = mean + deviation * random.normal(key, (64, 8))
        scores = mlp(params, start + tries)[:, 0]
        elite = tries[lax.top_k(scores, 8)[1]]
        return (elite.mean(0), elite.std(0) + 1e-3), scores.max()

    return lax.scan(step, (jnp.zeros(8), jnp.ones(8)), random.split(key, 5))


def cartpole(state, force):
    x, v, a, w = state
    total = (force + 0.05 * w * w * jnp.sin(a)) / 1.1
    bend = (9.8 * jnp.sin(a) - jnp.cos(a) * total) / (0.5 * (4 / 3 - 0.1 * jnp.cos(a) ** 2 / 1.1))
    return x + 0.02 * v, v + 0.02 * (total - 0.05 * bend * jnp.cos(a) / 1.1), a + 0.02 * w, w + 0.02 * bend


@program("rl", layers(4, 32, 1), S(4))
def cartpole_scan(params, state):
    def cost(params):
        def step(s, _):
            s = cartpole(s, 10 * jnp.tanh(mlp(params, jnp.stack(s))[0]))
            return s, -(s[0] ** 2 + 10 * s[2] ** 2)

        return lax.scan(step, tuple(state), None, length=50)[1].sum()

    return jax.grad(cost)(params)


SAC = {"q": [layers(10, 64, 1), layers(10, 64, 1)], "pi": layers(8, 64, 4)}


@program("rl", SAC, SAC["q"], S(32, 8), S(32, 2), S(32), S(32, 8), S(), KEY)
def sac_update(params, target, s, a, r, s2, log_alpha, key):
    def act(pi, s, key):
        mean, log_std = jnp.split(mlp(pi, s), 2, -1)
        noise = random.normal(key, mean.shape)
        u = mean + jnp.exp(jnp.clip(log_std, -5, 2)) * noise
        logp = (-(noise**2) / 2 - log_std - 2 * (jnp.log(2.0) - u - nn.softplus(-2 * u))).sum(-1)
        return jnp.tanh(u), logp

    def smallest(qs, s, a):
        return jnp.minimum(*(mlp(q, jnp.concatenate([s, a], -1))[:, 0] for q in qs))

    def q_loss(qs):
        a2, logp = act(params["pi"], s2, key)
        goal = r + 0.99 * (smallest(target, s2, a2) - jnp.exp(log_alpha) * logp)
        goal = lax.stop_gradient(goal)
        return sum(jnp.square(mlp(q, jnp.concatenate([s, a], -1))[:, 0] - goal).mean() for q in qs)

    def pi_loss(pi):
        a, logp = act(pi, s, key)
        return (jnp.exp(log_alpha) * logp - smallest(params["q"], s, a)).mean()

    qs = sgd(params["q"], jax.grad(q_loss)(params["q"]), 1e-3)
    pi = sgd(params["pi"], jax.grad(pi_loss)(params["pi"]), 1e-3)
    return {"q": qs, "pi": pi}, jax.tree.map(lambda t, q: 0.995 * t + 0.005 * q, target, qs)


# Science.
@program("physics", S(32, 3), S(32, 3), S(32))
def nbody(x, v, m):
    def force(x):
        d = x[None] - x[:, None]
        return (m[None, :, None] * d * ((d**2).sum(-1, keepdims=True) + 1e-3) ** -1.5).sum(1)

    def step(c, _):
        x, v = c
        v = v + 0.005 * force(x)
        x = x + 0.01 * v
        return (x, v + 0.005 * force(x)), (v**2).sum()

    return lax.scan(step, (x, v), None, length=20)


@program("physics", S(32, 32))
def heat_equation(u):
    def step(_, u):
        lap = sum(jnp.roll(u, s, a) for s in (1, -1) for a in (0, 1)) - 4 * u
        return (u + 0.1 * lap).at[0].set(1.0).at[-1].set(0.0)

    return lax.fori_loop(0, 100, step, u)


def lj_energy(x, box=5.0):
    d = x[:, None] - x[None]
    d = d - box * jnp.round(d / box)
    r2 = (d**2).sum(-1) + jnp.eye(x.shape[0])
    s6 = r2**-3
    pair = jnp.where((r2 < 6.25) & ~jnp.eye(x.shape[0], dtype=bool), 4 * (s6**2 - s6), 0)
    return pair.sum() / 2


@program("physics", S(24, 3), S(24, 3))
def lennard_jones(x, v):
    def step(c, _):
        x, v, f = c
        x = (x + 0.01 * v + 0.5e-4 * f) % 5.0
        new = -jax.grad(lj_energy)(x)
        return (x, v + 0.005 * (f + new), new), lj_energy(x)

    return lax.scan(step, (x, v, -jax.grad(lj_energy)(x)), None, length=10)


@program("physics", S(24, 24), S(24, 24), S(24, 24))
def shallow_water(h, u, v):
    def step(c, _):
        h, u, v = c
        dx = lambda a: (jnp.roll(a, -1, 0) - jnp.roll(a, 1, 0)) / 2  # noqa: E731
        dy = lambda a: (jnp.roll(a, -1, 1) - jnp.roll(a, 1, 1)) / 2  # noqa: E731
        u, v = u - 0.1 * dx(h) + 0.01 * v, v - 0.1 * dy(h) - 0.01 * u
        return (h - 0.1 * (dx(h * u) + dy(h * v)), u, v), None

    return lax.scan(step, (h, u, v), None, length=10)[0]


def option(start, strike, rate, vol, t):
    d1 = (jnp.log(start / strike) + (rate + vol**2 / 2) * t) / (vol * jnp.sqrt(t))
    cdf = jax.scipy.stats.norm.cdf
    return start * cdf(d1) - strike * jnp.exp(-rate * t) * cdf(d1 - vol * jnp.sqrt(t))


@program("finance", *[S(64)] * 5)
def black_scholes_greeks(*args):
    return jax.vmap(jax.value_and_grad(option, argnums=(0, 2, 3, 4)))(*args)


@program("finance", S(), S(), KEY)
def monte_carlo_option(start, vol, key):
    def price(start, vol):
        noise = random.normal(key, (256, 16))
        paths = start * jnp.exp(jnp.cumsum(-(vol**2) / 32 + vol * noise / 4, -1))
        return nn.relu(paths.mean(-1) - 1.0).mean()

    return jax.value_and_grad(price, argnums=(0, 1))(start, vol)


@program("signal", S(256), S(33))
def fft_filter(x, taps):
    n = x.shape[0]
    return jnp.fft.irfft(jnp.fft.rfft(x) * jnp.fft.rfft(taps, n), n), jnp.abs(jnp.fft.fft(x)) ** 2


@program("signal", S(512), S(64, 20))
def mel_spectrogram(x, bank):
    frames = x[jnp.arange(0, 386, 32)[:, None] + jnp.arange(126)] * jnp.hanning(126)
    power = jnp.abs(jnp.fft.rfft(frames, axis=-1)) ** 2
    mel = jnp.log(power @ bank + 1e-6)
    return (mel - mel.mean(0)) / (mel.std(0) + 1e-5)


@program("solver", S(20, 2), S(4, 4), S(2, 4), S(4, 4), S(2, 2))
def kalman_filter(observed, a, h, q, r):
    def step(c, y):
        x, p = a @ c[0], a @ c[1] @ a.T + q
        s = h @ p @ h.T + r
        gain = jnp.linalg.solve(s, h @ p).T
        x = x + gain @ (y - h @ x)
        return (x, (jnp.eye(4) - gain @ h) @ p), x

    return lax.scan(step, (jnp.zeros(4), jnp.eye(4)), observed)


@program("solver", layers(4, 32, 4), S(4), S(10, 4))
def neural_ode_grad(params, y0, target):
    def loss(params):
        def slope(y):
            return mlp(params, y, jnp.tanh)

        def step(y, _):
            k1 = slope(y)
            k2 = slope(y + 0.05 * k1)
            k3 = slope(y + 0.05 * k2)
            y = y + 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + slope(y + 0.1 * k3))
            return y, y

        return jnp.square(lax.scan(step, y0, None, length=10)[1] - target).mean()

    return jax.grad(loss)(params)


@program("solver", S(32, 32), S(32))
def conjugate_gradient(a, b):
    a = a @ a.T + jnp.eye(32)
    return jax.scipy.sparse.linalg.cg(lambda x: a @ x, b, maxiter=20)[0]


@program("solver", S(16, 16), S(16), S())
def newton_logistic(x, y, ridge):
    def loss(w):
        return nn.softplus(-y * (x @ w)).mean() + ridge * (w @ w)

    def step(_, w):
        return w - jnp.linalg.solve(jax.hessian(loss)(w), jax.grad(loss)(w))

    return lax.fori_loop(0, 5, step, jnp.zeros(16))


def gp_loss(params, x, y):
    scale, length, noise = jnp.exp(params)
    d = ((x[:, None] - x[None]) ** 2).sum(-1)
    k = scale * jnp.exp(-d / length) + noise * jnp.eye(x.shape[0])
    factor = jnp.linalg.cholesky(k)
    solved = jax.scipy.linalg.cho_solve((factor, True), y)
    return y @ solved / 2 + jnp.log(jnp.diagonal(factor)).sum()


enter("bayes", "gaussian_process_grad", jax.value_and_grad(gp_loss), S(3), S(16, 2), S(16))


@program("bayes", S(4), S(32, 4), S(32), KEY)
def hmc_step(w, x, y, key):
    def energy(w):
        return nn.softplus(-y * (x @ w)).sum() + (w @ w) / 2

    k1, k2 = random.split(key)
    p0 = random.normal(k1, w.shape)

    def leap(c, _):
        w, p = c
        p = p - 0.05 * jax.grad(energy)(w)
        w = w + 0.1 * p
        return (w, p - 0.05 * jax.grad(energy)(w)), None

    (new, p), _ = lax.scan(leap, (w, p0), None, length=8)
    odds = energy(w) + (p0 @ p0) / 2 - energy(new) - (p @ p) / 2
    return jnp.where(jnp.log(random.uniform(k2)) < odds, new, w)


# Sequences.
LSTM = {"e": S(64, 32), "w": S(64, 128), "b": S(128), "out": lin(32, 64)}


def lstm_loss(params, tokens):
    def cell(c, x):
        h, state = c
        i, f, g, o = jnp.split(jnp.concatenate([x, h], -1) @ params["w"] + params["b"], 4, -1)
        state = nn.sigmoid(f + 1) * state + nn.sigmoid(i) * jnp.tanh(g)
        h = nn.sigmoid(o) * jnp.tanh(state)
        return (h, state), h

    start = jnp.zeros((tokens.shape[0], 32))
    h = lax.scan(cell, (start, start), params["e"][tokens[:, :-1]].swapaxes(0, 1))[1]
    return cross_entropy(dense(params["out"], h), tokens[:, 1:].T)


enter("recurrent", "lstm_train", *trained(lstm_loss, LSTM, ints(4, 17), clip=True))
GRU = {"z": lin(48, 32), "r": lin(48, 32), "n": lin(48, 32), "out": lin(32, 8)}


def gru_loss(params, x, y):
    def cell(h, x):
        joint = jnp.concatenate([x, h], -1)
        z, r = nn.sigmoid(dense(params["z"], joint)), nn.sigmoid(dense(params["r"], joint))
        h = (1 - z) * h + z * jnp.tanh(dense(params["n"], jnp.concatenate([x, r * h], -1)))
        return h, None

    return cross_entropy(dense(params["out"], lax.scan(cell, jnp.zeros((4, 32)), x)[0]), y)


enter("recurrent", "gru_train", *trained(gru_loss, GRU, S(12, 4, 16), ints(4)))
enter("recurrent", "gru_infer", gru_loss, GRU, S(12, 4, 16), ints(4))
MAMBA = {
    "in": lin(32, 128),
    "conv": S(4, 64),
    "bc": lin(64, 16),
    "dt": lin(64, 64),
    "a": S(64, 8),
    "out": lin(64, 32),
}


def mamba(params, x):
    u, gate = jnp.split(dense(params["in"], x), 2, -1)
    padded = jnp.pad(u, ((0, 0), (3, 0), (0, 0)))
    u = nn.silu(sum(padded[:, k : k + u.shape[1]] * params["conv"][k] for k in range(4)))
    b, c = jnp.split(dense(params["bc"], u), 2, -1)
    dt = nn.softplus(dense(params["dt"], u))[..., None]
    decay, entered = jnp.exp(-dt * jnp.exp(params["a"])), dt * b[:, :, None] * u[..., None]
    merge = lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1])  # noqa: E731
    _, h = lax.associative_scan(merge, (decay, entered), axis=1)
    return dense(params["out"], (h * c[:, :, None]).sum(-1) * nn.silu(gate))


enter("state_space", "mamba_infer", mamba, MAMBA, S(2, 16, 32))
enter(
    "state_space",
    "mamba_train",
    *trained(lambda p, x, y: jnp.square(mamba(p, x) - y).mean(), MAMBA, *[S(2, 16, 32)] * 2),
)


@program("state_space", S(64, 32), S(32, 64), S(64), ints(4, 4), S(4), ints(4), S(4, 32))
def beam_search_step(embed, out, bias, beams, scores, token, h):
    h = jnp.tanh(h + embed[token])
    joint = scores[:, None] + nn.log_softmax(h @ out + bias)
    scores, flat = lax.top_k(joint.reshape(-1), 4)
    parent, token = flat // 64, flat % 64
    return jnp.concatenate([beams[parent][:, 1:], token[:, None]], 1), scores, token, h[parent]


LLAMA = [
    {
        "q": S(W, W),
        "k": S(W, W),
        "v": S(W, W),
        "o": S(W, W),
        "g": S(W, 128),
        "u": S(W, 128),
        "d": S(128, W),
        "n1": S(W),
        "n2": S(W),
    }
]


def rope(x):
    half = x.shape[-1] // 2
    angle = jnp.arange(x.shape[1])[:, None] * 10000.0 ** (-jnp.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate(
        [a * jnp.cos(angle) - b * jnp.sin(angle), b * jnp.cos(angle) + a * jnp.sin(angle)], -1
    )


def llama(blocks, x):
    mask = jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool))
    for p in blocks:
        h = rms_norm(p["n1"], x)
        x = x + attention(rope(h @ p["q"]), rope(h @ p["k"]), h @ p["v"], H, mask) @ p["o"]
        h = rms_norm(p["n2"], x)
        x = x + (nn.silu(h @ p["g"]) * (h @ p["u"])) @ p["d"]
    return x


enter("llama", "llama_infer", llama, LLAMA * 3, S(2, 16, W))
enter(
    "llama",
    "llama_train",
    *trained(lambda p, x, y: jnp.square(llama(p, x) - y).mean(), LLAMA * 2, *[S(2, 16, W)] * 2, clip=True),
)


# Other learning.
@program("meta", layers(4, 32, 32, 1), *[S(3, 8, 4), S(3, 8, 1)] * 2)
def maml_step(params, x1, y1, x2, y2):
    def loss(p, x, y):
        return jnp.square(mlp(p, x) - y).mean()

    def task(p, x1, y1, x2, y2):
        for _ in range(2):
            p = sgd(p, jax.grad(loss)(p, x1, y1), 0.05)
        return loss(p, x2, y2)

    return sgd(
        params, jax.grad(lambda p: jax.vmap(task, (None, 0, 0, 0, 0))(p, x1, y1, x2, y2).mean())(params)
    )


@program("meta", layers(4, 32, 1), *[S(16, 4), S(16, 1)] * 2)
def reptile_hessian(params, x1, y1, x2, y2):
    def loss(p, x, y):
        return jnp.square(mlp(p, x, jnp.tanh) - y).mean()

    g = jax.grad(loss)(params, x2, y2)
    return jax.jvp(lambda p: jax.grad(loss)(p, x1, y1), (params,), (g,))[1]


DLRM = {"tables": [S(100, 16)] * 4, "bottom": layers(13, 32, 16), "top": layers(26, 32, 1)}


def dlrm_loss(params, numbers, ids, label):
    rows = [t[ids[:, k]] for k, t in enumerate(params["tables"])]
    joint = jnp.stack([mlp(params["bottom"], numbers), *rows], 1)
    pairs = jnp.einsum("bik,bjk->bij", joint, joint)
    i, j = jnp.tril_indices(5, -1)
    logit = mlp(params["top"], jnp.concatenate([joint[:, 0], pairs[:, i, j]], -1))[:, 0]
    return (nn.softplus(logit) - label * logit).mean()


enter("recommender", "dlrm_train", *trained(dlrm_loss, DLRM, S(16, 13), ints(16, 4), S(16)))
MOE = {"gate": S(32, 4), "w1": S(4, 32, 64), "w2": S(4, 64, 32)}


def moe(params, x):
    value, index = lax.top_k(nn.softmax(x @ params["gate"]), 2)
    mask = nn.one_hot(index, 4) * (value / value.sum(-1, keepdims=True))[..., None]
    place = jnp.cumsum(nn.one_hot(index, 4).sum(1), 0) - 1
    dispatch = nn.one_hot(place.astype(I32), 16) * (mask.sum(1) > 0)[..., None]
    entered = jnp.einsum("tec,td->ecd", dispatch, x)
    out = jnp.einsum("ecf,efd->ecd", nn.gelu(jnp.einsum("ecd,edf->ecf", entered, params["w1"])), params["w2"])
    return jnp.einsum("ecd,tec->td", out, dispatch * mask.sum(1)[..., None])


enter(
    "experts", "moe_grad", jax.grad(lambda p, x, y: jnp.square(moe(p, x) - y).mean()), MOE, *[S(24, 32)] * 2
)
enter("experts", "moe_infer", moe, MOE, S(24, 32))


@program("clustering", S(128, 4), S(8, 4))
def kmeans(points, centres):
    def step(_, centres):
        nearest = ((points[:, None] - centres) ** 2).sum(-1).argmin(-1)
        sums = jax.ops.segment_sum(points, nearest, 8)
        return sums / jnp.maximum(jax.ops.segment_sum(jnp.ones(128), nearest, 8), 1)[:, None]

    return lax.fori_loop(0, 10, step, centres)


@program("clustering", S(64, 4), S(3, 4), S(3, 4), S(3))
def mixture_em(x, mean, var, weight):
    logp = -((x[:, None] - mean) ** 2 / var + jnp.log(var)).sum(-1) / 2 + jnp.log(weight)
    r = nn.softmax(logp, -1)
    n = r.sum(0)
    mean = (r.T @ x) / n[:, None]
    return (
        mean,
        (r[..., None] * (x[:, None] - mean) ** 2).sum(0) / n[:, None],
        n / 64,
        nn.logsumexp(logp, -1).sum(),
    )


def dropout_mlp_loss(params, x, y, key):
    for n, p in enumerate(params[:-1]):
        x = dropout(random.fold_in(key, n), nn.relu(dense(p, x)), 0.5)
    return cross_entropy(dense(params[-1], x), y)


enter(
    "mlp",
    "dropout_mlp_train",
    *trained(dropout_mlp_loss, layers(32, 64, 64, 64, 10), S(16, 32), ints(16), KEY),
)
enter(
    "mlp",
    "mlp_train",
    *trained(
        lambda p, x, y: cross_entropy(mlp(p, x), y),
        layers(32, 64, 64, 10),
        S(16, 32),
        ints(16),
        optimizer="momentum",
    ),
)
enter(
    "mlp",
    "siren_jacobian",
    jax.vmap(jax.jacfwd(functools.partial(mlp, act=jnp.sin)), (None, 0)),
    layers(2, 32, 32, 3),
    S(16, 2),
)
GNN = {"edge": layers(20, 32, 16), "node": layers(24, 32, 8), "out": lin(8, 4)}


def gnn(params, x, e, source, target):
    for _ in range(2):
        message = mlp(params["edge"], jnp.concatenate([x[source], x[target], e], -1))
        x = x + mlp(params["node"], jnp.concatenate([x, jax.ops.segment_sum(message, target, 20)], -1))
    return dense(params["out"], x.mean(0))


GRAPH = S(20, 8), S(60, 4), ints(60), ints(60)
enter("graphs", "gnn_infer", gnn, GNN, *GRAPH)
enter(
    "graphs",
    "gnn_train",
    *trained(lambda p, *a: cross_entropy(gnn(p, *a[:-1]), a[-1]), GNN, *GRAPH, S(dtype=I32)),
)


@program("graphs", S(8, 8), S(8, 1), S(20, 8), ints(60), ints(60))
def graph_attention(w, a, x, source, target):
    h = x @ w
    logit = nn.leaky_relu((h[source] @ a + h[target] @ a)[:, 0])
    weight = jnp.exp(logit - jax.ops.segment_max(logit, target, 20)[target])
    total = jax.ops.segment_sum(weight, target, 20)[target]
    return nn.elu(jax.ops.segment_sum(h[source] * (weight / total)[:, None], target, 20))


UNSEEN = {"llama", "unet", "nerf", "graphs", "solver", "experts", "bayes"}
"""Families with no graph in training."""
TEST = {n for n, family in FAMILY.items() if family in UNSEEN} | {
    *(f"gpt2_train_{depth}" for depth in (3, 5, 7, 8, 9, 10, 11, 12)),
    "gpt2_dropout_train",
    "gpt2_decode",
    "bert_infer_6",
    "bert_train_3",
    "resnet50_infer",
    "resnet26_train",
    "vit_train",
    "vgg_train",
    "wgan_penalty_step",
    "ppo_update",
    "cartpole_scan",
    "sac_update",
    "lennard_jones",
    "black_scholes_greeks",
    "fft_filter",
    "gru_train",
    "mamba_train",
    "maml_step",
    "mixture_em",
    "dropout_mlp_train",
}
"""Graphs that nothing may be chosen or learned on."""
