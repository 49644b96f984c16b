"""Programs that see: classification in half precision, generation, detection and motion."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
from arguments import F16, F32, KEY, S, entering_when_asked, ints
from convolutions import IMAGE, convolve
from jax import lax, nn, random
from steps import keras_shapes, shapes_of

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def haiku_inverted_residual_f16_scaled():
    import haiku as hk
    import jmp
    import optax

    policy = jmp.get_policy("params=float32,compute=float16,output=float16")
    wide = jmp.get_policy("params=float32,compute=float32,output=float16")

    class Block(hk.Module):
        def __init__(self, out, stride, expand, kernel, drop, name=None):
            super().__init__(name)
            self.out, self.stride, self.expand, self.kernel, self.drop = out, stride, expand, kernel, drop

        def __call__(self, x, training):
            norm = lambda y: hk.BatchNorm(True, True, 0.99)(y, training)
            n = x.shape[-1] * self.expand
            y = x
            if self.expand > 1:
                y = nn.silu(norm(hk.Conv2D(n, 1, with_bias=False)(y)))
            y = hk.DepthwiseConv2D(1, self.kernel, self.stride, with_bias=False)(y)
            y = nn.silu(norm(y))
            s = hk.Conv2D(max(8, x.shape[-1] // 4), 1)(y.mean((1, 2), keepdims=True))
            y = y * nn.sigmoid(hk.Conv2D(n, 1)(nn.silu(s)))
            y = norm(hk.Conv2D(self.out, 1, with_bias=False)(y))
            if self.stride > 1 or self.out != x.shape[-1]:
                return y
            if training:
                keep = random.bernoulli(hk.next_rng_key(), 1 - self.drop, (x.shape[0], 1, 1, 1))
                y = jnp.where(keep, y / (1 - self.drop), 0).astype(x.dtype)
            return x + y

    class Net(hk.Module):
        def __call__(self, x, training):
            x = hk.Conv2D(16, 3, 2, with_bias=False)(x)
            x = nn.silu(hk.BatchNorm(True, True, 0.99)(x, training))
            plan = (16, 2, 1, 3), (24, 2, 4, 5), (24, 1, 4, 3)
            for i, (out, stride, expand, kernel) in enumerate(plan):
                x = Block(out, stride, expand, kernel, 0.1 * i)(x, training)
            x = nn.silu(hk.BatchNorm(True, True, 0.99)(hk.Conv2D(128, 1, with_bias=False)(x), training))
            x = x.mean((1, 2))
            if training:
                x = hk.dropout(hk.next_rng_key(), 0.2, x)
            return hk.Linear(100)(x)

    model = hk.transform_with_state(lambda x, training: Net()(x, training))

    def apply(params, stats, key, x, training):
        mixed = hk.mixed_precision
        with mixed.push_policy(Net, policy), mixed.push_policy(hk.BatchNorm, wide):
            return model.apply(params, stats, key, x, training)

    images, labels = S(16, 64, 64, 3), ints(16)
    params, stats = jax.eval_shape(lambda k, x: model.init(k, x, True), KEY, images)
    schedule = optax.join_schedules(
        [optax.linear_schedule(0.0, 0.1, 200), optax.exponential_decay(0.1, 240, 0.97, staircase=True)], [200]
    )
    kernels = lambda p: jax.tree.map(lambda x: x.ndim > 1, p)
    tx = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.add_decayed_weights(1e-5, mask=kernels),
        optax.trace(0.9, nesterov=True),
        optax.scale_by_learning_rate(schedule),
    )
    state = jax.eval_shape(tx.init, params)

    def step(params, stats, ema, state, size, since, key, images, labels):
        scale = jmp.DynamicLossScale(size, since, 500)
        k1, k2 = random.split(key)
        share = random.beta(k1, 0.2, 0.2)
        x = (share * images + (1 - share) * images[::-1] - 0.45) / 0.22

        def loss(params):
            logits, new = apply(params, stats, k2, x.astype(F16), True)
            y = nn.one_hot(labels, 100)
            y = 0.9 * (share * y + (1 - share) * y[::-1]) + 0.1 / 100
            value = optax.softmax_cross_entropy(logits.astype(F32), y).mean()
            return scale.scale(value), (value, new)

        (_, (value, new)), grads = jax.value_and_grad(loss, has_aux=True)(params)
        grads = scale.unscale(grads)
        fine = jmp.all_finite(grads)
        updates, after = tx.update(grads, state, params)
        moved = optax.apply_updates(params, updates)
        both = moved, after, new, optax.incremental_update(moved, ema, 1e-3)
        params, after, new, ema = jmp.select_tree(fine, both, (params, state, stats, ema))
        scale = scale.adjust(fine)
        return params, new, ema, after, scale.loss_scale, scale.counter, value, fine

    return step, (params, stats, params, state, S(), ints(), KEY, images, labels)


@program
def modulated_generator_penalty_step():
    import optax

    base, sizes = 64, (64, 48, 32)
    conv = lambda i, o: {"w": S(3, 3, i, o), "b": S(o), "style": S(base, i), "style_b": S(i), "noise": S()}
    pairs = list(itertools.pairwise(sizes))
    generator = {"map": [S(base, base)] * 2, "start": S(4, 4, sizes[0]), "first": conv(sizes[0], sizes[0])}
    generator |= {"up": [conv(*n) for n in pairs]}
    generator |= {
        "rgb": [{"w": S(1, 1, n, 3), "b": S(3), "style": S(base, n), "style_b": S(n)} for n in sizes]
    }
    judge = {
        "in": S(1, 1, 3, 32),
        "blocks": [],
        "dense": S(4 * 4 * 65, 64),
        "dense_b": S(64),
        "out": S(64, 1),
    }
    for i, o in ((32, 48), (48, 64)):
        block = {"a": S(3, 3, i, i), "a_b": S(i), "b": S(3, 3, i, o), "b_b": S(o), "skip": S(1, 1, i, o)}
        judge["blocks"].append(block)
    line = np.array([1, 3, 3, 1], np.float32)
    blur = np.outer(line, line) / 64

    def blurred(x, factor=1.0, padding=((2, 1), (2, 1))):
        n = x.shape[-1]
        kernel = jnp.broadcast_to(jnp.asarray(blur * factor)[:, :, None, None], (4, 4, 1, n))
        return convolve(x, kernel, groups=n, padding=padding)

    def rectified(x):
        return nn.leaky_relu(x, 0.2) * math.sqrt(2)

    def modulated(p, x, style, up=False, demodulated=True):
        b, h, w, n = x.shape
        k, o = p["w"].shape[0], p["w"].shape[-1]
        s = style @ p["style"] / math.sqrt(base) + p["style_b"] + 1
        weight = p["w"] / math.sqrt(k * k * n) * s[:, None, None, :, None]
        if demodulated:
            weight = weight * lax.rsqrt(jnp.sum(weight**2, (1, 2, 3), keepdims=True) + 1e-8)
        x = x.transpose(1, 2, 0, 3).reshape(1, h, w, b * n)
        weight = weight.transpose(1, 2, 3, 0, 4).reshape(k, k, n, b * o)
        if up:
            x = lax.conv_general_dilated(
                x,
                weight[::-1, ::-1],
                (1, 1),
                [(2, 2), (2, 2)],
                lhs_dilation=(2, 2),
                dimension_numbers=IMAGE,
                feature_group_count=b,
            )
        else:
            x = convolve(x, weight, groups=b)
        x = x.reshape(*x.shape[1:3], b, o).transpose(2, 0, 1, 3)
        return blurred(x, 4.0, ((1, 1), (1, 1))) if up else x

    def noisy(p, x, key):
        x = x + p["noise"] * random.normal(key, (*x.shape[:3], 1)) + p["b"]
        return jnp.clip(rectified(x), -256, 256)

    def generate(p, z, key):
        w = z * lax.rsqrt(jnp.mean(z**2, -1, keepdims=True) + 1e-8)
        for layer in p["map"]:
            w = rectified(w @ layer / math.sqrt(base))
        keys = random.split(key, 3)
        x = jnp.broadcast_to(p["start"], (z.shape[0], *p["start"].shape))
        x = noisy(p["first"], modulated(p["first"], x, w), keys[0])
        image = modulated(p["rgb"][0], x, w, demodulated=False) + p["rgb"][0]["b"]
        for i, (up, rgb) in enumerate(zip(p["up"], p["rgb"][1:])):
            x = noisy(up, modulated(up, x, w, up=True), keys[i + 1])
            wide = lax.pad(image, jnp.float32(0), ((0, 0, 0), (0, 1, 1), (0, 1, 1), (0, 0, 0)))
            image = blurred(wide, 4.0) + modulated(rgb, x, w, demodulated=False) + rgb["b"]
        return image

    def score(p, x):
        x = rectified(convolve(x, p["in"]))
        for block in p["blocks"]:
            y = rectified(convolve(x, block["a"] / math.sqrt(9 * x.shape[-1])) + block["a_b"])
            y = convolve(blurred(y), block["b"] / math.sqrt(9 * y.shape[-1]), 2)
            x = (rectified(y + block["b_b"]) + convolve(blurred(x)[:, ::2, ::2], block["skip"])) / math.sqrt(
                2
            )
        b, h, w, n = x.shape
        group = x.reshape(4, b // 4, h, w, n)
        spread = jnp.sqrt(group.var(0) + 1e-8).mean((1, 2, 3))
        spread = jnp.tile(spread[:, None, None, None], (4, h, w, 1))
        x = jnp.concatenate([x, spread], -1).reshape(b, -1)
        return (rectified(x @ p["dense"] + p["dense_b"]) @ p["out"])[:, 0]

    tx = optax.adam(2.5e-3, b1=0.0, b2=0.99)
    states = jax.eval_shape(tx.init, generator), jax.eval_shape(tx.init, judge)

    def step(at, g, d, ema, states, key, real):
        k = random.split(key, 5)
        z = random.normal(k[0], (2, real.shape[0], base))
        flip = random.bernoulli(k[4], 0.5, (real.shape[0], 1, 1, 1))
        real = jnp.where(flip, real[:, :, ::-1], real)

        def judged(d):
            fake = lax.stop_gradient(generate(g, z[0], k[1]))
            on_real, on_fake = score(d, real), score(d, fake)

            def penalty(d):
                slope = jax.grad(lambda x: score(d, x).sum())(real)
                return jnp.sum(slope**2, (1, 2, 3)).mean()

            extra = lax.cond(at % 16 == 0, penalty, lambda _: 0.0, d)
            value = nn.softplus(-on_real).mean() + nn.softplus(on_fake).mean()
            return value + 0.5 * 10 * 16 * extra, (jnp.sign(on_real).mean(), extra)

        (d_value, more), grads = jax.value_and_grad(judged, has_aux=True)(d)
        updates, d_state = tx.update(grads, states[1])
        d = optax.apply_updates(d, updates)

        def fooled(g):
            return nn.softplus(-score(d, generate(g, z[1], k[2]))).mean()

        g_value, grads = jax.value_and_grad(fooled)(g)
        updates, g_state = tx.update(grads, states[0])
        g = optax.apply_updates(g, updates)
        keep = jnp.minimum(0.999, (at + 1) / (at + 10.0))
        ema = jax.tree.map(lambda e, p: e * keep + (1 - keep) * p, ema, g)
        return at + 1, g, d, ema, (g_state, d_state), (d_value, g_value, *more)

    return step, (ints(), generator, judge, generator, states, KEY, S(8, 16, 16, 3))


@program
def keras_detector_pyramid_suppression_bf16():
    import keras
    from keras import layers as kl

    classes, strides = 12, (8, 16, 32)

    def separable(x, n, stride=1):
        x = kl.DepthwiseConv2D(3, stride, padding="same", use_bias=False)(x)
        x = kl.ReLU(6.0)(kl.BatchNormalization()(x))
        return kl.ReLU(6.0)(kl.BatchNormalization()(kl.Conv2D(n, 1, use_bias=False)(x)))

    def make():
        image = x = kl.Input((128, 128, 3))
        x = kl.Conv2D(16, 3, 2, padding="same", use_bias=False)(kl.Rescaling(1 / 127.5, -1)(x))
        x = kl.ReLU(6.0)(kl.BatchNormalization()(x))
        levels = []
        for n in (32, 48, 64, 96):
            x = separable(separable(x, n, 2), n)
            levels.append(x)
        sides = [kl.Conv2D(48, 1)(y) for y in levels[1:]]
        tops = [sides[2]]
        for side in sides[1::-1]:
            tops.append(kl.Add()([side, kl.UpSampling2D(2, interpolation="nearest")(tops[-1])]))
        towers = [
            [(kl.SeparableConv2D(48, 3, padding="same"), kl.GroupNormalization(8)) for _ in range(2)]
            for _ in range(2)
        ]
        last = [kl.Conv2D(classes, 3, padding="same"), kl.Conv2D(5, 3, padding="same")]
        out = []
        for y in tops[::-1]:
            y = kl.Conv2D(48, 3, padding="same")(y)
            for tower, final in zip(towers, last):
                z = y
                for layer, norm in tower:
                    z = kl.Activation("relu")(norm(layer(z)))
                out.append(kl.Activation("linear", dtype="float32")(final(z)))
        return keras.Model(image, out)

    model = keras_shapes(make, "mixed_bfloat16")

    def overlap(a, b):
        corner = jnp.maximum(a[..., :2], b[..., :2]), jnp.minimum(a[..., 2:], b[..., 2:])
        both = jnp.prod(jnp.maximum(corner[1] - corner[0], 0), -1)
        area = lambda z: jnp.prod(z[..., 2:] - z[..., :2], -1)
        return both / jnp.maximum(area(a) + area(b) - both, 1e-9)

    def candidates(kinds, boxes, stride):
        h, w, _ = kinds.shape
        place = jnp.stack(jnp.meshgrid(jnp.arange(w), jnp.arange(h)), -1).reshape(-1, 2)
        place = (place + 0.5) * stride
        boxes = boxes.reshape(-1, 5)
        likely = jnp.sqrt(nn.sigmoid(kinds.reshape(-1, classes)) * nn.sigmoid(boxes[:, 4:]))
        count = min(48, h * w)
        best, index = lax.top_k(jnp.where(likely > 0.05, likely, 0.0).ravel(), count)
        where, kind = index // classes, index % classes
        far = jnp.exp(jnp.clip(boxes[where, :4], -8, 4)) * stride
        centre = place[where]
        corners = jnp.concatenate([centre - far[:, :2], centre + far[:, 2:]], -1)
        return best, kind, jnp.clip(corners, 0, 128)

    def suppressed(outs):
        found = [candidates(outs[2 * i], outs[2 * i + 1], s) for i, s in enumerate(strides)]
        best, kind, boxes = (jnp.concatenate(z) for z in zip(*found))
        order = jnp.argsort(-best)
        best, kind, boxes = best[order], kind[order], boxes[order]
        apart = boxes + kind[:, None] * 256.0
        close = overlap(apart[:, None], apart)

        def one(i, left):
            worse = (close[i] > 0.6) & (jnp.arange(left.shape[0]) > i) & left[i]
            return left & ~worse

        left = lax.fori_loop(0, best.shape[0], one, best > 0)
        score, pick = lax.top_k(jnp.where(left, best, 0.0), 20)
        near = jnp.where((close[pick] > 0.7) & (best > 0), best * close[pick], 0.0)
        voted = near @ boxes / jnp.maximum(near.sum(1, keepdims=True), 1e-9)
        return jnp.where(score[:, None] > 0, voted, 0.0), kind[pick], score, jnp.sum(score > 0)

    def detect(trained, others, images):
        outs, _ = model.stateless_call(trained, others, images, training=False)
        boxes, kind, score, count = jax.vmap(suppressed)(outs)
        return jnp.round(boxes * 4) / 4, kind, score, count

    variables = shapes_of(model.trainable_variables), shapes_of(model.non_trainable_variables)
    return detect, (*variables, S(4, 128, 128, 3, dtype=jnp.uint8))
