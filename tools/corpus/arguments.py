"""What the programs of the corpora are called with: types, arrays of which only the shape is known."""

import jax
import jax.numpy as jnp

F16, BF16, F32, F64 = jnp.float16, jnp.bfloat16, jnp.float32, jnp.float64
U8, I32, U32 = jnp.uint8, jnp.int32, jnp.uint32
KEY = jax.ShapeDtypeStruct((2,), U32)


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
    """A decorator that enters a function which makes such a pair, for who asks for it, under its name."""

    def program(make):
        programs[make.__name__] = make
        return make

    return program
