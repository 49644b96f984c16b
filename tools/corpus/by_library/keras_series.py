"""Forecasts of time series with keras."""

from arguments import S, entering_when_asked, ints
from steps import keras_train

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def keras_temporal_fusion_quantiles():
    import keras
    from keras import layers as kl
    from keras import ops

    past, ahead, n, levels = 48, 12, 32, (0.1, 0.5, 0.9)

    def gated(x, skip, rate=0.1):
        x = kl.Dropout(rate)(x)
        x = kl.Multiply()([kl.Dense(n)(x), kl.Dense(n, activation="sigmoid")(x)])
        return kl.LayerNormalization()(kl.Add()([x, skip]))

    def residual(x, more=None, out=n):
        y = kl.Dense(n)(x)
        if more is not None:
            y = kl.Add()([y, kl.Dense(n, use_bias=False)(more)])
        y = kl.Dense(out)(kl.Activation("elu")(y))
        return gated(y, x if x.shape[-1] == out else kl.Dense(out)(x)) if out == n else y

    def chosen(parts, more=None):
        weight = kl.Softmax()(residual(kl.Concatenate()(parts), more, len(parts)))
        every = ops.stack([kl.Dense(n, activation="elu")(part) for part in parts], -1)
        return ops.sum(every * ops.expand_dims(weight, -2), -1)

    def make():
        kind = kl.Input((2,), dtype="int32")
        seen, known = kl.Input((past, 2)), kl.Input((past + ahead, 2))
        still = ops.reshape(kl.Embedding(60, n)(kind), (-1, 2 * n))
        about = [kl.Dense(n, activation="elu")(still) for _ in range(4)]
        split = lambda x: [kl.Dense(n)(x[..., i : i + 1]) for i in range(x.shape[-1])]
        along = lambda x, length: kl.RepeatVector(length)(x)
        before = chosen([*split(seen), *split(known[:, :past])], along(about[0], past))
        after = chosen(split(known[:, past:]), along(about[0], ahead))
        y, h, c = kl.LSTM(n, return_sequences=True, return_state=True)(before, initial_state=about[1:3])
        z = kl.LSTM(n, return_sequences=True)(after, initial_state=[h, c])
        x = gated(kl.Concatenate(1)([y, z]), kl.Concatenate(1)([before, after]))
        rich = residual(x, along(about[3], past + ahead))
        seen_by = kl.MultiHeadAttention(4, n // 4)(rich, rich, use_causal_mask=True)
        x = gated(gated(residual(gated(seen_by, rich)), rich)[:, past:], x[:, past:])
        return keras.Model([kind, seen, known], kl.Dense(len(levels))(x))

    def pinball(y, made):
        apart = ops.expand_dims(y, -1) - made
        q = ops.convert_to_tensor(levels)
        return ops.mean(ops.sum(ops.maximum(q * apart, (q - 1) * apart), -1))

    adam = lambda: keras.optimizers.Adam(1e-3, global_clipnorm=0.5)
    x = [ints(32, 2), S(32, past, 2), S(32, past + ahead, 2)]
    return keras_train(make, adam, pinball, x, S(32, ahead))
