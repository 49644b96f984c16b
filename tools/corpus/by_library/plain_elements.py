"""Finite elements of JAX alone."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from arguments import F32, S, entering_when_asked
from jax import lax, nn

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def hyperelastic_elements_newton():
    nx, ny = 24, 12
    place = np.stack(np.meshgrid(np.linspace(0, 2, nx + 1), np.linspace(0, 1, ny + 1), indexing="ij"), -1)
    number = np.arange((nx + 1) * (ny + 1)).reshape(nx + 1, ny + 1)
    corners = [number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]]
    corners = np.stack(corners, -1).reshape(-1, 4).astype(np.int32)
    points = np.array([[a, b] for a in (-1, 1) for b in (-1, 1)]) / math.sqrt(3)
    signs = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    slopes = np.stack(
        [np.stack([s * (1 + t * q[1]), t * (1 + s * q[0])], -1) / 4 for q in points for s, t in signs]
    )
    slopes = slopes.reshape(4, 4, 2).astype(np.float32)
    nodes = number.size
    rest = jnp.asarray(place.reshape(-1, 2), F32)

    def element(u, x, stiff, squeeze, growth):
        """The energy of one element of four nodes."""

        def at(slope):
            jacobian = x.T @ slope
            gradient = slope @ jnp.linalg.inv(jacobian)
            f = (jnp.eye(2) + u.T @ gradient) / growth
            j = jnp.linalg.det(f)
            first = jnp.sum(f**2)
            log = jnp.log(jnp.maximum(j, 1e-3))
            energy = 0.5 * stiff * (first - 2 - 2 * log) + 0.5 * squeeze * log**2
            return energy * jnp.linalg.det(jacobian)

        return jnp.sum(jax.vmap(at)(jnp.asarray(slopes)))

    def solve(u, stiff, squeeze, growth, shifts, floor):
        fixed = np.zeros((nodes, 2), bool)
        fixed[number[0]] = True
        fixed[number[-1]] = True
        free = jnp.asarray(~fixed, F32)
        each = jnp.asarray(corners)

        def energy(u):
            inner = jax.vmap(element)(u[each], rest[each], stiff, squeeze, growth).sum()
            deep = nn.relu(floor - (rest + u)[:, 1])
            return inner + 50 * jnp.sum(deep**2) + 1e-3 * jnp.sum(u[:, 1])

        def diagonal(u):
            whole = jax.vmap(jax.hessian(element))(u[each], rest[each], stiff, squeeze, growth)
            own = jnp.einsum("eaiai->eai", whole).reshape(-1, 2)
            total = jax.ops.segment_sum(own, each.ravel(), nodes)
            touching = (rest + u)[:, 1] < floor
            return jnp.maximum(total.at[:, 1].add(100.0 * touching), 1e-2)

        slope = jax.grad(energy)

        def newton(state):
            u, i, _, told = state
            residual = -slope(u) * free
            base = diagonal(u)
            apply = lambda v: free * jax.jvp(slope, (u,), (v * free,))[1] + (1 - free) * v
            limit = jnp.minimum(0.1, jnp.sqrt(jnp.linalg.norm(residual)))
            move, _ = jax.scipy.sparse.linalg.cg(apply, residual, tol=limit, maxiter=60, M=lambda v: v / base)
            fall = jnp.vdot(move, residual)
            move = jnp.where(fall > 0, move, residual / base)
            now, fall = energy(u), jnp.abs(fall)

            def shorter(carry):
                size, _ = carry
                return size * 0.5, energy(u + 0.5 * size * move)

            wrong = lambda c: ((c[1] > now - 1e-4 * c[0] * fall) | ~jnp.isfinite(c[1])) & (c[0] > 1e-3)
            size, _ = lax.while_loop(wrong, shorter, (jnp.float32(1), energy(u + move)))
            u = u + size * move
            left = jnp.linalg.norm(slope(u) * free)
            return u, i + 1, left, told.at[i].set(left)

        def load(u, shift):
            u = u.at[number[-1]].set(shift)
            state = u, 0, jnp.float32(jnp.inf), jnp.zeros(15)
            u, i, left, told = lax.while_loop(lambda s: (s[1] < 15) & (s[2] > 1e-5), newton, state)
            pull = slope(u)[number[-1]].sum(0)
            return u, (u, i, left, told, pull, energy(u))

        u, told = lax.scan(load, u, shifts)

        def stress(u, x, stiff, squeeze, growth):
            jacobian = x.T @ slopes.mean(0)
            gradient = slopes.mean(0) @ jnp.linalg.inv(jacobian)
            f = (jnp.eye(2) + u.T @ gradient) / growth
            cauchy = stiff * (f @ f.T - jnp.eye(2)) + squeeze * jnp.log(jnp.linalg.det(f)) * jnp.eye(2)
            return jnp.linalg.eigvalsh(cauchy)

        main = jax.vmap(stress)(u[each], rest[each], stiff, squeeze, growth)
        shared = jax.ops.segment_sum(jnp.repeat(main, 4, 0), each.ravel(), nodes)
        count = jax.ops.segment_sum(jnp.ones(each.size), each.ravel(), nodes)
        return u, told, main, shared / count[:, None]

    cells = S(nx * ny)
    return solve, (S(nodes, 2), cells, cells, cells, S(5, 2), S())
