"""Language models, and parts of them, that several programs are made of."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from arguments import F32
from jax import lax


def wmt(decode=False, dtype=F32, layers=2, d=64, vocab=256):
    """An encoder and a decoder that share their embedding, after flax's translation example."""
    from flax import linen

    attention = functools.partial(
        linen.MultiHeadDotProductAttention,
        num_heads=4,
        dtype=dtype,
        use_bias=False,
        kernel_init=linen.initializers.xavier_uniform(),
    )

    class Feed(linen.Module):
        @linen.compact
        def __call__(self, x):
            y = linen.relu(linen.Dense(4 * d, dtype=dtype)(linen.LayerNorm(dtype=dtype)(x)))
            return x + linen.Dense(d, dtype=dtype)(linen.Dropout(0.1, deterministic=decode)(y))

    class Net(linen.Module):
        def setup(self):
            self.embed = linen.Embed(vocab, d, embedding_init=linen.initializers.normal(1.0))
            self.encoder = [(linen.LayerNorm(dtype=dtype), attention(), Feed()) for _ in range(layers)]
            self.decoder = [
                (
                    linen.LayerNorm(dtype=dtype),
                    attention(decode=decode),
                    linen.LayerNorm(dtype=dtype),
                    attention(),
                    Feed(),
                )
                for _ in range(layers)
            ]
            self.norms = linen.LayerNorm(dtype=dtype), linen.LayerNorm(dtype=dtype)

        def encode(self, tokens):
            x = (self.embed(tokens) + sinusoids(tokens.shape[1], d)).astype(dtype)
            mask = linen.make_attention_mask(tokens > 0, tokens > 0)
            for norm, attend, feed in self.encoder:
                y = norm(x)
                x = feed(x + attend(y, y, mask=mask))
            return self.norms[0](x)

        def decode(self, encoded, source, tokens, at=None):
            table = sinusoids(64, d)
            place = table[: tokens.shape[1]] if at is None else lax.dynamic_slice_in_dim(table, at, 1)
            if at is None:
                tokens = jnp.pad(tokens, ((0, 0), (1, 0)))[:, :-1]
            x = (self.embed(tokens) + place).astype(dtype)
            mask = None if decode else linen.make_causal_mask(tokens)
            across = linen.make_attention_mask(tokens >= 0, source > 0)
            for norm, attend, norm2, look, feed in self.decoder:
                y = norm(x)
                x = x + attend(y, y, mask=mask)
                x = feed(x + look(norm2(x), encoded, mask=across))
            return self.embed.attend(self.norms[1](x).astype(F32)) / d**0.5

        def __call__(self, pair):
            source, target = pair
            return self.decode(self.encode(source), source, target)

    return Net()


def sinusoids(length, d):
    angle = np.arange(length)[:, None] * 10000.0 ** (-np.arange(0, d, 2) / d)[None]
    return jnp.asarray(np.concatenate([np.sin(angle), np.cos(angle)], -1), F32)


