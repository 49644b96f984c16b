"""Programs of no library but JAX on long sequences."""

import jax
import jax.numpy as jnp
from arguments import BF16, F32, S, entering_when_asked, ints
from jax import lax, nn
from language import rms
from steps import labelled

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def long_convolution_muon():
    t, d = 128, 48
    block = {"norm": S(2, d), "into": S(d, 3 * d), "short": S(3, 3 * d), "skip": S(2, d), "out": S(d, d)}
    block |= {
        "filter": [S(9, 32), S(32, 32), S(32, 2 * d)],
        "decay": S(2 * d),
        "up": S(d, 192),
        "down": S(192, d),
    }

    def filters(l):
        along = jnp.linspace(0, 1, t)[:, None]
        turn = 2 * jnp.pi * along * jnp.arange(1, 5)
        h = jnp.concatenate([along, jnp.cos(turn), jnp.sin(turn)], -1)
        for w in l["filter"][:-1]:
            h = jnp.sin(10 * (h @ w))
        h = h @ l["filter"][-1] * jnp.exp(-along * jnp.abs(l["decay"]))
        return h.reshape(t, 2, d)

    def convolve(x, h, skip):
        y = jnp.fft.irfft(jnp.fft.rfft(x, 2 * t, 1) * jnp.fft.rfft(h, 2 * t, 0), 2 * t, 1)[:, :t]
        return y + x * skip

    def apply(l, x):
        y = rms(x, l["norm"][0]) @ l["into"]
        y = lax.conv_general_dilated(
            y,
            l["short"][:, None],
            (1,),
            [(2, 0)],
            dimension_numbers=("NWC", "WIO", "NWC"),
            feature_group_count=3 * d,
        )
        v, *gates = jnp.split(y, 3, -1)
        h = filters(l)
        for n, gate in enumerate(gates):
            v = gate * convolve(v, h[:, n], l["skip"][n])
        x = x + v @ l["out"]
        return x + jnp.square(nn.relu(rms(x, l["norm"][1]) @ l["up"])) @ l["down"]

    def loss(p, x, y):
        x = p["embed"][x]
        for l in p["blocks"]:
            x = apply(l, x)
        return labelled(rms(x, p["norm"]) @ p["head"], y)

    def orthogonal(g):
        turned = g.shape[0] > g.shape[1]
        x = (g.T if turned else g).astype(BF16)
        x = x / (jnp.linalg.norm(x) + 1e-7)

        def one(x, _):
            a = x @ x.T
            return 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x, None

        x, _ = lax.scan(one, x, length=5)
        return (x.T if turned else x).astype(F32) * max(1, g.shape[0] / g.shape[1]) ** 0.5

    def step(p, m, v, x, y):
        value, grads = jax.value_and_grad(loss)(p, x, y)
        m = jax.tree.map(lambda m, g: 0.95 * m + g, m, grads)

        def update(path, p, m, v, g):
            if p.ndim == 2 and any(k in str(path) for k in ("into", "out", "up", "down")):
                return p * (1 - 2e-4) - 0.02 * orthogonal(g + 0.95 * m), v
            v = 0.99 * v + 0.01 * g * g
            return p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), v

        both = jax.tree_util.tree_map_with_path(update, p, m, v, grads)
        pick = lambda n: jax.tree.map(lambda z: z[n], both, is_leaf=lambda z: isinstance(z, tuple))
        return pick(0), m, pick(1), value

    params = {"embed": S(64, d), "head": S(d, 64), "norm": S(d), "blocks": [block] * 2}
    return step, (params, params, params, ints(4, t), ints(4, t))


@program
def state_space_duality_chunks_bf16():
    b, t, heads, p, n, chunk = 2, 128, 4, 32, 16, 32
    d, e = 64, heads * p
    block = {"norm": S(d), "into": S(d, 2 * e + 2 * n + heads), "conv": S(4, e + 2 * n)}
    block |= {"bias": S(heads), "a": S(heads), "skip": S(heads), "gate": S(e), "out": S(e, d)}

    def sums(x):
        total = jnp.cumsum(x, -1)
        apart = total[..., :, None] - total[..., None, :]
        return jnp.where(jnp.tril(jnp.ones(apart.shape[-2:], bool)), apart, -jnp.inf)

    def mix(x, a, b_, c):
        parts = lambda z: z.reshape(b, t // chunk, chunk, *z.shape[2:])
        x, a, b_, c = map(parts, (x, a, b_, c))
        a = a.transpose(0, 3, 1, 2)
        total = jnp.cumsum(a, -1)
        inside = jnp.einsum("bcln,bcsn,bhcls,bcshp->bclhp", c, b_, jnp.exp(sums(a)).astype(x.dtype), x)
        left = jnp.exp(total[..., -1:] - total).astype(x.dtype)
        states = jnp.einsum("bcln,bhcl,bclhp->bchpn", b_, left, x)
        states = jnp.concatenate([jnp.zeros_like(states[:, :1]), states], 1)
        across = jnp.exp(sums(jnp.pad(total[..., -1], ((0, 0), (0, 0), (1, 0))))).astype(x.dtype)
        states = jnp.einsum("bhzc,bchpn->bzhpn", across, states)[:, :-1]
        out = jnp.exp(total).astype(x.dtype)
        return (inside + jnp.einsum("bcln,bchpn,bhcl->bclhp", c, states, out)).reshape(b, t, heads, p)

    def apply(l, x):
        y = rms(x, l["norm"]) @ l["into"].astype(BF16)
        z, xbc, dt = jnp.split(y, [e, 2 * e + 2 * n], -1)
        past = jnp.pad(xbc, ((0, 0), (3, 0), (0, 0)))
        xbc = nn.silu(sum(past[:, i : i + t] * l["conv"][i].astype(BF16) for i in range(4)))
        x_, b_, c = jnp.split(xbc, [e, e + n], -1)
        dt = nn.softplus(dt.astype(F32) + l["bias"])
        x_ = x_.reshape(b, t, heads, p)
        y = mix(x_ * dt[..., None].astype(BF16), -jnp.exp(l["a"]) * dt, b_, c)
        y = (y + x_ * l["skip"][:, None].astype(BF16)).reshape(b, t, e)
        return x + rms(y * nn.silu(z), l["gate"]) @ l["out"].astype(BF16)

    def loss(params, tokens):
        x = params["embed"].astype(BF16)[tokens[:, :-1]]
        stacked = jax.tree.map(lambda *w: jnp.stack(w), *params["blocks"])
        x, _ = lax.scan(lambda x, l: (jax.checkpoint(apply)(l, x), None), x, stacked)
        logits = (rms(x, params["norm"]) @ params["embed"].astype(BF16).T).astype(F32)
        return -jnp.mean(jnp.take_along_axis(nn.log_softmax(logits), tokens[:, 1:, None], -1))

    def lion(params, moment, tokens):
        value, grads = jax.value_and_grad(loss)(params, tokens)
        sign = lambda p, m, g: p - 1e-4 * (jnp.sign(0.9 * m + 0.1 * g) + 0.1 * p)
        new = jax.tree.map(sign, params, moment, grads)
        return new, jax.tree.map(lambda m, g: 0.99 * m + 0.01 * g, moment, grads), value

    params = {"embed": S(256, d), "norm": S(d), "blocks": [block] * 2}
    return lion, (params, params, ints(b, t + 1))
