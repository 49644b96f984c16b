"""One kernel and its analysis by the cost model; custom calls, and what has a thunk outside fusions."""

from collections.abc import Callable

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.analysis.kernels import COLLECTIVES
from hlofuse.cost.gpu.launch import FusionAnalysis, Launch
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.cost.gpu.summary import Summary
from hlofuse.ir import Instruction, Json, Record, values
from hlofuse.rules.catalogue import Rule
from hlofuse.rules.gpu_fusible import may_be_fused
from hlofuse.rules.verdict import Answer, Decision, Figures, runner

_WRAPPED = values("convolution dot map stochastic-convert")
"""Opcodes beyond the fusible ones (`xla/backends/gpu/transforms/fusion_wrapper.cc`)."""
_LAUNCHED = values("EM040 EM041 EM042 EM044 EM045 EM046 EM049")
_TILED = values("EM031 EM032")


class GpuKernel(Record):
    """An instruction that is launched as work of its own."""

    instruction: Instruction
    model: KernelModel

    @property
    def target(self) -> str:
        """The target of a custom call; empty for anything else."""
        return custom_call_target(self.instruction)

    @property
    def is_generated(self) -> bool:
        """XLA writes its code: a fusion, or an instruction that FusionWrapper makes one of."""
        opcode = self.instruction.opcode
        if opcode == "fusion" or opcode in _WRAPPED:
            return True
        return may_be_fused(self.instruction, self.model.release)

    @property
    def config_kind(self) -> str:
        config = self.summary.config if self.instruction.is_fusion else None
        return config.kind if config is not None else ""

    @property
    def summary(self) -> Summary:
        return self.model.summary(self.instruction)

    @property
    def analysis(self) -> FusionAnalysis:
        """The facts that decide its emitter."""
        return self.model.kernel(self.instruction)

    @property
    def launch(self) -> Launch:
        return self.model.launch(self.instruction)

    def derived_launch(self, rule: Rule) -> tuple[int, int] | None:
        """Blocks and threads, where the rule's emitter takes them from the kernel itself."""
        launch = self.launch if rule.code in _LAUNCHED or rule.code in _TILED else None
        if launch is None or (
            rule.code in _TILED and not (self.summary.config and self.summary.config.tile_sizes)
        ):
            return None
        return launch.blocks, launch.threads

    @property
    def modern(self) -> bool:
        """The release has MLIR emitters."""
        return self.model.release.mlir_emitters


# Custom calls: libraries that XLA chose before fusion, and code that comes with the program.
def _call(kernel: GpuKernel) -> Json:
    return {"calls": kernel.target}


def _product(kernel: GpuKernel) -> Json:
    operands = kernel.instruction.operands[:2]
    found = {"product": " × ".join(o.shape.text_without_layout for o in operands)}
    config = kernel.instruction.raw("backend_config") or ""
    _, mark, rest = config.partition('"epilogue":"')
    if mark and not rest.startswith("DEFAULT"):
        found["epilogue"] = rest.partition('"')[0]
    return found


def _calls(
    code: str, title: str, runs: str, *targets: str, figures: Callable[[GpuKernel], Figures] = _call
) -> Callable[[GpuKernel], Decision]:
    """The rule of custom calls whose target begins with one of these."""

    def evaluate(kernel: GpuKernel) -> Answer:
        return figures(kernel) if kernel.target and kernel.target.startswith(targets) else None

    return runner(code, title, runs=runs)(evaluate)


_SOLVERS = "cusolver_", "__cublas$triangularSolve"
_OWN = "__gpu$xla.gpu.triton", "__gpu$xla.gpu.ptx"
CALLS = (
    _calls("EM001", "A matmul in cuBLASLt", "cuBLASLt", "__cublas$lt$", figures=_product),
    _calls("EM002", "A matmul in cuBLAS", "cuBLAS", "__cublas$gemm", figures=_product),
    _calls("EM003", "A convolution, normalization or attention in cuDNN", "cuDNN", "__cudnn$"),
    _calls("EM004", "A radix sort in CUB", "CUB", "xla.gpu.ext.cub_sort", "__cub$"),
    _calls("EM005", "A decomposition or triangular solve in a solver library", "cuSOLVER", *_SOLVERS),
    _calls("EM006", "A top-k in XLA's own kernel or in RAFT", "top-k kernel", "__gpu$TopK"),
    _calls("EM007", "A kernel supplied by the program", "the program's kernel", *_OWN),
    _calls("EM009", "Any other custom call", "custom call", ""),
)


# Instructions that stay outside fusions, each with a thunk of its own.

_COLLECTIVES = COLLECTIVES | {"recv", "send"}
_HOST = values("infeed outfeed")
_COPIES = values("copy copy-start")


@runner("EM010", "A Fourier transform in cuFFT", runs="cuFFT")
def fft(kernel: GpuKernel) -> Answer:
    if kernel.instruction.opcode != "fft":
        return None
    return {"length": (kernel.instruction.raw("fft_length") or "").strip("{}")}


@runner("EM011", "Communication between devices", runs="NCCL")
def collective(kernel: GpuKernel) -> Answer:
    instruction = kernel.instruction
    if instruction.opcode not in _COLLECTIVES:
        return None
    return {"bytes": sum(o.byte_size for o in instruction.operands)}


@runner("EM012", "A copy is a memcpy", runs="memcpy")
def plain_copy(kernel: GpuKernel) -> Answer:
    instruction = kernel.instruction
    if instruction.opcode not in _COPIES:
        return None
    source = instruction.operand.shape
    same_layout = source.minor_to_major == instruction.minor_to_major
    return {"bytes": source.byte_size} if same_layout or instruction.opcode == "copy-start" else None


@runner("EM013", "A sort is a series of bitonic sort kernels", runs="bitonic sort")
def sort(kernel: GpuKernel) -> Answer:
    instruction = kernel.instruction
    if instruction.opcode != "sort":
        return None
    shape = instruction.operand.shape
    length = shape.dimensions[instruction.dimension] if instruction.dimensions else shape.element_count
    return {"length": length, "operands": instruction.operand_count}


@runner("EM014", "A seed for random numbers", runs="random state kernel")
def random_state(kernel: GpuKernel) -> bool:
    return kernel.instruction.opcode == "rng-get-and-update-state"


@runner("EM015", "A transfer between host and device", runs="host transfer")
def host(kernel: GpuKernel) -> Answer:
    return {"bytes": kernel.instruction.byte_size} if kernel.instruction.opcode in _HOST else None


@runner("EM016", "An instruction that is rewritten after fusion", runs="rewritten later")
def unsettled(kernel: GpuKernel) -> Answer:
    return None if kernel.is_generated else {"opcode": kernel.instruction.opcode}


RULES = (*CALLS, fft, collective, plain_copy, sort, random_state, host)
