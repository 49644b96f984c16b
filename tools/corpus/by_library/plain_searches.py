"""Programs of no library but JAX and optax that search: for the best caption, for where to try next."""

import jax
import jax.numpy as jnp
from arguments import F32, I32, KEY, S, entering_when_asked
from jax import lax, nn, random
from jax.scipy.linalg import cho_solve, solve_triangular
from jax.scipy.stats import norm as gauss

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def captions_beam_attended_cells():
    b, beams, size, d, vocab, length, sizes = 4, 4, 64, 128, 1000, 16, ((3, 32), (32, 64), (64, 128))

    def see(p, images):
        x = images.astype(F32) / 127.5 - 1
        for w, g, s in p:
            x = lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            m, v = x.mean((1, 2), keepdims=True), x.var((1, 2), keepdims=True)
            x = nn.gelu((x - m) * lax.rsqrt(v + 1e-5) * g + s)
        return x.reshape(b, -1, d)

    def cell(p, x, state):
        c, h = state
        i, f, o, u = jnp.split(x @ p["x"] + h @ p["h"] + p["b"], 4, -1)
        c = nn.sigmoid(f + 1) * c + nn.sigmoid(i) * jnp.tanh(u)
        return c, nn.sigmoid(o) * jnp.tanh(c)

    def look(p, h, keys, values):
        score = jnp.tanh(keys + (h @ p["q"])[:, :, None]) @ p["v"]
        share = nn.softmax(score)
        gate = nn.sigmoid(h @ p["gate"])
        return gate * jnp.einsum("bks,bsd->bkd", share, values[:, 0]), share

    def describe(params, images, penalty):
        values = see(params["see"], images)
        mean = values.mean(1)
        start = [jnp.broadcast_to(jnp.tanh(mean @ w)[:, None], (b, beams, d)) for w in params["start"]]
        keys = (values @ params["look"]["k"])[:, None]
        values = values[:, None]

        def one(carry, i):
            tokens, scores, ended, state, covered = carry
            last = lax.dynamic_index_in_dim(tokens, i, 2, False)
            read, share = look(params["look"], state[1], keys, values)
            state = cell(params["cell"], jnp.concatenate([params["embed"][last], read], -1), state)
            logits = jnp.concatenate([state[1], read], -1) @ params["out"]
            logp = nn.log_softmax(logits).at[:, :, 0].set(-1e9)
            stay = jnp.full(vocab, -1e9).at[0].set(0.0)
            logp = jnp.where(ended[..., None], stay, logp)
            total = scores[..., None] + logp
            scores, at = lax.top_k(total.reshape(b, beams * vocab), beams)
            whom, token = at // vocab, (at % vocab).astype(I32)
            take = lambda x: jnp.take_along_axis(x, whom.reshape(b, beams, *[1] * (x.ndim - 2)), 1)
            tokens, ended, covered = take(tokens), take(ended), take(covered + share)
            state = jax.tree.map(take, state)
            tokens = lax.dynamic_update_index_in_dim(tokens, token, i + 1, 2)
            return (tokens, scores, ended | (token == 2), state, covered), take(share)

        tokens = jnp.zeros((b, beams, length + 1), I32).at[..., 0].set(1)
        scores = jnp.where(jnp.arange(beams) == 0, 0.0, -1e9) * jnp.ones((b, 1))
        covered = jnp.zeros((b, beams, keys.shape[2]))
        first = tokens, scores, jnp.zeros((b, beams), bool), tuple(start), covered
        (tokens, scores, _, _, covered), shares = lax.scan(one, first, jnp.arange(length))
        many = jnp.sum(tokens[..., 1:] > 0, -1)
        scores = scores / ((5.0 + many) / 6) ** penalty - 0.1 * jnp.sum((1 - covered) ** 2, -1)
        best = scores.argmax(1)[:, None]
        chosen = jnp.take_along_axis(tokens, best[..., None], 1)[:, 0, 1:]
        return chosen, jnp.take_along_axis(scores, best, 1)[:, 0], shares

    look_p = {"q": S(d, d), "k": S(d, d), "v": S(d), "gate": S(d, d)}
    cell_p = {"x": S(2 * d, 4 * d), "h": S(d, 4 * d), "b": S(4 * d)}
    params = {"see": [(S(3, 3, i, o), S(o), S(o)) for i, o in sizes], "start": [S(d, d)] * 2}
    params |= {"look": look_p, "cell": cell_p, "embed": S(vocab, d), "out": S(2 * d, vocab)}
    return describe, (params, S(b, size, size, 3, dtype=jnp.uint8), S())


