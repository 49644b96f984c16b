"""Inference of trees: likelihoods along the branches, chains of blackjax."""

import math

import jax
import jax.numpy as jnp
from arguments import KEY, S, entering_when_asked, ints
from jax import lax, nn, random

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def blackjax_tree_likelihood_chains():
    import blackjax

    taxa, sites, chains, samples, rates = 10, 160, 4, 25, 4
    branches = 2 * taxa - 2

    def quantiles(shape):
        """Means of a gamma distribution's quarters, by Wilson and Hilferty's cube."""
        p = (jnp.arange(rates) + 0.5) / rates
        z = math.sqrt(2) * lax.erf_inv(2 * p - 1)
        r = jnp.maximum(1 - 1 / (9 * shape) + z / (3 * jnp.sqrt(shape)), 0.05) ** 3
        return r / r.mean()

    def model(position, tips, order, weight):
        exchange = jnp.exp(jnp.concatenate([position["exchange"], jnp.zeros(1)]))
        freq = nn.softmax(jnp.concatenate([position["freq"], jnp.zeros(1)]))
        lengths, shape = jnp.exp(position["lengths"]), jnp.exp(position["shape"])
        still = nn.sigmoid(position["still"])
        above = jnp.zeros((4, 4)).at[jnp.triu_indices(4, 1)].set(exchange)
        q = (above + above.T) * freq
        q = q - jnp.diag(q.sum(1))
        q = q / -jnp.sum(freq * jnp.diag(q))
        time = lengths[:, None] * quantiles(shape)
        change = jax.vmap(jax.vmap(lambda t: jax.scipy.linalg.expm(q * t, max_squarings=6)))(time)

        def merge(carry, at):
            partial, scale = carry
            left, right, parent = at
            below = lambda i: jnp.einsum("rij,rsj->rsi", change[i], partial[i])
            both = below(left) * below(right)
            top = both.max((0, 2))
            both = both / top[:, None]
            return (partial.at[parent].set(both), scale + jnp.log(top)), None

        start = jnp.zeros((2 * taxa - 1, rates, sites, 4))
        start = start.at[:taxa].set(jnp.broadcast_to(tips[:, None], (taxa, rates, sites, 4)))
        (partial, scale), _ = lax.scan(merge, (start, jnp.zeros(sites)), order)
        varied = jnp.log(jnp.einsum("rsi,i->s", partial[-1], freq) / rates) + scale
        same = jnp.log(jnp.maximum(jnp.einsum("si,i->s", tips.prod(0), freq), 1e-30))
        site = jnp.logaddexp(jnp.log1p(-still) + varied, jnp.log(still) + same)
        prior = jnp.sum(position["lengths"] - 10 * lengths) - 0.5 * jnp.sum(position["exchange"] ** 2)
        prior += position["shape"] - shape - 0.5 * jnp.sum(position["freq"] ** 2) - position["still"] ** 2
        return jnp.sum(weight * site) + prior

    def sample(position, key, tips, order, weight, size, mass):
        density = lambda position: model(position, tips, order, weight)
        kernel = blackjax.ghmc(density, size, mass, jnp.float32(0.3), jnp.float32(0.1))
        k1, k2 = random.split(key)
        state = jax.vmap(kernel.init)(position, random.split(k1, chains))

        def one(state, key):
            state, info = jax.vmap(kernel.step)(random.split(key, chains), state)
            return state, (state.position, state.logdensity, info.acceptance_rate, info.is_divergent)

        state, (trail, logp, accepted, lost) = lax.scan(one, state, random.split(k2, samples))
        trail = jax.tree.map(lambda x: x.swapaxes(0, 1), trail)
        mixed = jax.tree.map(blackjax.diagnostics.potential_scale_reduction, trail)
        many = blackjax.diagnostics.effective_sample_size(trail["lengths"])
        length = jnp.exp(trail["lengths"]).sum(-1)
        ends = jnp.quantile(length, jnp.array([0.05, 0.5, 0.95]))
        return state, mixed, many, ends, logp, accepted.mean(), lost.sum()

    each = {"lengths": (branches,), "exchange": (5,), "freq": (3,), "shape": (), "still": ()}
    position = {name: S(chains, *shape) for name, shape in each.items()}
    mass = {name: S(*shape) for name, shape in each.items()}
    tree = tuple(ints(taxa - 1) for _ in range(3))
    return sample, (position, KEY, S(taxa, sites, 4), tree, S(sites), S(), mass)
