"""From what a user has (a file, a pipe, a dump directory) to a module."""

from hlofuse.inputs.choose_target import choose_target
from hlofuse.inputs.dump_directory import DumpDirectory, DumpedModule
from hlofuse.inputs.load import load
from hlofuse.inputs.stage import Stage, StageError, require_input_stage, stage_of
from hlofuse.inputs.text import read_text

__all__ = [
    "DumpDirectory",
    "DumpedModule",
    "Stage",
    "StageError",
    "choose_target",
    "load",
    "read_text",
    "require_input_stage",
    "stage_of",
]
