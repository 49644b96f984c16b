"""The source of ids and use-lists: XLA, its earlier passes repeated, an estimate, or the text."""

from .restore import is_open, restore, source_of
