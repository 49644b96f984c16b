"""Programs that learn from others' labels, from rewards, from forces and from data that a model explains."""

import math

import jax
import jax.numpy as jnp
from arguments import KEY, S, entering_when_asked, ints
from jax import lax, random

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def distrax_quantile_critics_update():
    import distrax
    import optax
    from flax import linen

    seen, moves, batch, critics, quantiles, dropped = 23, 6, 128, 3, 25, 2

    class Actor(linen.Module):
        @linen.compact
        def __call__(self, x):
            for n in (128, 128):
                x = linen.relu(linen.LayerNorm()(linen.Dense(n)(x)))
            mean, spread = jnp.split(linen.Dense(2 * moves)(x), 2, -1)
            base = distrax.MultivariateNormalDiag(mean, jnp.exp(jnp.clip(spread, -20, 2)))
            return distrax.Transformed(base, distrax.Block(distrax.Tanh(), 1))

    class Critic(linen.Module):
        @linen.compact
        def __call__(self, x, a):
            x = jnp.concatenate([x, a], -1)
            for n in (128, 128):
                x = linen.relu(linen.Dense(n, kernel_init=linen.initializers.orthogonal(math.sqrt(2)))(x))
            return linen.Dense(quantiles)(x)

    ensemble = linen.vmap(
        Critic, variable_axes={"params": 0}, split_rngs={"params": True}, in_axes=None, axis_size=critics
    )
    actor, critic = Actor(), ensemble()
    obs, action = S(batch, seen), S(batch, moves)
    act = jax.eval_shape(actor.init, KEY, obs)
    judge = jax.eval_shape(critic.init, KEY, obs, action)
    slow = optax.chain(optax.clip_by_global_norm(10.0), optax.adam(3e-4))
    state = jax.eval_shape(slow.init, act), jax.eval_shape(slow.init, judge), jax.eval_shape(slow.init, S())
    place = (jnp.arange(quantiles) + 0.5) / quantiles

    def step(at, params, target, states, key, obs, action, reward, after, done):
        act, judge, alpha = params
        k1, k2 = random.split(key)

        moved, logp = actor.apply(act, after).sample_and_log_prob(seed=k1)
        next_z = critic.apply(target, after, jnp.clip(moved, -0.999, 0.999))
        every = jnp.sort(next_z.swapaxes(0, 1).reshape(batch, -1), -1)
        kept = every[:, : critics * (quantiles - dropped)] - jnp.exp(alpha) * logp[:, None]
        goal = lax.stop_gradient(reward[:, None] + 0.99 * (1 - done)[:, None] * kept)

        def judged(judge):
            z = critic.apply(judge, obs, action)
            apart = goal[:, None] - z[..., None]
            size = jnp.abs(apart)
            huber = jnp.where(size > 1, size - 0.5, 0.5 * apart**2)
            return jnp.mean(jnp.abs(place[:, None] - (apart < 0)) * huber), z.mean()

        (critic_loss, mean), grads = jax.value_and_grad(judged, has_aux=True)(judge)
        updates, critic_state = slow.update(grads, states[1])
        judge = optax.apply_updates(judge, updates)

        def improve(carry):
            act, alpha, first, last = carry

            def chosen(act):
                a, logp = actor.apply(act, obs).sample_and_log_prob(seed=k2)
                return jnp.mean(jnp.exp(alpha) * logp - critic.apply(judge, obs, a).mean((0, 2))), logp

            (_, logp), grads = jax.value_and_grad(chosen, has_aux=True)(act)
            updates, first = slow.update(grads, first)
            grad = jax.grad(lambda alpha: -alpha * (logp.mean() - moves))(alpha)
            turn, last = slow.update(grad, last)
            return optax.apply_updates(act, updates), alpha + turn, first, last

        carry = act, alpha, states[0], states[2]
        act, alpha, first, last = lax.cond(at % 2 == 0, improve, lambda c: c, carry)
        target = optax.incremental_update(judge, target, 0.005)
        return at + 1, (act, judge, alpha), target, (first, critic_state, last), critic_loss, mean

    batch_of = obs, action, S(batch), obs, S(batch)
    return step, (ints(), (act, judge, S()), judge, state, KEY, *batch_of)
