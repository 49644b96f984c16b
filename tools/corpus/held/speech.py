"""Programs of flax linen on series: speech."""

import jax
import jax.numpy as jnp
from arguments import S, entering_when_asked, ints
from jax import lax, random
from steps import linen_train

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def linen_transducer_lattice_step():
    import optax
    from flax import linen

    b, frames, bands, words, vocab, d = 4, 96, 40, 12, 64, 96

    class Transducer(linen.Module):
        @linen.compact
        def __call__(self, batch):
            x, words = batch
            key = self.make_rng("dropout")
            for axis, widest, k in zip((1, 2), (12, 8), random.split(key)):
                k1, k2 = random.split(k)
                size = x.shape[axis]
                start = random.randint(k1, (b, 1), 0, size - widest)
                width = random.randint(k2, (b, 1), 0, widest)
                hidden = (jnp.arange(size) >= start) & (jnp.arange(size) < start + width)
                x = jnp.where(jnp.expand_dims(hidden, 3 - axis), 0.0, x)
            x = x[..., None]
            for n in (16, 32):
                x = linen.relu(linen.Conv(n, (3, 3), (2, 2))(x))
            x = linen.Dense(d)(x.reshape(b, frames // 4, -1))
            y = linen.RNN(linen.OptimizedLSTMCell(d))(x)
            x = linen.LayerNorm()(x + y + linen.Conv(d, (5,), feature_group_count=d)(y))
            y = linen.Embed(vocab, d)(jnp.pad(words, ((0, 0), (1, 0))))
            y = linen.RNN(linen.GRUCell(d))(y)
            z = jnp.tanh(linen.Dense(d)(x)[:, :, None] + linen.Dense(d, use_bias=False)(y)[:, None])
            return linen.log_softmax(linen.Dense(vocab)(z)), words

    def lattice(logp, words, length, count):
        blank = logp[..., 0]
        said = jnp.take_along_axis(logp[:, :-1], words[None, :, None], -1)[..., 0]

        def row(before, at):
            blank, said = at
            along = jnp.concatenate([jnp.zeros(1), jnp.cumsum(said)])
            new = along + lax.cumlogsumexp(before - along)
            return new + blank, new + blank

        start = jnp.where(jnp.arange(logp.shape[1]) == 0, 0.0, -1e30)
        _, every = lax.scan(row, start, (blank, said))
        return -every[length - 1, count]

    def loss(out, length, count):
        logp, words = out
        return jnp.mean(jax.vmap(lattice)(logp, words, length, count) / count)

    rate = lambda at: 0.05 * d**-0.5 * jnp.minimum((at + 1) ** -0.5, (at + 1) * 1000**-1.5)
    tx = optax.chain(optax.zero_nans(), optax.clip_by_global_norm(5.0), optax.nadam(rate, b2=0.98))
    batch = S(b, frames, bands), ints(b, words)
    return linen_train(Transducer(), tx, loss, batch, ints(b), ints(b))
