"""`explore`: every decision of a replay in one HTML file to step through."""

from hlofuse.account import Observed
from hlofuse.compilation import Compilation
from .collect import Fused, page_of
from .model import passes_of, sequence_of
from .page import page_html


def explore(replay: Compilation) -> str:
    """The page of `hlofuse explore`, as the text of an HTML file."""
    return page_html(page_of({"replay": Observed(replay, None)}))
