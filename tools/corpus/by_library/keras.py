"""Programs of keras: models of keras.applications and of layers, inference and training."""

import numpy as np
from arguments import S, entering_when_asked, ints
from steps import IMAGES, keras_infer, keras_train, sparse, squared

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


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


@program
def keras_nasnet_mobile_infer():
    import keras

    return keras_infer(
        lambda: keras.applications.NASNetMobile(input_shape=(64, 64, 3), classes=10, **IMAGES),
        S(2, 64, 64, 3),
    )


@program
def keras_conv_lstm_adamax():
    import keras
    from keras import layers

    def build():
        video = layers.Input((6, 32, 32, 1))
        x = layers.ConvLSTM2D(16, 3, padding="same", return_sequences=True)(video)
        x = layers.ConvLSTM2D(16, 3, padding="same")(layers.BatchNormalization()(x))
        x = layers.SeparableConv2D(32, 3, activation="relu", padding="same")(x)
        x = layers.Concatenate()([layers.GlobalAveragePooling2D()(x), layers.GlobalMaxPooling2D()(x)])
        return keras.Model(video, layers.Dense(7)(layers.PReLU()(layers.Dense(64)(x))))

    return keras_train(build, lambda: keras.optimizers.Adamax(1e-3), sparse, S(4, 6, 32, 32, 1), ints(4))


@program
def keras_efficientnet_b0_sgd():
    import keras

    schedule = lambda: keras.optimizers.schedules.ExponentialDecay(0.1, 100, 0.96, staircase=True)
    return keras_train(
        lambda: keras.Sequential(
            [
                keras.layers.Input((64, 64, 3)),
                keras.layers.RandomFlip("horizontal"),
                keras.applications.EfficientNetB0(input_shape=(64, 64, 3), classes=10, **IMAGES),
            ]
        ),
        lambda: keras.optimizers.SGD(schedule(), momentum=0.9, weight_decay=1e-5),
        sparse,
        S(4, 64, 64, 3),
        ints(4),
    )


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
def keras_volumes_dice_bf16():
    import keras
    from keras import layers as kl

    def block(x, n):
        for _ in range(2):
            x = kl.Conv3D(n, 3, padding="same", use_bias=False)(x)
            x = kl.PReLU(shared_axes=(1, 2, 3))(kl.GroupNormalization(4)(x))
        return x

    def excited(x, n):
        s = kl.Dense(n // 2, activation="relu")(kl.GlobalAveragePooling3D(keepdims=True)(x))
        return x * kl.Dense(n, activation="sigmoid")(s)

    def make():
        scan = x = kl.Input((16, 16, 16, 2))
        skips = []
        for n in (8, 16):
            x = block(x, n)
            skips.append(excited(x, n))
            x = kl.MaxPooling3D()(x)
        x = kl.SpatialDropout3D(0.2)(block(x, 32))
        for n, skip in zip((16, 8), reversed(skips)):
            x = kl.Conv3DTranspose(n, 2, strides=2)(x)
            x = block(kl.Concatenate()([x, skip]), n)
        return keras.Model(scan, kl.Conv3D(4, 1, activation="softmax", dtype="float32")(x))

    def optimizer():
        rate = keras.optimizers.schedules.PolynomialDecay(1e-3, 5000, power=0.9)
        return keras.optimizers.Adam(rate, amsgrad=True, use_ema=True, clipnorm=2.0)

    def loss(y, p):
        y = keras.ops.one_hot(y, 4)
        both, total = (keras.ops.sum(z, (1, 2, 3)) for z in (y * p, y + p))
        dice = 1 - (2 * both[:, 1:] + 1) / (total[:, 1:] + 1)
        focal = -keras.ops.sum(y * (1 - p) ** 2 * keras.ops.log(p + 1e-7), -1)
        return keras.ops.mean(dice) + keras.ops.mean(focal)

    x, y = S(2, 16, 16, 16, 2), ints(2, 16, 16, 16)
    return keras_train(make, optimizer, loss, x, y, policy="mixed_bfloat16")
