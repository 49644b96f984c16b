"""One instruction through every pass of a dump directory."""

from .follow import follow
