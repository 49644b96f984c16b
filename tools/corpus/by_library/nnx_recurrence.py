"""Programs of nnx that keep a state beside their attention: gated linear recurrences in a language model."""

import jax.numpy as jnp
from arguments import BF16, F32, S, entering_when_asked, ints
from jax import lax, nn
from steps import nnx_train

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def nnx_gated_recurrence_local_attention_bf16():
    import optax
    from flax import nnx

    b, n, d, wide, heads, window, vocab = 4, 128, 128, 192, 4, 32, 1024
    hd = d // heads

    class Recurrent(nnx.Module):
        def __init__(self, rngs):
            lin = lambda i, o: nnx.Linear(i, o, dtype=BF16, rngs=rngs)
            self.x, self.y, self.out = lin(d, wide), lin(d, wide), lin(wide, d)
            self.conv = nnx.Conv(
                wide, wide, (4,), padding="CAUSAL", feature_group_count=wide, dtype=BF16, rngs=rngs
            )
            block = lambda: nnx.Param(
                nnx.initializers.lecun_normal()(rngs.params(), (4, wide // 4, wide // 4))
            )
            self.a, self.i = block(), block()
            self.rate = nnx.Param(jnp.full(wide, 0.5))

        def __call__(self, h):
            gate = nnx.gelu(self.y(h))
            x = self.conv(self.x(h))
            parts = x.reshape(b, n, 4, -1)
            blocks = lambda w: jnp.einsum("bngi,gio->bngo", parts, w[...].astype(BF16)).reshape(x.shape)
            r, i = nn.sigmoid(blocks(self.a).astype(F32)), nn.sigmoid(blocks(self.i).astype(F32))
            log_a = -8.0 * r * nn.softplus(self.rate[...])
            a = jnp.exp(log_a)
            kept = jnp.sqrt(-jnp.expm1(2 * log_a))
            kept = jnp.where(jnp.arange(n)[:, None] == 0, 1.0, kept)

            def chained(one, two):
                return one[0] * two[0], one[1] * two[0] + two[1]

            _, state = lax.associative_scan(chained, (a, kept * i * x.astype(F32)), axis=1)
            return self.out(gate * state.astype(BF16))

    class Attends(nnx.Module):
        def __init__(self, rngs):
            lin = lambda i, o: nnx.Linear(i, o, use_bias=False, dtype=BF16, rngs=rngs)
            self.q, self.kv, self.out = lin(d, d), lin(d, 2 * hd), lin(d, d)

        def __call__(self, h):
            at = jnp.arange(n)
            angle = at[:, None] / 10000 ** (jnp.arange(hd // 4) / (hd // 4))

            def turned(x):
                a, c, rest = x[..., : hd // 4], x[..., hd // 4 : hd // 2], x[..., hd // 2 :]
                cos, sin = (f(angle)[:, None].astype(BF16) for f in (jnp.cos, jnp.sin))
                return jnp.concatenate([a * cos - c * sin, c * cos + a * sin, rest], -1)

            q = turned(self.q(h).reshape(b, n, heads, hd)) * jnp.asarray(hd**-0.5, BF16)
            k, v = jnp.split(self.kv(h), 2, -1)
            k = turned(k[:, :, None])[:, :, 0]
            apart = at[:, None] - at
            score = jnp.einsum("bqhs,bks->bhqk", q, k).astype(F32)
            score = jnp.where((apart >= 0) & (apart < window), score, jnp.finfo(F32).min)
            return self.out(jnp.einsum("bhqk,bks->bqhs", nn.softmax(score).astype(BF16), v).reshape(b, n, d))

    class Block(nnx.Module):
        def __init__(self, mixer, rngs):
            self.before, self.after = (nnx.RMSNorm(d, dtype=BF16, rngs=rngs) for _ in range(2))
            self.mix = mixer(rngs)
            self.up = nnx.Linear(d, 6 * d, dtype=BF16, rngs=rngs)
            self.down = nnx.Linear(3 * d, d, dtype=BF16, rngs=rngs)

        def __call__(self, x):
            x = x + self.mix(self.before(x))
            gate, up = jnp.split(self.up(self.after(x)), 2, -1)
            return x + self.down(nnx.gelu(gate) * up)

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.embed = nnx.Embed(vocab, d, dtype=BF16, rngs=rngs)
            kinds = Recurrent, Recurrent, Attends
            self.blocks = nnx.List([Block(kind, rngs) for kind in kinds])
            self.norm = nnx.RMSNorm(d, dtype=BF16, rngs=rngs)

        def __call__(self, tokens):
            x = self.embed(tokens) * jnp.asarray(d**0.5, BF16)
            for block in self.blocks:
                x = nnx.remat(lambda m, x: m(x))(block, x)
            logits = self.embed.attend(self.norm(x)).astype(F32)
            return 30 * jnp.tanh(logits / 30)

    def loss(model, tokens, weight):
        logits = model(tokens[:, :-1])
        each = optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:])
        return jnp.sum(each * weight) / jnp.maximum(weight.sum(), 1)

    rate = optax.join_schedules(
        [optax.linear_schedule(0, 1e-3, 100), optax.cosine_decay_schedule(1e-3, 5000)], [100]
    )
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(rate, 0.9, 0.95, weight_decay=0.1))
    return nnx_train(lambda rngs: Net(rngs), tx, loss, ints(b, n + 1), S(b, n))
