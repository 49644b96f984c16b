"""`explore`: every decision of a replay in one HTML file to step through."""

from hlofuse.explorer.collect import page_of
from hlofuse.explorer.page import page_html

__all__ = ["page_html", "page_of"]
