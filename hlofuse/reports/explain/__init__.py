"""What a replay means to a user: explanations, the story of one instruction, figures of a module.

The model of explanations is imported when it is first asked for: who wants figures only needs nothing of it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hlofuse.reports.explain.model import Explanation

__all__ = ["Explanation"]


def __getattr__(name: str) -> object:
    if name == "Explanation":
        from hlofuse.reports.explain.model import Explanation

        return Explanation
    raise AttributeError(name)
