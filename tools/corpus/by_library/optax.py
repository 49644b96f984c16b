"""Programs of optax's optimizers around small models."""

import jax
import jax.numpy as jnp
from arguments import S, entering_when_asked, ints
from jax import lax
from steps import labelled, layers, linen_train, optax_train, perceptron

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def optax_sm3_accumulated():
    import optax

    return optax_train(optax.MultiSteps(optax.chain(optax.sm3(0.1), optax.add_decayed_weights(1e-4)), 4))


@program
def optax_schedule_free_adamw():
    import optax.contrib

    return optax_train(optax.contrib.schedule_free_adamw(1e-3, warmup_steps=10))


@program
def optax_prodigy_plateau():
    import optax.contrib

    tx = optax.chain(optax.contrib.prodigy(), optax.contrib.reduce_on_plateau())
    return optax_train(optax.with_extra_args_support(tx), value=lambda v: v)


@program
def optax_lbfgs_loop():
    import optax

    tx = optax.lbfgs(memory_size=4, linesearch=optax.scale_by_zoom_linesearch(max_linesearch_steps=6))
    f = lambda x: jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    def solve(x):
        value_and_grad = optax.value_and_grad_from_state(f)

        def one(carry, _):
            x, state = carry
            value, grad = value_and_grad(x, state=state)
            updates, state = tx.update(grad, state, x, value=value, grad=grad, value_fn=f)
            return (optax.apply_updates(x, updates), state), value

        return lax.scan(one, (x, tx.init(x)), length=10)

    return solve, (S(64),)


@program
def optax_private_sgd():
    import optax

    tx = optax.contrib.differentially_private_aggregate(1.0, 0.5, 0)
    tx = optax.chain(tx, optax.noisy_sgd(0.1))
    params = layers(32, 64, 4)
    state = jax.eval_shape(tx.init, params)

    def step(params, state, x, y):
        loss = lambda p, x, y: labelled(perceptron(p, x[None]), y[None])
        grads = jax.vmap(jax.grad(loss), (None, 0, 0))(params, x, y)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state

    return step, (params, state, S(64, 32), ints(64))


@program
def optax_sam_partitioned():
    import optax.contrib

    kinds = lambda p: jax.tree.map(lambda x: "matrix" if x.ndim > 1 else "vector", p)
    inner = optax.partition({"matrix": optax.adan(1e-3), "vector": optax.rprop(1e-3)}, kinds)
    tx = optax.contrib.sam(inner, optax.chain(optax.contrib.normalize(), optax.sgd(0.05)), opaque_mode=False)
    return optax_train(tx)


@program
def optax_ctc_convolutions():
    import optax
    from flax import linen

    class Net(linen.Module):
        @linen.compact
        def __call__(self, x):
            for n in (64, 64):
                x = linen.Conv(n, (5,), (2,))(linen.gelu(linen.LayerNorm()(x)))
                x = x * linen.sigmoid(linen.Conv(n, (3,), feature_group_count=n)(x))
            return linen.Dense(30)(x)

    def loss(logits, labels, pad):
        return optax.ctc_loss(logits, jnp.zeros(logits.shape[:2]), labels, pad).mean()

    tx = optax.apply_if_finite(optax.adamax(1e-3), 5)
    return linen_train(Net(), tx, loss, S(4, 64, 40), ints(4, 8), S(4, 8))


@program
def optax_shampoo_like():
    import optax

    def scale_by_shampoo(every=10):
        def init(params):
            square = lambda n: jnp.eye(n) * 1e-4
            return jax.tree.map(lambda p: tuple(square(n) for n in p.shape) * 2, params), jnp.zeros(
                (), jnp.int32
            )

        def root(m, order):
            w, v = jnp.linalg.eigh(m + 1e-6 * jnp.eye(len(m)))
            return (v * jnp.maximum(w, 1e-8) ** (-1 / order)) @ v.T

        def update(grads, state, params=None):
            kept, count = state

            def one(g, parts):
                n = g.ndim
                stats = [
                    parts[i] + jnp.tensordot(g, g, (tuple(j for j in range(n) if j != i),) * 2)
                    for i in range(n)
                ]
                fresh = lambda: tuple(root(s, 2 * n) for s in stats)
                roots = lax.cond(count % every == 0, fresh, lambda: tuple(parts[n:]))
                for r in roots:
                    g = jnp.tensordot(g, r, ((0,), (0,)))
                return g, (*stats, *roots)

            leaves, tree = jax.tree.flatten(grads)
            done = [one(g, p) for g, p in zip(leaves, tree.flatten_up_to(kept))]
            new, kept = (tree.unflatten(x) for x in zip(*done))
            return new, (kept, count + 1)

        return optax.GradientTransformation(init, update)

    tx = optax.chain(scale_by_shampoo(), optax.trace(0.9, nesterov=True), optax.scale(-0.1))
    return optax_train(tx, sizes=(32, 64, 10))


@program
def optax_mechanized_madgrad():
    import optax.contrib

    return optax_train(optax.contrib.mechanize(optax.contrib.madgrad(1e-2)), sizes=(64, 128, 128, 10))
