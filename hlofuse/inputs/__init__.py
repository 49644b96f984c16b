"""Reads a module from a file, a pipe or a dump directory."""

from hlofuse.inputs.choose_target import choose_target as choose_target
from hlofuse.inputs.dump_directory import DumpDirectory as DumpDirectory
from hlofuse.inputs.dump_directory import DumpedModule as DumpedModule
from hlofuse.inputs.many import load as load
from hlofuse.inputs.stage import StageError as StageError
from hlofuse.inputs.stage import require_input_stage as require_input_stage
from hlofuse.inputs.stage import stage_of as stage_of
from hlofuse.inputs.text import read_text as read_text
