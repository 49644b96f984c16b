"""What is known of the JAX releases a capture is made with."""

from __future__ import annotations

from hlofuse.releases import NAMES

FLAGS_OF_RELEASES = {
    "gpu": [
        # They stop at a gemm that a kernel of Triton is tuned for, ahead of fusion.
        {
            "flag": "--xla_gpu_autotune_level=0",
            "since": "0",
            "until": "0.10",
            "advice": "without the device, gemms that Triton cannot compute untuned stop the compiler:"
            " --flags=--xla_gpu_enable_triton_gemm=false leaves them to cuBLAS",
        },
        # They ask the device how much memory a sort needs; later ones then sort in a kernel of XLA's, too.
        {"flag": "--xla_gpu_enable_cub_radix_sort=false", "since": "0.5", "until": "0.6"},
    ]
}
"""XLA_FLAGS that releases from `since` on, before `until`, need to compile for a device that is not there."""


def advice_about(target: str, flags: str) -> str | None:
    """What to do about programs that did not come as far as fusion, where these flags compiled them."""
    found = [
        f["advice"] for f in FLAGS_OF_RELEASES.get(target, []) if "advice" in f and f["flag"] in flags.split()
    ]
    return found[0] if found else None


def doubt_about(version: str | None) -> str | None:
    """What is not assured of a capture made with this jaxlib; None for a named release."""
    if version is None:
        return "which jaxlib compiled this is not known: --xla names the release that it is to be replayed as"
    if version in NAMES:
        return None
    return (
        f"jaxlib {version} is none of the releases that were compared with XLA ({', '.join(NAMES)}):"
        " hlofuse verify shows where its XLA decides otherwise than the nearest of them"
    )
