"""XLA's model of how long a kernel runs on a GPU, as jaxlib 0.11.1 has it (`xla/service/gpu/model`)."""

from hlofuse.cost.gpu.device import DeviceDescription, device_names, load_device
from hlofuse.cost.gpu.estimate import Estimate
from hlofuse.cost.gpu.model import KernelModel

__all__ = ["DeviceDescription", "Estimate", "KernelModel", "device_names", "load_device"]
