"""The lists of passes per target, as data, and running those before fusion."""

from .targets import NEEDS_AMD_DEVICE, NEEDS_DEVICE, TARGETS, Target, device_of, passes_of
