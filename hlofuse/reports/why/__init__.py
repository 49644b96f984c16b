"""`why`: the decisions about one instruction, or about a pair of them."""

from .model import Decision, PairAnswer, Story
