"""`what_if`: the front door."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, overload

from hlofuse.ir.graph import Module
from hlofuse.ir.unique_ids import UniqueIds
from hlofuse.replay import ReplayInput, replay_config
from hlofuse.reports.whatif.model import Ranking, Sweep
from hlofuse.reports.whatif.ranking import rank
from hlofuse.reports.whatif.sweep import Vary
from hlofuse.reports.whatif.sweep import sweep as run_sweep

if TYPE_CHECKING:
    from hlofuse.cost.gpu.device import DeviceDescription
    from hlofuse.replay import ReplayConfig

    Device = str | DeviceDescription | None


@overload
def what_if(
    module: Module,
    target: str = ...,
    *,
    device: Device | Sequence[Device] = ...,
    sweep: None = ...,
    option: str | None = ...,
    overrides: Iterable[str] = ...,
    disable: Iterable[str] = ...,
    enable: Iterable[str] = ...,
    rules: Iterable[str] = ...,
    passes: str | None = ...,
    ids: UniqueIds | None = ...,
) -> Ranking: ...
@overload
def what_if(
    module: Module,
    target: str = ...,
    *,
    device: Device | Sequence[Device] = ...,
    sweep: Mapping[str, Sequence[float | str]],
    option: str | None = ...,
    overrides: Iterable[str] = ...,
    disable: Iterable[str] = ...,
    enable: Iterable[str] = ...,
    rules: Iterable[str] = ...,
    passes: str | None = ...,
    ids: UniqueIds | None = ...,
) -> Sweep: ...
def what_if(
    module: Module,
    target: str = "cpu",
    *,
    device: Device | Sequence[Device] = None,
    sweep: Mapping[str, Sequence[float | str]] | None = None,
    xla: str | None = None,
    option: str | None = None,
    overrides: Iterable[str] = (),
    disable: Iterable[str] = (),
    enable: Iterable[str] = (),
    rules: Iterable[str] = (),
    passes: str | None = None,
    ids: UniqueIds | None = None,
) -> Ranking | Sweep:
    """Which single rule costs `module` most; with `sweep`, what becomes of it as knobs take other values.

    `sweep` maps names of knobs or of a device's numbers to values; several make a grid, on each `device`.
    `xla` is a release of jaxlib, the reference release unless given.
    `overrides` (`NAME=VALUE`), `disable`, `enable`, `rules` and `passes` are as in
    `hlofuse.pipelines.replay_config` and hold for every replay. HlofuseError for names that are not known.
    """
    devices: list[Device] = list(device) if isinstance(device, (list, tuple)) else [device]  # type: ignore[list-item]
    overrides, disable, enable, rules = tuple(overrides), tuple(disable), tuple(enable), tuple(rules)

    def config(which: Device, more: Iterable[str] = ()) -> ReplayConfig:
        return replay_config(
            target,
            which,
            xla=xla,
            option=option,
            overrides=(*overrides, *more),
            disable=disable,
            enable=enable,
            rules=rules,
            passes=passes,
        )

    if sweep is None:
        return rank(ReplayInput(module, ids), config(devices[0]))

    def varied(which: Device) -> Vary:
        return lambda values: config(which, [f"{name}={value}" for name, value in values.items()])

    axes = {name: [str(v) for v in values] for name, values in sweep.items()}
    return run_sweep(ReplayInput(module, ids), [varied(d) for d in devices], axes)
