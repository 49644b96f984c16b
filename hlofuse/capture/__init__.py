"""From a program to what XLA's fusion passes were given and made, with no accelerator."""

from hlofuse.capture.from_python import capture
from hlofuse.capture.model import Capture, CapturedModule, CaptureError, Destination

__all__ = ["Capture", "CaptureError", "CapturedModule", "Destination", "capture"]
