"""What a replay means to a user: explanations, the story of one instruction, figures of a module."""

from hlofuse.explainer.explain import explain
from hlofuse.explainer.model import Explanation

__all__ = ["Explanation", "explain"]
