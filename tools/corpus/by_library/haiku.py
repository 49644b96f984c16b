"""Programs of haiku and what builds on it."""

import jax
import jax.numpy as jnp
import numpy as np
from arguments import BF16, F32, KEY, S, entering_when_asked, ints
from jax import lax, nn, random
from steps import haiku_train, labelled

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def haiku_resnet18_lars():
    import haiku as hk
    import optax

    net = lambda x: hk.nets.ResNet18(10, resnet_v2=True)(x, is_training=True)
    return haiku_train(net, optax.lars(0.1, 1e-4, momentum=0.9), labelled, S(4, 64, 64, 3), ints(4))


@program
def haiku_vq_vae():
    import haiku as hk
    import optax

    def net(x):
        h = nn.relu(hk.Conv2D(32, 4, stride=2)(x))
        h = hk.Conv2D(32, 4, stride=2)(h)
        h = h + hk.Conv2D(32, 1)(nn.relu(hk.Conv2D(16, 3)(nn.relu(h))))
        q = hk.nets.VectorQuantizerEMA(32, 128, 0.25, 0.99)(h, is_training=True)
        y = hk.Conv2DTranspose(1, 4, stride=2)(nn.relu(hk.Conv2DTranspose(32, 4, stride=2)(q["quantize"])))
        return jnp.mean((y - x) ** 2) + q["loss"]

    return haiku_train(net, optax.fromage(0.01), lambda out: out, S(8, 32, 32, 1))


@program
def haiku_transformer_xl_bf16():
    import haiku as hk
    import optax

    def net(tokens):
        embed = hk.Embed(400, 64)
        x = embed(tokens).astype(BF16)
        mask = jnp.tril(jnp.ones((1, 1, 32, 32)))
        for _ in range(2):
            y = hk.LayerNorm(-1, True, True)(x)
            x = x + hk.dropout(
                hk.next_rng_key(),
                0.1,
                hk.MultiHeadAttention(4, 16, w_init=hk.initializers.VarianceScaling(0.5))(
                    y, y, y, mask
                ).astype(BF16),
            )
            y = hk.nets.MLP([256, 64], activation=nn.gelu)(hk.LayerNorm(-1, True, True)(x))
            x = x + hk.dropout(hk.next_rng_key(), 0.1, y.astype(BF16))
        return x.astype(F32) @ embed.embeddings.T

    return haiku_train(net, optax.noisy_sgd(0.01), labelled, ints(4, 32), ints(4, 32))


@program
def distrax_flow():
    import distrax
    import haiku as hk
    import optax

    def net(x):
        flow, mask = [], jnp.arange(8) % 2 == 0
        apart = lambda h: h.reshape(*h.shape[:-1], 8, 13)
        for n in range(3):
            conditioner = hk.Sequential(
                [hk.nets.MLP([64, 64], activate_final=True), hk.Linear(8 * 13), apart]
            )
            bijector = lambda p: distrax.RationalQuadraticSpline(p, -5.0, 5.0)
            flow.append(distrax.MaskedCoupling(mask if n % 2 else ~mask, conditioner, bijector))
        base = distrax.MultivariateNormalDiag(jnp.zeros(8), jnp.ones(8))
        return -distrax.Transformed(base, distrax.Inverse(distrax.Chain(flow))).log_prob(x).mean()

    return haiku_train(net, optax.adam(1e-4), lambda out: out, S(64, 8))


