"""`explain`: what a replay decided, and what each decision is worth."""

from .model import Explanation
