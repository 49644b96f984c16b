"""Programs of keras and flax linen."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from arguments import BF16, F32, S, entering_when_asked, ints
from jax import nn, random
from steps import (
    keras_train,
    labelled,
    linen_train,
)

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def keras_vit_augmented_bf16():
    import keras
    from keras import layers as kl

    class Position(kl.Layer):
        def build(self, shape):
            self.table = self.add_weight(shape=shape[1:], initializer="random_normal")

        def call(self, x):
            return x + keras.ops.cast(self.table, x.dtype)

    def make():
        image = x = kl.Input((48, 48, 3))
        for layer in (kl.RandomFlip("horizontal"), kl.RandomContrast(0.2), kl.RandomTranslation(0.1, 0.1)):
            x = layer(x)
        x = kl.Reshape((36, 64))(kl.Conv2D(64, 8, 8)(kl.Rescaling(1 / 127.5, -1)(x)))
        x = Position()(x)
        for _ in range(2):
            y = kl.LayerNormalization(epsilon=1e-6)(x)
            y = kl.MultiHeadAttention(4, 16, dropout=0.1)(y, y)
            x = x + kl.Dropout(0.1, noise_shape=(None, 1, 1))(y)
            y = kl.Dense(256, activation="gelu")(kl.LayerNormalization(epsilon=1e-6)(x))
            x = x + kl.Dropout(0.1, noise_shape=(None, 1, 1))(kl.Dense(64)(y))
        x = kl.GlobalAveragePooling1D()(kl.LayerNormalization()(x))
        return keras.Model(image, kl.Dense(10, dtype="float32")(x))

    def optimizer():
        rate = keras.optimizers.schedules.CosineDecay(0.0, 1000, warmup_target=1e-3, warmup_steps=100)
        return keras.optimizers.AdamW(rate, weight_decay=0.05, global_clipnorm=1.0)

    def loss(y, logits):
        each = keras.losses.categorical_crossentropy(y, logits, from_logits=True, label_smoothing=0.1)
        return keras.ops.mean(each)

    return keras_train(make, optimizer, loss, S(8, 48, 48, 3), S(8, 10), policy="mixed_bfloat16")


@program
def keras_dilated_forecaster_accumulated():
    import keras
    from keras import layers as kl

    def make():
        series = x = kl.Input((96, 8))
        x = kl.Dense(32)(kl.UnitNormalization()(x))
        for n in range(4):
            y = kl.Conv1D(32, 3, padding="causal", dilation_rate=2**n)(x)
            y = kl.SpatialDropout1D(0.1)(kl.LayerNormalization()(kl.PReLU(shared_axes=[1])(y)))
            x = x + kl.SeparableConv1D(32, 3, padding="same")(y)
        wide = kl.Concatenate()([kl.GlobalMaxPooling1D()(x), x[:, -1]])
        return keras.Model(series, kl.Reshape((12, 3))(kl.Dense(36)(wide)))

    def pinball(y, pred):
        short = y[..., None] - pred
        levels = np.array([0.1, 0.5, 0.9], np.float32)
        return keras.ops.mean(keras.ops.maximum(levels * short, (levels - 1) * short))

    def optimizer():
        return keras.optimizers.Adam(
            1e-3, amsgrad=True, clipnorm=1.0, gradient_accumulation_steps=4, use_ema=True
        )

    return keras_train(make, optimizer, pinball, S(32, 96, 8), S(32, 12))


@program
def linen_switch_experts_capacity_bf16():
    import optax
    from flax import linen

    class Experts(linen.Module):
        count: int = 4

        @linen.compact
        def __call__(self, x):
            _, t, d = x.shape
            room = int(1.25 * t / self.count)
            wide = x.astype(F32) * random.uniform(self.make_rng("dropout"), x.shape, F32, 0.99, 1.01)
            logits = linen.Dense(self.count, use_bias=False)(wide)
            gates = nn.softmax(logits)
            chosen = nn.one_hot(jnp.argmax(gates, -1), self.count)
            place = jnp.cumsum(chosen, 1) * chosen
            kept = chosen * (place <= room)
            send = kept[..., None] * nn.one_hot((place - 1).astype(jnp.int32), room)
            combine = send * jnp.sum(gates * kept, -1)[..., None, None]
            make = linen.initializers.variance_scaling(1.0, "fan_in", "truncated_normal", batch_axis=0)
            up = self.param("up", make, (self.count, d, 4 * d)).astype(BF16)
            down = self.param("down", make, (self.count, 4 * d, d)).astype(BF16)
            h = jnp.einsum("btec,btd->ebcd", send.astype(BF16), x)
            h = nn.gelu(jnp.einsum("ebcd,edf->ebcf", h, up))
            y = jnp.einsum("ebcf,efd->ebcd", h, down)
            y = jnp.einsum("btec,ebcd->btd", combine.astype(BF16), y)
            balance = self.count * jnp.sum(chosen.mean((0, 1)) * gates.mean((0, 1)))
            return y, 1e-2 * balance + 1e-3 * jnp.mean(nn.logsumexp(logits, -1) ** 2)

    class Net(linen.Module):
        @linen.compact
        def __call__(self, tokens):
            x = linen.Embed(512, 64, dtype=BF16)(tokens)
            extra = 0.0
            for _ in range(2):
                y = linen.RMSNorm(dtype=BF16)(x)
                attend = linen.MultiHeadDotProductAttention(4, dtype=BF16, use_bias=False, normalize_qk=True)
                x = x + attend(y, mask=linen.make_causal_mask(tokens))
                y, more = Experts()(linen.RMSNorm(dtype=BF16)(x))
                x, extra = x + y, extra + more
            return linen.Dense(512, dtype=BF16)(linen.RMSNorm(dtype=BF16)(x)), extra

    loss = lambda out, y: labelled(out[0], y) + out[1]
    tx = optax.adafactor(1e-2, multiply_by_parameter_scale=True, clipping_threshold=1.0)
    return linen_train(Net(), tx, loss, ints(4, 64), ints(4, 64))


@program
def linen_sigmoid_two_towers():
    import optax
    from flax import linen

    class Block(linen.Module):
        @linen.compact
        def __call__(self, x, mask=None):
            x = x + linen.MultiHeadDotProductAttention(4)(linen.LayerNorm()(x), mask=mask)
            y = linen.gelu(linen.Dense(256)(linen.LayerNorm()(x)))
            return x + linen.Dense(64)(y)

    class Net(linen.Module):
        @linen.compact
        def __call__(self, batch):
            images, tokens = batch
            x = linen.Conv(64, (8, 8), (8, 8), padding="VALID")(images)
            x = x.reshape(x.shape[0], -1, 64)
            x = x + self.param("places", linen.initializers.normal(0.1), (1, x.shape[1], 64))
            for _ in range(2):
                x = Block()(x)
            probe = self.param("probe", linen.initializers.normal(0.1), (1, 1, 64))
            probe = jnp.tile(probe, (x.shape[0], 1, 1))
            x = linen.MultiHeadDotProductAttention(4)(probe, linen.LayerNorm()(x))[:, 0]
            t = linen.Embed(400, 64)(tokens)
            t = t + self.param("text_places", linen.initializers.normal(0.01), (1, 16, 64))
            for _ in range(2):
                t = Block()(t, linen.make_attention_mask(tokens > 0, tokens > 0))
            last = jnp.take_along_axis(t, tokens.argmax(-1)[:, None, None], 1)[:, 0]
            unit = lambda v: v / (jnp.linalg.norm(v, axis=-1, keepdims=True) + 1e-8)
            scale = self.param("scale", linen.initializers.constant(math.log(10.0)), ())
            shift = self.param("shift", linen.initializers.constant(-10.0), ())
            pairs = unit(linen.Dense(64)(x)) @ unit(linen.Dense(64)(last)).T
            return pairs * jnp.exp(scale) + shift

    def loss(logits):
        sign = 2 * jnp.eye(logits.shape[0]) - 1
        return -jnp.mean(jnp.sum(nn.log_sigmoid(sign * logits), -1))

    schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-3, 100, 1000)
    tx = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.scale_by_adam(b2=0.95, mu_dtype=BF16),
        optax.add_decayed_weights(1e-4, mask=lambda p: jax.tree.map(lambda x: x.ndim > 1, p)),
        optax.scale_by_schedule(schedule),
        optax.scale(-1.0),
    )
    return linen_train(Net(), tx, loss, (S(16, 32, 32, 3), ints(16, 16)))


@program
def linen_shifted_windows_bf16():
    import optax
    from flax import linen

    w = 4
    row, col = (g.ravel() for g in np.meshgrid(np.arange(w), np.arange(w), indexing="ij"))
    index = (row[:, None] - row + w - 1) * (2 * w - 1) + col[:, None] - col + w - 1

    def windows(x):
        b, h, wide, d = x.shape
        return x.reshape(b, h // w, w, wide // w, w, d).swapaxes(2, 3).reshape(-1, w * w, d)

    class Block(linen.Module):
        shift: int

        @linen.compact
        def __call__(self, x):
            b, h, wide, d = x.shape
            y = jnp.roll(linen.LayerNorm(dtype=BF16)(x), (-self.shift, -self.shift), (1, 2))
            y = windows(y)
            q, k, v = jnp.moveaxis(linen.Dense(3 * d, dtype=BF16)(y).reshape(-1, w * w, 3, 4, d // 4), 2, 0)
            table = self.param("bias", linen.initializers.truncated_normal(0.02), ((2 * w - 1) ** 2, 4))
            s = jnp.einsum("nqhd,nkhd->nhqk", q, k).astype(F32) * (d // 4) ** -0.5
            s = s + table[index].transpose(2, 0, 1)
            if self.shift:
                zone = np.zeros((1, h, wide, 1))
                for a, m in enumerate((slice(-w), slice(-w, -self.shift), slice(-self.shift, None))):
                    for c, n in enumerate((slice(-w), slice(-w, -self.shift), slice(-self.shift, None))):
                        zone[:, m, n] = 3 * a + c
                zone = windows(zone)[..., 0]
                apart = jnp.where(zone[:, :, None] != zone[:, None], -100.0, 0.0)
                s = (s.reshape(b, -1, *s.shape[1:]) + apart[None, :, None]).reshape(s.shape)
            y = jnp.einsum("nhqk,nkhd->nqhd", nn.softmax(s).astype(BF16), v).reshape(-1, w * w, d)
            y = linen.Dense(d, dtype=BF16)(y)
            y = y.reshape(b, h // w, wide // w, w, w, d).swapaxes(2, 3).reshape(x.shape)
            x = x + jnp.roll(y, (self.shift, self.shift), (1, 2))
            y = linen.gelu(linen.Dense(2 * d, dtype=BF16)(linen.LayerNorm(dtype=BF16)(x)))
            return x + linen.Dense(d, dtype=BF16)(y)

    class Net(linen.Module):
        @linen.compact
        def __call__(self, x):
            x = linen.LayerNorm(dtype=BF16)(linen.Conv(32, (4, 4), (4, 4), dtype=BF16)(x))
            for d in (32, 64):
                for shift in (0, w // 2):
                    x = Block(shift)(x)
                b, h, wide, d = x.shape
                x = x.reshape(b, h // 2, 2, wide // 2, 2, d).transpose(0, 1, 3, 4, 2, 5)
                x = x.reshape(b, h // 2, wide // 2, 4 * d)
                x = linen.Dense(2 * d, use_bias=False, dtype=BF16)(linen.LayerNorm(dtype=BF16)(x))
            return linen.Dense(10)(linen.LayerNorm()(x.mean((1, 2))))

    return linen_train(Net(), optax.nadamw(1e-3, weight_decay=0.05), labelled, S(4, 64, 64, 3), ints(4))
