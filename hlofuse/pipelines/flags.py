"""XLA flags that change which passes run, as a dump or a call gives them: `--name=value`, or `true`."""

import shlex
from collections.abc import Iterable

from hlofuse.ir import HlofuseError, Strings, values

DISABLED = "xla_disable_hlo_passes"
YNN_KINDS = "xla_cpu_experimental_ynn_fusion_type"
TRITON_MULTI_OUTPUT = "xla_gpu_unsupported_enable_triton_multi_output_fusion"
COMMAND_BUFFERS = "xla_gpu_enable_command_buffer"
SMALLEST_COMMAND_BUFFER = "xla_gpu_graph_min_graph_size"
COMBINED_COUNT = "xla_gpu_collective_combine_threshold_count"
_COMBINERS = (
    COMBINED_COUNT,
    *(
        f"xla_gpu_{kind}_combine_threshold_bytes"
        for kind in ("all_gather", "all_reduce", "reduce_scatter", "collective_permute")
    ),
    "xla_gpu_enable_all_gather_combine_by_dim",
    "xla_gpu_enable_reduce_scatter_combine_by_dim",
)  # Flags of the passes that combine collectives
_HONOURED = (
    DISABLED,
    YNN_KINDS,
    TRITON_MULTI_OUTPUT,
    COMMAND_BUFFERS,
    SMALLEST_COMMAND_BUFFER,
    *_COMBINERS,
    "xla_allow_excess_precision",
    "xla_gpu_enable_triton_gemm",
)
_PASSES_OF_SWITCH = {
    "xla_allow_excess_precision": ("simplify-fp-conversions",),
    "xla_gpu_enable_triton_gemm": (
        "gemv-rewriter",
        "splitk-rewriter",
        "triton-gemm-rewriter",
        "hoist-fused-bitcasts",
        "gemm-fusion-swap-operands",
    ),
}  # Passes that XLA leaves out where the flag is false (`gpu_compiler.cc`)
_BOOLEANS = {
    **dict.fromkeys(_PASSES_OF_SWITCH, "true"),
    "xla_gpu_enable_priority_fusion": "true",
    "xla_gpu_enable_latency_hiding_scheduler": "true",
    "xla_gpu_deterministic_ops": "false",
    "xla_gpu_exclude_nondeterministic_ops": "false",
}  # The defaults of switches that programs often state
_WITHOUT_EFFECT = tuple(
    """
    xla_dump_ xla_detailed_logging xla_embed_ir xla_enable_dumping xla_enable_scoped_logging
    xla_enable_command_buffers_during_profiling xla_hlo_profile xla_llvm_ xla_pjrt_allow_auto_layout
    xla_force_host_platform_device_count xla_cpu_enable_fast_min_max xla_cpu_max_isa
    xla_cpu_prefer_vector_width xla_cpu_parallel_codegen xla_cpu_collective xla_gpu_cuda_data_dir
    xla_gpu_dump_ xla_gpu_executable_ xla_gpu_execution_ xla_gpu_first_collective_call
    xla_gpu_force_compilation_parallelism xla_gpu_generate_ xla_gpu_kernel_cache xla_gpu_llvm_
    xla_gpu_nccl_ xla_gpu_per_fusion_autotune_cache_dir xla_gpu_print_ xla_gpu_target_config
    xla_gpu_trace_annotation xla_gpu_enable_libnv
    """.split()
)  # Prefixes of flags that change no kernel, launch or byte
BEFORE_FUSION = tuple(
    """
    xla_allow_excess_precision xla_gpu_enable_triton_gemm xla_gpu_triton_gemm xla_gpu_cublas
    xla_gpu_enable_cublaslt xla_gpu_cudnn xla_gpu_enable_cudnn xla_gpu_gemm_rewrite xla_gpu_enable_cub_radix
    xla_gpu_dot_merger xla_gpu_deterministic_ops xla_gpu_exclude_nondeterministic_ops
    xla_gpu_enable_scatter_determinism xla_gpu_force_conv_ xla_gpu_autotune xla_gpu_override_gemm_autotuner
    xla_gpu_load_autotune xla_gpu_experimental_force_split_k xla_gpu_experimental_scaled_dot
    xla_gpu_threshold_for_windowed_einsum xla_reduce_window_rewrite xla_cpu_use_onednn xla_cpu_use_xnnpack
    xla_cpu_experimental_onednn xla_cpu_experimental_xnn xla_cpu_strict_dot_conv_math
    """.split()
)  # Prefixes of flags whose passes run before fusion
DEFAULT_KINDS = values("reduce individual_convolution individual_dot")
_CHANGES_FUSION = (
    *_HONOURED,
    *"""
    xla_enable_hlo_passes_only xla_gpu_enable_priority_fusion xla_gpu_enable_triton_gemm
    xla_gpu_triton_gemm_any xla_gpu_unsupported_force_triton_gemm xla_gpu_enable_cublaslt
    xla_gpu_cublas_fallback xla_gpu_cudnn_gemm_fusion_level xla_gpu_enable_cudnn xla_gpu_mlir_emitter_level
    xla_gpu_experimental_enable_fusion_block_level_rewriter xla_cpu_use_onednn xla_cpu_experimental_onednn
    xla_cpu_use_xnnpack xla_cpu_experimental_xnn_fusion_type xla_cpu_enable_fast_math
    xla_allow_excess_precision xla_backend_optimization_level xla_backend_extra_options
    xla_gpu_deterministic_ops xla_gpu_exclude_nondeterministic_ops
    """.split(),
)  # Prefixes of flags that change fusion or launches


