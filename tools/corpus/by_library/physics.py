"""Programs of mathematics and physics."""

import jax
import jax.numpy as jnp
import numpy as np
from arguments import F32, KEY, S, entering_when_asked, ints
from jax import lax, nn
from steps import haiku_train, shapes

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def optimistix_levenberg_marquardt():
    import optimistix

    def fit(p, x, y):
        residual = lambda p, xy: xy[1] - p["a"] * jnp.exp(-jnp.abs(p["b"]) * xy[0]) * jnp.cos(p["c"] * xy[0])
        solver = optimistix.LevenbergMarquardt(rtol=1e-4, atol=1e-4)
        return optimistix.least_squares(residual, solver, p, (x, y), max_steps=20, throw=False).value

    return fit, ({"a": S(), "b": S(), "c": S()}, S(100), S(100))


@program
def lineax_krylov():
    import lineax

    def solve(a, b):
        operator = lineax.FunctionLinearOperator(
            lambda x: a @ (a.T @ x) + x, jax.ShapeDtypeStruct((64,), F32), lineax.positive_semidefinite_tag
        )
        x = lineax.linear_solve(operator, b, lineax.CG(1e-5, 1e-5, max_steps=30), throw=False).value
        y = lineax.linear_solve(
            lineax.MatrixLinearOperator(a), b, lineax.GMRES(1e-4, 1e-4, restart=8, max_steps=16), throw=False
        )
        return jnp.sum(x * y.value)

    return jax.grad(solve, 1), (S(64, 64), S(64))


@program
def tinygp_kernels():
    import tinygp
    from tinygp import kernels

    def loss(p, x, y):
        kernel = jnp.exp(p["amp"]) * kernels.Matern52(jnp.exp(p["scale"])) + kernels.ExpSineSquared(
            scale=jnp.exp(p["period"]), gamma=p["gamma"]
        )
        return -tinygp.GaussianProcess(kernel, x, diag=jnp.exp(p["noise"])).log_probability(y)

    return jax.value_and_grad(loss), (
        {k: S() for k in ("amp", "scale", "period", "gamma", "noise")},
        S(80),
        S(80),
    )


@program
def ott_sinkhorn_divergence():
    from ott.geometry import pointcloud
    from ott.tools import sinkhorn_divergence

    def loss(x, y):
        return sinkhorn_divergence.sinkhorn_divergence(
            pointcloud.PointCloud, x, y, epsilon=0.1, solve_kwargs={"max_iterations": 50}
        )[0]

    return jax.value_and_grad(loss), (S(64, 3), S(48, 3))


@program
def e3nn_message_passing():
    import e3nn_jax as e3nn
    import haiku as hk
    import optax

    def net(x):
        pos, kind, src, dst = x
        h = e3nn.IrrepsArray("8x0e", hk.Embed(5, 8)(kind))
        sh = e3nn.spherical_harmonics("0e + 1o + 2e", e3nn.IrrepsArray("1o", pos[src] - pos[dst]), True)
        radial = e3nn.bessel(jnp.linalg.norm(pos[src] - pos[dst], axis=-1), 6, 5.0)
        for _ in range(2):
            message = e3nn.haiku.Linear("8x0e + 4x1o")(
                e3nn.tensor_product(h[src], sh, filter_ir_out=["0e", "1o"])
            )
            message = message * e3nn.haiku.MultiLayerPerceptron([16, 12], nn.silu)(radial)
            h = e3nn.scatter_sum(message, dst=dst, output_size=32) / 4.0
            h = e3nn.haiku.Linear("8x0e + 4x1o")(e3nn.gate(e3nn.haiku.Linear("12x0e + 4x1o")(h)))
        return e3nn.haiku.Linear("0e")(h).array.sum()

    return haiku_train(
        net, optax.adamw(1e-3), lambda out, y: (out - y) ** 2, (S(32, 3), ints(32), ints(128), ints(128)), S()
    )


@program
def jax_md_lennard_jones():
    from jax_md import energy, simulate, space

    displacement, shift = space.periodic(8.0)
    init, apply = simulate.nvt_nose_hoover(
        energy.soft_sphere_pair(displacement), shift, 5e-3, 0.8, chain_length=3
    )

    def run(key, r):
        return lax.fori_loop(0, 10, lambda i, s: apply(s), init(key, r)).position

    return run, (KEY, S(96, 2))


@program
def jax_md_neighbour_list():
    from jax_md import energy, partition, simulate, space

    displacement, shift = space.periodic(9.0)
    listed, potential = energy.lennard_jones_neighbor_list(
        displacement,
        9.0,
        sigma=1.0,
        epsilon=1.0,
        r_cutoff=2.0,
        dr_threshold=0.4,
        format=partition.OrderedSparse,
    )
    init, apply = simulate.nve(potential, shift, 1e-3)

    start = np.random.RandomState(0).uniform(0, 9, (128, 3)).astype(np.float32)

    def run(key, r, neighbours):
        neighbours = neighbours.update(r)
        state = init(key, r, kT=0.5, neighbor=neighbours)

        def one(_, carry):
            state, neighbours = carry
            neighbours = neighbours.update(state.position)
            return apply(state, neighbor=neighbours), neighbours

        state, neighbours = lax.fori_loop(0, 10, one, (state, neighbours))
        return state.position, potential(state.position, neighbor=neighbours), neighbours.did_buffer_overflow

    return run, (KEY, S(128, 3), shapes(listed.allocate(start)))


@program
def ott_gromov_wasserstein():
    from ott.geometry import pointcloud
    from ott.problems.linear import linear_problem
    from ott.problems.quadratic import quadratic_problem
    from ott.solvers.linear import sinkhorn
    from ott.solvers.quadratic import gromov_wasserstein

    def solve(x, y, a):
        first, second = pointcloud.PointCloud(x), pointcloud.PointCloud(y)
        problem = quadratic_problem.QuadraticProblem(first, second, a=a)
        inner = sinkhorn.Sinkhorn(max_iterations=20)
        solver = gromov_wasserstein.GromovWasserstein(
            linear_solver=inner, epsilon=0.1, max_iterations=5, min_iterations=0
        )
        out = solver(problem)
        fused = linear_problem.LinearProblem(pointcloud.PointCloud(out.matrix @ y, y, epsilon=0.1))
        return out.matrix, inner(fused).f

    return solve, (S(40, 2), S(32, 3), S(40))


@program
def jaxopt_projected_implicit():
    import jaxopt

    def inner(w, c, x, y):
        return jnp.mean(jnp.maximum(0, 1 - y * (x @ w)) ** 2) + jnp.exp(c) * jnp.sum(w**2)

    def outer(c, x, y, xv, yv):
        solver = jaxopt.ProjectedGradient(
            inner, jaxopt.projection.projection_simplex, maxiter=30, implicit_diff=True
        )
        w = solver.run(jnp.full(x.shape[1], 1 / x.shape[1]), c=c, x=x, y=y).params
        return jnp.mean((xv @ w - yv) ** 2)

    return jax.value_and_grad(outer), (S(), S(64, 16), S(64), S(32, 16), S(32))
