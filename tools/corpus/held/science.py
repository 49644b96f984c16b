"""Programs of no library but JAX of statistics, control and physics."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from arguments import F32, KEY, S, entering_when_asked, ints
from jax import lax, nn, random
from steps import (
    layers,
    perceptron,
)

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def cartpole_whole_ppo():
    envs, length = 32, 16
    params = {"policy": layers(4, 64, 64, 2), "value": layers(4, 64, 64, 1)}

    def physics(state, action, key):
        x, v, angle, spin, at = state
        force = jnp.where(action == 1, 10.0, -10.0)
        cos, sin = jnp.cos(angle), jnp.sin(angle)
        shared = (force + 0.05 * spin**2 * sin) / 1.1
        turn = (9.8 * sin - cos * shared) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        push = shared - 0.05 * turn * cos / 1.1
        new = x + 0.02 * v, v + 0.02 * push, angle + 0.02 * spin, spin + 0.02 * turn, at + 1
        done = (jnp.abs(new[0]) > 2.4) | (jnp.abs(new[2]) > 0.2094) | (at + 1 >= 500)
        start = (*random.uniform(key, (4,), minval=-0.05, maxval=0.05), 0)
        return jax.tree.map(lambda a, b: jnp.where(done, a, b), start, new), 1.0 - done, done

    observe = lambda state: jnp.stack(state[:4], -1)

    def act(p, obs):
        return nn.log_softmax(perceptron(p["policy"], obs)), perceptron(p["value"], obs)[..., 0]

    def loss(p, batch):
        obs, action, old, value_old, gain, goal = batch
        logp, value = act(p, obs)
        ratio = jnp.exp(jnp.take_along_axis(logp, action[:, None], 1)[:, 0] - old)
        gain = (gain - gain.mean()) / (gain.std() + 1e-8)
        policy = jnp.minimum(ratio * gain, jnp.clip(ratio, 0.8, 1.2) * gain).mean()
        near = value_old + jnp.clip(value - value_old, -0.2, 0.2)
        judged = 0.5 * jnp.maximum((value - goal) ** 2, (near - goal) ** 2).mean()
        return 0.5 * judged - policy + 0.01 * jnp.sum(jnp.exp(logp) * logp, -1).mean()

    def train(p, state, key):
        def update(carry, key):
            p, m, state = carry
            k1, k2 = random.split(key)

            def one(state, key):
                k1, k2 = random.split(key)
                obs = observe(state)
                logp, value = act(p, obs)
                action = random.categorical(k1, logp)
                picked = jnp.take_along_axis(logp, action[:, None], 1)[:, 0]
                state, reward, done = jax.vmap(physics)(state, action, random.split(k2, envs))
                return state, (obs, action, picked, value, reward, done)

            state, (obs, action, logp, value, reward, done) = lax.scan(one, state, random.split(k1, length))
            last = act(p, observe(state))[1]

            def back(carry, at):
                gain, after = carry
                value, reward, done = at
                error = reward + 0.99 * after * (1 - done) - value
                gain = error + 0.99 * 0.95 * (1 - done) * gain
                return (gain, value), gain

            start = jnp.zeros_like(last), last
            _, gain = lax.scan(back, start, (value, reward, done), reverse=True, unroll=4)
            flat = jax.tree.map(
                lambda x: x.reshape(-1, *x.shape[2:]), (obs, action, logp, value, gain, gain + value)
            )

            def epoch(carry, key):
                order = random.permutation(key, envs * length)
                parts = jax.tree.map(lambda x: x[order].reshape(4, -1, *x.shape[1:]), flat)

                def small(carry, batch):
                    p, m = carry
                    value, grads = jax.value_and_grad(loss)(p, batch)
                    m = jax.tree.map(lambda m, g: 0.9 * m + g, m, grads)
                    return (jax.tree.map(lambda p, m: p - 1e-3 * m, p, m), m), value

                return lax.scan(small, carry, parts)

            (p, m), values = lax.scan(epoch, (p, m), random.split(k2, 2))
            return (p, m, state), (values.mean(), reward.sum())

        zero = jax.tree.map(jnp.zeros_like, p)
        (p, _, state), out = lax.scan(update, (p, zero, state), random.split(key, 3))
        return p, state, out

    state = (*(S(envs),) * 4, ints(envs))
    return train, (params, state, KEY)


@program
def gaussian_mixture_em():
    def fit(x, mean, cov, weight):
        d = x.shape[1]

        def scores(mean, cov, weight):
            low = jnp.linalg.cholesky(cov)
            apart = x[None] - mean[:, None]
            solved = jax.vmap(lambda l, y: jax.scipy.linalg.solve_triangular(l, y.T, lower=True))(low, apart)
            size = 2 * jnp.sum(jnp.log(jnp.diagonal(low, axis1=1, axis2=2)), -1)
            far = jnp.sum(solved**2, 1)
            return -0.5 * (far + size[:, None] + d * jnp.log(2 * jnp.pi)) + jnp.log(weight)[:, None]

        def one(state):
            at, mean, cov, weight, now, _ = state
            joint = scores(mean, cov, weight)
            total = nn.logsumexp(joint, 0)
            r = jnp.exp(joint - total)
            n = r.sum(1) + 10 * jnp.finfo(F32).eps
            mean = r @ x / n[:, None]
            apart = x[None] - mean[:, None]
            cov = jnp.einsum("kn,kni,knj->kij", r, apart, apart) / n[:, None, None] + 1e-6 * jnp.eye(d)
            return at + 1, mean, cov, n / x.shape[0], total.mean(), now

        more = lambda s: (s[0] < 50) & (jnp.abs(s[4] - s[5]) > 1e-4)
        state = lax.while_loop(more, one, (0, mean, cov, weight, -jnp.inf, 0.0))
        joint = scores(*state[1:4])
        count = mean.shape[0] * (d + d * (d + 1) / 2) + mean.shape[0] - 1
        criterion = count * jnp.log(x.shape[0]) - 2 * nn.logsumexp(joint, 0).sum()
        return state[1:5], jnp.argmax(joint, 0), criterion

    return fit, (S(512, 4), S(6, 4), S(6, 4, 4), S(6))


@program
def unscented_filter_particles():
    n, count = 4, 128
    weight = np.full(2 * n + 1, 1 / (2 * (n + 1)), np.float32)
    weight[0] = 1 / (n + 1)

    def move(x):
        return jnp.stack([x[0] + 0.1 * x[2], x[1] + 0.1 * x[3], x[2] - 0.1 * jnp.sin(x[0]), 0.98 * x[3]])

    def see(x):
        return jnp.stack([jnp.hypot(x[0] + 2, x[1]), jnp.arctan2(x[1], x[0] + 2)])

    def points(mean, cov):
        low = jnp.linalg.cholesky((n + 1) * cov)
        return jnp.concatenate([mean[None], mean + low.T, mean - low.T])

    def moments(x, y):
        mx, my = weight @ x, weight @ y
        return my, jnp.einsum("s,si,sj->ij", weight, x - mx, y - my)

    def run(key, seen, mean, cov, q, r):
        def one(carry, at):
            mean, cov, cloud, logw = carry
            key, y = at
            x = jax.vmap(move)(points(mean, cov))
            mean, cov = moments(x, x)
            cov = cov + q
            x = points(mean, cov)
            z = jax.vmap(see)(x)
            guess, size = moments(z, z)
            size = size + r
            gain = jnp.linalg.solve(size, moments(x, z)[1].T).T
            mean, cov = mean + gain @ (y - guess), cov - gain @ size @ gain.T
            cov = 0.5 * (cov + cov.T) + 1e-6 * jnp.eye(n)

            k1, k2 = random.split(key)
            cloud = jax.vmap(move)(cloud) + random.multivariate_normal(k1, jnp.zeros(n), q, (count,))
            error = y - jax.vmap(see)(cloud)
            logw = logw - 0.5 * jnp.sum(error @ jnp.linalg.inv(r) * error, -1)
            ll = nn.logsumexp(logw)
            w = jnp.exp(logw - ll)

            def again(_):
                at = (jnp.arange(count) + random.uniform(k2)) / count
                chosen = jnp.searchsorted(jnp.cumsum(w), at)
                return cloud[jnp.minimum(chosen, count - 1)], jnp.full(count, -math.log(count)), chosen

            keep = cloud, logw - ll, jnp.arange(count)
            new, logw, parent = lax.cond(1 / jnp.sum(w**2) < count / 2, again, lambda _: keep, None)
            return (mean, cov, new, logw), (mean, cov, w @ cloud, ll, new, parent)

        cloud = random.multivariate_normal(key, mean, cov, (count,))
        start = mean, cov, cloud, jnp.full(count, -math.log(count))
        (*_, last), out = lax.scan(one, start, (random.split(key, seen.shape[0]), seen))
        means, covs, guesses, ll, clouds, parents = out

        def back(index, at):
            cloud, parent = at
            return parent[index], cloud[index]

        _, paths = lax.scan(back, random.categorical(key, last, shape=(8,)), (clouds, parents), reverse=True)
        return means, covs, guesses, ll.sum(), paths

    return run, (KEY, S(40, 2), S(n), S(n, n), S(n, n), S(2, 2))


@program
def bundle_adjustment_schur():
    cameras, points, seen = 8, 96, 400

    def project(camera, point):
        turn, move, focal = camera[:3], camera[3:6], camera[6]
        angle = jnp.sqrt(turn @ turn + 1e-12)
        axis = turn / angle
        x = point * jnp.cos(angle) + jnp.cross(axis, point) * jnp.sin(angle)
        x = x + axis * (axis @ point) * (1 - jnp.cos(angle)) + move
        flat = -x[:2] / x[2]
        far = flat @ flat
        return focal * (1 + camera[7] * far + camera[8] * far**2) * flat

    def residual(camera, point, at):
        r = project(camera, point) - at
        return r * lax.rsqrt(1 + r @ r)

    def solve(camera, point, who, which, at):
        def one(_, carry):
            camera, point, damp, cost = carry
            r = jax.vmap(residual)(camera[who], point[which], at)
            a, b = jax.vmap(jax.jacfwd(residual, (0, 1)))(camera[who], point[which], at)
            sums = lambda x, n, index: jnp.zeros((n, *x.shape[1:])).at[index].add(x)
            u = sums(jnp.einsum("nri,nrj->nij", a, a), cameras, who)
            v = sums(jnp.einsum("nri,nrj->nij", b, b), points, which)
            u = u + damp * jax.vmap(jnp.diag)(jnp.diagonal(u, axis1=1, axis2=2) + 1e-6)
            v = v + damp * jax.vmap(jnp.diag)(jnp.diagonal(v, axis1=1, axis2=2) + 1e-6)
            w = jnp.zeros((cameras, points, 9, 3)).at[who, which].add(jnp.einsum("nri,nrj->nij", a, b))
            ga = sums(jnp.einsum("nri,nr->ni", a, r), cameras, who)
            gb = sums(jnp.einsum("nri,nr->ni", b, r), points, which)
            inverse = jnp.linalg.inv(v)
            part = jnp.einsum("cpik,pkl->cpil", w, inverse)
            whole = -jnp.einsum("cpil,dpjl->cidj", part, w)
            whole = whole.at[jnp.arange(cameras), :, jnp.arange(cameras)].add(u)
            right = ga - jnp.einsum("cpil,pl->ci", part, gb)
            low = jax.scipy.linalg.cho_factor(whole.reshape(cameras * 9, cameras * 9))
            da = jax.scipy.linalg.cho_solve(low, right.ravel()).reshape(cameras, 9)
            db = jnp.einsum("pkl,pl->pk", inverse, gb - jnp.einsum("cpik,ci->pk", w, da))
            new = camera - da, point - db
            after = jnp.sum(jax.vmap(residual)(new[0][who], new[1][which], at) ** 2)
            better = after < cost
            pick = lambda x, y: jnp.where(better, x, y)
            damp = jnp.clip(pick(damp / 3, damp * 4), 1e-8, 1e4)
            return pick(new[0], camera), pick(new[1], point), damp, pick(after, cost)

        return lax.fori_loop(0, 8, one, (camera, point, 1e-3, jnp.inf))

    return solve, (S(cameras, 9), S(points, 3), ints(seen), ints(seen), S(seen, 2))


@program
def shallow_water_limited():
    n, gravity = 96, 9.81

    def flux(q):
        h, hu, hv = q
        u = hu / jnp.maximum(h, 1e-3)
        return jnp.stack([hu, hu * u + 0.5 * gravity * h**2, hv * u])

    def minmod(a, b):
        return jnp.where(a * b > 0, jnp.sign(a) * jnp.minimum(jnp.abs(a), jnp.abs(b)), 0.0)

    def along(q):
        q = jnp.pad(q, ((0, 0), (2, 2), (0, 0)), mode="edge")
        q = q.at[1, :2].multiply(-1).at[1, -2:].multiply(-1)
        slope = minmod(q[:, 1:-1] - q[:, :-2], q[:, 2:] - q[:, 1:-1])
        left, right = (q[:, 1:-1] + 0.5 * slope)[:, :-1], (q[:, 1:-1] - 0.5 * slope)[:, 1:]
        speed = lambda q: jnp.abs(q[1] / jnp.maximum(q[0], 1e-3)) + jnp.sqrt(gravity * jnp.maximum(q[0], 0))
        top = jnp.maximum(speed(left), speed(right))
        f = 0.5 * (flux(left) + flux(right)) - 0.5 * top * (right - left)
        return f[:, 1:] - f[:, :-1], top.max()

    def run(q, ground, friction):
        def change(q):
            x, a = along(q)
            y, b = along(q[jnp.array([0, 2, 1])].swapaxes(1, 2))
            y = y.swapaxes(1, 2)[jnp.array([0, 2, 1])]
            slope = jnp.stack([jnp.zeros_like(ground), *jnp.gradient(ground)])
            size = jnp.sqrt(q[1] ** 2 + q[2] ** 2) / jnp.maximum(q[0], 1e-2) ** 2
            drag = jnp.stack([jnp.zeros_like(size), size * q[1], size * q[2]])
            return -(x + y) - gravity * q[0] * slope - friction * drag, jnp.maximum(a, b)

        def one(q, _):
            k, top = change(q)
            dt = 0.4 / top
            half = q + dt * k
            new = 0.5 * (q + half + dt * change(half)[0])
            new = new.at[0].max(0.0)
            return jnp.where(new[0] > 1e-4, new, new.at[1:].set(0.0)), (dt, new[0].sum())

        def lost(friction):
            last, (dt, mass) = lax.scan(jax.checkpoint(one), q, length=12)
            return jnp.mean(last[0, -8:] ** 2), (last, dt.sum(), mass)

        return jax.value_and_grad(lost, has_aux=True)(friction)

    return run, (S(3, n, n), S(n, n), S(n, n))
