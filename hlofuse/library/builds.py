"""One program by two builds of XLA: another device, another release."""

from contextlib import suppress
from functools import partial

from hlofuse.compilation import ReplayConfig
from hlofuse.format.escape import printable
from hlofuse.ir import HlofuseError, replace
from hlofuse.releases import NAMED, NAMES, NEWEST, Release, nearest, release_of
from hlofuse.reports.upgrade import Upgrade, print_upgrade, upgrade, upgrade_json
from .answer import Answer
from .heads import head_of
from .loading import Loaded, config_of, read
from .modules import each_module
from .options import ReplayOptions


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
        body=lambda console, limit=10: print_upgrade(found, first, to, console, limit=limit),
        rows_of="modules",
        heads=heads,
    )


def _config(options: ReplayOptions, loaded: Loaded, release: Release) -> ReplayConfig:
    own = loaded.config
    assert own is not None
    return config_of(options, loaded.target, own.device, release.name, mixed=release, flags=own.build.flags)
