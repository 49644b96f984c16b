"""The one place where a command turns a module before optimizations into the passes' input."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hlofuse.cli.common.replaying import ReplayRequest, Subject
    from hlofuse.ir.module import Module
    from hlofuse.replay import Variant


def is_before_optimizations(module: Module, target: str) -> bool:
    """Whether it has to be brought to the fusion passes first; False where it enters them as it is.

    StageError for other stages and platforms, and where the dump ahead of fusion lies beside it: that is
    better.
    """
    from hlofuse.inputs.stage import BEFORE, StageError, require_input_stage

    try:
        require_input_stage(module, target)
    except StageError as error:
        stage = error.stage
        if stage.name != BEFORE or stage.right_file is not None or stage.foreign_to(target):
            raise
        return True
    return False


def at_fusion(asked: ReplayRequest, subject: Subject) -> Subject:
    """The subject as it enters the fusion passes: as it is, or brought there, and then with a remark.

    StageError as above, HlofuseError where the target asks for a device and none is given.
    """
    from dataclasses import replace

    if not asked.assume_input and is_before_optimizations(subject.module, subject.target):
        return brought_to_fusion(asked, subject)
    return in_its_order(asked, replace(subject, variant=_variant(asked, subject)))


def in_its_order(asked: ReplayRequest, subject: Subject) -> Subject:
    """What enters the passes, as old and with users in the order as a module before optimizations beside it
    tells. `--ids none` is for the text alone.
    """
    from dataclasses import replace

    from hlofuse.cli.common.progress import spinner
    from hlofuse.inputs.played import played_beside

    assert subject.variant is not None
    if asked.ids == "none":
        return subject
    device = (subject.variant.xla or subject.variant).device
    with spinner("repeating the passes ahead of fusion"):
        played = played_beside(subject.module, subject.target, device)
    return replace(subject, module=played.module) if played is not None else subject


def brought_to_fusion(asked: ReplayRequest, subject: Subject) -> Subject:
    """A module before optimizations as it enters the fusion passes, with a remark.

    HlofuseError for files about that later moment: they know other names and ids.
    """
    from dataclasses import replace

    from hlofuse.cli.common.progress import spinner
    from hlofuse.inputs.named_order import in_order_made
    from hlofuse.ir.errors import HlofuseError
    from hlofuse.reports.common.unoptimized import beginning_of_fusion

    for flag, value in (("--ids", asked.ids), ("--xla-trace", asked.xla_trace)):
        if value not in (None, "none"):
            raise HlofuseError(
                f"{flag} is about the module as it enters the fusion passes; this one is before optimizations"
            )
    variant = _variant(asked, subject)
    in_order_made(subject.module, subject.ids)
    with spinner("repeating the passes ahead of fusion"):
        begun = beginning_of_fusion(subject.module, subject.target, (variant.xla or variant).device)
    return replace(
        subject, module=begun.module, variant=variant, ids=None, record_path=None, remark=begun.remark
    )


def say(remark: str) -> None:
    """The remark on standard error, of a command whose result has no place for words."""
    import click

    if remark:
        click.echo(f"note: {remark}", err=True)


def _variant(asked: ReplayRequest, subject: Subject) -> Variant:
    """How it is replayed; HlofuseError says that a device is missing."""
    return subject.variant or asked.variant(subject.target, None)
