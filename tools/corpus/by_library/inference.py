"""Programs of numpyro, blackjax and others: sampling, variational inference, Gaussian processes."""

import jax
import jax.numpy as jnp
from arguments import KEY, S, entering_when_asked, ints
from jax import lax, nn, random

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def numpyro_nuts_logistic():
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import NUTS

    def model(x, y):
        w = numpyro.sample("w", dist.Normal(0, 1).expand([x.shape[1]]).to_event(1))
        b = numpyro.sample("b", dist.StudentT(3.0, 0, 2))
        numpyro.sample("y", dist.Bernoulli(logits=x @ w + b), obs=y)

    def run(key, x, y):
        kernel = NUTS(model, max_tree_depth=4)
        state = kernel.init(key, 5, None, (x, y), {})
        return lax.fori_loop(0, 10, lambda i, s: kernel.sample(s, (x, y), {}), state).z

    return run, (KEY, S(256, 8), ints(256))


@program
def numpyro_svi_hierarchical():
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import SVI, Trace_ELBO, autoguide

    def model(group, y=None):
        mu, tau = numpyro.sample("mu", dist.Normal(0, 5)), numpyro.sample("tau", dist.HalfCauchy(5.0))
        with numpyro.plate("groups", 8):
            theta = numpyro.sample(
                "theta",
                dist.TransformedDistribution(dist.Normal(0.0, 1.0), dist.transforms.AffineTransform(mu, tau)),
            )
        with numpyro.plate("data", group.shape[0]):
            numpyro.sample("y", dist.LogNormal(theta[group], 1.0), obs=y)

    def run(key, group, y):
        svi = SVI(
            model, autoguide.AutoMultivariateNormal(model), numpyro.optim.ClippedAdam(1e-2), Trace_ELBO(8)
        )
        state = svi.init(key, group, y)
        return lax.scan(lambda s, _: svi.update(s, group, y), state, length=20)

    return run, (KEY, ints(128), S(128))


@program
def numpyro_gaussian_process():
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer.util import log_density

    def model(x, y):
        scale, length = (
            numpyro.sample("scale", dist.LogNormal(0, 1)),
            numpyro.sample("length", dist.LogNormal(0, 1)),
        )
        noise = numpyro.sample("noise", dist.Gamma(2.0, 1.0))
        k = scale**2 * jnp.exp(-0.5 * ((x[:, None] - x[None]) / length) ** 2) + (noise + 1e-6) * jnp.eye(
            len(x)
        )
        numpyro.sample("y", dist.MultivariateNormal(jnp.zeros(len(x)), k), obs=y)

    density = lambda p, x, y: log_density(model, (x, y), {}, p)[0]
    return jax.value_and_grad(density), ({"scale": S(), "length": S(), "noise": S()}, S(64), S(64))


def regression(params, x=None):
    w = params["w"]
    x = jnp.linspace(-1, 1, 256)[:, None] ** jnp.arange(6) if x is None else x
    return (
        -0.5 * jnp.sum((x @ w - jnp.sin(3 * x[:, 1])) ** 2)
        - 0.5 * jnp.sum(w**2) * jnp.exp(-params["s"])
        - params["s"] ** 2
    )


@program
def blackjax_nuts():
    import blackjax

    def run(key, w, s, mass):
        sampler = blackjax.nuts(regression, 0.05, mass, max_num_doublings=4)
        return lax.scan(
            lambda st, k: sampler.step(k, st), sampler.init({"w": w, "s": s}), random.split(key, 10)
        )

    return run, (KEY, S(6), S(), S(7))


@program
def blackjax_window_adaptation():
    import blackjax

    def run(key, w, s):
        warm = blackjax.window_adaptation(blackjax.hmc, regression, num_integration_steps=8)
        (state, params), _ = warm.run(key, {"w": w, "s": s}, num_steps=40)
        return state, params

    return run, (KEY, S(6), S())


@program
def blackjax_sgld_smc():
    import blackjax

    def run(key, w, x, y):
        def loglike(p, batch):
            x, y = batch
            return -0.5 * jnp.sum((nn.tanh(x @ p["a"]) @ p["b"] - y) ** 2)

        grad = blackjax.sgmcmc.gradients.grad_estimator(
            lambda p: -0.5 * sum(jnp.sum(v**2) for v in p.values()), loglike, 1000
        )
        sampler = blackjax.sghmc(grad, 5)
        step = lambda p, b: (sampler.step(b[0], p, b[1:], 1e-4), None)
        return lax.scan(step, w, (random.split(key, 8), x, y))

    return run, (KEY, {"a": S(8, 32), "b": S(32)}, S(8, 64, 8), S(8, 64))


