"""Sorts the files of a dump into a folder for each module, laid out like a corpus: the module as the front
end wrote it (`before_optimizations.hlo`), as it enters the fusion passes (`before.hlo`), after each that
changed it (`NN-PASS.hlo`), as it leaves them (`after.hlo`), as code is generated from it
(`after_optimizations.hlo`), ids of the first two (`.hlo.pb`), on a GPU XLA's fusion log
(`priority_fusion.txtpb`) and the device (`gpu_target_config.pbtxt`), and the compiler (`hlofuse.json`)."""

import re
import shutil
from itertools import count
from pathlib import Path

from hlofuse.inputs.dump_directory import AFTER_CODEGEN, DumpDirectory, DumpedModule
from hlofuse.ir import HlofuseError
from .model import Capture, CapturedModule

_BEFORE_PRIORITY_FUSION = ("variadic-op-splitter", "sort-iota-fusion")


def collect(dump: Path, capture: Capture) -> None:
    """Sort the modules in `dump` into folders of `capture.folder`, and add them to `capture`. Modules of
    another target are omitted, and those that only ran during the compilation."""
    try:
        modules = DumpDirectory(dump).modules
    except HlofuseError:
        return
    taken = {module.name for module in capture.modules}
    between: dict[str, str] = {}
    for module in modules:
        name = plain = folder_name(module.name)
        for number in count(2):  # several compilations of one function
            if name not in taken:
                break
            name = f"{plain}-{number}"
        try:
            before, passes = stages(module, capture.target)
        except HlofuseError as error:
            # The framework runs some on the host CPU while it prepares a program for another device.
            is_of_host = capture.target != "cpu" and "cpu_after_optimizations" in module.whole
            original = module.name.removesuffix("-clone")  # from which XLA cloned one for autotuning
            is_clone = original != module.name and any(m.name == original for m in modules)
            left_out = between if is_of_host or is_clone else capture.left_out
            left_out[name] = error.first_line
            continue
        taken.add(name)
        folder = capture.folder / name
        folder.mkdir(parents=True)
        _copy(module, before, passes, folder)
        capture.modules.append(CapturedModule(name, folder, tuple(p for p, _ in passes)))
    if not capture.modules:
        capture.left_out.update(between)  # perhaps nothing was compiled for the target at all


_OF_THE_MACHINE = ("xla_dump_", "xla_gpu_cuda_data_dir")
"""Flags about locations of files, not about the compilation."""


def stages(module: DumpedModule, target: str) -> tuple[Path, list[tuple[str, Path]]]:
    """The fusion passes' input and the dump after each pass that changed it; `HlofuseError` without one."""
    if target != "tpu":
        return module.stages(target)
    tpu_files = module.of_tpu
    if not tpu_files:
        raise HlofuseError(f"{module.label} has no dumps of TPU's fusion pipelines")
    return tpu_files[0].path, [(f"{f.pipeline}.{f.after}", f.path) for f in tpu_files[1:]]


def folder_name(module: str) -> str:
    """A module's name as a folder name: without `jit_` and path separators."""
    name = re.sub(r"[^\w.+-]", "_", module.removeprefix("jit_"))[:120].lstrip(".")
    return name or "module"


def _copy(module: DumpedModule, before: Path, passes: list[tuple[str, Path]], folder: Path) -> None:
    # With the times at which XLA wrote them, which tell how long the passes took.
    shutil.copy2(before, folder / "before.hlo")
    for number, (name, path) in enumerate(passes, 1):
        shutil.copy2(path, folder / f"{number:02d}-{name}.hlo")
    shutil.copy2(passes[-1][1] if passes else before, folder / "after.hlo")
    for stage, path in sorted(module.whole.items(), key=lambda item: item[0] == AFTER_CODEGEN):
        name = "before_optimizations" if stage == "before_optimizations" else "after_optimizations"
        shutil.copy2(path, folder / f"{name}.hlo")
        if name == "before_optimizations":
            _copy_ids(path, folder / f"{name}.hlo.pb")
    entered = [before, *(p for name, p in passes if name in _BEFORE_PRIORITY_FUSION)][-1]
    _copy_ids(entered, folder / "before.hlo.pb")
    for name in ("gpu_target_config.pbtxt", "debug_options"):
        given = before.with_name(f"{module.label}.{name}")
        if given.is_file() and given.read_bytes().endswith(b"\n"):  # else XLA was ended before
            lines = given.read_text(encoding="utf-8").splitlines(keepends=True)
            remaining = [line for line in lines if not line.startswith(_OF_THE_MACHINE)]
            (folder / name).write_text("".join(remaining), encoding="utf-8")
    record = before.with_name(f"{module.label}.priority_fusion_dump.txt")
    if record.is_file():
        text = record.read_text(encoding="utf-8")
        # The module again, in one line as long as the dump.
        text = re.sub(r"(?m)^hlo_module_before_fusion: .*\n", "", text)
        (folder / "priority_fusion.txtpb").write_text(text, encoding="utf-8")


def _copy_ids(dump: Path, to: Path) -> None:
    ids = dump.with_name(dump.name.removesuffix(".txt") + ".hlo.pb")
    if ids.is_file():
        shutil.copyfile(ids, to)
