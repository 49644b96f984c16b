"""Programs of linen that learn to act from what was kept: many updates for a step taken."""

import jax
import jax.numpy as jnp
from arguments import KEY, S, entering_when_asked, ints
from jax import lax, nn, random

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def linen_dropped_critics_many_updates():
    import optax
    from flax import linen

    b, seen, acts, wide, rounds, kept = 128, 17, 6, 128, 4, 8192

    class Actor(linen.Module):
        @linen.compact
        def __call__(self, x):
            for _ in range(2):
                x = nn.relu(linen.Dense(wide)(x))
            mean, log = jnp.split(linen.Dense(2 * acts)(x), 2, -1)
            return mean, -5 + 3.5 * (jnp.tanh(log) + 1)

    class Critic(linen.Module):
        @linen.compact
        def __call__(self, x, a):
            y = jnp.concatenate([x, a], -1)
            for _ in range(2):
                y = linen.Dropout(0.01, deterministic=False)(linen.Dense(wide)(y))
                y = nn.relu(linen.LayerNorm()(y))
            return linen.Dense(1)(y)[..., 0]

    Both = linen.vmap(
        Critic,
        variable_axes={"params": 0},
        split_rngs={"params": True, "dropout": True},
        in_axes=None,
        out_axes=0,
        axis_size=2,
    )
    actor, critics = Actor(), Both()
    x, a = S(b, seen), S(b, acts)
    actor_p = jax.eval_shape(actor.init, KEY, x)
    critic_p = jax.eval_shape(lambda k, x, a: critics.init({"params": k, "dropout": k}, x, a), KEY, x, a)
    tx_a, tx_c, tx_t = optax.adam(3e-4), optax.adamw(3e-4), optax.adam(3e-4, b1=0.5)

    def act(params, key, x):
        mean, log = actor.apply(params, x)
        noise = random.normal(key, mean.shape)
        raw = mean + jnp.exp(log) * noise
        likely = -0.5 * noise**2 - log - 0.5 * jnp.log(2 * jnp.pi)
        likely -= 2 * (jnp.log(2.0) - raw - nn.softplus(-2 * raw))
        return jnp.tanh(raw), likely.sum(-1)

    def score(params, key, x, a):
        return critics.apply(params, x, a, rngs={"dropout": key})

    def normal(x, told):
        return jnp.clip((x - told["mean"]) * lax.rsqrt(told["var"] + 1e-6), -10, 10)

    def update(carry, key):
        p, state, memory, told, size = carry
        k = random.split(key, 6)
        at = random.randint(k[0], (b,), 0, size)
        x, a, r, on, y = (memory[s][at] for s in ("x", "a", "r", "on", "y"))
        x, y = normal(x, told), normal(y, told)
        warm = jnp.exp(p["warm"])
        after, likely = act(p["actor"], k[1], y)
        ahead = score(p["slow"], k[2], y, after).min(0) - warm * likely
        target = lax.stop_gradient(r + 0.99 * on * ahead)

        def off(params):
            q = score(params, k[3], x, a)
            return jnp.mean(optax.huber_loss(q, target[None])), q.mean()

        (lost, q), grads = jax.value_and_grad(off, has_aux=True)(p["critic"])
        updates, s_c = tx_c.update(grads, state["critic"], p["critic"])
        critic = optax.apply_updates(p["critic"], updates)

        def wanted(params):
            chosen, likely = act(params, k[4], x)
            return jnp.mean(warm * likely - score(critic, k[5], x, chosen).mean(0)), -likely.mean()

        (want, spread), grads = jax.value_and_grad(wanted, has_aux=True)(p["actor"])
        updates, s_a = tx_a.update(grads, state["actor"], p["actor"])
        new = optax.apply_updates(p["actor"], updates)
        grad = jax.grad(lambda w: jnp.exp(w) * (spread + acts))(p["warm"])
        updates, s_t = tx_t.update(grad, state["warm"])
        p = {
            "actor": new,
            "critic": critic,
            "slow": optax.incremental_update(critic, p["slow"], 0.005),
            "warm": optax.apply_updates(p["warm"], updates),
        }
        state = {"critic": s_c, "actor": s_a, "warm": s_t}
        return (p, state, memory, told, size), jnp.stack([lost, q, want, spread, warm])

    def step(p, state, memory, told, size, key, x, a, r, done, y):
        at = (size + jnp.arange(8)) % kept
        new = {"x": x, "a": a, "r": r, "on": 1.0 - done, "y": y}
        memory = {s: memory[s].at[at].set(v) for s, v in new.items()}
        count = told["count"] + 8
        change = x.mean(0) - told["mean"]
        mean = told["mean"] + change * 8 / count
        apart = told["var"] * told["count"] + x.var(0) * 8 + change**2 * told["count"] * 8 / count
        told = {"mean": mean, "var": apart / count, "count": count}
        size = size + 8
        carry = p, state, memory, told, jnp.minimum(size, kept)
        (p, state, memory, told, _), shown = lax.scan(update, carry, random.split(key, rounds))
        chosen, _ = act(p["actor"], random.fold_in(key, 7), normal(y, told))
        return p, state, memory, told, size, chosen, shown.mean(0)

    p = {"actor": actor_p, "critic": critic_p, "slow": critic_p, "warm": S()}
    state = {s: jax.eval_shape(t.init, p[s]) for s, t in (("actor", tx_a), ("critic", tx_c), ("warm", tx_t))}
    memory = {"x": S(kept, seen), "a": S(kept, acts), "r": S(kept), "on": S(kept), "y": S(kept, seen)}
    told = {"mean": S(seen), "var": S(seen), "count": S()}
    now = S(8, seen), S(8, acts), S(8), S(8), S(8, seen)
    return step, (p, state, memory, told, ints(), KEY, *now)
