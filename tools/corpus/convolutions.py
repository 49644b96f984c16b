"""Convolutions of images in the layout that programs of JAX alone write them in."""

from jax import lax

IMAGE = ("NHWC", "HWIO", "NHWC")


def convolve(x, w, stride=1, groups=1, padding="SAME"):
    return lax.conv_general_dilated(
        x, w, (stride,) * 2, padding, dimension_numbers=IMAGE, feature_group_count=groups
    )
