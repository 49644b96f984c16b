"""The module that XLA's fusion passes leave, or all of its passes."""

from collections.abc import Sequence

from hlofuse.compilation import Compilation, ModuleTexts, PassResult
from hlofuse.inputs.ordered import in_creation_order
from hlofuse.inputs.stage import FUSED, StageError
from hlofuse.inputs.wire_format import unique_ids_for
from hlofuse.ir import HlofuseError, Module, Record, copy_module, print_module
from hlofuse.pipelines import TARGETS
from hlofuse.pipelines.targets import Stage
from hlofuse.trace import Event
from .loading import Loaded, require_end
from .program import Program


class Replayed(Record):
    loaded: Loaded
    module: Module
    events: Sequence[Event]
    passes: Sequence[PassResult] = ()  # Fusion passes that changed the module, with its text
    not_repeated: Sequence[str] = ()
    note: str = ""
    was_fused: bool = False

    @property
    def head(self) -> str:
        """The comment that says that the text is approximate; empty where it is not."""
        return f"// {self.loaded.note}\n" if self.loaded.note else ""

    @property
    def text(self) -> str:
        return self.head + print_module(self.module)


def replayed_until(report: Program, until: str, with_texts: bool = False) -> Replayed:
    """The module after the fusion passes, or after all with `end`, which takes a fused one too."""
    if until not in ("fusion", "end"):
        raise HlofuseError(f"until {until!r}: expected fusion or end")
    try:
        loaded = report.at_fusion
    except StageError as error:
        if until != "end" or error.stage.name != FUSED:
            raise
        return _finished(report)
    assert loaded.config is not None
    if until == "end":
        require_end(loaded.target, loaded.config.device)
    done = loaded.replay([ModuleTexts()] if with_texts else [])
    passes = [p for p in done.passes if p.changed]
    if until == "fusion":
        return Replayed(loaded, done.after, done.events, passes)
    last = done.span(Stage.SCHEDULED)
    return Replayed(loaded, last.module, [*done.events, *last.events], passes, tuple(last.not_repeated))


def _finished(report: Program) -> Replayed:
    loaded = report.loaded
    loaded.note_device()
    if loaded.config is None:
        raise HlofuseError(loaded.problem)
    if loaded.identity.shown.foreign_to(loaded.target):
        raise HlofuseError(
            f"the module was compiled for another backend than target {loaded.target}; give --target"
        )
    module, note = copy_module(loaded.module), ""
    require_end(loaded.target, loaded.config.device)
    ids = unique_ids_for(module, report.options.ids)
    if ids is None and TARGETS[loaded.target].has_history:
        note = "without XLA's ids (.hlo.pb), fusions of one kind may swap the numbers in their names"
    in_creation_order(module, ids)
    last = Compilation.of(module, Stage.FUSED, loaded.config).span(Stage.SCHEDULED)
    return Replayed(loaded, last.module, last.events, (), tuple(last.not_repeated), note, was_fused=True)
