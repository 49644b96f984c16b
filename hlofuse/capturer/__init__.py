"""From a program to what XLA's fusion passes were given and made, with no accelerator."""

from hlofuse.capturer.from_python import capture
from hlofuse.capturer.model import Capture, CapturedModule, CaptureError, Destination

__all__ = ["Capture", "CaptureError", "CapturedModule", "Destination", "capture"]
