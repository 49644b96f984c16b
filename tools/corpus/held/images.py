"""Programs of no library but JAX on images and sound."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from arguments import BF16, F32, KEY, S, entering_when_asked, ints
from jax import lax, nn, random
from language import attend
from steps import (
    labelled,
    layers,
    perceptron,
)

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


def convolve(x, w, stride=1):
    return lax.conv_general_dilated(
        x, w.astype(x.dtype), (stride,) * 2, "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


@program
def guided_heun_sampling_bf16():
    sizes = (3, 32), (32, 32), (32, 64), (64, 64), (96, 32), (32, 3)
    params = {"conv": [S(3, 3, *n) for n in sizes], "time": [S(32, 64), S(64, 224)], "label": S(11, 64)}
    params |= {"qkv": S(64, 192), "out": S(64, 64)}

    def norm(x, scale):
        wide = x.astype(F32).reshape(*x.shape[:3], 8, -1)
        wide = (wide - wide.mean((1, 2, 4), keepdims=True)) * lax.rsqrt(
            wide.var((1, 2, 4), keepdims=True) + 1e-5
        )
        return nn.silu(wide.reshape(x.shape) * (1 + scale[:, None, None])).astype(x.dtype)

    def net(p, x, noise, label):
        turn = noise[:, None] * jnp.exp(jnp.linspace(0, -8, 16))
        c = jnp.concatenate([jnp.sin(turn), jnp.cos(turn)], -1) @ p["time"][0] + p["label"][label]
        s = jnp.split(nn.silu(c) @ p["time"][1], (32, 64, 128, 192), -1)
        w = p["conv"]
        x = convolve(x.astype(BF16), w[0])
        x = skip = x + convolve(norm(x, s[0]), w[1])
        x = convolve(norm(x, s[1]), w[2], 2)
        x = x + convolve(norm(x, s[2]), w[3])
        y = norm(x, s[3]).reshape(x.shape[0], -1, 64)
        q, k, v = (z.reshape(*y.shape[:2], 2, 32) for z in jnp.split(y @ p["qkv"].astype(BF16), 3, -1))
        x = x + (attend(q, k, v).reshape(y.shape) @ p["out"].astype(BF16)).reshape(x.shape)
        x = jax.image.resize(x, (x.shape[0], 16, 16, 64), "nearest")
        x = convolve(jnp.concatenate([x, skip], -1), w[4])
        return convolve(norm(x, s[4]), w[5]).astype(F32)

    def clean(p, x, sigma, label):
        total = sigma**2 + 0.25
        both, labels = jnp.concatenate([x, x]), jnp.concatenate([label, jnp.full_like(label, 10)])
        noise = jnp.broadcast_to(jnp.log(sigma) / 4, labels.shape)
        out = net(p, both * lax.rsqrt(total), noise, labels)
        given, free = jnp.split(both * 0.25 / total + out * sigma * 0.5 * lax.rsqrt(total), 2)
        return free + 3.0 * (given - free)

    def sample(p, key, label):
        ramp = np.linspace(0, 1, 18)
        sigmas = (80 ** (1 / 7) + ramp * (0.002 ** (1 / 7) - 80 ** (1 / 7))) ** 7
        pairs = jnp.asarray(np.stack([sigmas, np.append(sigmas[1:], 0)], 1), F32)
        first, key = random.split(key)

        def one(x, at):
            (now, after), key = at
            wide = now + jnp.where((now > 0.05) & (now < 50), 0.4 * now, 0.0)
            x = x + jnp.sqrt(wide**2 - now**2) * 1.003 * random.normal(key, x.shape)
            d = (x - clean(p, x, wide, label)) / wide
            euler = x + (after - wide) * d

            def second(_):
                d2 = (euler - clean(p, euler, after, label)) / after
                return x + (after - wide) * 0.5 * (d + d2)

            return lax.cond(after > 0, second, lambda _: euler, None), None

        x = pairs[0, 0] * random.normal(first, (label.shape[0], 16, 16, 3))
        x, _ = lax.scan(one, x, (pairs, random.split(key, 18)))
        return jnp.clip(x * 127.5 + 128, 0, 255).astype(jnp.uint8)

    return sample, (params, KEY, ints(4))


@program
def augmented_pairs_contrastive():
    params = {
        "conv": [S(3, 3, *n) for n in ((3, 32), (32, 64), (64, 128))],
        "scale": [S(2, n) for n in (32, 64, 128)],
    }
    params["head"] = layers(128, 128, 64)

    def augment(key, image):
        k = random.split(key, 7)
        size = jnp.sqrt(random.uniform(k[0], (), minval=0.2))
        corner = random.uniform(k[1], (2,)) * (1 - size) * 32
        scale = jnp.array([1.0, 1.0]) / size
        image = jax.image.scale_and_translate(
            image, (32, 32, 3), (0, 1), scale, -corner * scale, method="bilinear", antialias=False
        )
        image = jnp.where(random.bernoulli(k[2]), image[:, ::-1], image)
        b, c, s = random.uniform(k[3], (3,), minval=0.6, maxval=1.4)
        image = jnp.clip(image * b, 0, 1)
        image = jnp.clip((image - image.mean((0, 1))) * c + image.mean((0, 1)), 0, 1)
        grey = image @ jnp.array([0.299, 0.587, 0.114])
        image = jnp.clip(grey[..., None] + (image - grey[..., None]) * s, 0, 1)
        image = jnp.where(random.bernoulli(k[4], 0.2), jnp.broadcast_to(grey[..., None], image.shape), image)
        sigma = random.uniform(k[5], (), minval=0.1, maxval=2.0)
        line = jnp.exp(-0.5 * (jnp.arange(-3, 4) / sigma) ** 2)
        line = line / line.sum()
        blur = jax.vmap(jax.vmap(functools.partial(jnp.convolve, v=line, mode="same"), 1, 1), 2, 2)
        blurred = blur(blur(image).swapaxes(0, 1)).swapaxes(0, 1)
        return jnp.where(random.bernoulli(k[6]), blurred, image)

    def net(p, x):
        for w, (g, b) in zip(p["conv"], p["scale"]):
            x = convolve(x, w)
            mean, var = x.mean((0, 1, 2)), x.var((0, 1, 2))
            x = nn.relu((x - mean) * lax.rsqrt(var + 1e-5) * g + b)
            x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        z = perceptron(p["head"], x.mean((1, 2)))
        return z / jnp.linalg.norm(z, axis=-1, keepdims=True)

    def loss(p, key, images):
        keys = random.split(key, 2 * images.shape[0])
        views = jax.vmap(augment)(keys, jnp.concatenate([images, images]) / 255.0)
        z = net(p, (views - 0.45) / 0.22)
        s = z @ z.T / 0.1 - 1e9 * jnp.eye(z.shape[0])
        other = jnp.roll(jnp.arange(z.shape[0]), images.shape[0])
        return labelled(s, other), jnp.mean(s.argmax(-1) == other)

    def step(p, m, key, images):
        (value, right), grads = jax.value_and_grad(loss, has_aux=True)(p, key, images)

        def update(p, m, g):
            if p.ndim > 1:
                g = g + 1e-6 * p
                a, b = jnp.linalg.norm(p), jnp.linalg.norm(g)
                g = g * jnp.where((a > 0) & (b > 0), 1e-3 * a / b, 1.0)
            m = 0.9 * m + 0.3 * g
            return p - m, m

        both = jax.tree.map(update, p, m, grads)
        pick = lambda n: jax.tree.map(lambda z: z[n], both, is_leaf=lambda z: isinstance(z, tuple))
        return pick(0), pick(1), value, right

    return step, (params, params, KEY, S(16, 32, 32, 3, dtype=jnp.uint8))
