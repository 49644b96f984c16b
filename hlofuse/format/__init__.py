"""Formatting of text output: safe text, units, Markdown tables. No dependencies."""

from .escape import printable as printable
from .escape import shorten as shorten
from .fields import fields as fields
from .fields import us_json as us_json
from .units import broken as broken
from .units import bytes_text as bytes_text
from .units import change_percent as change_percent
from .units import enumeration as enumeration
from .units import listing as listing
from .units import memory_text as memory_text
from .units import more as more
from .units import plural as plural
from .units import quantity as quantity
from .units import ranges as ranges
from .units import signed as signed
from .units import times as times
from .units import undivided as undivided
from .units import us_text as us_text
