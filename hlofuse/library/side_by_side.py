"""Two modules read, compared, and drawn side by side; one program by two builds of XLA."""

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from hlofuse.account import Account
from hlofuse.account.replaying import account_on
from hlofuse.compilation import Counted, ReplayConfig
from hlofuse.cost.tpu import tpu_devices
from hlofuse.diff import ModuleDiff, diff
from hlofuse.diff.model import Accounts, changed_flags, final_kernels
from hlofuse.format import printable
from hlofuse.format.terminal import Page
from hlofuse.inputs.companions import Companions, companions_of
from hlofuse.inputs.many import Many, modules_at
from hlofuse.inputs.profile import is_profile, read_profile
from hlofuse.ir import HlofuseError, Progress, replace
from hlofuse.pipelines import device_of
from hlofuse.pipelines.targets import Stage
from hlofuse.releases import NAMED, NAMES, NEWEST, Release, nearest, release_of
from hlofuse.reports.common.head import Head, print_heads
from hlofuse.reports.diff.json import as_dict
from hlofuse.reports.diff.many import BatchDiff, diff_many
from hlofuse.reports.diff.model import summarize
from hlofuse.reports.diff.phrases import verdict
from hlofuse.reports.diff.text import draw as draw_summary
from hlofuse.reports.upgrade import Upgrade, print_upgrade, upgrade, upgrade_json
from .answer import Answer
from .heads import head_of
from .loading import Loaded, config_of, each_module, read
from .options import ReplayOptions
from .program import Program

if TYPE_CHECKING:
    from hlofuse.render import ModulePair

SECTIONS = tuple("kernels fusions sources instructions header".split())  # those of `reports.diff.phrases`


def is_folder(options: ReplayOptions) -> bool:
    """True if the input is a directory of modules."""
    return options.given is None and os.path.isdir(options.input) and not is_profile(options.input)


def side_in(modules: Many, options: ReplayOptions) -> Program:
    """The module of a directory that the options name; of several without a name the main one. With changes
    to XLA, and for another device, it is the replay of the directory: no file shows that."""
    if options.module is None and len(modules.files) > 1:
        return Program(options)
    file = modules.pick(options.module)
    recorded = Companions(file).recorded_device if options.device is not None else None
    is_other = recorded is not None and recorded.device.name != options.device
    if modules.are_final and (is_other or options.takes_any_stage):
        return Program(options)
    stage = str(Stage.FUSED) if file in modules.fused else options.stage
    return Program(replace(options, input=str(file), module=None, stage=stage))


def both_sides(before: Program, after: Program) -> tuple[Program, Program, bool]:
    """BEFORE and AFTER as they are compared, and True if what they launch is.

    Directories give their final modules; so does a directory next to a file with a fused module. Of two
    profiles it is the costliest program of BEFORE, and its namesake in AFTER. HlofuseError if unreadable."""
    sides = [before, after]
    if before.options.module is None and all(is_profile(p.options.input) for p in sides):
        name = read_profile(before.options.input).pick().name
        sides = [Program(replace(p.options, module=name)) for p in sides]
    folders = [is_folder(p.options) for p in sides]
    if sum(folders) == 1:  # `module` picks from the directory
        file = sides[folders.index(False)]
        file = sides[folders.index(False)] = Program(replace(file.options, module=None))
        folders = [folder and file.is_fused for folder in folders]
    launched = any(p.options.profile is not None for p in sides)
    for k, program in enumerate(sides):
        if folders[k]:
            modules = modules_at(Path(program.options.input))
            sides[k], launched = side_in(modules, program.options), launched or modules.are_final
    launched = launched or any("profile" in p.module.findings for p in sides)
    return sides[0], sides[1], launched


def pair_of(before: Program, after: Program) -> "ModulePair":
    """The two modules that `diff` compares, for a picture side by side."""
    from hlofuse.render import ModulePair

    found, accounts = difference(*both_sides(before, after))
    drawn = accounts().compared
    totals = drawn[0].totals, drawn[1].totals
    kernels = final_kernels(found)
    return ModulePair(
        found.before.module, found.after.module, kernels.kernels, verdict(found), kernels.notes, totals=totals
    )


def check_sides(before: str | None, after: str | None, releases: Iterable[str | None]) -> None:
    """HlofuseError for devices and releases that are not known, before anything is read."""
    if before is None and after is not None:
        raise HlofuseError("--device-after needs --device, the GPU of BEFORE")
    for name in (before, after):
        if name is not None and name not in tpu_devices():
            device_of("gpu", name)
    for release in releases:
        if release not in (None, "auto"):
            nearest(release)


def difference(
    before: Program, after: Program, launched: bool, metadata: bool = False
) -> tuple[ModuleDiff, Callable[[], Accounts]]:
    """The differences of AFTER, and the launches of either side, which are counted when they are first read.
    With `launched` the final modules are compared, else the modules as they were read."""
    pair = (
        (_final_account(before).module, _final_account(after).module)
        if launched
        else (before.module, after.module)
    )
    found = diff(*pair, metadata=metadata)

    @cache
    def accounts() -> Accounts:
        finals = _final_account(before), _final_account(after)
        as_read = finals if launched else (_account_as_read(before), _account_as_read(after))
        counted: tuple[Counted | None, Counted | None] = before.counted, after.counted
        if not launched and before.is_fused != after.is_fused:  # what the passes between the two do is asked
            finals, counted = as_read, (None, None)
        on = [account.machine if account.times is None else account.times.device for account in finals]
        timed = all(account.totals.us is not None for account in finals)
        devices = (on[0].name, on[1].name) if timed and on[0] and on[1] else None
        flags = changed_flags(*(companions_of(p.module).all_flags for p in (before, after)))
        return Accounts(*finals, as_read, devices, counted, flags)

    return found, accounts


