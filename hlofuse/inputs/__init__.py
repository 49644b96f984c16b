"""Reads a module from a file, a pipe or a dump directory."""

from .choose_target import choose_target as choose_target
from .dump_directory import DumpDirectory as DumpDirectory
from .dump_directory import DumpedModule as DumpedModule
from .many import load as load
from .stage import StageError as StageError
from .stage import require_input_stage as require_input_stage
from .stage import stage_of as stage_of
from .text import read_text as read_text
