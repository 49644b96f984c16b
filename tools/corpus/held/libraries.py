"""Programs of other libraries."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from arguments import BF16, F32, KEY, S, entering_when_asked, ints
from jax import lax, nn, random
from language import attend, rms
from steps import (
    eqx_train,
    haiku_train,
    nnx_train,
)

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def nnx_diffusion_transformer_flow():
    import optax
    from flax import nnx

    class Block(nnx.Module):
        def __init__(self, rngs, d=64):
            self.norms = nnx.List(
                [nnx.LayerNorm(d, use_scale=False, use_bias=False, rngs=rngs) for _ in range(2)]
            )
            self.attend = nnx.MultiHeadAttention(4, d, decode=False, rngs=rngs)
            self.up, self.down = (nnx.Linear(*n, rngs=rngs) for n in ((d, 256), (256, d)))
            zeros = nnx.initializers.zeros
            self.tune = nnx.Linear(d, 6 * d, kernel_init=zeros, rngs=rngs)

        def __call__(self, x, c):
            s1, b1, g1, s2, b2, g2 = jnp.split(self.tune(nnx.silu(c))[:, None], 6, -1)
            x = x + g1 * self.attend(self.norms[0](x) * (1 + s1) + b1)
            return x + g2 * self.down(nnx.gelu(self.up(self.norms[1](x) * (1 + s2) + b2)))

    class Net(nnx.Module):
        def __init__(self, rngs, d=64):
            self.into = nnx.Linear(12, d, rngs=rngs)
            self.place = nnx.Param(random.normal(rngs.params(), (64, d)) * 0.02)
            self.time = nnx.Sequential(nnx.Linear(32, d, rngs=rngs), nnx.silu, nnx.Linear(d, d, rngs=rngs))
            self.label = nnx.Embed(11, d, rngs=rngs)
            self.blocks = nnx.List([Block(rngs) for _ in range(2)])
            self.out = nnx.Linear(d, 12, rngs=rngs)

        def __call__(self, x, t, y):
            b = x.shape[0]
            x = x.reshape(b, 8, 2, 8, 2, 3).transpose(0, 1, 3, 2, 4, 5).reshape(b, 64, 12)
            x = self.into(x) + self.place[...]
            turn = 1000 * t[:, None] * jnp.exp(-math.log(10000) * jnp.arange(16) / 16)
            c = self.time(jnp.concatenate([jnp.cos(turn), jnp.sin(turn)], -1)) + self.label(y)
            for block in self.blocks:
                x = block(x, c)
            x = self.out(x).reshape(b, 8, 8, 2, 2, 3).transpose(0, 1, 3, 2, 4, 5)
            return x.reshape(b, 16, 16, 3).astype(F32)

    def loss(model, key, x, y):
        k1, k2, k3 = random.split(key, 3)
        t = nn.sigmoid(random.normal(k1, (x.shape[0],)))
        noise, wide = random.normal(k2, x.shape), t[:, None, None, None]
        y = jnp.where(random.bernoulli(k3, 0.1, y.shape), 10, y)
        speed = model((1 - wide) * x + wide * noise, t, y)
        return jnp.mean((speed - (noise - x)) ** 2)

    step, (state, *batch) = nnx_train(Net, optax.adamw(1e-4), loss, KEY, S(8, 16, 16, 3), ints(8))

    def averaged(ema, state, *batch):
        state, value = step(state, *batch)
        return jax.tree.map(lambda e, p: 0.999 * e + 0.001 * p, ema, state[0]), state, value

    return averaged, (state[0], state, *batch)


@program
def nnx_lora_on_int8_llama_bf16():
    import optax
    from flax import nnx

    class Frozen(nnx.Variable):
        pass

    class Adapted(nnx.Module):
        def __init__(self, n, m, rngs, rank=8):
            self.kernel = Frozen(jnp.zeros((n, m), jnp.int8))
            self.scale = Frozen(jnp.ones(m, BF16))
            self.a = nnx.Param(random.normal(rngs.params(), (n, rank)) * 0.02)
            self.b = nnx.Param(jnp.zeros((rank, m)))

        def __call__(self, x):
            low = x @ self.a[...].astype(BF16) @ self.b[...].astype(BF16)
            return x @ (self.kernel[...].astype(BF16) * self.scale[...]) + 2.0 * low

    class Block(nnx.Module):
        def __init__(self, rngs, d=128, ff=320):
            self.norms = nnx.List([Frozen(jnp.ones(d)) for _ in range(2)])
            sizes = {"q": (d, d), "k": (d, 64), "v": (d, 64), "o": (d, d)}
            sizes |= {"gate": (d, ff), "up": (d, ff), "down": (ff, d)}
            self.dense = nnx.Dict({n: Adapted(*s, rngs) for n, s in sizes.items()})

        def __call__(self, x, cos, sin):
            b, t, d = x.shape
            turn = lambda z: z * cos + jnp.concatenate([-z[..., 16:], z[..., :16]], -1) * sin
            y, f = rms(x, self.norms[0][...]), self.dense
            q, k, v = (f[n](y).reshape(b, t, -1, 32) for n in "qkv")
            y = attend(turn(q), turn(k), v, causal=True)
            x = x + f["o"](y.reshape(b, t, d))
            y = rms(x, self.norms[1][...])
            return x + f["down"](nn.silu(f["gate"](y)) * f["up"](y))

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.table = Frozen(jnp.zeros((512, 128), BF16))
            self.blocks = nnx.List([Block(rngs) for _ in range(2)])
            self.norm = Frozen(jnp.ones(128))

        def __call__(self, tokens):
            x = self.table[...][tokens]
            angle = jnp.arange(tokens.shape[1])[:, None] / 10000 ** (jnp.arange(16) / 16)
            angle = jnp.tile(angle, 2)[:, None]
            cos, sin = jnp.cos(angle).astype(BF16), jnp.sin(angle).astype(BF16)
            for block in self.blocks:
                x = nnx.remat(Block.__call__)(block, x, cos, sin)
            return rms(x, self.norm[...]) @ self.table[...].T

    def loss(model, tokens, mask):
        logits = model(tokens[:, :-1]).astype(F32)
        each = optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:])
        return jnp.sum(each * mask) / jnp.maximum(mask.sum(), 1)

    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(optax.linear_schedule(2e-4, 0, 1000)))
    return nnx_train(Net, tx, loss, ints(4, 65), S(4, 64))


@program
def nnx_recurrent_world_model():
    import optax
    from flax import nnx

    bins = np.linspace(-10, 10, 41).astype(np.float32)
    symlog = lambda x: jnp.sign(x) * jnp.log1p(jnp.abs(x))

    def mixed(logits):
        return jnp.log(0.99 * nn.softmax(logits) + 0.01 / logits.shape[-1])

    def divergence(p, q):
        return jnp.maximum(jnp.sum(jnp.exp(p) * (p - q), (-1, -2)), 1.0).mean()

    class Net(nnx.Module):
        def __init__(self, rngs, h=64):
            self.encode = nnx.Sequential(nnx.Linear(24, h, rngs=rngs), nnx.LayerNorm(h, rngs=rngs), nnx.silu)
            self.into = nnx.Linear(8 * 8 + 4, h, rngs=rngs)
            self.cell = nnx.GRUCell(h, h, rngs=rngs)
            self.prior, self.post = nnx.Linear(h, 64, rngs=rngs), nnx.Linear(2 * h, 64, rngs=rngs)
            self.again = nnx.Linear(h + 64, h, rngs=rngs)
            self.decode = nnx.Sequential(self.again, nnx.silu, nnx.Linear(h, 24, rngs=rngs))
            self.reward, self.goes_on = nnx.Linear(h + 64, 41, rngs=rngs), nnx.Linear(h + 64, 1, rngs=rngs)

        def __call__(self, obs, action, first, key):
            def one(carry, at):
                h, z = carry
                seen, action, first, key = at
                keep = 1 - first[:, None]
                x = nn.silu(self.into(jnp.concatenate([z * keep, action * keep], -1)))
                h, _ = self.cell(h * keep, x)
                prior = mixed(self.prior(h).reshape(-1, 8, 8))
                post = mixed(self.post(jnp.concatenate([h, seen], -1)).reshape(-1, 8, 8))
                hot = nn.one_hot(random.categorical(key, post), 8)
                z = (hot + jnp.exp(post) - lax.stop_gradient(jnp.exp(post))).reshape(-1, 64)
                return (h, z), (h, z, prior, post)

            zero = jnp.zeros((obs.shape[1], 64))
            keys = random.split(key, obs.shape[0])
            steps = self.encode(symlog(obs)), action, first, keys
            _, (h, z, prior, post) = lax.scan(one, (zero, zero), steps)
            return jnp.concatenate([h, z], -1), prior, post

    def loss(model, key, obs, action, reward, first, ended):
        state, prior, post = model(obs, action, first, key)
        stop = lax.stop_gradient
        kl = 0.5 * divergence(stop(post), prior) + 0.1 * divergence(post, stop(prior))
        again = jnp.mean(jnp.sum((model.decode(state) - symlog(obs)) ** 2, -1))
        goal = jnp.clip(symlog(reward), -10, 10)
        low = jnp.clip(jnp.sum(bins <= goal[..., None], -1) - 1, 0, 39)
        part = (goal - jnp.take(bins, low)) / (bins[1] - bins[0])
        hot = nn.one_hot(low, 41) * (1 - part)[..., None] + nn.one_hot(low + 1, 41) * part[..., None]
        won = -jnp.mean(jnp.sum(hot * nn.log_softmax(model.reward(state)), -1))
        over = optax.sigmoid_binary_cross_entropy(model.goes_on(state)[..., 0], 1 - ended).mean()
        return kl + again + won + over

    tx = optax.chain(optax.adaptive_grad_clip(0.3), optax.rmsprop(4e-5, centered=True, momentum=0.9))
    batch = S(16, 16, 24), S(16, 16, 4), S(16, 16), S(16, 16), S(16, 16)
    return nnx_train(Net, tx, loss, KEY, *batch)


@program
def diffrax_controlled_path():
    import diffrax
    import equinox as eqx
    import optax

    class Net(eqx.Module):
        start: eqx.nn.MLP
        field: eqx.nn.MLP
        out: eqx.nn.Linear

        def __init__(self, key):
            a, b, c = random.split(key, 3)
            self.start = eqx.nn.MLP(4, 16, 32, 1, key=a)
            self.field = eqx.nn.MLP(16, 64, 32, 1, nn.softplus, jnp.tanh, key=b)
            self.out = eqx.nn.Linear(16, 1, key=c)

        def __call__(self, ts, given):
            path = diffrax.CubicInterpolation(ts, given)
            term = diffrax.ControlTerm(lambda t, y, args: self.field(y).reshape(16, 4), path).to_ode()
            first = self.start(path.evaluate(ts[0]))
            control = diffrax.PIDController(rtol=1e-3, atol=1e-5)
            solved = diffrax.diffeqsolve(
                term, diffrax.Heun(), ts[0], ts[-1], None, first, stepsize_controller=control, max_steps=64
            )
            return self.out(solved.ys[-1])[0]

    def loss(model, key, ts, ys, labels):
        joined = jnp.concatenate([jnp.broadcast_to(ts[None, :, None], (*ys.shape[:2], 1)), ys], -1)
        given = jax.vmap(diffrax.backward_hermite_coefficients, (None, 0))(ts, joined)
        return optax.sigmoid_binary_cross_entropy(jax.vmap(model, (None, 0))(ts, given), labels).mean()

    return eqx_train(Net, optax.radam(1e-2), loss, S(24), S(16, 24, 3), S(16))


@program
def haiku_muzero_unrolled():
    import haiku as hk
    import optax
    import rlax

    def scaled(h):
        low, high = h.min(-1, keepdims=True), h.max(-1, keepdims=True)
        return (h - low) / (high - low + 1e-5)

    def net(batch):
        obs, actions = batch
        x = obs
        for n in (16, 32):
            x = nn.relu(hk.LayerNorm((-3, -2, -1), True, True)(hk.Conv2D(n, 3, 2)(x)))
            x = x + hk.Conv2D(n, 3)(nn.relu(hk.Conv2D(n, 3)(x)))
        h = scaled(hk.Linear(64)(hk.Flatten()(x)))
        change, judge = hk.nets.MLP([64, 64]), hk.nets.MLP([64, 64], activate_final=True)
        policy, value, reward = hk.Linear(6), hk.Linear(51), hk.Linear(51)
        out = []
        for t in range(actions.shape[1] + 1):
            y = judge(h)
            out.append((policy(y), value(y), reward(h)))
            if t < actions.shape[1]:
                h = scaled(h + change(jnp.concatenate([h, nn.one_hot(actions[:, t], 6)], -1)))
                h = 0.5 * h + lax.stop_gradient(0.5 * h)
        return jax.tree.map(lambda *x: jnp.stack(x, 1), *out)

    def support(x):
        return rlax.transform_to_2hot(rlax.signed_hyperbolic(x), -25.0, 25.0, 51)

    def loss(out, visits, rewards, discounts, values, weight):
        policy, value, reward = out
        returns = jax.vmap(lambda r, d, v: rlax.n_step_bootstrapped_returns(r, d, v, 3))
        goal = returns(rewards, discounts, values)
        each = optax.softmax_cross_entropy
        total = each(policy[:, :-1], visits).mean(1) + 0.25 * each(value[:, :-1], support(goal)).mean(1)
        total = total + each(reward[:, 1:], support(rewards)).mean(1)
        return jnp.mean(weight * total)

    steps = S(16, 5)
    batch = S(16, 24, 24, 4), ints(16, 5)
    return haiku_train(net, optax.adamw(1e-3), loss, batch, S(16, 5, 6), steps, steps, steps, S(16))


@program
def numpyro_autoregressive_guide_horseshoe():
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import SVI, Trace_ELBO, autoguide

    def model(x, y):
        m = x.shape[1]
        tau = numpyro.sample("tau", dist.HalfCauchy(0.1))
        slab = numpyro.sample("slab", dist.InverseGamma(2.0, 8.0))
        with numpyro.plate("features", m):
            local = numpyro.sample("local", dist.HalfCauchy(1.0))
            raw = numpyro.sample("raw", dist.Normal(0.0, 1.0))
        size = local * tau * jnp.sqrt(slab / (slab + (tau * local) ** 2))
        sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
        with numpyro.plate("rows", x.shape[0]):
            numpyro.sample("y", dist.StudentT(4.0, x @ (raw * size), sigma), obs=y)

    def run(key, x, y):
        guide = autoguide.AutoIAFNormal(model, num_flows=2, hidden_dims=[32])
        svi = SVI(model, guide, numpyro.optim.Adam(1e-3), Trace_ELBO(4))
        state = svi.init(key, x, y)
        return lax.scan(lambda s, _: svi.update(s, x, y), state, length=10)

    return run, (KEY, S(128, 10), S(128))
