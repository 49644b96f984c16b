"""Programs of reinforcement learning, search and control."""

import jax
import jax.numpy as jnp
import numpy as np
from arguments import KEY, U32, S, entering_when_asked, ints
from jax import lax, nn, random
from steps import haiku_train

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


def actor_critic():
    import distrax
    import haiku as hk

    def net(obs):
        h = hk.nets.MLP([64, 64], activation=jnp.tanh, activate_final=True)(obs)
        scale = hk.get_parameter("scale", (4,), init=jnp.zeros)
        return distrax.MultivariateNormalDiag(
            hk.Linear(4)(h), jnp.exp(scale) * jnp.ones_like(obs[..., :4])
        ), hk.Linear(1)(h)[..., 0]

    return hk.without_apply_rng(hk.transform(net))


@program
def rlax_ppo_epochs():
    import optax
    import rlax

    net = actor_critic()
    tx = optax.chain(
        optax.clip_by_global_norm(0.5), optax.adam(optax.linear_schedule(3e-4, 0.0, 1000), eps=1e-5)
    )
    params = jax.eval_shape(net.init, KEY, S(8))
    state = jax.eval_shape(tx.init, params)

    def update(params, state, key, obs, action, old, reward, discount):
        _, value = net.apply(params, obs)
        gae = rlax.truncated_generalized_advantage_estimation
        adv = jax.vmap(gae, (1, 1, None, 1), 1)(reward, discount, 0.95, value)
        data = jax.tree.map(
            lambda x: x.reshape(-1, *x.shape[2:]), (obs[:-1], action, old, adv, adv + value[:-1])
        )

        def loss(params, obs, action, old, adv, target):
            policy, value = net.apply(params, obs)
            ratio = jnp.exp(policy.log_prob(action) - old)
            adv = (adv - adv.mean()) / (adv.std() + 1e-8)
            pg = rlax.clipped_surrogate_pg_loss(ratio, adv, 0.2)
            return pg + 0.5 * jnp.mean(jnp.square(value - target)) - 0.01 * policy.entropy().mean()

        def epoch(carry, key):
            order = random.permutation(key, 512).reshape(4, 128)

            def minibatch(carry, at):
                params, state = carry
                value, grads = jax.value_and_grad(loss)(params, *jax.tree.map(lambda x: x[at], data))
                updates, state = tx.update(grads, state, params)
                return (optax.apply_updates(params, updates), state), value

            return lax.scan(minibatch, carry, order)

        return lax.scan(epoch, (params, state), random.split(key, 2))

    return update, (params, state, KEY, S(33, 16, 8), S(32, 16, 4), S(32, 16), S(32, 16), S(32, 16))


@program
def rlax_rainbow():
    import haiku as hk
    import optax
    import rlax

    atoms = np.linspace(-10, 10, 51, dtype=np.float32)

    def net(x):
        for n, k, stride in ((16, 8, 4), (32, 4, 2)):
            x = nn.relu(hk.Conv2D(n, k, stride)(x / 255.0))
        h = nn.relu(hk.Linear(128)(hk.Flatten()(x)))
        a, v = hk.Linear(6 * 51)(h).reshape(-1, 6, 51), hk.Linear(51)(h)[:, None]
        return v + a - a.mean(1, keepdims=True)

    net = hk.without_apply_rng(hk.transform(net))
    params = jax.eval_shape(net.init, KEY, S(1, 48, 48, 4))
    tx = optax.adam(6e-5, eps=1.5e-4)

    def update(params, target, state, obs, action, reward, discount, following, weight):
        def loss(params):
            choose = net.apply(params, following)
            q = lambda logits: jnp.sum(nn.softmax(logits) * atoms, -1)
            error = jax.vmap(rlax.categorical_double_q_learning, (None, 0, 0, 0, 0, None, 0, 0))(
                atoms,
                net.apply(params, obs),
                action,
                reward,
                discount,
                atoms,
                net.apply(target, following),
                q(choose),
            )
            return jnp.mean(error * weight), error

        grads, error = jax.grad(loss, has_aux=True)(params)
        updates, state = tx.update(grads, state, params)
        params = optax.apply_updates(params, updates)
        return params, optax.incremental_update(params, target, 0.01), state, jnp.power(error, 0.6)

    images = S(16, 48, 48, 4, dtype=jnp.uint8)
    return update, (
        params,
        params,
        jax.eval_shape(tx.init, params),
        images,
        ints(16),
        S(16),
        S(16),
        images,
        S(16),
    )


