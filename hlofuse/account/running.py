"""The account of a module at any stage, by replaying the remaining passes."""

from hlofuse.account.account import Account
from hlofuse.account.measured import attach, measured_of
from hlofuse.account.replaying import KernelTimes, plain_account
from hlofuse.account.tpu import TpuAccount
from hlofuse.compilation import Compilation
from hlofuse.compilation.config import replay_config
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.graph import Module
from hlofuse.pipelines import TARGETS
from hlofuse.pipelines.identity import Identity
from hlofuse.pipelines.stage import Stage
from hlofuse.pipelines.targets import target_by_flags
from hlofuse.releases import Release, release_of


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
    if target == "tpu":
        name = identity.device.value if identity.device is not None else None
        found = TpuAccount(module, name, is_final=identity.shown.name is Stage.SCHEDULED)
        return found, found
    as_it_is, measured = account_on(module, device, target, release), measured_of(module)
    if not identity.is_replayed or target not in TARGETS:
        return as_it_is, as_it_is
    stage = identity.shown.name
    if stage is Stage.SCHEDULED:
        final = account_on(module, device, target, release, is_final=True)
        return final, final
    if device is None and TARGETS[target].needs_device:
        return as_it_is, as_it_is
    config = replay_config(target, device, xla=identity.replayed, xla_flags=identity.flags)
    module = Compilation.of(module, stage, config).final
    if measured is not None:
        attach(module, measured.profile)
    return account_on(module, device, target, release, is_final=True), as_it_is


def account_on(
    module: Module, device: DeviceDescription | None, backend: str, release: Release, is_final: bool = False
) -> Account:
    """The account of a module as it is, with times where there is a device."""
    if device is not None:
        return KernelTimes(device, release).account(module, is_final=is_final)
    return plain_account(module, backend, release, is_final=is_final)
