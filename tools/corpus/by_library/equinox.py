"""Programs of equinox on images and fields."""

import jax
import jax.numpy as jnp
import numpy as np
from arguments import S, entering_when_asked
from jax import nn, random
from steps import eqx_train

PROGRAMS = {}
program = entering_when_asked(PROGRAMS)


@program
def eqx_mixer_diffusion():
    import equinox as eqx
    import optax

    class Mix(eqx.Module):
        patches: eqx.nn.MLP
        hidden: eqx.nn.MLP
        norm1: eqx.nn.LayerNorm
        norm2: eqx.nn.LayerNorm

        def __init__(self, key):
            a, b = random.split(key)
            self.patches = eqx.nn.MLP(49, 49, 64, 1, key=a)
            self.hidden = eqx.nn.MLP(32, 32, 64, 1, key=b)
            self.norm1, self.norm2 = eqx.nn.LayerNorm((32, 49)), eqx.nn.LayerNorm((49, 32))

        def __call__(self, y):
            y = y + jax.vmap(self.patches)(self.norm1(y))
            y = y.T
            return (y + jax.vmap(self.hidden)(self.norm2(y))).T

    class Net(eqx.Module):
        into: eqx.nn.Conv2d
        out: eqx.nn.ConvTranspose2d
        blocks: list
        norm: eqx.nn.LayerNorm

        def __init__(self, key):
            keys = random.split(key, 4)
            self.into = eqx.nn.Conv2d(2, 32, 4, stride=4, key=keys[0])
            self.out = eqx.nn.ConvTranspose2d(32, 1, 4, stride=4, key=keys[1])
            self.blocks = [Mix(k) for k in keys[2:]]
            self.norm = eqx.nn.LayerNorm((32, 49))

        def __call__(self, t, y):
            y = self.into(jnp.concatenate([y, jnp.full((1, 28, 28), t)])).reshape(32, 49)
            for block in self.blocks:
                y = block(y)
            return self.out(self.norm(y).reshape(32, 7, 7))

    def loss(model, key, data):
        def one(x, t, key):
            mean, std = x * jnp.exp(-0.5 * t), jnp.sqrt(jnp.maximum(1 - jnp.exp(-t), 1e-5))
            noise = random.normal(key, x.shape)
            return (1 - jnp.exp(-t)) * jnp.mean((model(t, mean + std * noise) + noise / std) ** 2)

        a, b = random.split(key)
        t = random.uniform(a, (16,), minval=0.0, maxval=10 / 16) + (10 / 16) * jnp.arange(16)
        return jax.vmap(one)(data, t, random.split(b, 16)).mean()

    return eqx_train(Net, optax.adabelief(3e-4), loss, S(16, 1, 28, 28))


@program
def eqx_fourier_operator():
    import equinox as eqx
    import optax

    class Spectral(eqx.Module):
        real: jax.Array
        imag: jax.Array
        bypass: eqx.nn.Conv1d

        def __init__(self, key):
            a, b, c = random.split(key, 3)
            self.real, self.imag = random.normal(a, (32, 32, 12)), random.normal(b, (32, 32, 12))
            self.bypass = eqx.nn.Conv1d(32, 32, 1, key=c)

        def __call__(self, x):
            f = jnp.fft.rfft(x)
            low = jnp.einsum("im,iom->om", f[:, :12], self.real + 1j * self.imag)
            y = jnp.fft.irfft(jnp.zeros(f.shape, low.dtype).at[:, :12].set(low), n=x.shape[-1])
            return nn.relu(y + self.bypass(x))

    class Net(eqx.Module):
        lift: eqx.nn.Conv1d
        blocks: list
        drop: eqx.nn.Conv1d

        def __init__(self, key):
            keys = random.split(key, 4)
            self.lift, self.drop = eqx.nn.Conv1d(2, 32, 1, key=keys[0]), eqx.nn.Conv1d(32, 1, 1, key=keys[1])
            self.blocks = [Spectral(k) for k in keys[2:]]

        def __call__(self, x):
            x = self.lift(x)
            for block in self.blocks:
                x = block(x)
            return self.drop(x)

    loss = lambda model, key, x, y: jnp.mean((jax.vmap(model)(x) - y) ** 2)
    return eqx_train(Net, optax.amsgrad(3e-4), loss, S(8, 2, 128), S(8, 1, 128))


