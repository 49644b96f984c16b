"""Reads a module from a file, a pipe or a dump directory."""

from .choose_target import choose_target as choose_target
from .dump_directory import DumpedModule as DumpedModule
from .many import load as load
from .text import read_text as read_text
