"""Patterns: small HLO texts with holes, and finding them in a graph."""

from hlofuse.extending.pattern.find import Match, find_matches, is_copied
from hlofuse.extending.pattern.match import Matcher
from hlofuse.extending.pattern.nodes import Pattern
from hlofuse.extending.pattern.parse import parse_pattern

__all__ = ["Match", "Matcher", "Pattern", "find_matches", "is_copied", "parse_pattern"]
