"""Parts of a dump file's name (`xla/service/dump.cc`).
`module_0042.jit_step.0017.fusion.after_priority-fusion.before_cse.txt`: module 42, jit_step, the 18th file of
this compilation, pipeline `fusion`, between two passes."""

import re
from collections.abc import Sequence
from pathlib import Path

from hlofuse.ir.record import Record
from hlofuse.pipelines.targets import pass_names_of

_FILE = re.compile(
    r"(?:(?P<prefix>.+?)\.)?module_(?P<id>\d+)\.(?P<middle>.+)\.(?:txt|hlo|hlo\.pb)(?:\.gz)?", re.DOTALL
)
_BETWEEN = re.compile(
    # The name may end in a number of its own, as that of jit_f.1367 does: it reaches as far as it can.
    r"(?P<name>.+)\.(?P<number>\d{4,9})\.(?P<pipeline>.+?)"
    r"\.(?:after_(?P<after>.+?)(?:\.before_(?P<before>.+))?|before_(?P<only_before>.+))",
    re.DOTALL,
)
_CHANGE_LIST = re.compile(r"\.cl_\d+$")
_WHOLE = re.compile(
    r"(?P<name>.+?)\.(?:cl_\d+\.)?(?P<stage>before_optimizations|(?:cpu_|gpu_|sm_[\w.]+?_gpu_|gfx\w+?_gpu_|tpu_)?after_optimizations|after_codegen)",
    re.DOTALL,
)


class DumpFile(Record):
    path: Path
    prefix: str
    module_id: int
    module: str
    number: int | None = None  # The number of the file within one compilation, in writing order
    pipeline: str | None = None
    after: str | None = None
    before: str | None = None
    whole: str | None = None
    """The stage of a dump of the whole module: `before_optimizations`, `cpu_after_optimizations`, …"""


def read_name(path: Path) -> DumpFile | None:
    """The parts of a dump's file name; None for other files."""
    m = _FILE.fullmatch(path.name)
    if m is None:
        return None
    prefix, module_id = m["prefix"] or "", int(m["id"][:18])
    between = _BETWEEN.fullmatch(m["middle"])
    if between is not None:
        return DumpFile(
            path,
            prefix,
            module_id,
            _CHANGE_LIST.sub("", between["name"]),
            int(between["number"]),
            between["pipeline"],
            between["after"],
            between["before"] or between["only_before"],
        )
    whole = _WHOLE.fullmatch(m["middle"])
    if whole is not None:
        return DumpFile(path, prefix, module_id, whole["name"], whole=whole["stage"])
    return None


# The place of each target's fusion passes in a compilation, by dump file names: data.


class FusionStage(Record):
    """The files around the fusion passes of one target."""

    pipeline: str
    passes: tuple[str, ...]
    """The passes whose results are compared, in order; the first one's input is the fusion input."""
    next_pipeline: str | None
    """The pipeline right after them; its first dump ends the stage where no pass changed the module."""
    flags: str  # XLA_FLAGS that write all needed dumps
    more_pipelines: tuple[tuple[str, str], ...] = ()
    """Further compared pipelines right after the first, each with its first pass."""
    also_before: tuple[str, ...] = ()
    """Earlier passes that a replay can also start before: those between change nothing."""
    next_follows: bool = True  # True if no pass runs between the last of these and the next pipeline

    @property
    def pipelines(self) -> tuple[str, ...]:
        return (self.pipeline, *dict(self.more_pipelines))

    def is_fused_by(self, file: DumpFile) -> bool:
        """True for a dump after one of the passes that fuse."""
        first = self.also_before[-1] if self.also_before else self.passes[0]
        return file.pipeline in self.pipelines and file.after in self.passes[self.passes.index(first) :]

    def name_of_run(
        self,
        passes: Sequence[str],
        pipeline: str,
        name: str,
        number: int,
    ) -> str:
        """The name of the `number`th run of a pass within a pipeline, counted over all pipelines: `cse-3`.
        `passes` are those of all pipelines in order; a pass that runs once has its plain name."""
        first = dict(self.more_pipelines).get(pipeline, "")
        before = list(passes).index(first) if first in passes else 0
        return f"{name}-{passes[:before].count(name) + number}" if passes.count(name) > 1 else name


def _passes(target: str, elsewhere: Sequence[str] = ()) -> tuple[str, ...]:
    """The names of a target's passes, each once and without options, except those in `elsewhere`."""
    return tuple(name for name in pass_names_of(target) if name not in elsewhere)


FUSION_STAGES: dict[str, FusionStage] = {
    "cpu": FusionStage(
        "HLO_passes_after_layout_assignment",
        _passes("cpu", elsewhere=("tuple-simplifier",)),
        "simplification_after_layout_assignment",
        "--xla_dump_to=DIR --xla_dump_hlo_pass_re=.*",
        next_follows=False,
    ),
    "gpu": FusionStage(
        "fusion",
        _passes("gpu"),
        "post-fusion_optimization",
        "--xla_dump_to=DIR --xla_dump_hlo_pass_re=.* --xla_dump_hlo_as_text --xla_dump_hlo_as_proto",
        also_before=("sort-iota-fusion", "priority-fusion"),
    ),
    "gpu-legacy": FusionStage(
        "fusion",
        _passes("gpu-legacy"),
        "post-fusion_optimization",
        "--xla_gpu_enable_priority_fusion=false --xla_dump_to=DIR --xla_dump_hlo_pass_re=.* "
        "--xla_dump_hlo_as_text",
        more_pipelines=(("horizontal_fusion", "horizontal_loop_fusion"),),
        also_before=("fusion",),
    ),
}
AFTER_CODEGEN = "after_codegen"  # XLA:TPU's dump of the module that runs, with its estimates in cycles
TPU_PIPELINES = ("Main_fusion", "multi_output_fusion_and_bf16_folding")
"""The fusion pipelines of XLA:TPU, which is closed and therefore no target."""
