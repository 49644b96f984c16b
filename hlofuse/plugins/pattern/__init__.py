"""Patterns: small HLO texts with holes, and finding them in a graph."""

from hlofuse.plugins.pattern.find import Match, find_matches, is_copied
from hlofuse.plugins.pattern.match import Matcher
from hlofuse.plugins.pattern.nodes import Pattern
from hlofuse.plugins.pattern.parse import parse_pattern

__all__ = ["Match", "Matcher", "Pattern", "find_matches", "is_copied", "parse_pattern"]
