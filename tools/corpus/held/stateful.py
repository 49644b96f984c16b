"""Programs of equinox and numpyro."""

import jax
import jax.numpy as jnp
from arguments import F32, S, entering_when_asked, ints
from jax import lax, nn, random
from steps import eqx_train, labelled

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
