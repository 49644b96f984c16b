"""Programs of numpyro over sequences."""

import math

from arguments import S, entering_when_asked
from jax import lax, nn, random
from jax import numpy as jnp
from steps import shapes

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


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
