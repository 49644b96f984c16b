"""Programs of libraries: models, optimizers, samplers and solvers compiled as those who use them do.

Each entry of PROGRAMS is a function that imports its libraries and returns (function, abstract arguments),
to be compiled and never run. Where a library is not installed the program is left out, and an error says so.

The figures of docs/fidelity.md are of the versions in libraries.txt.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from arguments import BF16, F32, KEY, U32, S, entering_when_asked, ints
from jax import lax, nn, random
from steps import (
    IMAGES,
    eqx_train,
    haiku_train,
    keras_infer,
    keras_train,
    labelled,
    layers,
    linen_train,
    nnx_model,
    nnx_train,
    optax_train,
    perceptron,
    sparse,
    squared,
)

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


# ------------------------------------------------------------------ keras
@program
def keras_mobilenet_v3_small_sgd():
    import keras

    return keras_train(
        lambda: keras.applications.MobileNetV3Small((64, 64, 3), classes=10, **IMAGES),
        lambda: keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
        sparse,
        S(4, 64, 64, 3),
        ints(4),
    )


@program
def keras_resnet50_v2_infer():
    import keras

    return keras_infer(
        lambda: keras.applications.ResNet50V2(input_shape=(64, 64, 3), classes=100, **IMAGES), S(2, 64, 64, 3)
    )


@program
def keras_resnet_small_adamw_f16():
    from keras import optimizers
    from keras.src.applications import resnet

    def stack(x):
        x = resnet.stack_residual_blocks_v1(x, 32, 2, stride1=1, name="conv2")
        return resnet.stack_residual_blocks_v1(x, 64, 2, name="conv3")

    return keras_train(
        lambda: resnet.ResNet(stack, False, True, input_shape=(64, 64, 3), classes=10, **IMAGES),
        lambda: optimizers.LossScaleOptimizer(optimizers.AdamW(1e-3, weight_decay=1e-2, clipnorm=1.0)),
        sparse,
        S(4, 64, 64, 3),
        ints(4),
        "mixed_float16",
    )


@program
def keras_efficientnet_v2_infer_bf16():
    from keras.src.applications import efficientnet_v2

    return keras_infer(
        lambda: efficientnet_v2.EfficientNetV2(
            1.0, 0.5, 64, name="efficientnetv2-b0", input_shape=(64, 64, 3), classes=10, **IMAGES
        ),
        S(2, 64, 64, 3),
        policy="mixed_bfloat16",
    )


@program
def keras_densenet_rmsprop():
    from keras import optimizers
    from keras.src.applications import densenet

    return keras_train(
        lambda: densenet.DenseNet([2, 2, 3, 2], input_shape=(64, 64, 3), classes=10, **IMAGES),
        lambda: optimizers.RMSprop(1e-3, momentum=0.9, centered=True, use_ema=True),
        sparse,
        S(4, 64, 64, 3),
        ints(4),
    )


@program
def keras_convnext_lion_bf16():
    from keras import optimizers
    from keras.src.applications import convnext

    return keras_train(
        lambda: convnext.ConvNeXt(
            [1, 1, 2, 1], [32, 64, 128, 256], input_shape=(64, 64, 3), classes=10, name="convnext", **IMAGES
        ),
        lambda: optimizers.Lion(1e-4, weight_decay=1e-2),
        sparse,
        S(4, 64, 64, 3),
        ints(4),
        "mixed_bfloat16",
    )


@program
def keras_xception_infer_f16():
    import keras

    return keras_infer(
        lambda: keras.applications.Xception(input_shape=(96, 96, 3), classes=10, **IMAGES),
        S(2, 96, 96, 3),
        policy="mixed_float16",
    )


@program
def keras_inception_v3_infer():
    import keras

    return keras_infer(
        lambda: keras.applications.InceptionV3(input_shape=(96, 96, 3), classes=10, **IMAGES), S(2, 96, 96, 3)
    )


@program
def keras_text_transformer_adam():
    import keras
    from keras import layers

    def build():
        tokens = layers.Input((64,), dtype="int32")
        x = layers.Embedding(1000, 64)(tokens) + layers.Embedding(64, 64)(np.arange(64))
        for _ in range(2):
            a = layers.MultiHeadAttention(4, 16, dropout=0.1)(x, x, use_causal_mask=True)
            x = layers.LayerNormalization(epsilon=1e-6)(x + a)
            h = layers.Dropout(0.1)(layers.Dense(64)(layers.Dense(256, activation="gelu")(x)))
            x = layers.LayerNormalization(epsilon=1e-6)(x + h)
        return keras.Model(tokens, layers.Dense(1000)(x))

    schedule = lambda: keras.optimizers.schedules.CosineDecay(0.0, 1000, warmup_target=1e-3, warmup_steps=100)
    return keras_train(
        build, lambda: keras.optimizers.Adam(schedule(), clipvalue=1.0), sparse, ints(8, 64), ints(8, 64)
    )


@program
def keras_bidirectional_lstm_nadam():
    import keras
    from keras import layers

    def build():
        x = tokens = layers.Input((32,), dtype="int32")
        x = layers.Embedding(500, 64, mask_zero=True)(x)
        x = layers.Bidirectional(layers.LSTM(48, return_sequences=True))(x)
        x = layers.SpatialDropout1D(0.2)(layers.BatchNormalization()(x))
        return keras.Model(tokens, layers.Dense(5)(layers.Bidirectional(layers.GRU(32))(x)))

    return keras_train(build, lambda: keras.optimizers.Nadam(1e-3), sparse, ints(8, 32), ints(8))


@program
def keras_unet_adafactor():
    import keras
    from keras import layers

    def block(x, n):
        for _ in range(2):
            x = layers.Activation("swish")(
                layers.GroupNormalization(8)(layers.Conv2D(n, 3, padding="same")(x))
            )
        return x

    def build():
        image = layers.Input((64, 64, 3))
        x, skips = image, []
        for n in (16, 32):
            skips.append(block(x, n))
            x = layers.MaxPooling2D()(skips[-1])
        x = block(x, 64)
        for n, skip in zip((32, 16), skips[::-1]):
            x = layers.Conv2DTranspose(n, 2, strides=2)(x)
            x = block(layers.Concatenate()([x, skip]), n)
        return keras.Model(image, layers.Conv2D(4, 1)(layers.UpSampling2D(2, interpolation="bilinear")(x)))

    return keras_train(
        build, lambda: keras.optimizers.Adafactor(1e-2), sparse, S(2, 64, 64, 3), ints(2, 128, 128)
    )


@program
def keras_wide_deep_ftrl():
    import keras
    from keras import layers

    def build():
        numbers, kinds = layers.Input((13,)), layers.Input((8,), dtype="int32")
        wide = layers.Flatten()(layers.Embedding(500, 1)(kinds))
        deep = layers.Concatenate()(
            [layers.Normalization()(numbers), layers.Flatten()(layers.Embedding(500, 16)(kinds))]
        )
        for n in (128, 64):
            deep = layers.Dropout(0.3)(
                layers.Dense(n, activation="leaky_relu", kernel_regularizer="l2")(deep)
            )
        return keras.Model([numbers, kinds], layers.Dense(1)(layers.Concatenate()([wide, deep])))

    return keras_train(
        build,
        lambda: keras.optimizers.Ftrl(0.05, l1_regularization_strength=1e-3),
        squared,
        [S(256, 13), ints(256, 8)],
        S(256, 1),
    )


# ------------------------------------------------------------------ flax linen
@program
def linen_resnet_lamb_bf16():
    import optax
    from flax import linen

    class Block(linen.Module):
        features: int
        stride: int = 1

        @linen.compact
        def __call__(self, x):
            norm = functools.partial(linen.BatchNorm, use_running_average=False, dtype=BF16)
            conv = functools.partial(linen.Conv, use_bias=False, dtype=BF16)
            y = linen.relu(norm()(conv(self.features, (3, 3), (self.stride, self.stride))(x)))
            y = norm(scale_init=linen.initializers.zeros_init())(conv(self.features, (3, 3))(y))
            if x.shape != y.shape:
                x = norm()(conv(self.features, (1, 1), (self.stride, self.stride))(x))
            return linen.relu(x + y)

    class Net(linen.Module):
        @linen.compact
        def __call__(self, x):
            x = linen.Conv(32, (7, 7), (2, 2), dtype=BF16)(x)
            x = linen.max_pool(x, (3, 3), (2, 2), "SAME")
            for n, stride in ((32, 1), (64, 2), (128, 2)):
                x = Block(n, stride)(x)
            return linen.Dense(10, dtype=BF16)(x.mean((1, 2)))

    return linen_train(Net(), optax.lamb(1e-3), labelled, S(8, 64, 64, 3), ints(8))


@program
def linen_lstm_language_model():
    import optax
    from flax import linen

    class Net(linen.Module):
        @linen.compact
        def __call__(self, tokens):
            x = linen.Embed(1000, 64)(tokens)
            x = linen.RNN(linen.OptimizedLSTMCell(128))(x)
            x = linen.Dropout(0.2, deterministic=False)(x)
            return linen.Dense(1000)(linen.RNN(linen.GRUCell(64))(x))

    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.rmsprop(1e-3, momentum=0.9))
    return linen_train(Net(), tx, labelled, ints(8, 24), ints(8, 24))


def linen_blocks(scan, dtype):
    from flax import linen

    class Block(linen.Module):
        @linen.compact
        def __call__(self, x, _):
            y = linen.LayerNorm(dtype=dtype)(x)
            mask = linen.make_causal_mask(jnp.ones(x.shape[:2]))
            x = x + linen.MultiHeadDotProductAttention(4, dtype=dtype, dropout_rate=0.1, deterministic=False)(
                y, y, mask=mask
            )
            y = linen.LayerNorm(dtype=dtype)(x)
            y = linen.Dense(64, dtype=dtype)(linen.gelu(linen.Dense(256, dtype=dtype)(y)))
            return x + linen.Dropout(0.1, deterministic=False)(y), None

    class Net(linen.Module):
        @linen.compact
        def __call__(self, tokens):
            x = linen.Embed(512, 64, dtype=dtype)(tokens)
            x = x + self.param("positions", linen.initializers.normal(0.02), (64, 64)).astype(dtype)
            if scan:
                layers = linen.scan(
                    linen.remat(Block, prevent_cse=False),
                    variable_axes={"params": 0},
                    split_rngs={"params": True, "dropout": True},
                    length=3,
                )
                x, _ = layers()(x, None)
            else:
                for _ in range(2):
                    x, _ = Block()(x, None)
            return linen.Dense(512, dtype=dtype)(linen.LayerNorm(dtype=dtype)(x))

    return Net()


@program
def linen_transformer_adamw():
    import optax

    tx = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adamw(
            optax.warmup_cosine_decay_schedule(0.0, 1e-3, 100, 1000),
            mask=lambda p: jax.tree.map(lambda x: x.ndim > 1, p),
        ),
    )
    return linen_train(linen_blocks(False, F32), tx, labelled, ints(4, 64), ints(4, 64))


@program
def linen_transformer_scan_remat_bf16():
    import optax

    return linen_train(linen_blocks(True, BF16), optax.adafactor(1e-3), labelled, ints(4, 64), ints(4, 64))


@program
def linen_vae():
    import optax
    from flax import linen

    class Net(linen.Module):
        @linen.compact
        def __call__(self, x):
            h = linen.relu(linen.Conv(16, (3, 3), (2, 2))(x))
            h = linen.relu(linen.Conv(32, (3, 3), (2, 2))(h)).reshape(x.shape[0], -1)
            mean, logvar = linen.Dense(16)(h), linen.Dense(16)(h)
            z = mean + jnp.exp(0.5 * logvar) * random.normal(self.make_rng("dropout"), mean.shape)
            h = linen.relu(linen.Dense(7 * 7 * 32)(z)).reshape(-1, 7, 7, 32)
            h = linen.relu(linen.ConvTranspose(16, (3, 3), (2, 2))(h))
            return linen.ConvTranspose(1, (3, 3), (2, 2))(h), mean, logvar

    def loss(out, x):
        logits, mean, logvar = out
        bce = optax.sigmoid_binary_cross_entropy(logits, x).sum((1, 2, 3)).mean()
        return bce - 0.5 * (1 + logvar - mean**2 - jnp.exp(logvar)).sum(-1).mean()

    return linen_train(Net(), optax.adam(1e-3), loss, S(16, 28, 28, 1), S(16, 28, 28, 1))


@program
def linen_gcn_spectral_sgdr():
    import optax
    from flax import linen

    class Net(linen.Module):
        @linen.compact
        def __call__(self, x):
            for n in (64, 64):
                x = linen.SpectralNorm(linen.Dense(n))(x, update_stats=True)
                x = linen.WeightNorm(linen.Dense(n))(nn.silu(linen.InstanceNorm()(x[..., None])[..., 0]))
            return linen.Dense(1)(x)

    tx = optax.sgd(
        optax.sgdr_schedule(
            [{"init_value": 0.0, "peak_value": 0.1, "decay_steps": 50, "warmup_steps": 10}] * 2
        )
    )
    return linen_train(Net(), tx, lambda out, y: optax.huber_loss(out, y).mean(), S(32, 16), S(32, 1))


# ------------------------------------------------------------------ flax nnx
def nnx_decoder(rngs, dtype, layers=2, d=128, heads=4, kv=2, vocab=512, gemma=False):
    """Llama's blocks, or Gemma's: grouped queries, rotary positions, gated units."""
    from flax import nnx

    linear = functools.partial(nnx.Linear, use_bias=False, dtype=dtype, param_dtype=dtype, rngs=rngs)
    norm = functools.partial(nnx.RMSNorm, d, dtype=dtype, param_dtype=dtype, rngs=rngs)
    hd = d // heads

    def rotate(x, pos):
        freq = 10000.0 ** (-jnp.arange(0, hd, 2, dtype=F32) / hd)
        angle = pos[..., None, None] * freq
        a, b = jnp.split(x.astype(F32), 2, axis=-1)
        sin, cos = jnp.sin(angle), jnp.cos(angle)
        return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1).astype(x.dtype)

    class Layer(nnx.Module):
        def __init__(self):
            self.q, self.k, self.v = linear(d, d), linear(d, kv * hd), linear(d, kv * hd)
            self.o, self.up, self.gate, self.down = (
                linear(d, d),
                linear(d, 3 * d),
                linear(d, 3 * d),
                linear(3 * d, d),
            )
            self.norms = nnx.List([norm() for _ in range(4 if gemma else 2)])

        def __call__(self, x, pos, cache=None, at=None):
            b, t, _ = x.shape
            y = self.norms[0](x)
            q = rotate(self.q(y).reshape(b, t, heads, hd), pos)
            k = rotate(self.k(y).reshape(b, t, kv, hd), pos)
            v = self.v(y).reshape(b, t, kv, hd)
            if cache is not None:
                k = lax.dynamic_update_slice_in_dim(cache[0], k, at, 1)
                v = lax.dynamic_update_slice_in_dim(cache[1], v, at, 1)
                cache = k, v
                mask = (jnp.arange(k.shape[1]) <= at)[None, None, None]
            else:
                mask = jnp.tril(jnp.ones((t, t), bool))[None, None]
            y = jax.nn.dot_product_attention(q, k, v, mask=mask) if not gemma else self.capped(q, k, v, mask)
            y = self.o(y.reshape(b, t, d))
            x = x + (self.norms[2](y) if gemma else y)
            y = self.norms[1](x)
            y = self.down((nn.gelu if gemma else nn.silu)(self.gate(y)) * self.up(y))
            return x + (self.norms[3](y) if gemma else y), cache

        def capped(self, q, k, v, mask):
            q = q.reshape(*q.shape[:2], kv, heads // kv, hd) * hd**-0.5
            s = 50.0 * jnp.tanh(jnp.einsum("btkgh,bskh->bkgts", q, k) / 50.0)
            p = nn.softmax(jnp.where(mask[:, :, None], s, -2e38).astype(F32)).astype(q.dtype)
            return jnp.einsum("bkgts,bskh->btkgh", p, v)

    class Net(nnx.Module):
        def __init__(self):
            self.embed = nnx.Embed(vocab, d, dtype=dtype, param_dtype=dtype, rngs=rngs)
            self.layers, self.norm = nnx.List([Layer() for _ in range(layers)]), norm()

        def __call__(self, tokens, caches=None, at=None):
            pos = jnp.arange(tokens.shape[1])[None] if at is None else jnp.full(tokens.shape, at)
            x = self.embed(tokens) * (d**0.5 if gemma else 1)
            new = []
            for n, layer in enumerate(self.layers):
                x, cache = layer(x, pos, caches and caches[n], at)
                new.append(cache)
            return self.embed.attend(self.norm(x)), new

    return Net()


@program
def nnx_llama_adamw():
    import optax

    make = functools.partial(nnx_decoder, dtype=F32)
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-4, b2=0.95, weight_decay=0.1))
    return nnx_train(make, tx, lambda m, x, y: labelled(m(x)[0], y), ints(4, 64), ints(4, 64))


@program
def nnx_llama_muon_bf16():
    import optax.contrib

    make = functools.partial(nnx_decoder, dtype=BF16, layers=1)
    tx = optax.contrib.muon(0.02)
    return nnx_train(make, tx, lambda m, x, y: labelled(m(x)[0], y), ints(4, 64), ints(4, 64))


@program
def nnx_gemma_prefill_bf16():
    from flax import nnx

    graph, state = nnx_model(functools.partial(nnx_decoder, dtype=BF16, gemma=True))
    return lambda state, x: nnx.merge(graph, state)(x)[0].argmax(-1), (state, ints(2, 64))


@program
def nnx_gemma_decode():
    from flax import nnx

    graph, state = nnx_model(functools.partial(nnx_decoder, dtype=F32, gemma=True))
    caches = [(S(2, 64, 2, 32), S(2, 64, 2, 32))] * 2

    def generate(state, token, caches, at, key):
        model = nnx.merge(graph, state)

        def one(carry, key):
            token, caches, at = carry
            logits, caches = model(token, caches, at)
            best, which = lax.top_k(logits[:, -1], 20)
            token = jnp.take_along_axis(which, random.categorical(key, best / 0.8)[:, None], 1)
            return (token, caches, at + 1), token

        return lax.scan(one, (token, caches, at), random.split(key, 8))

    return generate, (state, ints(2, 1), caches, ints(), KEY)


@program
def nnx_vit_lookahead():
    import optax
    from flax import nnx

    class Net(nnx.Module):
        def __init__(self, rngs, d=96):
            self.patch = nnx.Conv(3, d, (8, 8), (8, 8), rngs=rngs)
            self.cls = nnx.Param(jnp.zeros((1, 1, d)))
            self.pos = nnx.Param(random.normal(rngs.params(), (1, 65, d)) * 0.02)
            self.blocks = nnx.List(
                [
                    nnx.List(
                        [
                            nnx.LayerNorm(d, rngs=rngs),
                            nnx.MultiHeadAttention(4, d, decode=False, rngs=rngs),
                            nnx.LayerNorm(d, rngs=rngs),
                            nnx.Linear(d, 4 * d, rngs=rngs),
                            nnx.Linear(4 * d, d, rngs=rngs),
                            nnx.Dropout(0.1, rngs=rngs),
                        ]
                    )
                    for _ in range(2)
                ]
            )
            self.head = nnx.Linear(d, 10, rngs=rngs)

        def __call__(self, x):
            x = self.patch(x).reshape(x.shape[0], -1, self.cls.shape[-1])
            x = jnp.concatenate([jnp.tile(self.cls[...], (x.shape[0], 1, 1)), x], 1) + self.pos[...]
            for norm, attend, norm2, up, down, drop in self.blocks:
                x = x + drop(attend(norm(x)))
                x = x + drop(down(nnx.gelu(up(norm2(x)))))
            return self.head(x[:, 0])

    def loss(model, x, y):
        smooth = optax.smooth_labels(nn.one_hot(y, 10), 0.1)
        return optax.softmax_cross_entropy(model(x), smooth).mean()

    return nnx_train(Net, optax.chain(optax.radam(1e-3), optax.ema(0.9)), loss, S(8, 64, 64, 3), ints(8))


@program
def nnx_gan_step():
    import optax
    from flax import nnx

    class Generator(nnx.Module):
        def __init__(self, rngs):
            self.line = nnx.Linear(32, 7 * 7 * 32, rngs=rngs)
            self.norm = nnx.BatchNorm(32, rngs=rngs)
            self.up = nnx.ConvTranspose(32, 16, (4, 4), (2, 2), rngs=rngs)
            self.out = nnx.ConvTranspose(16, 1, (4, 4), (2, 2), rngs=rngs)

        def __call__(self, z):
            x = nnx.relu(self.norm(self.line(z).reshape(-1, 7, 7, 32)))
            return jnp.tanh(self.out(nnx.relu(self.up(x))))

    class Discriminator(nnx.Module):
        def __init__(self, rngs):
            self.a = nnx.Conv(1, 16, (4, 4), (2, 2), rngs=rngs)
            self.b = nnx.Conv(16, 32, (4, 4), (2, 2), rngs=rngs)
            self.norm, self.out = nnx.LayerNorm(32, rngs=rngs), nnx.Linear(7 * 7 * 32, 1, rngs=rngs)

        def __call__(self, x):
            x = nnx.leaky_relu(self.norm(self.b(nnx.leaky_relu(self.a(x), 0.2))), 0.2)
            return self.out(x.reshape(x.shape[0], -1))[:, 0]

    def make():
        gen, dis = Generator(nnx.Rngs(0)), Discriminator(nnx.Rngs(1))
        return (
            gen,
            dis,
            nnx.Optimizer(gen, optax.adam(2e-4, b1=0.5), wrt=nnx.Param),
            nnx.Optimizer(dis, optax.adabelief(2e-4), wrt=nnx.Param),
        )

    graph, state = nnx.split(nnx.eval_shape(make))

    def step(state, real, z):
        gen, dis, gen_opt, dis_opt = nnx.merge(graph, state)
        bce = optax.sigmoid_binary_cross_entropy

        def judged(dis, gen):
            fake = dis(gen(z))
            return (bce(dis(real), jnp.ones(16)) + bce(fake, jnp.zeros(16))).mean()

        d, grads = nnx.value_and_grad(judged)(dis, gen)
        dis_opt.update(dis, grads)
        g, grads = nnx.value_and_grad(lambda gen: bce(dis(gen(z)), jnp.ones(16)).mean())(gen)
        gen_opt.update(gen, grads)
        return nnx.state((gen, dis, gen_opt, dis_opt)), d, g

    return step, (state, S(16, 28, 28, 1), S(16, 32))


@program
def nnx_lora_gru_adabelief():
    import optax
    from flax import nnx

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.embed = nnx.Embed(300, 64, rngs=rngs)
            self.rnn = nnx.RNN(nnx.GRUCell(64, 64, rngs=rngs))
            self.lora = nnx.LoRALinear(64, 64, lora_rank=8, rngs=rngs)
            self.norm, self.out = (
                nnx.GroupNorm(64, 8, rngs=rngs),
                nnx.Einsum("btd,dv->btv", (64, 300), rngs=rngs),
            )

        def __call__(self, tokens):
            x = self.rnn(self.embed(tokens))
            return self.out(self.norm(x + nnx.softplus(self.lora(x))))

    return nnx_train(Net, optax.adabelief(1e-3), lambda m, x, y: labelled(m(x), y), ints(8, 16), ints(8, 16))


# ------------------------------------------------------------------ equinox
@program
def eqx_mixer_diffusion():
    import equinox as eqx
    import optax

    class Mix(eqx.Module):
        patches: eqx.nn.MLP
        hidden: eqx.nn.MLP
        norm1: eqx.nn.LayerNorm
        norm2: eqx.nn.LayerNorm

        def __init__(self, key):
            a, b = random.split(key)
            self.patches = eqx.nn.MLP(49, 49, 64, 1, key=a)
            self.hidden = eqx.nn.MLP(32, 32, 64, 1, key=b)
            self.norm1, self.norm2 = eqx.nn.LayerNorm((32, 49)), eqx.nn.LayerNorm((49, 32))

        def __call__(self, y):
            y = y + jax.vmap(self.patches)(self.norm1(y))
            y = y.T
            return (y + jax.vmap(self.hidden)(self.norm2(y))).T

    class Net(eqx.Module):
        into: eqx.nn.Conv2d
        out: eqx.nn.ConvTranspose2d
        blocks: list
        norm: eqx.nn.LayerNorm

        def __init__(self, key):
            keys = random.split(key, 4)
            self.into = eqx.nn.Conv2d(2, 32, 4, stride=4, key=keys[0])
            self.out = eqx.nn.ConvTranspose2d(32, 1, 4, stride=4, key=keys[1])
            self.blocks = [Mix(k) for k in keys[2:]]
            self.norm = eqx.nn.LayerNorm((32, 49))

        def __call__(self, t, y):
            y = self.into(jnp.concatenate([y, jnp.full((1, 28, 28), t)])).reshape(32, 49)
            for block in self.blocks:
                y = block(y)
            return self.out(self.norm(y).reshape(32, 7, 7))

    def loss(model, key, data):
        def one(x, t, key):
            mean, std = x * jnp.exp(-0.5 * t), jnp.sqrt(jnp.maximum(1 - jnp.exp(-t), 1e-5))
            noise = random.normal(key, x.shape)
            return (1 - jnp.exp(-t)) * jnp.mean((model(t, mean + std * noise) + noise / std) ** 2)

        a, b = random.split(key)
        t = random.uniform(a, (16,), minval=0.0, maxval=10 / 16) + (10 / 16) * jnp.arange(16)
        return jax.vmap(one)(data, t, random.split(b, 16)).mean()

    return eqx_train(Net, optax.adabelief(3e-4), loss, S(16, 1, 28, 28))


@program
def eqx_attention_rotary_novograd():
    import equinox as eqx
    import optax

    class Net(eqx.Module):
        embed: eqx.nn.Embedding
        attend: eqx.nn.MultiheadAttention
        rope: eqx.nn.RotaryPositionalEmbedding
        norm: eqx.nn.RMSNorm
        drop: eqx.nn.Dropout
        out: eqx.nn.Linear

        def __init__(self, key):
            keys = random.split(key, 3)
            self.embed = eqx.nn.Embedding(200, 64, key=keys[0])
            self.attend = eqx.nn.MultiheadAttention(4, 64, use_query_bias=True, key=keys[1])
            self.rope, self.norm = eqx.nn.RotaryPositionalEmbedding(16), eqx.nn.RMSNorm(64)
            self.drop, self.out = eqx.nn.Dropout(0.2), eqx.nn.Linear(64, 200, key=keys[2])

        def __call__(self, tokens, key):
            x = jax.vmap(self.embed)(tokens)
            rotate = lambda q, k, v: (jax.vmap(self.rope, 1, 1)(q), jax.vmap(self.rope, 1, 1)(k), v)
            mask = jnp.tril(jnp.ones((32, 32), bool))
            y = jax.vmap(self.norm)(x)
            x = x + self.drop(self.attend(y, y, y, mask, process_heads=rotate), key=key)
            return jax.vmap(self.out)(x)

    def loss(model, key, x, y):
        return labelled(jax.vmap(model)(x, random.split(key, 8)), y)

    return eqx_train(Net, optax.novograd(1e-3), loss, ints(8, 32), ints(8, 32))


@program
def eqx_gru_classifier_yogi():
    import equinox as eqx
    import optax

    class Net(eqx.Module):
        cell: eqx.nn.GRUCell
        out: eqx.nn.Linear

        def __init__(self, key):
            a, b = random.split(key)
            self.cell, self.out = eqx.nn.GRUCell(2, 32, key=a), eqx.nn.Linear(32, 1, key=b)

        def __call__(self, xs):
            h, _ = lax.scan(lambda h, x: (self.cell(x, h), None), jnp.zeros(32), xs)
            return nn.sigmoid(self.out(h))[0]

    def loss(model, key, x, y):
        p = jax.vmap(model)(x)
        return -jnp.mean(y * jnp.log(p) + (1 - y) * jnp.log(1 - p))

    return eqx_train(Net, optax.yogi(1e-3), loss, S(32, 16, 2), S(32))


@program
def eqx_fourier_operator():
    import equinox as eqx
    import optax

    class Spectral(eqx.Module):
        real: jax.Array
        imag: jax.Array
        bypass: eqx.nn.Conv1d

        def __init__(self, key):
            a, b, c = random.split(key, 3)
            self.real, self.imag = random.normal(a, (32, 32, 12)), random.normal(b, (32, 32, 12))
            self.bypass = eqx.nn.Conv1d(32, 32, 1, key=c)

        def __call__(self, x):
            f = jnp.fft.rfft(x)
            low = jnp.einsum("im,iom->om", f[:, :12], self.real + 1j * self.imag)
            y = jnp.fft.irfft(jnp.zeros(f.shape, low.dtype).at[:, :12].set(low), n=x.shape[-1])
            return nn.relu(y + self.bypass(x))

    class Net(eqx.Module):
        lift: eqx.nn.Conv1d
        blocks: list
        drop: eqx.nn.Conv1d

        def __init__(self, key):
            keys = random.split(key, 4)
            self.lift, self.drop = eqx.nn.Conv1d(2, 32, 1, key=keys[0]), eqx.nn.Conv1d(32, 1, 1, key=keys[1])
            self.blocks = [Spectral(k) for k in keys[2:]]

        def __call__(self, x):
            x = self.lift(x)
            for block in self.blocks:
                x = block(x)
            return self.drop(x)

    loss = lambda model, key, x, y: jnp.mean((jax.vmap(model)(x) - y) ** 2)
    return eqx_train(Net, optax.amsgrad(3e-4), loss, S(8, 2, 128), S(8, 1, 128))


# ------------------------------------------------------------------ optax
@program
def optax_sm3_accumulated():
    import optax

    return optax_train(optax.MultiSteps(optax.chain(optax.sm3(0.1), optax.add_decayed_weights(1e-4)), 4))


@program
def optax_schedule_free_adamw():
    import optax.contrib

    return optax_train(optax.contrib.schedule_free_adamw(1e-3, warmup_steps=10))


@program
def optax_prodigy_plateau():
    import optax.contrib

    tx = optax.chain(optax.contrib.prodigy(), optax.contrib.reduce_on_plateau())
    return optax_train(optax.with_extra_args_support(tx), value=lambda v: v)


@program
def optax_lbfgs_loop():
    import optax

    tx = optax.lbfgs(memory_size=4, linesearch=optax.scale_by_zoom_linesearch(max_linesearch_steps=6))
    f = lambda x: jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    def solve(x):
        value_and_grad = optax.value_and_grad_from_state(f)

        def one(carry, _):
            x, state = carry
            value, grad = value_and_grad(x, state=state)
            updates, state = tx.update(grad, state, x, value=value, grad=grad, value_fn=f)
            return (optax.apply_updates(x, updates), state), value

        return lax.scan(one, (x, tx.init(x)), length=10)

    return solve, (S(64),)


@program
def optax_private_sgd():
    import optax

    tx = optax.contrib.differentially_private_aggregate(1.0, 0.5, 0)
    tx = optax.chain(tx, optax.noisy_sgd(0.1))
    params = layers(32, 64, 4)
    state = jax.eval_shape(tx.init, params)

    def step(params, state, x, y):
        loss = lambda p, x, y: labelled(perceptron(p, x[None]), y[None])
        grads = jax.vmap(jax.grad(loss), (None, 0, 0))(params, x, y)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state

    return step, (params, state, S(64, 32), ints(64))


@program
def optax_sam_partitioned():
    import optax.contrib

    kinds = lambda p: jax.tree.map(lambda x: "matrix" if x.ndim > 1 else "vector", p)
    inner = optax.partition({"matrix": optax.adan(1e-3), "vector": optax.rprop(1e-3)}, kinds)
    tx = optax.contrib.sam(inner, optax.chain(optax.contrib.normalize(), optax.sgd(0.05)), opaque_mode=False)
    return optax_train(tx)


@program
def optax_ctc_convolutions():
    import optax
    from flax import linen

    class Net(linen.Module):
        @linen.compact
        def __call__(self, x):
            for n in (64, 64):
                x = linen.Conv(n, (5,), (2,))(linen.gelu(linen.LayerNorm()(x)))
                x = x * linen.sigmoid(linen.Conv(n, (3,), feature_group_count=n)(x))
            return linen.Dense(30)(x)

    def loss(logits, labels, pad):
        return optax.ctc_loss(logits, jnp.zeros(logits.shape[:2]), labels, pad).mean()

    tx = optax.apply_if_finite(optax.adamax(1e-3), 5)
    return linen_train(Net(), tx, loss, S(4, 64, 40), ints(4, 8), S(4, 8))


# ------------------------------------------------------------------ differential equations
@program
def diffrax_neural_ode():
    import diffrax
    import equinox as eqx
    import optax

    def loss(model, key, ts, y0, ys):
        def solve(y0):
            return diffrax.diffeqsolve(
                diffrax.ODETerm(lambda t, y, args: model(y)),
                diffrax.Tsit5(),
                ts[0],
                ts[-1],
                ts[1] - ts[0],
                y0,
                saveat=diffrax.SaveAt(ts=ts),
                stepsize_controller=diffrax.PIDController(rtol=1e-3, atol=1e-6),
                max_steps=64,
            ).ys

        return jnp.mean((jax.vmap(solve)(y0) - ys) ** 2)

    make = lambda key: eqx.nn.MLP(2, 2, 64, 2, activation=nn.softplus, key=key)
    return eqx_train(make, optax.adabelief(3e-3), loss, S(20), S(32, 2), S(32, 20, 2))


@program
def diffrax_stiff():
    import diffrax

    def robertson(t, y, k):
        a, b, c = y
        f0 = -k[0] * a + k[1] * b * c
        f1 = k[0] * a - k[2] * b**2 - k[1] * b * c
        return jnp.stack([f0, f1, k[2] * b**2])

    def solve(y0, k):
        controller = diffrax.PIDController(rtol=1e-6, atol=1e-8, pcoeff=0.3, icoeff=0.3)
        saved = diffrax.SaveAt(ts=jnp.logspace(-3, 2, 10))
        return diffrax.diffeqsolve(
            diffrax.ODETerm(robertson),
            diffrax.Kvaerno3(),
            0.0,
            100.0,
            2e-4,
            y0,
            k,
            saveat=saved,
            stepsize_controller=controller,
            max_steps=None,
        ).ys

    return solve, (S(3), S(3))


@program
def diffrax_stochastic():
    import diffrax

    def solve(key, y0, theta):
        def one(key, y0):
            noise = diffrax.VirtualBrownianTree(0.0, 1.0, tol=1e-2, shape=(3,), key=key)
            drift = diffrax.ODETerm(lambda t, y, th: th * (jnp.tanh(y) - y))
            spread = diffrax.ControlTerm(lambda t, y, th: 0.1 * jnp.diag(jnp.cos(y)), noise)
            out = diffrax.diffeqsolve(
                diffrax.MultiTerm(drift, spread),
                diffrax.Heun(),
                0.0,
                1.0,
                0.05,
                y0,
                theta,
                saveat=diffrax.SaveAt(steps=True),
                max_steps=32,
            )
            return out.ys[-1]

        return jax.vmap(one)(random.split(key, 64), y0).mean(0)

    return solve, (KEY, S(64, 3), S())


# ------------------------------------------------------------------ inference
@program
def numpyro_nuts_logistic():
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import NUTS

    def model(x, y):
        w = numpyro.sample("w", dist.Normal(0, 1).expand([x.shape[1]]).to_event(1))
        b = numpyro.sample("b", dist.StudentT(3.0, 0, 2))
        numpyro.sample("y", dist.Bernoulli(logits=x @ w + b), obs=y)

    def run(key, x, y):
        kernel = NUTS(model, max_tree_depth=4)
        state = kernel.init(key, 5, None, (x, y), {})
        return lax.fori_loop(0, 10, lambda i, s: kernel.sample(s, (x, y), {}), state).z

    return run, (KEY, S(256, 8), ints(256))


@program
def numpyro_svi_hierarchical():
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import SVI, Trace_ELBO, autoguide

    def model(group, y=None):
        mu, tau = numpyro.sample("mu", dist.Normal(0, 5)), numpyro.sample("tau", dist.HalfCauchy(5.0))
        with numpyro.plate("groups", 8):
            theta = numpyro.sample(
                "theta",
                dist.TransformedDistribution(dist.Normal(0.0, 1.0), dist.transforms.AffineTransform(mu, tau)),
            )
        with numpyro.plate("data", group.shape[0]):
            numpyro.sample("y", dist.LogNormal(theta[group], 1.0), obs=y)

    def run(key, group, y):
        svi = SVI(
            model, autoguide.AutoMultivariateNormal(model), numpyro.optim.ClippedAdam(1e-2), Trace_ELBO(8)
        )
        state = svi.init(key, group, y)
        return lax.scan(lambda s, _: svi.update(s, group, y), state, length=20)

    return run, (KEY, ints(128), S(128))


@program
def numpyro_gaussian_process():
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer.util import log_density

    def model(x, y):
        scale, length = (
            numpyro.sample("scale", dist.LogNormal(0, 1)),
            numpyro.sample("length", dist.LogNormal(0, 1)),
        )
        noise = numpyro.sample("noise", dist.Gamma(2.0, 1.0))
        k = scale**2 * jnp.exp(-0.5 * ((x[:, None] - x[None]) / length) ** 2) + (noise + 1e-6) * jnp.eye(
            len(x)
        )
        numpyro.sample("y", dist.MultivariateNormal(jnp.zeros(len(x)), k), obs=y)

    density = lambda p, x, y: log_density(model, (x, y), {}, p)[0]
    return jax.value_and_grad(density), ({"scale": S(), "length": S(), "noise": S()}, S(64), S(64))


def regression(params, x=None):
    w = params["w"]
    x = jnp.linspace(-1, 1, 256)[:, None] ** jnp.arange(6) if x is None else x
    return (
        -0.5 * jnp.sum((x @ w - jnp.sin(3 * x[:, 1])) ** 2)
        - 0.5 * jnp.sum(w**2) * jnp.exp(-params["s"])
        - params["s"] ** 2
    )


@program
def blackjax_nuts():
    import blackjax

    def run(key, w, s, mass):
        sampler = blackjax.nuts(regression, 0.05, mass, max_num_doublings=4)
        return lax.scan(
            lambda st, k: sampler.step(k, st), sampler.init({"w": w, "s": s}), random.split(key, 10)
        )

    return run, (KEY, S(6), S(), S(7))


@program
def blackjax_window_adaptation():
    import blackjax

    def run(key, w, s):
        warm = blackjax.window_adaptation(blackjax.hmc, regression, num_integration_steps=8)
        (state, params), _ = warm.run(key, {"w": w, "s": s}, num_steps=40)
        return state, params

    return run, (KEY, S(6), S())


@program
def blackjax_sgld_smc():
    import blackjax

    def run(key, w, x, y):
        def loglike(p, batch):
            x, y = batch
            return -0.5 * jnp.sum((nn.tanh(x @ p["a"]) @ p["b"] - y) ** 2)

        grad = blackjax.sgmcmc.gradients.grad_estimator(
            lambda p: -0.5 * sum(jnp.sum(v**2) for v in p.values()), loglike, 1000
        )
        sampler = blackjax.sghmc(grad, 5)
        step = lambda p, b: (sampler.step(b[0], p, b[1:], 1e-4), None)
        return lax.scan(step, w, (random.split(key, 8), x, y))

    return run, (KEY, {"a": S(8, 32), "b": S(32)}, S(8, 64, 8), S(8, 64))


# ------------------------------------------------------------------ haiku and what builds on it
@program
def haiku_resnet18_lars():
    import haiku as hk
    import optax

    net = lambda x: hk.nets.ResNet18(10, resnet_v2=True)(x, is_training=True)
    return haiku_train(net, optax.lars(0.1, 1e-4, momentum=0.9), labelled, S(4, 64, 64, 3), ints(4))


@program
def haiku_vq_vae():
    import haiku as hk
    import optax

    def net(x):
        h = nn.relu(hk.Conv2D(32, 4, stride=2)(x))
        h = hk.Conv2D(32, 4, stride=2)(h)
        h = h + hk.Conv2D(32, 1)(nn.relu(hk.Conv2D(16, 3)(nn.relu(h))))
        q = hk.nets.VectorQuantizerEMA(32, 128, 0.25, 0.99)(h, is_training=True)
        y = hk.Conv2DTranspose(1, 4, stride=2)(nn.relu(hk.Conv2DTranspose(32, 4, stride=2)(q["quantize"])))
        return jnp.mean((y - x) ** 2) + q["loss"]

    return haiku_train(net, optax.fromage(0.01), lambda out: out, S(8, 32, 32, 1))


@program
def haiku_transformer_xl_bf16():
    import haiku as hk
    import optax

    def net(tokens):
        embed = hk.Embed(400, 64)
        x = embed(tokens).astype(BF16)
        mask = jnp.tril(jnp.ones((1, 1, 32, 32)))
        for _ in range(2):
            y = hk.LayerNorm(-1, True, True)(x)
            x = x + hk.dropout(
                hk.next_rng_key(),
                0.1,
                hk.MultiHeadAttention(4, 16, w_init=hk.initializers.VarianceScaling(0.5))(
                    y, y, y, mask
                ).astype(BF16),
            )
            y = hk.nets.MLP([256, 64], activation=nn.gelu)(hk.LayerNorm(-1, True, True)(x))
            x = x + hk.dropout(hk.next_rng_key(), 0.1, y.astype(BF16))
        return x.astype(F32) @ embed.embeddings.T

    return haiku_train(net, optax.noisy_sgd(0.01), labelled, ints(4, 32), ints(4, 32))


@program
def distrax_flow():
    import distrax
    import haiku as hk
    import optax

    def net(x):
        flow, mask = [], jnp.arange(8) % 2 == 0
        apart = lambda h: h.reshape(*h.shape[:-1], 8, 13)
        for n in range(3):
            conditioner = hk.Sequential(
                [hk.nets.MLP([64, 64], activate_final=True), hk.Linear(8 * 13), apart]
            )
            bijector = lambda p: distrax.RationalQuadraticSpline(p, -5.0, 5.0)
            flow.append(distrax.MaskedCoupling(mask if n % 2 else ~mask, conditioner, bijector))
        base = distrax.MultivariateNormalDiag(jnp.zeros(8), jnp.ones(8))
        return -distrax.Transformed(base, distrax.Inverse(distrax.Chain(flow))).log_prob(x).mean()

    return haiku_train(net, optax.adam(1e-4), lambda out: out, S(64, 8))


@program
def jraph_graph_network():
    import haiku as hk
    import jraph
    import optax

    def net(x):
        mlp = lambda n: hk.nets.MLP([n, n])
        edges = jraph.concatenated_args(lambda f: hk.LayerNorm(-1, True, True)(mlp(32)(f)))
        whole = jraph.concatenated_args(lambda f: mlp(16)(f))
        graph = jraph.GraphMapFeatures(hk.Linear(32), hk.Linear(32), hk.Linear(16))(jraph.GraphsTuple(**x))
        for _ in range(2):
            graph = jraph.GraphNetwork(edges, edges, whole)(graph)
        query, logit = hk.Linear(32), hk.Linear(1)
        attend = jraph.GAT(query, lambda s, r, e: logit(nn.leaky_relu(jnp.concatenate([s, r], -1))), nn.elu)
        return hk.Linear(2)(attend(graph).globals)

    graph = {
        "nodes": S(256, 16),
        "edges": S(1024, 4),
        "senders": ints(1024),
        "receivers": ints(1024),
        "globals": S(16, 1),
        "n_node": ints(16),
        "n_edge": ints(16),
    }
    return haiku_train(net, optax.lion(1e-4), labelled, graph, ints(16))


# ------------------------------------------------------------------ control
def actor_critic():
    import distrax
    import haiku as hk

    def net(obs):
        h = hk.nets.MLP([64, 64], activation=jnp.tanh, activate_final=True)(obs)
        scale = hk.get_parameter("scale", (4,), init=jnp.zeros)
        return distrax.MultivariateNormalDiag(
            hk.Linear(4)(h), jnp.exp(scale) * jnp.ones_like(obs[..., :4])
        ), hk.Linear(1)(h)[..., 0]

    return hk.without_apply_rng(hk.transform(net))


@program
def rlax_ppo_epochs():
    import optax
    import rlax

    net = actor_critic()
    tx = optax.chain(
        optax.clip_by_global_norm(0.5), optax.adam(optax.linear_schedule(3e-4, 0.0, 1000), eps=1e-5)
    )
    params = jax.eval_shape(net.init, KEY, S(8))
    state = jax.eval_shape(tx.init, params)

    def update(params, state, key, obs, action, old, reward, discount):
        _, value = net.apply(params, obs)
        gae = rlax.truncated_generalized_advantage_estimation
        adv = jax.vmap(gae, (1, 1, None, 1), 1)(reward, discount, 0.95, value)
        data = jax.tree.map(
            lambda x: x.reshape(-1, *x.shape[2:]), (obs[:-1], action, old, adv, adv + value[:-1])
        )

        def loss(params, obs, action, old, adv, target):
            policy, value = net.apply(params, obs)
            ratio = jnp.exp(policy.log_prob(action) - old)
            adv = (adv - adv.mean()) / (adv.std() + 1e-8)
            pg = rlax.clipped_surrogate_pg_loss(ratio, adv, 0.2)
            return pg + 0.5 * jnp.mean(jnp.square(value - target)) - 0.01 * policy.entropy().mean()

        def epoch(carry, key):
            order = random.permutation(key, 512).reshape(4, 128)

            def minibatch(carry, at):
                params, state = carry
                value, grads = jax.value_and_grad(loss)(params, *jax.tree.map(lambda x: x[at], data))
                updates, state = tx.update(grads, state, params)
                return (optax.apply_updates(params, updates), state), value

            return lax.scan(minibatch, carry, order)

        return lax.scan(epoch, (params, state), random.split(key, 2))

    return update, (params, state, KEY, S(33, 16, 8), S(32, 16, 4), S(32, 16), S(32, 16), S(32, 16))


@program
def rlax_rainbow():
    import haiku as hk
    import optax
    import rlax

    atoms = np.linspace(-10, 10, 51, dtype=np.float32)

    def net(x):
        for n, k, stride in ((16, 8, 4), (32, 4, 2)):
            x = nn.relu(hk.Conv2D(n, k, stride)(x / 255.0))
        h = nn.relu(hk.Linear(128)(hk.Flatten()(x)))
        a, v = hk.Linear(6 * 51)(h).reshape(-1, 6, 51), hk.Linear(51)(h)[:, None]
        return v + a - a.mean(1, keepdims=True)

    net = hk.without_apply_rng(hk.transform(net))
    params = jax.eval_shape(net.init, KEY, S(1, 48, 48, 4))
    tx = optax.adam(6e-5, eps=1.5e-4)

    def update(params, target, state, obs, action, reward, discount, following, weight):
        def loss(params):
            choose = net.apply(params, following)
            q = lambda logits: jnp.sum(nn.softmax(logits) * atoms, -1)
            error = jax.vmap(rlax.categorical_double_q_learning, (None, 0, 0, 0, 0, None, 0, 0))(
                atoms,
                net.apply(params, obs),
                action,
                reward,
                discount,
                atoms,
                net.apply(target, following),
                q(choose),
            )
            return jnp.mean(error * weight), error

        grads, error = jax.grad(loss, has_aux=True)(params)
        updates, state = tx.update(grads, state, params)
        params = optax.apply_updates(params, updates)
        return params, optax.incremental_update(params, target, 0.01), state, jnp.power(error, 0.6)

    images = S(16, 48, 48, 4, dtype=jnp.uint8)
    return update, (
        params,
        params,
        jax.eval_shape(tx.init, params),
        images,
        ints(16),
        S(16),
        S(16),
        images,
        S(16),
    )


@program
def mctx_gumbel_muzero():
    import mctx

    def search(params, key, obs):
        def recurrent(params, key, action, h):
            h = jnp.tanh(jnp.concatenate([h, nn.one_hot(action, 6)], -1) @ params["move"])
            out = h @ params["heads"]
            discount = jnp.full(out.shape[0], 0.99)
            return mctx.RecurrentFnOutput(
                reward=out[:, 0], discount=discount, prior_logits=out[:, 2:], value=out[:, 1]
            ), h

        h = jnp.tanh(obs @ params["embed"])
        out = h @ params["heads"]
        root = mctx.RootFnOutput(prior_logits=out[:, 2:], value=out[:, 1], embedding=h)
        found = mctx.gumbel_muzero_policy(params, key, root, recurrent, num_simulations=8, max_depth=6)
        return found.action, found.action_weights, found.search_tree.summary()

    return search, ({"embed": S(16, 32), "move": S(38, 32), "heads": S(32, 8)}, KEY, S(32, 16))


@program
def brax_generalized_rollout():
    from brax import envs

    env = envs.get_environment("inverted_pendulum", backend="generalized")

    def rollout(key, w):
        state = env.reset(key)

        def one(state, _):
            state = env.step(state, jnp.tanh(state.obs @ w))
            return state, (state.obs, state.reward)

        return lax.scan(one, state, length=8)[1]

    return jax.vmap(rollout), (S(8, 2, dtype=U32), S(8, 4, 1))


@program
def gymnax_rollout():
    import gymnax

    env, settings = gymnax.make("Acrobot-v1")

    def rollout(key, w):
        obs, state = env.reset(key, settings)

        def one(carry, key):
            obs, state = carry
            a, b = random.split(key)
            action = random.categorical(a, obs @ w)
            obs, state, reward, done, *_ = env.step(b, state, action, settings)
            return (obs, state), (reward, done)

        return lax.scan(one, (obs, state), random.split(key, 16))[1]

    return jax.vmap(rollout, (0, None)), (S(64, 2, dtype=U32), S(6, 3))


@program
def evosax_cma_es():
    from evosax.algorithms import CMA_ES

    search = CMA_ES(population_size=32, solution=jnp.zeros(16))
    settings = search.default_params

    def run(key, mean):
        def one(state, key):
            a, b = random.split(key)
            population, state = search.ask(a, state, settings)
            fitness = jnp.sum(population**2 - 10 * jnp.cos(2 * jnp.pi * population), -1)
            state, _metrics = search.tell(b, population, fitness, state, settings)
            return state, fitness.min()

        return lax.scan(one, search.init(key, mean, settings), random.split(key, 5))[1]

    return run, (KEY, S(16))


# ------------------------------------------------------------------ mathematics and physics
@program
def optimistix_levenberg_marquardt():
    import optimistix

    def fit(p, x, y):
        residual = lambda p, xy: xy[1] - p["a"] * jnp.exp(-jnp.abs(p["b"]) * xy[0]) * jnp.cos(p["c"] * xy[0])
        solver = optimistix.LevenbergMarquardt(rtol=1e-4, atol=1e-4)
        return optimistix.least_squares(residual, solver, p, (x, y), max_steps=20, throw=False).value

    return fit, ({"a": S(), "b": S(), "c": S()}, S(100), S(100))


@program
def lineax_krylov():
    import lineax

    def solve(a, b):
        operator = lineax.FunctionLinearOperator(
            lambda x: a @ (a.T @ x) + x, jax.ShapeDtypeStruct((64,), F32), lineax.positive_semidefinite_tag
        )
        x = lineax.linear_solve(operator, b, lineax.CG(1e-5, 1e-5, max_steps=30), throw=False).value
        y = lineax.linear_solve(
            lineax.MatrixLinearOperator(a), b, lineax.GMRES(1e-4, 1e-4, restart=8, max_steps=16), throw=False
        )
        return jnp.sum(x * y.value)

    return jax.grad(solve, 1), (S(64, 64), S(64))


@program
def tinygp_kernels():
    import tinygp
    from tinygp import kernels

    def loss(p, x, y):
        kernel = jnp.exp(p["amp"]) * kernels.Matern52(jnp.exp(p["scale"])) + kernels.ExpSineSquared(
            scale=jnp.exp(p["period"]), gamma=p["gamma"]
        )
        return -tinygp.GaussianProcess(kernel, x, diag=jnp.exp(p["noise"])).log_probability(y)

    return jax.value_and_grad(loss), (
        {k: S() for k in ("amp", "scale", "period", "gamma", "noise")},
        S(80),
        S(80),
    )


@program
def ott_sinkhorn_divergence():
    from ott.geometry import pointcloud
    from ott.tools import sinkhorn_divergence

    def loss(x, y):
        return sinkhorn_divergence.sinkhorn_divergence(
            pointcloud.PointCloud, x, y, epsilon=0.1, solve_kwargs={"max_iterations": 50}
        )[0]

    return jax.value_and_grad(loss), (S(64, 3), S(48, 3))


@program
def e3nn_message_passing():
    import e3nn_jax as e3nn
    import haiku as hk
    import optax

    def net(x):
        pos, kind, src, dst = x
        h = e3nn.IrrepsArray("8x0e", hk.Embed(5, 8)(kind))
        sh = e3nn.spherical_harmonics("0e + 1o + 2e", e3nn.IrrepsArray("1o", pos[src] - pos[dst]), True)
        radial = e3nn.bessel(jnp.linalg.norm(pos[src] - pos[dst], axis=-1), 6, 5.0)
        for _ in range(2):
            message = e3nn.haiku.Linear("8x0e + 4x1o")(
                e3nn.tensor_product(h[src], sh, filter_ir_out=["0e", "1o"])
            )
            message = message * e3nn.haiku.MultiLayerPerceptron([16, 12], nn.silu)(radial)
            h = e3nn.scatter_sum(message, dst=dst, output_size=32) / 4.0
            h = e3nn.haiku.Linear("8x0e + 4x1o")(e3nn.gate(e3nn.haiku.Linear("12x0e + 4x1o")(h)))
        return e3nn.haiku.Linear("0e")(h).array.sum()

    return haiku_train(
        net, optax.adamw(1e-3), lambda out, y: (out - y) ** 2, (S(32, 3), ints(32), ints(128), ints(128)), S()
    )


@program
def jax_md_lennard_jones():
    from jax_md import energy, simulate, space

    displacement, shift = space.periodic(8.0)
    init, apply = simulate.nvt_nose_hoover(
        energy.soft_sphere_pair(displacement), shift, 5e-3, 0.8, chain_length=3
    )

    def run(key, r):
        return lax.fori_loop(0, 10, lambda i, s: apply(s), init(key, r)).position

    return run, (KEY, S(96, 2))
