"""Shapes in the place of variables, and the steps of training of each library, of which programs are made."""

import itertools
import os

import jax
from arguments import F32, KEY, S, ints
from jax import nn

os.environ["KERAS_BACKEND"] = "jax"
os.environ["EQX_ON_ERROR"] = "nan"  # calls back to Python cannot be compiled ahead of time

IMAGES = {"weights": None, "classifier_activation": None}


def shapes(tree):
    return jax.tree.map(lambda x: S(*x.shape, dtype=x.dtype), tree)


def keras_shapes(build, policy="float32"):
    """What `build` makes, with variables that have a shape and no value."""
    import keras

    made = []
    keras.config.set_dtype_policy(policy)
    jax.eval_shape(lambda: made.append(build()))
    keras.config.set_dtype_policy("float32")
    return made[0]


def shapes_of(variables):
    return [S(*v.shape, dtype=v.dtype) for v in variables]


def keras_infer(build, *x, policy="float32"):
    model = keras_shapes(build, policy)
    variables = shapes_of(model.trainable_variables), shapes_of(model.non_trainable_variables)
    return lambda t, o, *x: model.stateless_call(t, o, *x)[0], (*variables, *x)


def keras_train(build, make_optimizer, loss, x, y, policy="float32"):
    def both():
        model, made = build(), make_optimizer()
        made.build(model.trainable_variables)
        return model, made

    model, optimizer = keras_shapes(both, policy)

    def step(trained, others, state, x, y):
        def objective(trained, others):
            pred, others = model.stateless_call(trained, others, x, training=True)
            value = loss(y, pred)
            return (optimizer.scale_loss(value) if policy == "mixed_float16" else value), (value, others)

        (_, (value, others)), grads = jax.value_and_grad(objective, has_aux=True)(trained, others)
        trained, state = optimizer.stateless_apply(state, grads, trained)
        return trained, others, state, value

    variables = model.trainable_variables, model.non_trainable_variables, optimizer.variables
    return step, (*map(shapes_of, variables), x, y)


def sparse(y, logits):
    import keras

    return keras.ops.mean(keras.losses.sparse_categorical_crossentropy(y, logits, from_logits=True))


def squared(y, pred):
    import keras

    return keras.ops.mean(keras.losses.mean_squared_error(y, pred))


def linen_train(model, tx, loss, x, *rest, **call):
    """A step of flax's TrainState; `loss` takes a function that applies the model."""
    variables = jax.eval_shape(lambda k, x: model.init({"params": k, "dropout": k}, x, **call), KEY, x)
    params, stats = variables["params"], {k: v for k, v in variables.items() if k != "params"}
    state = jax.eval_shape(tx.init, params)

    def step(params, stats, state, key, x, *rest):
        def objective(params):
            out, new = model.apply(
                {"params": params, **stats}, x, **call, mutable=list(stats), rngs={"dropout": key}
            )
            return loss(out, *rest), new

        (value, new), grads = jax.value_and_grad(objective, has_aux=True)(params)
        updates, new_state = tx.update(grads, state, params)
        return jax.tree.map(lambda p, u: (p + u).astype(p.dtype), params, updates), new, new_state, value

    return step, (params, stats, state, KEY, x, *rest)


def labelled(logits, labels):
    import optax

    return optax.softmax_cross_entropy_with_integer_labels(logits.astype(F32), labels).mean()


def nnx_model(make):
    """A model of shapes, split in its definition and its state."""
    from flax import nnx

    return nnx.split(nnx.eval_shape(lambda: make(nnx.Rngs(0))))


def nnx_train(make, tx, loss, *batch):
    from flax import nnx

    def both():
        model = make(nnx.Rngs(0))
        return model, nnx.Optimizer(model, tx, wrt=nnx.Param)

    graph, state = nnx.split(nnx.eval_shape(both))

    def step(state, *batch):
        model, optimizer = nnx.merge(graph, state)
        value, grads = nnx.value_and_grad(loss)(model, *batch)
        optimizer.update(model, grads)
        return nnx.state((model, optimizer)), value

    return step, (state, *batch)


def eqx_train(make, tx, loss, *batch):
    import equinox as eqx

    model = eqx.filter_eval_shape(make, KEY)
    arrays, static = eqx.partition(model, lambda x: isinstance(x, jax.ShapeDtypeStruct))
    state = jax.eval_shape(tx.init, arrays)

    def step(arrays, state, key, *batch):
        value, grads = jax.value_and_grad(lambda a: loss(eqx.combine(a, static), key, *batch))(arrays)
        updates, state = tx.update(grads, state, arrays, **({"value": value} if hasattr(tx, "wants") else {}))
        return eqx.apply_updates(arrays, updates), state, value

    return step, (arrays, state, KEY, *batch)


def layers(*sizes):
    return [{"w": S(i, o), "b": S(o)} for i, o in itertools.pairwise(sizes)]


def perceptron(params, x):
    for p in params[:-1]:
        x = nn.relu(x @ p["w"] + p["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def optax_train(tx, loss=None, sizes=(64, 256, 256, 10), **extra):
    loss = loss or (lambda p, x, y: labelled(perceptron(p, x), y))
    params = layers(*sizes)
    state = jax.eval_shape(tx.init, params)

    def step(params, state, x, y):
        import optax

        value, grads = jax.value_and_grad(loss)(params, x, y)
        updates, state = tx.update(grads, state, params, **{k: f(value) for k, f in extra.items()})
        return optax.apply_updates(params, updates), state, value

    return step, (params, state, S(128, sizes[0]), ints(128))


def haiku_train(net, tx, loss, x, *rest):
    """`net` is a function of x inside haiku's transform."""
    import haiku as hk
    import optax

    model = hk.transform_with_state(net)
    params, stats = jax.eval_shape(model.init, KEY, x)
    state = jax.eval_shape(tx.init, params)

    def step(params, stats, state, key, x, *rest):
        def objective(params):
            out, new = model.apply(params, stats, key, x)
            return loss(out, *rest), new

        (value, new), grads = jax.value_and_grad(objective, has_aux=True)(params)
        updates, new_state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), new, new_state, value

    return step, (params, stats, state, KEY, x, *rest)
