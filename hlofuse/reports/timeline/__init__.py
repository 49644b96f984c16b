"""A dump directory pass by pass: what each one did to a module."""

from .model import DumpSequence, PassTimeline, Replacement, Step, dump_sequences, timeline

__all__ = ["DumpSequence", "PassTimeline", "Replacement", "Step", "dump_sequences", "timeline"]