@program
def eqx_unet_attention_diffusion():
    import equinox as eqx
    import optax

    class Res(eqx.Module):
        norms: list
        convs: list
        time: eqx.nn.Linear
        skip: eqx.nn.Conv2d
        drop: eqx.nn.Dropout

        def __init__(self, i, o, key):
            k = random.split(key, 4)
            self.norms = [eqx.nn.GroupNorm(8, i), eqx.nn.GroupNorm(8, o)]
            self.convs = [
                eqx.nn.Conv2d(i, o, 3, padding=1, key=k[0]),
                eqx.nn.Conv2d(o, o, 3, padding=1, key=k[1]),
            ]
            self.time, self.skip = eqx.nn.Linear(64, o, key=k[2]), eqx.nn.Conv2d(i, o, 1, key=k[3])
            self.drop = eqx.nn.Dropout(0.1)

        def __call__(self, x, t, key):
            y = self.convs[0](nn.silu(self.norms[0](x))) + self.time(nn.silu(t))[:, None, None]
            y = self.convs[1](self.drop(nn.silu(self.norms[1](y)), key=key))
            return (y + self.skip(x)) / np.sqrt(2)

    class Attend(eqx.Module):
        norm: eqx.nn.GroupNorm
        qkv: eqx.nn.Conv2d
        out: eqx.nn.Conv2d

        def __init__(self, c, key):
            a, b = random.split(key)
            self.norm, self.qkv = eqx.nn.GroupNorm(8, c), eqx.nn.Conv2d(c, 3 * c, 1, key=a)
            self.out = eqx.nn.Conv2d(c, c, 1, key=b)

        def __call__(self, x):
            c, h, w = x.shape
            q, k, v = self.qkv(self.norm(x)).reshape(3, 4, c // 4, h * w)
            s = nn.softmax(jnp.einsum("hct,hcs->hts", q, k) / np.sqrt(c // 4), -1)
            y = jnp.einsum("hts,hcs->hct", s, v).reshape(c, h, w)
            return (x + self.out(y)) / np.sqrt(2)

    class Net(eqx.Module):
        into: eqx.nn.Conv2d
        time: eqx.nn.MLP
        downs: list
        mid: tuple
        ups: list
        out: eqx.nn.Conv2d

        def __init__(self, key):
            k = iter(random.split(key, 12))
            self.into = eqx.nn.Conv2d(3, 16, 3, padding=1, key=next(k))
            self.time = eqx.nn.MLP(64, 64, 128, 1, activation=nn.silu, key=next(k))
            self.downs = [Res(16, 32, next(k)), Res(32, 64, next(k))]
            self.mid = Res(64, 64, next(k)), Attend(64, next(k)), Res(64, 64, next(k))
            self.ups = [Res(128, 32, next(k)), Res(64, 16, next(k))]
            self.out = eqx.nn.Conv2d(16, 3, 3, padding=1, key=next(k))

        def __call__(self, x, t, key):
            keys = iter(random.split(key, 6))
            freq = jnp.exp(-jnp.log(10000.0) * jnp.arange(32) / 32)
            t = self.time(jnp.concatenate([jnp.sin(t * freq), jnp.cos(t * freq)]))
            x, kept = self.into(x), []
            for res in self.downs:
                x = res(x, t, next(keys))
                kept.append(x)
                x = x.reshape(x.shape[0], x.shape[1] // 2, 2, x.shape[2] // 2, 2).mean((2, 4))
            x = self.mid[2](self.mid[1](self.mid[0](x, t, next(keys))), t, next(keys))
            for res in self.ups:
                skip = kept.pop()
                x = jax.image.resize(x, (x.shape[0], *skip.shape[1:]), "nearest")
                x = res(jnp.concatenate([x, skip]), t, next(keys))
            return self.out(nn.silu(x))

    def loss(model, key, x):
        a, b, c = random.split(key, 3)
        level = jnp.exp(random.normal(a, (x.shape[0],)) * 1.2 - 1.2)[:, None, None, None]
        noise = random.normal(b, x.shape) * level
        weight = (level**2 + 0.25) / (0.5 * level) ** 2
        scale = 1 / jnp.sqrt(0.25 + level**2)
        out = jax.vmap(model)((x + noise) * scale, jnp.log(level).ravel() / 4, random.split(c, x.shape[0]))
        clean = 0.25 * scale**2 * (x + noise) + 0.5 * level * scale * out
        return jnp.mean(weight * (clean - x) ** 2)

    return eqx_train(Net, optax.adam(2e-4), loss, S(4, 3, 16, 16))


@program
def eqx_physics_informed_burgers():
    import equinox as eqx
    import optax

    def loss(model, key, inside, start, edge):
        u = lambda t, x: model(jnp.stack([t, x]))

        def residual(at):
            t, x = at
            ut, ux = jax.grad(u, (0, 1))(t, x)
            uxx = jax.jvp(lambda x: jax.grad(u, 1)(t, x), (x,), (jnp.ones(()),))[1]
            return ut + u(t, x) * ux - (0.01 / jnp.pi) * uxx

        pde = jnp.mean(jax.vmap(residual)(inside) ** 2)
        initial = jnp.mean((jax.vmap(lambda x: u(0.0, x))(start) + jnp.sin(jnp.pi * start)) ** 2)
        walls = jnp.mean(jax.vmap(lambda t: u(t, -1.0) ** 2 + u(t, 1.0) ** 2)(edge))
        return pde + 10 * initial + walls

    make = lambda key: eqx.nn.MLP(2, "scalar", 48, 3, activation=jnp.tanh, key=key)
    tx = optax.chain(optax.scale_by_adam(), optax.scale_by_trust_ratio(), optax.scale(-1e-3))
    return eqx_train(make, tx, loss, S(256, 2), S(64), S(64))
