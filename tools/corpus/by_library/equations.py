"""Programs of diffrax and its kin: differential equations."""

import jax
import jax.numpy as jnp
from arguments import KEY, S, entering_when_asked
from jax import nn, random
from steps import eqx_train

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def diffrax_neural_ode():
    import diffrax
    import equinox as eqx
    import optax

    def loss(model, key, ts, y0, ys):
        def solve(y0):
            return diffrax.diffeqsolve(
                diffrax.ODETerm(lambda t, y, args: model(y)),
                diffrax.Tsit5(),
                ts[0],
                ts[-1],
                ts[1] - ts[0],
                y0,
                saveat=diffrax.SaveAt(ts=ts),
                stepsize_controller=diffrax.PIDController(rtol=1e-3, atol=1e-6),
                max_steps=64,
            ).ys

        return jnp.mean((jax.vmap(solve)(y0) - ys) ** 2)

    make = lambda key: eqx.nn.MLP(2, 2, 64, 2, activation=nn.softplus, key=key)
    return eqx_train(make, optax.adabelief(3e-3), loss, S(20), S(32, 2), S(32, 20, 2))


@program
def diffrax_stiff():
    import diffrax

    def robertson(t, y, k):
        a, b, c = y
        f0 = -k[0] * a + k[1] * b * c
        f1 = k[0] * a - k[2] * b**2 - k[1] * b * c
        return jnp.stack([f0, f1, k[2] * b**2])

    def solve(y0, k):
        controller = diffrax.PIDController(rtol=1e-6, atol=1e-8, pcoeff=0.3, icoeff=0.3)
        saved = diffrax.SaveAt(ts=jnp.logspace(-3, 2, 10))
        return diffrax.diffeqsolve(
            diffrax.ODETerm(robertson),
            diffrax.Kvaerno3(),
            0.0,
            100.0,
            2e-4,
            y0,
            k,
            saveat=saved,
            stepsize_controller=controller,
            max_steps=None,
        ).ys

    return solve, (S(3), S(3))


@program
def diffrax_stochastic():
    import diffrax

    def solve(key, y0, theta):
        def one(key, y0):
            noise = diffrax.VirtualBrownianTree(0.0, 1.0, tol=1e-2, shape=(3,), key=key)
            drift = diffrax.ODETerm(lambda t, y, th: th * (jnp.tanh(y) - y))
            spread = diffrax.ControlTerm(lambda t, y, th: 0.1 * jnp.diag(jnp.cos(y)), noise)
            out = diffrax.diffeqsolve(
                diffrax.MultiTerm(drift, spread),
                diffrax.Heun(),
                0.0,
                1.0,
                0.05,
                y0,
                theta,
                saveat=diffrax.SaveAt(steps=True),
                max_steps=32,
            )
            return out.ys[-1]

        return jax.vmap(one)(random.split(key, 64), y0).mean(0)

    return solve, (KEY, S(64, 3), S())


@program
def diffrax_continuous_flow():
    import diffrax
    import equinox as eqx
    import optax

    def loss(model, key, x):
        def field(t, state, given):
            (y, _), (model, noise) = state, given
            f = lambda y: model(jnp.append(y, t))
            value, back = jax.vjp(f, y)
            return value, jnp.sum(back(noise)[0] * noise)

        def one(x, key):
            out = diffrax.diffeqsolve(
                diffrax.ODETerm(field),
                diffrax.Bosh3(),
                1.0,
                0.0,
                -0.1,
                (x, 0.0),
                (model, random.normal(key, x.shape)),
                adjoint=diffrax.BacksolveAdjoint(),
                stepsize_controller=diffrax.ConstantStepSize(),
                max_steps=16,
            )
            z, change = out.ys
            return -0.5 * jnp.sum(z[0] ** 2) - jnp.log(2 * jnp.pi) + change[0]

        return -jax.vmap(one)(x, random.split(key, x.shape[0])).mean()

    make = lambda key: eqx.nn.MLP(3, 2, 32, 2, activation=jnp.tanh, key=key)
    return eqx_train(make, optax.adamw(1e-3), loss, S(64, 2))


@program
def diffrax_controlled_path():
    import diffrax
    import equinox as eqx
    import optax

    class Net(eqx.Module):
        start: eqx.nn.MLP
        field: eqx.nn.MLP
        out: eqx.nn.Linear

        def __init__(self, key):
            a, b, c = random.split(key, 3)
            self.start = eqx.nn.MLP(4, 16, 32, 1, key=a)
            self.field = eqx.nn.MLP(16, 64, 32, 1, nn.softplus, jnp.tanh, key=b)
            self.out = eqx.nn.Linear(16, 1, key=c)

        def __call__(self, ts, given):
            path = diffrax.CubicInterpolation(ts, given)
            term = diffrax.ControlTerm(lambda t, y, args: self.field(y).reshape(16, 4), path).to_ode()
            first = self.start(path.evaluate(ts[0]))
            control = diffrax.PIDController(rtol=1e-3, atol=1e-5)
            solved = diffrax.diffeqsolve(
                term, diffrax.Heun(), ts[0], ts[-1], None, first, stepsize_controller=control, max_steps=64
            )
            return self.out(solved.ys[-1])[0]

    def loss(model, key, ts, ys, labels):
        joined = jnp.concatenate([jnp.broadcast_to(ts[None, :, None], (*ys.shape[:2], 1)), ys], -1)
        given = jax.vmap(diffrax.backward_hermite_coefficients, (None, 0))(ts, joined)
        return optax.sigmoid_binary_cross_entropy(jax.vmap(model, (None, 0))(ts, given), labels).mean()

    return eqx_train(Net, optax.radam(1e-2), loss, S(24), S(16, 24, 3), S(16))
