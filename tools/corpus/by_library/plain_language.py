"""Language models of JAX alone that predict more than the next token."""

import operator
from functools import partial

import jax
import jax.numpy as jnp
from arguments import BF16, F32, S, entering_when_asked, ints
from jax import lax, nn
from language import attend_where, rms_norm

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def gpt_future_tokens_chunked_loss_bf16():
    import optax

    count, d, heads, ff, vocab, ahead, b, t, chunk = 4, 128, 4, 352, 2048, 2, 4, 128, 128
    hd = d // heads

    def stack(n):
        p = {"norms": S(n, 2, d), "gains": S(n, 2, hd), "qkv": S(n, d, 3 * heads * hd), "out": S(n, d, d)}
        return p | {"up": S(n, d, 2 * ff), "down": S(n, ff, d)}

    params = {"embed": S(vocab, d), "layers": stack(count), "ahead": stack(ahead), "norm": S(d)}
    params |= {"join": S(ahead, 2 * d, d), "join_norms": S(ahead, 2, d)}

    @jax.custom_vjp
    def cross_entropy(x, table, labels):
        return forward(x, table, labels)[0]

    def in_chunks(z):
        return z.reshape(-1, chunk, *z.shape[1:])

    def forward(x, table, labels):
        def one(total, at):
            x, labels = at
            logits = jnp.dot(x, table.T, preferred_element_type=F32)
            norm = nn.logsumexp(logits, -1)
            right = jnp.take_along_axis(logits, jnp.maximum(labels, 0)[:, None], 1)[:, 0]
            return total + jnp.sum((norm - right + 1e-4 * norm**2) * (labels >= 0)), norm

        total, norms = lax.scan(one, jnp.float32(0), (in_chunks(x), in_chunks(labels)))
        return total / jnp.maximum(jnp.sum(labels >= 0), 1), (x, table, labels, norms)

    def backward(kept, g):
        x, table, labels, norms = kept
        g = g / jnp.maximum(jnp.sum(labels >= 0), 1)

        def one(grad, at):
            x, labels, norm = at
            logits = jnp.dot(x, table.T, preferred_element_type=F32)
            p = jnp.exp(logits - norm[:, None]) * (1 + 2e-4 * norm[:, None]) - nn.one_hot(labels, vocab)
            p = (p * (g * (labels >= 0))[:, None]).astype(BF16)
            return grad + jnp.dot(p.T, x, preferred_element_type=F32), p @ table

        zero = jnp.zeros(table.shape)
        grad, dx = lax.scan(one, zero, (in_chunks(x), in_chunks(labels), norms))
        return dx.reshape(x.shape), grad.astype(table.dtype), None

    cross_entropy.defvjp(forward, backward)

    def rotated(x):
        angle = jnp.arange(t)[:, None] * 10000.0 ** (-jnp.arange(0, hd, 2) / hd)
        cos, sin = jnp.cos(angle)[:, None].astype(x.dtype), jnp.sin(angle)[:, None].astype(x.dtype)
        a, b = jnp.split(x, 2, -1)
        return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    @partial(jax.checkpoint, policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable)
    def block(x, p):
        y = rms_norm(x, p["norms"][0])
        q, k, v = jnp.split((y @ p["qkv"]).reshape(b, t, 3 * heads, hd), 3, 2)
        q, k = rotated(rms_norm(q, p["gains"][0])), rotated(rms_norm(k, p["gains"][1]))
        y = attend_where(q, k, v, jnp.tril(jnp.ones((t, t), bool)))
        x = x + y.reshape(b, t, d) @ p["out"]
        gate, up = jnp.split(rms_norm(x, p["norms"][1]) @ p["up"], 2, -1)
        return x + (jnp.square(nn.relu(gate)) * up) @ p["down"]

    def loss(params, tokens):
        p = jax.tree.map(lambda w: w.astype(BF16), params)
        x, _ = lax.scan(lambda x, p: (block(x, p), None), p["embed"][tokens[:, :t]], p["layers"])
        label = lambda k: jnp.where(tokens[:, k : k + t] == 0, -1, tokens[:, k : k + t]).reshape(-1)
        final = lambda x: rms_norm(x, p["norm"]).reshape(-1, d)
        values = [cross_entropy(final(x), p["embed"], label(1))]
        for i in range(ahead):
            now = {n: jax.tree.map(operator.itemgetter(i), p[n]) for n in ("ahead", "join", "join_norms")}
            new = p["embed"][tokens[:, i + 1 : i + 1 + t]]
            both = [rms_norm(z, n) for z, n in zip((x, new), now["join_norms"])]
            x = block(jnp.concatenate(both, -1) @ now["join"], now["ahead"])
            values.append(cross_entropy(final(x), p["embed"], label(i + 2)))
        return values[0] + 0.3 * sum(values[1:]) / ahead, jnp.stack(values)

    flat = optax.join_schedules(
        [
            optax.linear_schedule(0, 3e-4, 100),
            optax.constant_schedule(3e-4),
            optax.linear_schedule(3e-4, 0, 200),
        ],
        [100, 800],
    )
    tx = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adamw(flat, b2=0.95, weight_decay=0.1, mask=lambda p: jax.tree.map(lambda x: x.ndim > 2, p)),
    )

    def step(params, state, tokens):
        (_, values), grads = jax.value_and_grad(loss, has_aux=True)(params, tokens)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state, values, optax.global_norm(grads)

    return step, (params, jax.eval_shape(tx.init, params), ints(b, t + 1 + ahead))