@program
def mctx_gumbel_muzero():
    import mctx

    def search(params, key, obs):
        def recurrent(params, key, action, h):
            h = jnp.tanh(jnp.concatenate([h, nn.one_hot(action, 6)], -1) @ params["move"])
            out = h @ params["heads"]
            discount = jnp.full(out.shape[0], 0.99)
            return mctx.RecurrentFnOutput(
                reward=out[:, 0], discount=discount, prior_logits=out[:, 2:], value=out[:, 1]
            ), h

        h = jnp.tanh(obs @ params["embed"])
        out = h @ params["heads"]
        root = mctx.RootFnOutput(prior_logits=out[:, 2:], value=out[:, 1], embedding=h)
        found = mctx.gumbel_muzero_policy(params, key, root, recurrent, num_simulations=8, max_depth=6)
        return found.action, found.action_weights, found.search_tree.summary()

    return search, ({"embed": S(16, 32), "move": S(38, 32), "heads": S(32, 8)}, KEY, S(32, 16))


@program
def brax_generalized_rollout():
    from brax import envs

    env = envs.get_environment("inverted_pendulum", backend="generalized")

    def rollout(key, w):
        state = env.reset(key)

        def one(state, _):
            state = env.step(state, jnp.tanh(state.obs @ w))
            return state, (state.obs, state.reward)

        return lax.scan(one, state, length=8)[1]

    return jax.vmap(rollout), (S(8, 2, dtype=U32), S(8, 4, 1))


@program
def gymnax_rollout():
    import gymnax

    env, settings = gymnax.make("Acrobot-v1")

    def rollout(key, w):
        obs, state = env.reset(key, settings)

        def one(carry, key):
            obs, state = carry
            a, b = random.split(key)
            action = random.categorical(a, obs @ w)
            obs, state, reward, done, *_ = env.step(b, state, action, settings)
            return (obs, state), (reward, done)

        return lax.scan(one, (obs, state), random.split(key, 16))[1]

    return jax.vmap(rollout, (0, None)), (S(64, 2, dtype=U32), S(6, 3))


@program
def evosax_cma_es():
    from evosax.algorithms import CMA_ES

    search = CMA_ES(population_size=32, solution=jnp.zeros(16))
    settings = search.default_params

    def run(key, mean):
        def one(state, key):
            a, b = random.split(key)
            population, state = search.ask(a, state, settings)
            fitness = jnp.sum(population**2 - 10 * jnp.cos(2 * jnp.pi * population), -1)
            state, _metrics = search.tell(b, population, fitness, state, settings)
            return state, fitness.min()

        return lax.scan(one, search.init(key, mean, settings), random.split(key, 5))[1]

    return run, (KEY, S(16))


