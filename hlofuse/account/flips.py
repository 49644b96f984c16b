"""Changes of single device numbers that would change a decision."""

import math
from collections.abc import Callable
from functools import partial

from hlofuse.cost.combined import CombinedModel, model_of
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.estimate import Estimate
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.cost.gpu.ticks import INFINITE
from hlofuse.cost.tiling.constraints import Tiling
from hlofuse.ir import Instruction, Record, replace
from hlofuse.rules.gpu_fusible import is_fusible_bitcast, may_be_fused

NUMBERS = tuple("memory_bandwidth l2_cache_size core_count clock_rate_ghz fpus_per_core".split())
_DOUBLINGS = 5  # the largest tried factor, up and down
_HALVINGS = 8  # of the last doubling: a flip is found to within a third of a percent


class Flip(Record):
    """The producer's fusion is decided differently with `number` at `value` or beyond."""

    number: str  # A field of `DeviceDescription`, as `--set` takes it
    now: float
    value: float


def pays(model: KernelModel, producer: Instruction, device: DeviceDescription) -> bool | None:
    """True if fusing the producer into its users would save time on that device; None without an estimate."""
    unfused, fused = sums(model_of(device, model.release), producer)
    return None if max(unfused, fused) >= INFINITE else unfused >= fused


def flips(model: KernelModel, producer: Instruction) -> tuple[Flip, ...]:
    """The nearest changing value of each number of the model's device, the nearest first."""
    device = model.device
    now = pays(model, producer, device)
    if now is None:
        return ()
    verdict = partial(pays, model, producer)
    found = [f for name in NUMBERS if (f := _flip(device, name, now, verdict)) is not None]
    found.sort(key=lambda f: abs(math.log(f.value / f.now)))
    return tuple(found)


def _flip(
    device: DeviceDescription, name: str, now: bool, pays: Callable[[DeviceDescription], bool | None]
) -> Flip | None:
    start = getattr(device, name)
    whole = isinstance(start, int)

    def value(exponent: float) -> float:
        varied = start * 2.0**exponent
        return max(1, round(varied)) if whole else float(f"{varied:.4g}")

    def flips(exponent: float) -> bool:
        changes = {name: value(exponent)}
        verdict = pays(replace(device, **changes))
        return verdict is not None and verdict is not now

    for doublings in range(1, _DOUBLINGS + 1):
        for direction in (-1.0, 1.0):
            if flips(direction * doublings):
                near, far = direction * (doublings - 1), direction * doublings
                for _ in range(_HALVINGS):
                    middle = (near + far) / 2
                    near, far = (near, middle) if flips(middle) else (middle, far)
                return Flip(name, start, value(far))
    return None


# The two sums that XLA compares for a producer.
def sums(model: KernelModel, producer: Instruction) -> tuple[int, int]:
    """The two sums XLA compares, in ticks: separate kernels, the producer in all its users (full form)."""
    users = producer.users
    launch = model.device.launch_ticks
    unfused = launch * (len(users) + 1) + model.run_time(producer).ticks
    fused = launch * len(users)
    for user in users:
        unfused += model.run_time(user).ticks
        fused += pair_estimate(model, producer, user).ticks
    return min(unfused, INFINITE), min(fused, INFINITE)


def pair_estimate(model: KernelModel, producer: Instruction, consumer: Instruction) -> Estimate:
    """The pair's time; from tiles where Triton emits it."""
    tables = model.cached_pair_time(producer, consumer)
    if tables is not None:
        return tables
    triton = any(x.fusion_kind == "kCustom" and may_be_fused(x, model.release) for x in (producer, consumer))
    if not triton or not isinstance(model, CombinedModel) or is_fusible_bitcast(consumer, model.release):
        return model.pair_time(producer, consumer)
    tiled = isinstance(model.tile(producer, consumer), Tiling)  # then that has become the pair's time
    estimate = model.pair_time(producer, consumer)
    if not tiled:
        estimate = replace(estimate, ticks=INFINITE)
        model.cache[producer].times[consumer] = estimate
    return estimate
