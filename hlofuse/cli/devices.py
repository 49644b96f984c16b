"""`hlofuse devices`: the GPUs and TPUs whose numbers come with hlofuse."""

import click
from msgspec import to_builtins
from rich.console import Console

from hlofuse.cost.cpu.device import CHOICE, chosen_cpu, cpu_names
from hlofuse.cost.gpu.device import XLAS_OWN, DeviceDescription, device_names, load_device
from hlofuse.cost.tpu import TpuDevice, tpu_devices
from hlofuse.format.terminal import Rows
from .common.options import report_options
from .common.output import Output


@click.command("devices")
@click.argument("name", metavar="[DEVICE]", required=False)
@report_options
def command(name: str | None, out: Output) -> int:
    """List the GPUs that a replay can model and the TPUs; with DEVICE (a name or a file), all of its numbers.

    A file is TOML in the form of the built-in ones, or the text proto that XLA reads with
    --xla_gpu_target_config_filename. --set NAME=VALUE changes a single number."""
    names = [name] if name is not None else [*device_names(), *tpu_devices()]
    devices = {n: tpu_devices().get(n) or load_device(n) for n in names}
    out.report(
        text=lambda console: _print(devices, console) if name is None else _print_one(devices[name], console),
        json=lambda: {
            "schema": "hlofuse.devices/3",
            "devices": [{"device": n, **to_builtins(d)} for n, d in devices.items()],
        },
    )
    return 0


_FIGURES = ("cores", "bandwidth", "L2, VMEM")


def _row(name: str, device: DeviceDescription | TpuDevice) -> tuple[str, ...]:
    bandwidth = f"{device.memory_bandwidth / 1e9:.0f} GB/s"
    if isinstance(device, TpuDevice):
        return name, str(device.cores), bandwidth, f"{device.vmem_size / 2**20:.0f} MiB", device.kind
    major, minor = device.compute_capability
    architecture = f"sm_{major}{minor}" if major else device.gfx_version or device.platform
    cache = f"{device.l2_cache_size / 2**20:.0f} MiB"
    return name, str(device.core_count), bandwidth, cache, architecture


def _print(devices: dict[str, DeviceDescription | TpuDevice], console: Console) -> None:
    figures = [(figure, "right") for figure in _FIGURES]
    rows = Rows(("device", "name"), *figures, ("architecture", "name"))
    for name, device in devices.items():
        rows.add_row(*_row(name, device))
    rows.print(console, 0)
    for name, device in devices.items():
        if not isinstance(device, TpuDevice) and device.origin != XLAS_OWN:
            console.print(f"{name}: {device.origin}, not {XLAS_OWN}", style="dim")
    console.print("TPUs: published figures; hlofuse devices NAME has their sources", style="dim")
    console.print(f"CPUs: {CHOICE}={'|'.join(cpu_names())}, here {chosen_cpu().name}", style="dim")


def _print_one(device: DeviceDescription | TpuDevice, console: Console) -> None:
    for key, value in to_builtins(device).items():
        unit = ""
        if key.endswith("bandwidth") and value:
            unit = f" ({value / 1e9:,.0f} GB/s)"
        elif key.startswith(("l2_cache_size", "shared", "device_memory", "vmem")) and value >= 1024:
            unit = f" ({value / 1024:,.0f} KiB)" if value < 2**20 else f" ({value / 2**20:,.0f} MiB)"
        console.print(f"{key} = {value}{unit}", highlight=False, markup=False)
