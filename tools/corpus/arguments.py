"""Arguments of the programs of the corpora: element types and abstract arrays."""

import jax
import jax.numpy as jnp

F16, BF16, F32 = jnp.float16, jnp.bfloat16, jnp.float32
I32 = jnp.int32
KEY = jax.ShapeDtypeStruct((2,), jnp.uint32)


def S(*shape, dtype=F32):
    return jax.ShapeDtypeStruct(shape, dtype)


def ints(*shape):
    return S(*shape, dtype=I32)


def entering(programs):
    """A decorator that enters a function into `programs` with the arguments it is given."""

    def program(*args, name=None):
        def add(fn):
            programs[name or fn.__name__] = (fn, args)
            return fn

        return add

    return program


def entering_when_asked(programs):
    """A decorator that enters a function which returns such a pair when it is called."""

    def program(make):
        programs[make.__name__] = make
        return make

    return program
