"""The modules of an input: of a dump directory, a corpus or a profile."""

from collections.abc import Iterator
from pathlib import Path

from hlofuse.inputs import DumpedModule, choose_target
from hlofuse.inputs.companions import Companions
from hlofuse.inputs.dump_directory import DumpDirectory, corpus_cases, is_corpus_case
from hlofuse.inputs.profile import is_profile, read_profile
from hlofuse.ir import HlofuseError, replace
from .loading import read
from .options import ReplayOptions


def has_several(path: str) -> bool:
    """A dump directory, a corpus or a profile, whose modules are all meant."""
    folder = Path(path)
    return is_profile(path) or (path != "-" and folder.is_dir() and not is_corpus_case(folder))


def each_module(
    request: ReplayOptions, *, finished: bool = True
) -> Iterator[tuple[ReplayOptions, str | None]]:
    """A request for each module of one input, with the name that it is paired by; None for its own.
    `finished` takes the module after all passes of a dump without the input of fusion, else the program."""
    folder = Path(request.input)
    if is_profile(request.input) and request.module is None:
        modules = sorted(read_profile(request.input).modules, key=lambda m: (m.name, m.program or 0))
        with_hlo = [m for m in modules if m.proto is not None] or modules
        yield from ((replace(request, module=m.label), m.name) for m in with_hlo)
    elif request.input == "-" or not folder.is_dir():
        yield request, None
    elif is_corpus_case(folder):
        yield request, folder.name
    elif corpus_cases(folder):
        for case in corpus_cases(folder):
            if request.module in (None, case.name):
                yield replace(request, input=str(case), module=None), case.name
        if request.module is not None and request.module not in {c.name for c in corpus_cases(folder)}:
            read(request)  # says which there are
    elif request.module is not None:
        yield request, None
    else:
        for module in DumpDirectory(folder).modules:
            file = _file_of(module, request) if finished else None
            if file is not None:
                yield replace(request, input=str(file)), module.name
            else:
                yield replace(request, module=module.label), module.name


def _file_of(module: DumpedModule, request: ReplayOptions) -> Path | None:
    """The finished module, of a dump without the stages that a replay takes; None where those are there."""
    folder = Path(request.input)
    target = (
        request.target
        or choose_target(Companions(folder, module.label), device=request.device is not None).name
    )
    try:
        module.pass_input(target)
        return None
    except HlofuseError:
        return module.finished if not request.changes_xla else None
