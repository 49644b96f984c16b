"""Profiles: time on a device, recorded by xprof, Chrome traces and Nsight Systems."""

from .files import companion_profile, device_of, is_profile, read_profile, slowest_module
from .model import DeviceTime, MeasuredTime, NotProfiled, Profile, ProfiledModule