@program
def blackjax_hmc_chains():
    import blackjax

    def density(x, data):
        scale = jnp.exp(x["log"])
        return (
            -0.5 * jnp.sum(x["z"] ** 2)
            - 0.5 * jnp.sum(((data - x["mu"] - scale * x["z"]) / 10.0) ** 2)
            - x["mu"] ** 2 / 50
            - nn.softplus(x["log"])
        )

    def run(key, x, data):
        sampler = blackjax.hmc(lambda x: density(x, data), 0.1, jnp.ones(10), 8)

        def one(states, key):
            states, info = jax.vmap(sampler.step)(random.split(key, 16), states)
            return states, (states.position["mu"], info.acceptance_rate)

        _, (draws, accepted) = lax.scan(one, jax.vmap(sampler.init)(x), random.split(key, 10))
        ess = blackjax.diagnostics.potential_scale_reduction(draws.T)
        return draws, accepted.mean(), ess

    return run, (KEY, {"z": S(16, 8), "mu": S(16), "log": S(16)}, S(8))


@program
def dynamax_kalman_em():
    from dynamax.linear_gaussian_ssm import LinearGaussianSSM

    model = LinearGaussianSSM(4, 3)
    params, props = model.initialize(random.PRNGKey(0))

    def fit(params, emissions):
        def one(params, _):
            stats, ll = jax.vmap(lambda y: model.e_step(params, y))(emissions)
            state = model.initialize_m_step_state(params, props)
            return model.m_step(params, props, stats, state)[0], ll.sum()

        return lax.scan(one, params, length=3)

    shaped = jax.tree.map(lambda x: S(*jnp.shape(x)), params)
    return fit, (shaped, S(4, 32, 3))


@program
def numpyro_mixture_subsampled_svi():
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import SVI, TraceMeanField_ELBO, autoguide

    def model(y):
        weights = numpyro.sample("weights", dist.Dirichlet(jnp.ones(3)))
        with numpyro.plate("parts", 3):
            loc = numpyro.sample("loc", dist.Normal(0, 5))
            scale = numpyro.sample("scale", dist.InverseGamma(3.0, 1.0))
        mixture = dist.MixtureSameFamily(dist.Categorical(weights), dist.Normal(loc, scale))
        with numpyro.plate("data", y.shape[0], subsample_size=64) as index:
            numpyro.sample("y", mixture, obs=y[index])

    def run(key, y):
        svi = SVI(model, autoguide.AutoNormal(model), numpyro.optim.Adagrad(1e-2), TraceMeanField_ELBO(4))
        state = svi.init(key, y)
        return lax.scan(lambda s, _: svi.update(s, y), state, length=10)

    return run, (KEY, S(512))


@program
def tinygp_quasiseparable():
    import jaxopt
    from tinygp import GaussianProcess
    from tinygp.kernels import quasisep

    def loss(p, x, y):
        kernel = quasisep.SHO(sigma=jnp.exp(p["sigma"]), omega=jnp.exp(p["omega"]), quality=0.7)
        kernel = kernel + quasisep.Matern32(scale=jnp.exp(p["scale"]))
        gp = GaussianProcess(kernel, x, diag=jnp.exp(p["noise"]), assume_sorted=True)
        return -gp.log_probability(y)

    def fit(p, x, y):
        return jaxopt.GradientDescent(loss, maxiter=5, maxls=4).run(p, x, y).params

    return fit, ({k: S() for k in ("sigma", "omega", "scale", "noise")}, S(100), S(100))


@program
def blackjax_tempered_smc():
    import blackjax

    def run(key, particles):
        prior = lambda x: -0.5 * jnp.sum(x**2) / 9
        likelihood = lambda x: nn.logsumexp(
            jnp.array([-2 * jnp.sum((x - 2) ** 2), -2 * jnp.sum((x + 2) ** 2)])
        )
        smc = blackjax.adaptive_tempered_smc(
            prior,
            likelihood,
            blackjax.mala.build_kernel(),
            blackjax.mala.init,
            {"step_size": jnp.full((1,), 0.05)},
            blackjax.smc.resampling.systematic,
            0.5,
            num_mcmc_steps=4,
        )
        more = lambda c: c[0].tempering_param < 1

        def one(carry):
            state, key = carry
            key, now = random.split(key)
            return smc.step(now, state)[0], key

        return lax.while_loop(more, one, (smc.init(particles), key))[0].particles

    return run, (KEY, S(256, 2))


@program
def numpyro_autoregressive_guide_horseshoe():
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import SVI, Trace_ELBO, autoguide

    def model(x, y):
        m = x.shape[1]
        tau = numpyro.sample("tau", dist.HalfCauchy(0.1))
        slab = numpyro.sample("slab", dist.InverseGamma(2.0, 8.0))
        with numpyro.plate("features", m):
            local = numpyro.sample("local", dist.HalfCauchy(1.0))
            raw = numpyro.sample("raw", dist.Normal(0.0, 1.0))
        size = local * tau * jnp.sqrt(slab / (slab + (tau * local) ** 2))
        sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
        with numpyro.plate("rows", x.shape[0]):
            numpyro.sample("y", dist.StudentT(4.0, x @ (raw * size), sigma), obs=y)

    def run(key, x, y):
        guide = autoguide.AutoIAFNormal(model, num_flows=2, hidden_dims=[32])
        svi = SVI(model, guide, numpyro.optim.Adam(1e-3), Trace_ELBO(4))
        state = svi.init(key, x, y)
        return lax.scan(lambda s, _: svi.update(s, x, y), state, length=10)

    return run, (KEY, S(128, 10), S(128))
