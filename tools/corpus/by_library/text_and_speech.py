"""Programs of haiku and linen that model what comes in turn: text and speech."""

import jax
import jax.numpy as jnp
from arguments import BF16, F32, S, entering_when_asked, ints
from jax import lax, nn, random
from steps import haiku_train, linen_train

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def haiku_minimal_lstm_text_bf16():
    import haiku as hk
    import optax

    b, n, d, vocab = 8, 128, 128, 512

    def positive(x):
        return jnp.where(x >= 0, jnp.log(nn.relu(x) + 0.5), -nn.softplus(-x))

    def rms(x, name):
        g = hk.get_parameter(name, x.shape[-1:], init=jnp.ones)
        wide = x.astype(F32)
        return (wide * lax.rsqrt(jnp.mean(wide**2, -1, keepdims=True) + 1e-6) * g).astype(x.dtype)

    def lin(x, o, name):
        w = hk.get_parameter(name, (x.shape[-1], o), init=hk.initializers.VarianceScaling())
        return x @ w.astype(x.dtype)

    def mixed(x, i):
        taps = hk.get_parameter(f"taps{i}", (4, d), init=hk.initializers.RandomNormal(0.1)).astype(x.dtype)
        x = nn.silu(
            lax.conv_general_dilated(
                x,
                taps[:, None],
                (1,),
                [(3, 0)],
                dimension_numbers=("NWC", "WIO", "NWC"),
                feature_group_count=d,
            )
        )
        f, i_, h = (a.astype(F32) for a in jnp.split(lin(x, 6 * d, f"gates{i}"), 3, -1))
        differ = nn.softplus(-f) - nn.softplus(-i_)
        log_f, log_i = -nn.softplus(differ), -nn.softplus(-differ)
        along = jnp.cumsum(log_f, 1)
        log_h = along + lax.cumlogsumexp(log_i + positive(h) - along, 1)
        return lin(jnp.exp(log_h).astype(x.dtype), d, f"down{i}")

    def net(tokens):
        table = hk.get_parameter("table", (vocab, d), init=hk.initializers.RandomNormal(0.02))
        x = table[tokens].astype(BF16)
        x = hk.dropout(hk.next_rng_key(), 0.1, x)
        for i in range(2):
            x = x + mixed(rms(x, f"a{i}"), i)
            up, gate = jnp.split(lin(rms(x, f"b{i}"), 4 * d, f"up{i}"), 2, -1)
            x = x + lin(up * nn.gelu(gate), d, f"out{i}")
        return (rms(x, "last") @ table.T.astype(BF16)).astype(F32)

    def loss(logits, after):
        size = nn.logsumexp(logits, -1)
        said = jnp.take_along_axis(logits, after[..., None], -1)[..., 0]
        keep = (after > 0).astype(F32)
        smooth = size - 0.9 * said - 0.1 * logits.mean(-1)
        return jnp.sum(keep * (smooth + 1e-4 * size**2)) / jnp.maximum(keep.sum(), 1)

    plain = optax.chain(optax.clip_by_block_rms(1.0), optax.adan(1e-3, weight_decay=0.02))
    return haiku_train(net, optax.apply_if_finite(plain, 5), loss, ints(b, n), ints(b, n))


@program
def linen_masked_speech_codewords_bf16():
    import optax
    from flax import linen

    b, length, d, groups, codes, wrong, span = 4, 3200, 96, 2, 32, 10, 5

    class Codes(linen.Module):
        @linen.compact
        def __call__(self, z, heat):
            logits = linen.Dense(groups * codes)(z.astype(F32)).reshape(*z.shape[:2], groups, codes)
            noise = random.gumbel(self.make_rng("dropout"), logits.shape)
            soft = nn.softmax((logits + noise) / heat)
            hard = nn.one_hot(soft.argmax(-1), codes)
            taken = hard + soft - lax.stop_gradient(soft)
            book = self.param("book", linen.initializers.uniform(1.0), (groups, codes, d // groups))
            q = jnp.einsum("btgc,gcd->btgd", taken, book).reshape(*z.shape[:2], d)
            return linen.Dense(d)(q), nn.softmax(logits).mean((0, 1))

    class Layer(linen.Module):
        @linen.compact
        def __call__(self, x, train=True):
            y = linen.MultiHeadDotProductAttention(4, dtype=BF16, dropout_rate=0.1, deterministic=False)(x)
            x = linen.LayerNorm(dtype=BF16)(x + y)
            y = linen.Dense(d, dtype=BF16)(linen.gelu(linen.Dense(3 * d, dtype=BF16)(x), approximate=False))
            return linen.LayerNorm(dtype=BF16)(x + linen.Dropout(0.1, deterministic=False)(y))

    class Net(linen.Module):
        @linen.compact
        def __call__(self, batch):
            sound, heat = batch
            x = (sound - sound.mean(1, keepdims=True)) / jnp.sqrt(sound.var(1, keepdims=True) + 1e-7)
            x = x[..., None].astype(BF16)
            for i, (wide, pace) in enumerate(((10, 5), (8, 4), (4, 2))):
                x = linen.Conv(d, (wide,), pace, padding="VALID", use_bias=False, dtype=BF16)(x)
                if i == 0:
                    x = linen.GroupNorm(None, 1, dtype=BF16)(x)
                x = linen.gelu(x)
            z = linen.LayerNorm(dtype=BF16)(x)
            t = z.shape[1]
            k1, k2 = random.split(self.make_rng("dropout"))
            starts = lax.top_k(random.uniform(k1, (b, t - span)), 8)[1]
            at = (starts[..., None] + jnp.arange(span)).reshape(b, -1)
            hidden = jnp.zeros((b, t), bool).at[jnp.arange(b)[:, None], at].set(True)
            blank = self.param("blank", linen.initializers.uniform(1.0), (d,))
            x = jnp.where(hidden[..., None], blank.astype(BF16), linen.Dense(d, dtype=BF16)(z))
            place = linen.Conv(d, (15,), feature_group_count=8, dtype=BF16)(x)
            x = linen.LayerNorm(dtype=BF16)(x + linen.gelu(place))
            x = Layer()(x)
            q, used = Codes()(z, heat)
            c = linen.Dense(d)(x.astype(F32))
            other = random.randint(k2, (b, t, wrong), 0, t - 1)
            other = other + (other >= jnp.arange(t)[:, None])
            every = jnp.concatenate([q[:, :, None], jax.vmap(lambda q, o: q[o])(q, other)], 2)
            unit = lambda v: v * lax.rsqrt(jnp.sum(v * v, -1, keepdims=True) + 1e-8)
            score = jnp.einsum("btd,btkd->btk", unit(c), unit(every)) / 0.1
            same = (every[:, :, 1:] == every[:, :, :1]).all(-1)
            score = score.at[:, :, 1:].set(jnp.where(same, -jnp.inf, score[:, :, 1:]))
            return score, hidden, used, jnp.mean(z.astype(F32) ** 2)

    def loss(out):
        score, hidden, used, size = out
        off = -nn.log_softmax(score)[..., 0]
        told = jnp.sum(off * hidden) / jnp.maximum(hidden.sum(), 1)
        busy = jnp.exp(-jnp.sum(used * jnp.log(used + 1e-7), -1)).sum()
        return told + 0.1 * (groups * codes - busy) / (groups * codes) + 10 * size

    rate = optax.linear_onecycle_schedule(1000, 5e-4)
    tx = optax.chain(optax.clip_by_global_norm(25.0), optax.radam(rate, b2=0.98))
    return linen_train(Net(), tx, loss, (S(b, length), S()))