@program
def rlax_impala_recurrent():
    import haiku as hk
    import optax
    import rlax

    def net(x):
        frames, start = x
        core = hk.LSTM(64)

        def torso(frame):
            for n in (16, 32):
                frame = hk.Conv2D(n, 3)(frame)
                frame = hk.max_pool(frame, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
                frame = frame + hk.Conv2D(n, 3)(nn.relu(hk.Conv2D(n, 3)(nn.relu(frame))))
            return nn.relu(hk.Linear(64)(hk.Flatten()(nn.relu(frame))))

        h = hk.BatchApply(torso)(frames / 255.0)
        core = hk.ResetCore(core)
        out, _ = hk.dynamic_unroll(core, (h, start), core.initial_state(h.shape[1]))
        heads = hk.BatchApply(hk.Linear(7))(out)
        return heads[..., :6], heads[..., 6]

    def loss(out, action, behaviour, reward, discount):
        logits, value = out
        pi = nn.log_softmax(logits[:-1])
        logp = jnp.take_along_axis(pi, action[..., None], -1)[..., 0]
        rho = jnp.exp(logp - behaviour)
        v = jax.vmap(rlax.vtrace_td_error_and_advantage, 1, 1)(
            lax.stop_gradient(value[:-1]), lax.stop_gradient(value[1:]), reward, 0.99 * discount, rho
        )
        ones = jnp.ones_like(reward)
        pg = jax.vmap(rlax.policy_gradient_loss, 1)(logits[:-1], action, v.pg_advantage, ones)
        entropy = jax.vmap(rlax.entropy_loss, 1)(logits[:-1], ones)
        target = lax.stop_gradient(v.errors + value[:-1])
        return pg.sum() + 0.5 * jnp.sum((value[:-1] - target) ** 2) + 0.01 * entropy.sum()

    tx = optax.chain(optax.clip_by_global_norm(40.0), optax.rmsprop(6e-4, decay=0.99, eps=0.1))
    frames = S(11, 4, 24, 24, 3), S(11, 4, dtype=jnp.bool_)
    return haiku_train(net, tx, loss, frames, ints(10, 4), S(10, 4), S(10, 4), S(10, 4))


@program
def brax_spring_rollout():
    from brax import envs

    env = envs.get_environment("reacher", backend="spring")

    def rollout(key, w):
        def one(state, _):
            state = env.step(state, jnp.tanh(state.obs @ w))
            return state, state.reward

        return lax.scan(one, env.reset(key), length=8)[1].sum()

    return jax.vmap(rollout), (S(8, 2, dtype=U32), S(8, env.observation_size, env.action_size))


@program
def haiku_soft_actor_critic():
    import distrax
    import haiku as hk
    import optax

    def actor(obs):
        mean, scale = jnp.split(hk.nets.MLP([64, 64, 6])(obs), 2, -1)
        base = distrax.MultivariateNormalDiag(mean, jnp.exp(jnp.clip(scale, -20, 2)))
        return distrax.Transformed(base, distrax.Block(distrax.Tanh(), 1))

    def critics(obs, action):
        x = jnp.concatenate([obs, action], -1)
        return jnp.concatenate([hk.nets.MLP([64, 64, 1])(x) for _ in range(2)], -1)

    actor, critics = (hk.without_apply_rng(hk.transform(f)) for f in (actor, critics))
    a = jax.eval_shape(actor.init, KEY, S(1, 11))
    c = jax.eval_shape(critics.init, KEY, S(1, 11), S(1, 3))
    tx = optax.adam(3e-4)
    states = [jax.eval_shape(tx.init, p) for p in (a, c, S())]

    def update(a, c, target, log_alpha, states, key, obs, action, reward, discount, following):
        k1, k2 = random.split(key)
        alpha = jnp.exp(log_alpha)
        new, logp = actor.apply(a, following).sample_and_log_prob(seed=k1)
        value = critics.apply(target, following, new).min(-1) - alpha * logp
        goal = lax.stop_gradient(reward + discount * 0.99 * value)

        def critic_loss(c):
            return jnp.mean((critics.apply(c, obs, action) - goal[:, None]) ** 2)

        def actor_loss(a):
            act, logp = actor.apply(a, obs).sample_and_log_prob(seed=k2)
            return jnp.mean(alpha * logp - critics.apply(c, obs, act).min(-1)), logp.mean()

        lc, gc = jax.value_and_grad(critic_loss)(c)
        (la, entropy), ga = jax.value_and_grad(actor_loss, has_aux=True)(a)
        galpha = jax.grad(lambda x: -jnp.exp(x) * lax.stop_gradient(entropy - 3.0))(log_alpha)
        out = []
        for grad, state, params in zip((ga, gc, galpha), states, (a, c, log_alpha)):
            updates, state = tx.update(grad, state, params)
            out.append((optax.apply_updates(params, updates), state))
        target = optax.incremental_update(out[1][0], target, 0.005)
        return out, target, la, lc

    batch = S(128, 11), S(128, 3), S(128), S(128), S(128, 11)
    return update, (a, c, c, S(), states, KEY, *batch)


@program
def evosax_snes_policy():
    from evosax.algorithms import SNES

    search = SNES(population_size=16, solution=jnp.zeros(6 * 8 + 8))
    settings = search.default_params

    def play(weights, key):
        first, last = weights[:48].reshape(6, 8), weights[48:]

        def one(x, key):
            force = jnp.tanh(jnp.tanh(x @ first) @ last)
            x = x + 0.05 * jnp.concatenate([x[3:], -jnp.sin(x[:3]) + force])
            return x + 0.01 * random.normal(key, (6,)), -jnp.sum(x**2)

        return lax.scan(one, random.normal(key, (6,)), random.split(key, 20))[1].sum()

    def run(key, mean):
        def one(state, key):
            a, b, c = random.split(key, 3)
            population, state = search.ask(a, state, settings)
            fitness = -jax.vmap(play, (0, None))(population, b)
            state, _metrics = search.tell(c, population, fitness, state, settings)
            return state, fitness.min()

        return lax.scan(one, search.init(key, mean, settings), random.split(key, 5))[1]

    return run, (KEY, S(56))