def maxtext(dtype, quantized=False, layers=4, d=128, heads=8, kv=2, hd=16, ff=256, vocab=1024):
    """A decoder as MaxText writes it: scanned and rematerialized, grouped queries, rotary positions."""
    from flax import linen

    class General(linen.Module):
        features: tuple
        axes: int = 1

        @linen.compact
        def __call__(self, x):
            into = x.shape[-self.axes :]
            make = linen.initializers.variance_scaling(1.0, "fan_in", "truncated_normal")
            contract = tuple(range(x.ndim - self.axes, x.ndim)), tuple(range(self.axes))
            if not quantized:
                kernel = self.param("kernel", make, (*into, *self.features), F32)
                return lax.dot_general(x, kernel.astype(dtype), (contract, ((), ())))
            kernel = self.param("kernel", lambda k, s: jnp.zeros(s, jnp.int8), (*into, *self.features))
            scale = self.param("scale", linen.initializers.ones, self.features)
            size = jnp.max(jnp.abs(x), axis=contract[0], keepdims=True) / 127.0
            rounded = jnp.clip(jnp.round(x / size), -127, 127).astype(jnp.int8)
            out = lax.dot_general(rounded, kernel, (contract, ((), ())), preferred_element_type=jnp.int32)
            size = size.reshape(*x.shape[: -self.axes], *(1 for _ in self.features))
            return (out.astype(F32) * size * scale).astype(dtype)

    class Norm(linen.Module):
        @linen.compact
        def __call__(self, x):
            y = x.astype(F32)
            y = (y * lax.rsqrt(jnp.mean(lax.square(y), -1, keepdims=True) + 1e-6)).astype(dtype)
            return y * self.param("scale", linen.initializers.ones, (x.shape[-1],)).astype(dtype)

    def rotary(x, place):
        scale = 10000 ** (2 * jnp.arange(hd // 2) / hd)
        turn = place[..., None, None] / scale
        sin, cos = jnp.sin(turn), jnp.cos(turn)
        a, b = jnp.split(x, 2, axis=-1)
        return jnp.concatenate((a * cos - b * sin, b * cos + a * sin), -1).astype(dtype)

    class Layer(linen.Module):
        decode: bool = False

        @linen.compact
        def __call__(self, x, segments, place):
            y = linen.with_logical_constraint(Norm(name="pre")(x), ("batch", "length", "embed"))
            q = rotary(General((heads, hd), name="query")(y) / hd**0.5, place)
            k = rotary(General((kv, hd), name="key")(y), place)
            v = General((kv, hd), name="value")(y)
            if self.decode:
                old = [self.variable("cache", n, jnp.zeros, (x.shape[0], 128, kv, hd), dtype) for n in "kv"]
                index = self.variable("cache", "index", jnp.zeros, (), jnp.int32)
                for one, new in zip(old, (k, v)):
                    one.value = lax.dynamic_update_slice_in_dim(one.value, new, index.value, 1)
                k, v = old[0].value, old[1].value
                mask = (jnp.arange(128) <= index.value)[None, None]
                index.value = index.value + 1
            else:
                t = x.shape[1]
                mask = (segments[:, :, None] == segments[:, None]) & jnp.tril(jnp.ones((t, t), bool))
            q = q.reshape(*q.shape[:2], kv, heads // kv, hd)
            s = jnp.einsum("btkgd,bskd->bkgts", q, k).astype(F32)
            s = jnp.where(mask[:, None, None], s, -0.7 * np.finfo(np.float32).max)
            top = jnp.max(s, -1, keepdims=True)
            p = jnp.exp(s - top)
            out = jnp.einsum("bkgts,bskd->btkgd", p.astype(dtype), v)
            total = jnp.moveaxis(p.sum(-1), 3, 1)[..., None]
            out = (out / total).astype(dtype).reshape(*out.shape[:2], heads, hd)
            x = x + General((d,), axes=2, name="out")(out)
            y = Norm(name="post")(x)
            y = linen.silu(General((ff,), name="gate")(y)) * General((ff,), name="up")(y)
            return x + General((d,), name="down")(y), None

    class Net(linen.Module):
        decode: bool = False

        @linen.compact
        def __call__(self, batch):
            tokens, segments, place = batch
            table = self.param("embedding", linen.initializers.normal(1.0), (vocab, d), F32)
            x = jnp.take(table, tokens, 0).astype(dtype)
            block = linen.remat(
                Layer,
                prevent_cse=False,
                policy=jax.checkpoint_policies.checkpoint_dots_with_no_batch_dims,
                static_argnums=(-1,),
            )
            scanned = linen.scan(
                Layer if self.decode else block,
                variable_axes={"params": 0, "cache": 0},
                split_rngs={"params": True},
                in_axes=(linen.broadcast, linen.broadcast),
                length=layers,
            )
            x, _ = scanned(decode=self.decode)(x, segments, place)
            return General((vocab,), name="logits")(Norm(name="final")(x)).astype(F32)

    return Net


def rms(x, scale, eps=1e-5):
    wide = x.astype(F32)
    return (wide * lax.rsqrt(jnp.mean(wide**2, -1, keepdims=True) + eps) * scale).astype(x.dtype)


def attend(q, k, v, causal=False):
    """Grouped queries, with no algorithm asked for that old devices have not."""
    b, t, heads, d = q.shape
    q = q.reshape(b, t, k.shape[2], -1, d)
    s = jnp.einsum("bqkgd,bskd->bkgqs", q, k).astype(F32) * d**-0.5
    if causal:
        s = jnp.where(jnp.tril(jnp.ones((t, t), bool)), s, -1e30)
    p = jnp.exp(s - s.max(-1, keepdims=True))
    p = (p / p.sum(-1, keepdims=True)).astype(v.dtype)
    return jnp.einsum("bkgqs,bskd->bqkgd", p, v).reshape(b, t, heads, d)


def rms_norm(x, gain, eps=1e-6):
    wide = x.astype(F32)
    return (wide * lax.rsqrt(jnp.square(wide).mean(-1, keepdims=True) + eps) * gain).astype(x.dtype)


def attend_where(q, k, v, seen):
    """Heads of a batch attend to what is `seen`, with their scores in single precision."""
    score = jnp.einsum("bqhc,bkhc->bhqk", q, k, preferred_element_type=F32) * q.shape[-1] ** -0.5
    score = jnp.where(seen, score, jnp.finfo(F32).min)
    return jnp.einsum("bhqk,bkhc->bqhc", jax.nn.softmax(score).astype(v.dtype), v)
