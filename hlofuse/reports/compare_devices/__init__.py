"""`explain --compare-device`: one module on two devices."""

from hlofuse.reports.compare_devices.model import Comparison, compare_devices

__all__ = ["Comparison", "compare_devices"]
