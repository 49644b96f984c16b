"""Reads a module from a file, a pipe or a dump directory."""

from .choose_target import choose_target
from .dump_directory import DumpedModule
from .many import load
from .text import read_text
