"""Programs of haiku: a net of few bits."""

from functools import partial

import jax
import jax.numpy as jnp
from arguments import KEY, S, entering_when_asked, ints
from jax import lax, nn, random

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def haiku_learned_step_quantized_distilled():
    import haiku as hk
    import optax

    @partial(jax.custom_vjp, nondiff_argnums=(2, 3))
    def quantized(x, size, low, high):
        return jnp.round(jnp.clip(x / size, low, high)) * size

    def forward(x, size, low, high):
        return quantized(x, size, low, high), (x, size)

    def backward(low, high, kept, g):
        x, size = kept
        y = x / size
        inside = (y > low) & (y < high)
        slope = jnp.where(inside, jnp.round(y) - y, jnp.clip(y, low, high))
        scale = lax.rsqrt(jnp.float32(x.size * high))
        over = tuple(i for i in range(x.ndim) if i >= size.ndim or size.shape[i] == 1)
        grad = jnp.sum(g * slope, axis=over, keepdims=size.ndim > 0) * scale
        return jnp.where(inside, g, 0.0), grad.reshape(size.shape)

    quantized.defvjp(forward, backward)

    class Conv(hk.Module):
        def __init__(self, n, stride=1, kernel=3, exact=False):
            super().__init__()
            self.n, self.stride, self.kernel, self.exact = n, stride, kernel, exact

        def __call__(self, x):
            shape = (self.kernel, self.kernel, x.shape[-1], self.n)
            w = hk.get_parameter("w", shape, init=hk.initializers.VarianceScaling(2.0))
            if not self.exact:
                one = hk.initializers.Constant(0.1)
                w = quantized(w, hk.get_parameter("w_size", (1, 1, 1, self.n), init=one), -8, 7)
                x = quantized(x, hk.get_parameter("x_size", (), init=one), 0, 15)
            return lax.conv_general_dilated(
                x, w, (self.stride,) * 2, "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )

    def network(exact):
        def net(x, training):
            norm = lambda x: hk.BatchNorm(True, True, 0.9)(x, training)
            x = nn.relu(norm(Conv(16, exact=True)(x)))
            for n, stride in ((16, 1), (32, 2), (64, 2)):
                y = nn.relu(norm(Conv(n, stride, exact=exact)(x)))
                y = norm(Conv(n, exact=exact)(y))
                if n != x.shape[-1]:
                    x = norm(Conv(n, stride, 1, exact)(x))
                x = nn.relu(x + y)
            return hk.Linear(100)(x.mean((1, 2)))

        return hk.transform_with_state(net)

    pupil, teacher = network(False), network(True)
    images, labels = S(32, 32, 32, 3), ints(32)
    params, stats = jax.eval_shape(lambda k, x: pupil.init(k, x, True), KEY, images)
    others = jax.eval_shape(lambda k, x: teacher.init(k, x, True), KEY, images)
    sizes = lambda p: jax.tree.map_with_path(lambda n, _: "size" in n[-1].key, p)
    tx = optax.chain(
        optax.masked(optax.add_decayed_weights(1e-4), lambda p: jax.tree.map(lambda s: not s, sizes(p))),
        optax.masked(optax.scale(0.1), sizes),
        optax.sgd(optax.cosine_onecycle_schedule(2000, 0.1), 0.9),
    )

    def step(params, stats, others, state, key, images, labels):
        k1, k2, k3 = random.split(key, 3)
        wide = jnp.pad(images, ((0, 0), (4, 4), (4, 4), (0, 0)), "reflect")
        at = random.randint(k1, (images.shape[0], 2), 0, 9)
        images = jax.vmap(lambda x, i: lax.dynamic_slice(x, (i[0], i[1], 0), (32, 32, 3)))(wide, at)
        images = jnp.where(random.bernoulli(k2, 0.5, (32, 1, 1, 1)), images[:, :, ::-1], images)
        hole = random.randint(k3, (32, 2, 1), 0, 32)
        near = jnp.abs(jnp.arange(32) - hole) < 4
        images = jnp.where((near[:, 0, :, None] & near[:, 1, None])[..., None], 0.0, images)

        taught, _ = teacher.apply(*others, None, images, False)

        def loss(params):
            logits, new = pupil.apply(params, stats, None, images, True)
            soft = optax.kl_divergence(nn.log_softmax(logits / 4), nn.softmax(taught / 4)).mean() * 16
            hard = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
            return 0.9 * soft + 0.1 * hard, (new, jnp.mean(logits.argmax(-1) == labels))

        (value, (new, right)), grads = jax.value_and_grad(loss, has_aux=True)(params)
        updates, state = tx.update(grads, state, params)
        params = optax.apply_updates(params, updates)
        params = jax.tree.map(lambda p, s: jnp.maximum(p, 1e-5) if s else p, params, sizes(params))
        return params, new, state, value, right

    return step, (params, stats, others, jax.eval_shape(tx.init, params), KEY, images, labels)
