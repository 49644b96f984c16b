"""`hlofuse upgrade`: one program by two releases of XLA."""

from hlofuse.reports.upgrade.model import Upgrade, upgrade

__all__ = ["Upgrade", "upgrade"]
