"""Programs of nnx that give what comes in turn: actions."""

import jax.numpy as jnp
from arguments import BF16, F32, KEY, S, entering_when_asked
from jax import lax, nn, random
from steps import nnx_model

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def nnx_action_diffusion_steps_bf16():
    from flax import nnx

    b, horizon, acts, seen, d, times, rounds = 4, 16, 7, 2, 64, 100, 8

    class Block(nnx.Module):
        def __init__(self, i, o, cond, rngs):
            conv = lambda i: nnx.Conv(i, o, (5,), dtype=BF16, param_dtype=BF16, rngs=rngs)
            self.a, self.b = conv(i), conv(o)
            self.n1, self.n2 = (nnx.GroupNorm(o, 8, dtype=BF16, rngs=rngs) for _ in range(2))
            self.film = nnx.Linear(cond, 2 * o, dtype=BF16, param_dtype=BF16, rngs=rngs)
            self.skip = nnx.Conv(i, o, (1,), dtype=BF16, param_dtype=BF16, rngs=rngs) if i != o else None

        def __call__(self, x, c):
            mish = lambda v: v * jnp.tanh(nn.softplus(v))
            y = mish(self.n1(self.a(x)))
            scale, shift = jnp.split(self.film(mish(c))[:, None], 2, -1)
            y = mish(self.n2(self.b(y * (1 + scale) + shift)))
            return y + (x if self.skip is None else self.skip(x))

    class Net(nnx.Module):
        def __init__(self, rngs):
            lin = lambda i, o: nnx.Linear(i, o, dtype=BF16, param_dtype=BF16, rngs=rngs)
            conv = lambda i, o, k, s: nnx.Conv(i, o, k, s, dtype=BF16, param_dtype=BF16, rngs=rngs)
            self.eyes = nnx.List([conv(3, 16, (3, 3), 2), conv(16, 32, (3, 3), 2)])
            self.calm = nnx.GroupNorm(32, 4, dtype=BF16, rngs=rngs)
            self.time, self.told = lin(d, d), lin(seen * (64 + 9), d)
            cond = 2 * d
            self.first, self.second = Block(acts, d, cond, rngs), Block(d, 2 * d, cond, rngs)
            self.down, self.last = conv(d, d, (3,), 2), conv(d, acts, (1,), 1)
            self.up = nnx.ConvTranspose(2 * d, d, (4,), 2, dtype=BF16, param_dtype=BF16, rngs=rngs)
            self.third = Block(2 * d, d, cond, rngs)

        def look(self, frames, pose):
            x = (frames.astype(BF16) / 127.5 - 1).reshape(b * seen, 48, 48, 3)
            for conv in self.eyes:
                x = nnx.relu(conv(x))
            x = self.calm(x).astype(F32)
            share = nn.softmax(x.reshape(b * seen, -1, 32), 1).reshape(x.shape)
            grid = jnp.linspace(-1, 1, x.shape[1])
            where = [jnp.einsum("bhwc,h->bc", share, grid), jnp.einsum("bhwc,w->bc", share, grid)]
            found = jnp.concatenate(where, -1).reshape(b, seen, 64)
            return self.told(jnp.concatenate([found, pose], -1).reshape(b, -1).astype(BF16))

        def __call__(self, x, t, told):
            wave = t * jnp.exp(-jnp.arange(d // 2) * (jnp.log(1e4) / (d // 2 - 1)))
            t = self.time(jnp.concatenate([jnp.sin(wave), jnp.cos(wave)]).astype(BF16))
            c = jnp.concatenate([jnp.broadcast_to(t, told.shape), told], -1)
            x = self.first(x.astype(BF16), c)
            y = self.up(self.second(self.down(x), c))
            return self.last(self.third(jnp.concatenate([x, y], -1), c)).astype(F32)

    graph, state = nnx_model(Net)

    def act(state, key, frames, pose, low, high):
        model = nnx.merge(graph, state)
        middle, half = (high + low) / 2, jnp.maximum((high - low) / 2, 1e-4)
        told = model.look(frames, pose)
        s = jnp.arange(times + 1) / times
        kept = jnp.cos((s + 0.008) / 1.008 * jnp.pi / 2) ** 2
        beta = jnp.clip(1 - kept[1:] / kept[:-1], 0, 0.999)
        alpha = jnp.cumprod(1 - beta)
        at = (jnp.arange(rounds) * (times // rounds))[::-1]

        def one(carry, i):
            x, key = carry
            key, k = random.split(key)
            a = alpha[i]
            before = jnp.where(i >= times // rounds, alpha[i - times // rounds], 1.0)
            noise = model(x, i.astype(F32), told)
            clean = jnp.clip((x - jnp.sqrt(1 - a) * noise) / jnp.sqrt(a), -1, 1)
            noise = (x - jnp.sqrt(a) * clean) / jnp.sqrt(1 - a)
            wild = 0.3 * jnp.sqrt((1 - before) / (1 - a)) * jnp.sqrt(1 - a / before)
            x = jnp.sqrt(before) * clean + jnp.sqrt(jnp.maximum(1 - before - wild**2, 0)) * noise
            return (x + wild * random.normal(k, x.shape), key), jnp.mean(noise**2)

        key, k = random.split(key)
        (x, _), sizes = lax.scan(one, (random.normal(k, (b, horizon, acts)), key), at)
        return (x * half + middle)[:, seen - 1 : seen + 7], sizes

    frames = S(b, seen, 48, 48, 3, dtype=jnp.uint8)
    return act, (state, KEY, frames, S(b, seen, 9), S(acts), S(acts))
