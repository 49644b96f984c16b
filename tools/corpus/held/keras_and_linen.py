"""Programs of keras and flax linen."""

import math

import jax
import jax.numpy as jnp
from arguments import BF16, S, entering_when_asked, ints
from jax import nn
from steps import keras_train, linen_train

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