@program
def jraph_graph_network():
    import haiku as hk
    import jraph
    import optax

    def net(x):
        mlp = lambda n: hk.nets.MLP([n, n])
        edges = jraph.concatenated_args(lambda f: hk.LayerNorm(-1, True, True)(mlp(32)(f)))
        whole = jraph.concatenated_args(lambda f: mlp(16)(f))
        graph = jraph.GraphMapFeatures(hk.Linear(32), hk.Linear(32), hk.Linear(16))(jraph.GraphsTuple(**x))
        for _ in range(2):
            graph = jraph.GraphNetwork(edges, edges, whole)(graph)
        query, logit = hk.Linear(32), hk.Linear(1)
        attend = jraph.GAT(query, lambda s, r, e: logit(nn.leaky_relu(jnp.concatenate([s, r], -1))), nn.elu)
        return hk.Linear(2)(attend(graph).globals)

    graph = {
        "nodes": S(256, 16),
        "edges": S(1024, 4),
        "senders": ints(1024),
        "receivers": ints(1024),
        "globals": S(16, 1),
        "n_node": ints(16),
        "n_edge": ints(16),
    }
    return haiku_train(net, optax.lion(1e-4), labelled, graph, ints(16))


@program
def haiku_graph_attention_nodes():
    import haiku as hk
    import jraph
    import optax

    def net(graph):
        graph = jraph.GraphsTuple(**graph, edges=None, globals=None)
        for heads, n in ((4, 16), (1, 7)):

            def query(x, heads=heads, n=n):
                return hk.Linear(heads * n, with_bias=False)(x).reshape(-1, heads, n)

            def logit(sent, received, _edges):
                both = nn.leaky_relu(jnp.concatenate([sent, received], -1), 0.2)
                return hk.Linear(1)(both)

            nodes = hk.dropout(hk.next_rng_key(), 0.5, graph.nodes)
            sent, received = query(nodes)[graph.senders], query(nodes)[graph.receivers]
            weight = logit(sent, received, None)
            weight = jraph.segment_softmax(weight, graph.receivers, 128)
            out = jax.ops.segment_sum(sent * weight, graph.receivers, 128)
            graph = graph._replace(nodes=nn.elu(out.reshape(128, -1)))
        return graph.nodes

    def loss(logits, labels, mask):
        each = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
        return jnp.sum(each * mask) / mask.sum()

    graph = {"nodes": S(128, 64), "senders": ints(512), "receivers": ints(512)}
    graph |= {"n_node": ints(1), "n_edge": ints(1)}
    tx = optax.chain(optax.add_decayed_weights(5e-4), optax.contrib.dog())
    return haiku_train(net, tx, loss, graph, ints(128), S(128))


@program
def pix_augmentations():
    import dm_pix as pix

    def augmented(key, image, label):
        k = random.split(key, 8)
        image = image.astype(F32) / 255.0
        image = pix.random_crop(k[0], pix.pad_to_size(image, 40, 40), (32, 32, 3))
        image = pix.random_flip_left_right(k[1], image)
        image = pix.random_hue(k[2], pix.random_saturation(k[3], image, 0.6, 1.4), 0.1)
        image = pix.random_gamma(k[4], jnp.clip(image, 1e-3, 1.0), 0.8, 1.2)
        image = pix.rotate(image, random.uniform(k[5], (), minval=-0.3, maxval=0.3))
        image = pix.gaussian_blur(image, 0.8, 3, padding="SAME")
        image = jnp.where(random.uniform(k[6]) < 0.1, pix.solarize(image, 0.5), image)
        return pix.rgb_to_grayscale(image, keep_dims=True) * 0.1 + image * 0.9, nn.one_hot(label, 10)

    def batch(key, images, labels):
        a, b, c = random.split(key, 3)
        x, y = jax.vmap(augmented)(random.split(a, images.shape[0]), images, labels)
        share = random.beta(b, 0.2, 0.2)
        order = random.permutation(c, images.shape[0])
        return share * x + (1 - share) * x[order], share * y + (1 - share) * y[order]

    return batch, (KEY, S(16, 32, 32, 3, dtype=jnp.uint8), ints(16))


