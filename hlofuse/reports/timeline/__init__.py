"""A dump directory pass by pass: what each one did to a module."""

from .model import DumpSequence, PassTimeline, dump_sequences, timeline