def _is_replayable(side: Program) -> bool:
    """True for a module before fusion whose passes are replayed: their target is public, the device known."""
    return not side.is_fused and side.identity.is_replayed and side.loaded.config is not None


def _final_account(side: Program) -> Account:
    """The launches of the final module; of the module as it was read where no pass is replayed."""
    return side.account if _is_replayable(side) else side.running[0]


def _account_as_read(side: Program) -> Account:
    if not _is_replayable(side):
        return side.running[1]
    own = side.identity
    return account_on(side.module, side.loaded.device, own.backend.value, side.loaded.release, own.flags)


def differences(
    before: Program,
    after: Program,
    old: Many,
    new: Many,
    metadata: bool,
    progress: Progress,
) -> BatchDiff:
    """The differences of the modules of two directories, by name, as `both_sides` compares them."""

    def one(name: str) -> tuple[ModuleDiff, Accounts]:
        first = side_in(old, replace(before.options, module=name))
        second = side_in(new, replace(after.options, module=name))
        found, accounts = difference(first, second, old.are_final and new.are_final, metadata)
        return found, accounts()

    return diff_many(old, new, one, progress)


def compared(before: Program, after: Program, *, metadata: bool = False) -> Answer[ModuleDiff]:
    """The differences of AFTER, by kernels that run where both are; see `both_sides`. Times are those of the
    device that is given or recorded with each module, or those of profiles."""
    before, after, launched = both_sides(before, after)
    with before.options.listener.activity("comparing"):
        found, accounts = difference(before, after, launched, metadata)
    heads = [Head(p.identity) for p in (before, after)]

    def draw(console: Page, only: Sequence[str] = SECTIONS) -> None:
        print_heads(heads, console)
        draw_summary(summarize(found, accounts()), console, only=only)

    return Answer(
        "difference",
        lambda: found,
        json=lambda data: as_dict(data, accounts()),
        body=draw,
        rows_of="fusions",
        limit=20,
        heads=heads,
        prints_heads=True,
    )


def checked_release(flag: str, text: str | None) -> tuple[str | None, str]:
    """The named release of a user's version and a note where it is another one; None for `auto` and None.
    HlofuseError, with the releases that there are, for others and for those after the newest series."""
    if text in (None, "auto"):
        return None, ""
    with suppress(HlofuseError):
        name, note = nearest(text)
        if not note or name != NEWEST or note.startswith(f"{NAMED[-1].series}."):
            return name, note
    raise HlofuseError(f"{flag} {printable(text)}: no such release; there are {', '.join(NAMES)}")


def check_upgrade(old: str | None, new: str | None, *, compiled: bool) -> tuple[str | None, str]:
    """The release to upgrade to (None where the call has none) and a note on it. HlofuseError for an unknown
    release, and where both sides would be the same: `compiled` is a second side."""
    (from_release, _), (to_release, note) = checked_release("--from", old), checked_release("--to", new)
    if to_release is None and from_release in (None, NEWEST) and not compiled:
        raise HlofuseError(f"Nothing to compare: give --from or --to, one of {', '.join(NAMES)}")
    return to_release, note


def upgraded(options: ReplayOptions, to: str | None, compiled: ReplayOptions | None) -> Answer[list[Upgrade]]:
    """Every module of the input by its release and by `to`; worst first. `compiled` has the same modules as
    the other release brings them to fusion. Without `to` that is the release of `compiled`, else the newest.
    HlofuseError where no other release is given."""
    to, note = check_upgrade(options.xla, to, compiled=compiled is not None)
    options.listener.note(note)
    requests, others = list(each_module(options, finished=False)), {}
    if compiled is not None:
        for one, name in each_module(replace(compiled, xla=to), finished=False):
            loaded = read(one)
            others[name or loaded.module.name] = loaded.replay()
            to = to or loaded.release.name
    to = to or NEWEST
    new = release_of(to)
    found, heads = [], []
    with options.listener.progress("replaying") as progress:
        for number, (one, name) in enumerate(requests, 1):
            loaded = read(one)
            name = name or loaded.module.name
            other = others.get(name) or (next(iter(others.values())) if len(others) == 1 else None)
            config_of = partial(_config, one, loaded)
            assert loaded.config is not None
            sides = loaded.config.release, new, config_of, other, loaded.attach
            found.append(upgrade(name, loaded.input, *sides))
            heads.append(head_of(loaded))
            progress(number, len(requests))
    found.sort(key=lambda f: f.worst_first)
    first = heads[0].build.release if heads and heads[0] is not None and heads[0].build is not None else ""
    return Answer(
        "upgrade",
        lambda: found,
        json=lambda data: upgrade_json(data, first, to),
        body=lambda console: print_upgrade(found, first, to, console),
        rows_of="modules",
        heads=heads,
    )


def _config(options: ReplayOptions, loaded: Loaded, release: Release) -> ReplayConfig:
    own = loaded.config
    assert own is not None
    return config_of(options, loaded.target, own.device, release.name, mixed=release, flags=own.build.flags)