@program
def haiku_mesh_weather_rollout_bf16():
    import haiku as hk
    import jraph
    import optax

    generate = np.random.RandomState(0)
    grid, mesh = 128, 40
    near = np.sort(generate.randint(0, mesh, (2, grid)), 0)
    edges = {
        "up": (np.tile(np.arange(grid), 2), near.ravel()),
        "mesh": (np.repeat(np.arange(mesh), 6), generate.randint(0, mesh, 6 * mesh)),
        "down": (near.ravel(), np.tile(np.arange(grid), 2)),
    }
    place = {"grid": generate.randn(grid, 3), "mesh": generate.randn(mesh, 3)}
    kinds = {"up": ("grid", "mesh"), "mesh": ("mesh", "mesh"), "down": ("mesh", "grid")}

    def mlp(name, n=32):
        dense = hk.nets.MLP([48, n], activation=nn.swish, name=name)
        return lambda *x: hk.LayerNorm(-1, True, True, name=f"{name}_norm")(dense(jnp.concatenate(x, -1)))

    def narrow(following, value, context):
        return following(value.astype(BF16))

    class Step(hk.Module):
        def __call__(self, x):
            with hk.custom_getter(narrow):
                rows = x.shape[1]
                wide = lambda v: jnp.broadcast_to(jnp.asarray(v, BF16)[:, None], (len(v), rows, v.shape[-1]))
                nodes = {
                    "grid": mlp("grid")(x.astype(BF16), wide(place["grid"])),
                    "mesh": mlp("mesh")(wide(place["mesh"])),
                }
                for kind, name in (("up", "up"), ("mesh", "first"), ("mesh", "second"), ("down", "down")):
                    (source, target), (i, j) = kinds[kind], edges[kind]
                    apart = wide(place[source][i] - place[target][j])
                    sent = mlp(f"{name}_edge")(apart, nodes[source][i], nodes[target][j])
                    total = jraph.segment_sum(sent.astype(F32), j, len(place[target])).astype(BF16)
                    nodes[target] = nodes[target] + mlp(f"{name}_node")(nodes[target], total)
                out = hk.nets.MLP([48, 6], activation=nn.swish, name="out")(nodes["grid"])
            return x + out.astype(F32)

    def net(x):
        one = Step()

        def more(x, _):
            new = hk.remat(one)(x)
            return new, new

        return hk.scan(more, x, None, length=3)[1]

    weight = np.cos(np.linspace(-1.5, 1.5, grid)).astype(np.float32)[:, None, None]
    loss = lambda out, goal: jnp.mean(weight * (out - goal) ** 2)
    tx = optax.chain(optax.clip_by_global_norm(32.0), optax.adamw(1e-3, 0.9, 0.95, weight_decay=0.1))
    return haiku_train(net, tx, loss, S(grid, 2, 6), S(3, grid, 2, 6))


@program
def haiku_muzero_unrolled():
    import haiku as hk
    import optax
    import rlax

    def scaled(h):
        low, high = h.min(-1, keepdims=True), h.max(-1, keepdims=True)
        return (h - low) / (high - low + 1e-5)

    def net(batch):
        obs, actions = batch
        x = obs
        for n in (16, 32):
            x = nn.relu(hk.LayerNorm((-3, -2, -1), True, True)(hk.Conv2D(n, 3, 2)(x)))
            x = x + hk.Conv2D(n, 3)(nn.relu(hk.Conv2D(n, 3)(x)))
        h = scaled(hk.Linear(64)(hk.Flatten()(x)))
        change, judge = hk.nets.MLP([64, 64]), hk.nets.MLP([64, 64], activate_final=True)
        policy, value, reward = hk.Linear(6), hk.Linear(51), hk.Linear(51)
        out = []
        for t in range(actions.shape[1] + 1):
            y = judge(h)
            out.append((policy(y), value(y), reward(h)))
            if t < actions.shape[1]:
                h = scaled(h + change(jnp.concatenate([h, nn.one_hot(actions[:, t], 6)], -1)))
                h = 0.5 * h + lax.stop_gradient(0.5 * h)
        return jax.tree.map(lambda *x: jnp.stack(x, 1), *out)

    def support(x):
        return rlax.transform_to_2hot(rlax.signed_hyperbolic(x), -25.0, 25.0, 51)

    def loss(out, visits, rewards, discounts, values, weight):
        policy, value, reward = out
        returns = jax.vmap(lambda r, d, v: rlax.n_step_bootstrapped_returns(r, d, v, 3))
        goal = returns(rewards, discounts, values)
        each = optax.softmax_cross_entropy
        total = each(policy[:, :-1], visits).mean(1) + 0.25 * each(value[:, :-1], support(goal)).mean(1)
        total = total + each(reward[:, 1:], support(rewards)).mean(1)
        return jnp.mean(weight * total)

    steps = S(16, 5)
    batch = S(16, 24, 24, 4), ints(16, 5)
    return haiku_train(net, optax.adamw(1e-3), loss, batch, S(16, 5, 6), steps, steps, steps, S(16))


