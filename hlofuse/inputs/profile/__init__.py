"""Profiles: time on a device, recorded by xprof, Chrome traces and Nsight Systems."""

from .files import companion_profile as companion_profile
from .files import device_of as device_of
from .files import is_profile as is_profile
from .files import read_profile as read_profile
from .files import slowest_module as slowest_module
from .model import DeviceTime as DeviceTime
from .model import MeasuredTime as MeasuredTime
from .model import NotProfiled as NotProfiled
from .model import Profile as Profile
from .model import ProfiledModule as ProfiledModule
