"""Configuration of a replay: XLA's release, the passes, and changes to them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hlofuse.ir import HlofuseError, Record, Strings, replace
from hlofuse.passes import make_pass
from hlofuse.passes.registry import single_passes, split_passes
from hlofuse.pipelines.flags import DISABLED, disabled_passes, joined, merged, value_of
from hlofuse.pipelines.targets import OPTION_FLAGS, TARGETS, XlaBuild, device_of, passes_of
from hlofuse.releases import AROUND_FUSION, REFERENCE, Release, nearest, release_of
from hlofuse.rules.catalogue import catalogue
from hlofuse.rules.settings import AS_XLA, Settings, parse_settings

if TYPE_CHECKING:
    from hlofuse.cost.gpu.device import DeviceDescription


class ReplayConfig(Record):
    """Everything about a replay but the module."""

    target: str
    build: XlaBuild
    passes: Strings
    settings: Settings = AS_XLA
    changes: Strings = ()
    """The changes to XLA, in words; empty for XLA itself."""
    xla: ReplayConfig | None = None
    """The same without the changes; None when there are none."""
    mixed: Release | None = None
    """A release with parts of another, where no plain release is replayed."""

    @property
    def device(self) -> DeviceDescription | None:
        """The device that the replay is for; None where decisions depend on none."""
        return self.build.device

    @property
    def release(self) -> Release:
        """The replayed release, with its behaviours."""
        return self.mixed or release_of(self.build.release)

    def without_passes(self, names: Iterable[str]) -> ReplayConfig:
        """The same with these passes disabled around fusion."""
        flags = joined((*self.build.flags, *(f"--{DISABLED}={name}" for name in names)))
        return replace(self, build=replace(self.build, flags=flags))


def replay_config(
    target: str,
    device: str | DeviceDescription | None = None,
    *,
    xla: str | None = None,
    mixed: Release | None = None,
    option: str | None = None,
    overrides: Iterable[str] = (),
    disable: Iterable[str] = (),
    enable: Iterable[str] = (),
    passes: str | None = None,
    xla_flags: Strings = (),
) -> ReplayConfig:
    """The configuration for a target, a device and the options of a what-if run, such as `--set NAME=VALUE`.

    `xla` is a release; unless it is given, XLA as in the reference release is repeated (`REFERENCE`).
    `mixed` is one with something of another (`hlofuse.pipelines.differences`). `xla_flags` are those that the
    module was compiled with; what they switch off is not replayed.

    HlofuseError for whatever name is not known, with what may have been meant."""
    overrides, disable, enable = tuple(overrides), tuple(disable), tuple(enable)
    release = mixed or release_of(release_for(target, xla))
    if option is None:
        option = _option(target, release, xla_flags)
    off = disabled_passes(xla_flags)
    standard = tuple(p for p in passes_of(target, release, option) if p.partition("(")[0] not in off)
    listed = standard if passes is None else split_passes(passes)
    for name in enable:
        listed = _with(target, listed, name)
    if passes is not None:
        for text in single_passes(listed):
            make_pass(text, target, release)
    stated, _ = device_of(target, device)
    described, knobs = device_of(target, device, overrides)
    settings = parse_settings(knobs, disable, extra_names=device_numbers(target))
    changes = (
        *overrides,
        *(f"without {code.upper()}" for code in disable),
        *(f"with {name}" for name in enable),
        *((f"passes {', '.join(listed)}",) if passes is not None else ()),
    )
    tables = TARGETS[target]
    by_default = option is None or tables.has_by_default(option, release)
    own = () if by_default or option not in OPTION_FLAGS else (OPTION_FLAGS[option],)
    flags = merged((*tables.flags, *own), xla_flags)

    def build(on: DeviceDescription | None) -> XlaBuild:
        return XlaBuild(release.name, tables.backend, on, flags)

    as_xla = ReplayConfig(target, build(stated), standard, mixed=mixed)
    if not changes:
        return as_xla
    return ReplayConfig(target, build(described), listed, settings, changes, as_xla, mixed)


def release_for(target: str, xla: str | None) -> str:
    """The named release that is repeated for a version that is asked for, or for none (None, `auto`).
    HlofuseError for text that is no version, and for a target that is for another release."""
    passes_of(target, AROUND_FUSION)  # refuses an unknown target
    only = TARGETS[target].release
    if xla is None or xla == "auto":
        return only or REFERENCE
    name = nearest(xla)[0]
    if only and name != only:
        raise HlofuseError(f"target {target} supports only XLA {only}, not {name}; give --target gpu")
    return name


def _option(target: str, release: Release, xla_flags: Strings) -> str | None:
    """The variant of the passes that a release and flags choose; None for the plain list."""
    for option in TARGETS[target].options:
        flag = OPTION_FLAGS.get(option, "").removeprefix("--").partition("=")[0]
        value = value_of(xla_flags, flag) if flag else None
        if value == "true" or (value is None and TARGETS[target].has_by_default(option, release)):
            return option
    return None


def device_numbers(target: str) -> Strings:
    """The names of a device's numbers, which `--set` takes like knobs; none where no device is asked for."""
    if not TARGETS[target].needs_device:
        return ()
    from dataclasses import fields

    from hlofuse.cost.gpu.device import DeviceDescription

    return tuple(f.name for f in fields(DeviceDescription))


# Passes that XLA has and a target leaves out by default (`--enable`).
def _with(target: str, passes: Strings, name: str) -> Strings:
    """`passes`, at the end the one asked for. A name is an addition of the target (`Target.additions`), a
    pass in one, or the code of a rule that only such a pass asks; HlofuseError for others."""
    optional_passes = TARGETS[target].optional_passes
    code = name.upper()
    for optional_pass in optional_passes:
        if (
            name in (optional_pass.name, *optional_pass.passes)
            or code.rstrip("0123456789") in optional_pass.families
        ):
            # The last passes of a target tidy up, and do so again after what is added.
            return passes if set(optional_pass.passes) <= set(passes) else (*passes, *optional_pass.passes)
    what = f"target {target} has no optional pass {name!r}"
    if code in catalogue():
        what = f"rule {code} belongs to no optional pass of target {target}"
    names = ", ".join(a.name for a in optional_passes) or "none: the target has no optional passes"
    raise HlofuseError(f"{what}; --enable takes {names}")
