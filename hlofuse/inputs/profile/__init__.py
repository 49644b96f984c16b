"""Profiles: time on a device, recorded by xprof, Chrome traces and Nsight Systems."""

from hlofuse.inputs.profile.files import companion_profile as companion_profile
from hlofuse.inputs.profile.files import device_of as device_of
from hlofuse.inputs.profile.files import is_profile as is_profile
from hlofuse.inputs.profile.files import read_profile as read_profile
from hlofuse.inputs.profile.files import slowest_module as slowest_module
from hlofuse.inputs.profile.model import DeviceTime as DeviceTime
from hlofuse.inputs.profile.model import MeasuredTime as MeasuredTime
from hlofuse.inputs.profile.model import NotProfiled as NotProfiled
from hlofuse.inputs.profile.model import Profile as Profile
from hlofuse.inputs.profile.model import ProfiledModule as ProfiledModule