def parse_flags(text: str) -> Strings:
    """The flags in a value of XLA_FLAGS that change what fuses; HlofuseError for a word that is no flag."""
    return that_change_fusion(split_flags(text))


def split_flags(text: str) -> Strings:
    """All flags in a value of XLA_FLAGS; HlofuseError for a word that is no flag."""
    try:
        parts = shlex.split(text)
    except ValueError as error:
        raise HlofuseError(f"--xla-flags: {error}") from None
    if wrong := next((w for w in parts if not w.startswith("--")), None):
        raise HlofuseError(f"--xla-flags: expected --NAME=VALUE, found {wrong!r}")
    return tuple(w if "=" in w else f"{w}=true" for w in parts)


def that_change_fusion(flags: Iterable[str]) -> Strings:
    return tuple(f for f in flags if f.removeprefix("--").startswith(_CHANGES_FUSION))


def merged(flags: Iterable[str], more: Iterable[str]) -> Strings:
    """Both, of which the second count where they name the same flag."""
    more = tuple(more)
    names = {_name(f) for f in more}
    return (*(f for f in flags if _name(f) not in names), *more)


def joined(flags: Iterable[str]) -> Strings:
    """Each flag once, as XLA takes it, with all its values: the passes to leave out in one list."""
    values = dict[str, dict[str, None]]()
    for flag in flags:
        name, _, value = flag.partition("=")
        values.setdefault(name, {}).update(dict.fromkeys(value.split(",")))
    return tuple(f"{name}={','.join(given)}" for name, given in values.items())


def not_honoured(flags: Iterable[str]) -> Strings:
    """Flags that change what fuses, and that no replay follows."""
    return tuple(f for f in flags if _name(f) not in _HONOURED and not _is_default(f))


def not_modelled(flags: Iterable[str], backend: str, *, is_lowered: bool) -> Strings:
    """Flags that may change the figures of a report on this backend in a way that nothing here follows. In a
    module that is lowered, as XLA's fusion passes get it, flags of earlier passes have had their effect."""
    foreign = tuple(f"xla_{name}_" for name in ("cpu", "gpu", "tpu") if name != backend)
    ignored = (*_WITHOUT_EFFECT, *foreign, *(BEFORE_FUSION if is_lowered else ()))
    return tuple(f for f in not_honoured(flags) if not _name(f).startswith(ignored))


def _is_default(flag: str) -> bool:
    name, _, value = flag.removeprefix("--").partition("=")
    return _BOOLEANS.get(name) == value.lower()


def value_of(flags: Iterable[str], name: str) -> str | None:
    """The value of a flag; None where it is not among them."""
    return next((f.partition("=")[2] for f in flags if _name(f) == name), None)


def number_of(flags: Iterable[str], name: str, default: int) -> int:
    """The value of a flag that is a number; the default where it is not among them or not a number."""
    try:
        return int(value_of(flags, name) or default)
    except ValueError:
        return default


def disabled_passes(flags: Iterable[str]) -> frozenset[str]:
    """The passes that `xla_disable_hlo_passes` names, and those of switches that are false."""
    flags = tuple(flags)
    switched = (p for name, own in _PASSES_OF_SWITCH.items() if value_of(flags, name) == "false" for p in own)
    listed = (value_of(flags, DISABLED) or "").split(",")
    return frozenset((*filter(None, listed), *switched))


def ynn_kinds(flags: Iterable[str]) -> frozenset[str]:
    """The operations that YNNPACK's fusions may start at, as XLA calls the kinds: `reduce`, `individual_dot`.
    `-reduce` takes one from the default, `+dot` adds one, a list without signs replaces all."""
    value = value_of(flags, YNN_KINDS)
    kinds = _chosen(value.lower() if value is not None else None, DEFAULT_KINDS, "library_fusion_type_")
    return kinds - {"invalid"}


def command_types(flags: Iterable[str], default: frozenset[str]) -> frozenset[str]:
    """The types of commands in command buffers: `default` as `xla_gpu_enable_command_buffer` changes it."""
    value = value_of(flags, COMMAND_BUFFERS)
    return _chosen(value.upper() if value is not None else None, default)


def _chosen(value: str | None, default: frozenset[str], prefix: str = "") -> frozenset[str]:
    """The names that a list chooses: signs change `default`, a list without signs replaces it."""
    if value is None:
        return default
    parts = [w.strip() for w in value.split(",") if w.strip()]
    if not any(w[:1] in "+-" for w in parts):
        return frozenset(w.removeprefix(prefix) for w in parts)
    names = set(default)
    for part in parts:
        (names.discard if part.startswith("-") else names.add)(part.lstrip("+-").removeprefix(prefix))
    return frozenset(names)


def _name(flag: str) -> str:
    return flag.removeprefix("--").partition("=")[0]


def from_debug_options(text: str) -> Strings:
    """The flags in a dump's `debug_options`: those not at their default. One that is repeated is a list."""
    found = dict[str, list[str]]()
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon and name.startswith("xla_"):
            found.setdefault(name.strip(), []).append(value.strip().strip('"'))
    return tuple(f"--{name}={','.join(values)}" for name, values in found.items())
