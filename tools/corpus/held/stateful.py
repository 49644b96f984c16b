"""Programs of equinox and numpyro."""

import math

import jax
import jax.numpy as jnp
from arguments import F32, S, entering_when_asked, ints
from jax import lax, nn, random
from steps import (
    eqx_train,
    labelled,
    shapes,
)

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def eqx_spiking_surrogate_accumulated():
    import equinox as eqx
    import optax

    @jax.custom_jvp
    def spike(v):
        return (v > 0).astype(F32)

    @spike.defjvp
    def _(primals, tangents):
        return spike(primals[0]), tangents[0] / (1 + 10 * jnp.abs(primals[0])) ** 2

    class Net(eqx.Module):
        convs: list
        dense: eqx.nn.Linear
        out: eqx.nn.Linear
        decay: jax.Array
        level: jax.Array

        def __init__(self, key):
            k = random.split(key, 4)
            sizes = (2, 16), (16, 32)
            self.convs = [eqx.nn.Conv2d(*n, 3, padding=1, key=i) for n, i in zip(sizes, k)]
            self.dense = eqx.nn.Linear(32 * 8 * 8, 128, key=k[2])
            self.out = eqx.nn.Linear(128, 11, key=k[3])
            self.decay, self.level = jnp.full(4, 2.0), jnp.ones(3)

        def __call__(self, events, key):
            pool = eqx.nn.MaxPool2d(2, 2)
            keep = random.bernoulli(key, 0.9, (128,)) / 0.9

            def one(v, x):
                new, rates = [], []
                for i, f in enumerate((*self.convs, self.dense)):
                    x = f(x.reshape(-1) if i == 2 else x)
                    u = nn.sigmoid(self.decay[i]) * v[i] + x
                    x = spike(u - self.level[i])
                    new.append(u - lax.stop_gradient(x) * self.level[i])
                    rates.append(x.mean())
                    x = pool(x) if i < 2 else x * keep
                u = nn.sigmoid(self.decay[3]) * v[3] + self.out(x)
                return (*new, u), (u, jnp.stack(rates))

            start = tuple(jnp.zeros(n) for n in ((16, 32, 32), (32, 16, 16), (128,), (11,)))
            _, (out, rates) = lax.scan(one, start, events)
            return out, rates.mean(0)

    def loss(model, key, events, y):
        out, rates = jax.vmap(model)(events.astype(F32), random.split(key, events.shape[0]))
        each = labelled(out, jnp.broadcast_to(y[:, None], out.shape[:2]))
        return each + 0.1 * jnp.sum(nn.relu(rates.mean(0) - 0.1) ** 2)

    tx = optax.MultiSteps(optax.chain(optax.clip(1.0), optax.adabelief(1e-3)), 4)
    return eqx_train(Net, tx, loss, S(4, 12, 2, 32, 32, dtype=jnp.uint8), ints(4))


@program
def numpyro_hidden_markov_svi():
    import numpyro
    import numpyro.distributions as dist
    import optax
    from numpyro.infer import SVI, Trace_ELBO, init_to_median
    from numpyro.infer.autoguide import AutoLowRankMultivariateNormal

    states, t, animals, d = 4, 60, 12, 3

    def model(steps, turns, weather, seen):
        with numpyro.plate("state", states):
            size = numpyro.sample("size", dist.LogNormal(0.0, 1.0))
            shape = numpyro.sample("shape", dist.Gamma(2.0, 1.0))
            centre = numpyro.sample("centre", dist.Normal(0.0, 1.0))
            sharp = numpyro.sample("sharp", dist.HalfNormal(2.0))
            base = numpyro.sample("base", dist.Dirichlet(jnp.ones(states)))
        effect = numpyro.sample("effect", dist.Normal(0, 0.5).expand((d, states, states)).to_event(3))
        wide = numpyro.sample("wide", dist.HalfCauchy(0.5))
        own = numpyro.sample("own", dist.Normal(0, 1).expand((animals, states)).to_event(2))
        logits = jnp.log(base) + jnp.einsum("atd,dij->taij", weather, effect) + (wide * own)[None, :, None]
        move = nn.log_softmax(logits)
        emit = dist.Gamma(shape, shape / size).log_prob(steps[..., None])
        emit += dist.VonMises(centre, sharp).log_prob(turns[..., None])
        emit = jnp.where(seen[..., None], emit, 0.0).swapaxes(0, 1)

        def one(alpha, at):
            move, emit = at
            return nn.logsumexp(alpha[..., None] + move, -2) + emit, None

        alpha, _ = lax.scan(one, emit[0] - math.log(states), (move[1:], emit[1:]))
        numpyro.factor("likely", nn.logsumexp(alpha, -1).sum())

    guide = AutoLowRankMultivariateNormal(model, rank=5, init_loc_fn=init_to_median)
    svi = SVI(model, guide, optax.yogi(optax.exponential_decay(1e-2, 1000, 0.5)), Trace_ELBO())
    data = S(animals, t), S(animals, t), S(animals, t, d), S(animals, t, dtype=bool)
    state = shapes(svi.init(random.PRNGKey(0), *(jnp.ones(x.shape, x.dtype) for x in data)))
    return lambda state, *data: svi.stable_update(state, *data), (state, *data)