@program
def haiku_set_transformer_points():
    import haiku as hk
    import optax

    def attend(x, y):
        make = hk.initializers.VarianceScaling(1.0, "fan_avg", "uniform")
        z = hk.MultiHeadAttention(4, 16, w_init=make, model_size=64)(x, y, y)
        x = hk.LayerNorm(-1, True, True)(x + z)
        return hk.LayerNorm(-1, True, True)(x + hk.nets.MLP((128, 64))(x))

    def seeds(name, count, batch):
        table = hk.get_parameter(name, (count, 64), init=hk.initializers.TruncatedNormal(0.1))
        return jnp.broadcast_to(table, (batch, count, 64))

    def spread(points):
        """The points that are farthest from each other, one at a time."""

        def one(i, carry):
            which, least = carry
            apart = jnp.sum((points - points[which[i - 1]]) ** 2, -1)
            least = jnp.minimum(least, apart)
            return which.at[i].set(jnp.argmax(least).astype(jnp.int32)), least

        return lax.fori_loop(1, 64, one, (jnp.zeros(64, jnp.int32), jnp.full(256, jnp.inf)))[0]

    def net(points):
        b = points.shape[0]
        angle = random.uniform(hk.next_rng_key(), (b,), maxval=2 * jnp.pi)
        c, s, o = jnp.cos(angle), jnp.sin(angle), jnp.zeros(b)
        turn = jnp.stack([c, -s, o, s, c, o, o, o, o + 1], -1).reshape(b, 3, 3)
        points = jnp.einsum("bij,bnj->bni", turn, points)
        points += jnp.clip(0.01 * random.normal(hk.next_rng_key(), points.shape), -0.05, 0.05)
        which = jax.vmap(spread)(points)
        centres = jnp.take_along_axis(points, which[..., None], 1)
        far = jnp.sum((centres[:, :, None] - points[:, None]) ** 2, -1)
        _, near = lax.top_k(-far, 16)
        local = jax.vmap(lambda p, n: p[n])(points, near) - centres[:, :, None]
        x = hk.nets.MLP((32, 64), activate_final=True)(local).max(2) + hk.Linear(64)(centres)
        x = attend(x, attend(seeds("induced", 16, b), x))
        x = attend(seeds("pool", 4, b), x)
        logits = hk.Linear(40)(hk.dropout(hk.next_rng_key(), 0.3, x.reshape(b, -1)))
        made = hk.nets.MLP((128, 192))(x).reshape(b, -1, 3)
        return logits, made, points

    def loss(out, y):
        logits, made, points = out
        apart = jnp.sum((made[:, :, None] - points[:, None]) ** 2, -1)
        chamfer = apart.min(1).mean() + apart.min(2).mean()
        return labelled(logits, y) + 0.5 * chamfer

    tx = optax.chain(optax.adaptive_grad_clip(0.1), optax.radam(1e-3))
    return haiku_train(net, tx, loss, S(8, 256, 3), ints(8))
