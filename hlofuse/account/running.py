"""The account of a module at any stage, by replaying the remaining passes."""

from hlofuse.account.account import Account
from hlofuse.account.measured import attach, measured_of
from hlofuse.account.replaying import KernelTimes
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.graph import Module
from hlofuse.pipelines import TARGETS
from hlofuse.pipelines.identity import Identity
from hlofuse.pipelines.manager import finish, lower_to_fusion_input
from hlofuse.pipelines.targets import target_by_flags
from hlofuse.releases import Release, release_of
from hlofuse.replay.config import replay_config
from hlofuse.replay.replay import replay


def running(module: Module, identity: Identity, device: DeviceDescription | None) -> tuple[Account, Account]:
    """The accounts of the module that is launched, and of `module` itself; with times on a GPU.

    A module without replayed passes (another backend, or a GPU without a device) counts as it is.
    """
    target = identity.backend.value
    if target in TARGETS:
        target = target_by_flags(target, identity.replayed, identity.flags)
    release = release_of(identity.replayed)
    if target not in TARGETS or not TARGETS[target].needs_device:
        device = None
    as_it_is, measured = account_on(module, device, target, release), measured_of(module)
    if not identity.is_replayed or target not in TARGETS:
        return as_it_is, as_it_is
    if identity.stage.value == "scheduled":
        final = account_on(module, device, target, release, is_final=True)
        return final, final
    if device is None and TARGETS[target].needs_device:
        return as_it_is, as_it_is
    if identity.stage.value == "before-optimizations":
        module = lower_to_fusion_input(module, target, device, flags=identity.flags).module
    if identity.stage.value == "after-fusion":
        module = finish(module, target, device, flags=identity.flags).module
    else:
        module = replay(
            module, replay_config(target, device, xla=identity.replayed, xla_flags=identity.flags)
        ).final.module
    if measured is not None:
        attach(module, measured.profile)
    return account_on(module, device, target, release, is_final=True), as_it_is


def account_on(
    module: Module, device: DeviceDescription | None, backend: str, release: Release, is_final: bool = False
) -> Account:
    """The account of a module as it is, with times where there is a device."""
    if device is not None:
        return KernelTimes(device, release).account(module, is_final=is_final)
    return Account(module, backend=backend, is_final=is_final)
