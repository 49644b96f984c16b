"""Formatting of text output: safe text, units, Markdown tables. No dependencies."""

from .escape import command_line, printable, shorten
from .fields import fields, us_json
from .units import (
    broken,
    bytes_text,
    change_percent,
    enumeration,
    listing,
    memory_text,
    more,
    plural,
    quantity,
    ranges,
    signed,
    times,
    undivided,
    us_text,
)
