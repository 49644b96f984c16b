"""The record of a replay: every decision in the order it was taken."""

from hlofuse.rules.verdict import Figures
from .recorder import Event, OnlySkipped, Recorder, Skipped