@program
def process_restarts_expected_improvement():
    import optax

    n, dims, restarts, rounds, tried, batch = 64, 5, 6, 40, 256, 3

    def kernel(p, x, y):
        x, y = x / nn.softplus(p["long"]), y / nn.softplus(p["long"])
        far2 = jnp.sum((x[:, None] - y[None]) ** 2, -1)
        far = jnp.sqrt(5 * far2 + 1e-10)
        return nn.softplus(p["high"]) * (1 + far + far**2 / 3) * jnp.exp(-far)

    def factored(p, x, y, real):
        off = (y - p["mean"]) * real
        both = real[:, None] * real
        cov = kernel(p, x, x) * both + jnp.diag((nn.softplus(p["noise"]) + 1e-5) * real + (1 - real))
        low = jnp.linalg.cholesky(cov)
        return low, cho_solve((low, True), off), off

    def unlikely(p, x, y, real):
        low, alpha, off = factored(p, x, y, real)
        prior = jnp.sum((p["long"] - 0.5) ** 2) + 0.5 * p["high"] ** 2 + 0.1 * (p["noise"] + 4) ** 2
        return 0.5 * off @ alpha + jnp.sum(jnp.log(jnp.diagonal(low))) + prior

    tx = optax.chain(optax.zero_nans(), optax.adam(0.05))

    def fitted(p, x, y, real):
        def one(carry, _):
            p, state, best, least = carry
            value, grads = jax.value_and_grad(unlikely)(p, x, y, real)
            better = value < least
            best = jax.tree.map(lambda a, b: jnp.where(better, a, b), p, best)
            updates, state = tx.update(grads, state, p)
            return (optax.apply_updates(p, updates), state, best, jnp.minimum(value, least)), value

        (_, _, best, least), path = lax.scan(one, (p, tx.init(p), p, jnp.inf), None, rounds)
        return best, least, path

    def told(p, x, y, real, at):
        low, alpha, _ = factored(p, x, y, real)
        k = kernel(p, at, x) * real
        half = solve_triangular(low, k.T, lower=True)
        var = nn.softplus(p["high"]) - jnp.sum(half**2, 0)
        return p["mean"] + k @ alpha, jnp.sqrt(jnp.maximum(var, 1e-9))

    def gain(p, x, y, real, at):
        mean, sd = told(p, x, y, real, at)
        best = jnp.min(jnp.where(real > 0, y, jnp.inf))
        z = (best - mean - 0.01) / sd
        return sd * (z * gauss.cdf(z) + gauss.pdf(z))

    def propose(key, x, y, real):
        k1, k2 = random.split(key)
        count = real.sum()
        mean = jnp.sum(y * real) / count
        sd = jnp.sqrt(jnp.sum((y - mean) ** 2 * real) / count) + 1e-6
        y = (y - mean) / sd * real
        starts = {"long": random.normal(k1, (restarts, dims)), "high": jnp.zeros(restarts)}
        starts |= {"noise": jnp.full(restarts, -4.0), "mean": jnp.zeros(restarts)}
        many, least, paths = jax.vmap(fitted, (0, None, None, None))(starts, x, y, real)
        p = jax.tree.map(lambda v: v[jnp.nanargmin(least)], many)

        def one(carry, key):
            x, y, real, i = carry
            at = random.uniform(key, (tried, dims))
            better = jax.grad(lambda at: gain(p, x, y, real, at).sum())

            def climb(_, at):
                g = better(at)
                return jnp.clip(at + 0.02 * g / (jnp.linalg.norm(g, axis=-1, keepdims=True) + 1e-9), 0, 1)

            at = lax.fori_loop(0, 10, climb, at)
            values = gain(p, x, y, real, at)
            new = at[values.argmax()]
            guess = told(p, x, y, real, new[None])[0][0]
            x, y, real = x.at[i].set(new), y.at[i].set(guess), real.at[i].set(1.0)
            return (x, y, real, i + 1), (new, values.max())

        start = x, y, real, count.astype(jnp.int32)
        _, (points, gains) = lax.scan(one, start, random.split(k2, batch))
        return points, gains, p, paths, least

    return propose, (KEY, S(n, dims), S(n), S(n))
