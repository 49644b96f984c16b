"""The record of a replay: every decision in the order it was taken."""

from hlofuse.rules.verdict import Figures
from hlofuse.trace.events import Event
from hlofuse.trace.recorder import OnlySkipped, Recorder, Skipped

__all__ = ["Event", "Figures", "OnlySkipped", "Recorder", "Skipped"]
