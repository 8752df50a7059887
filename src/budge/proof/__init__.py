"""What a model's structure proves: that no action leads to the target, or what the least action is that does."""

from budge.proof.structure import Additive, Answer, Column, Structured, Trees, UnreadableError

__all__ = ["Additive", "Answer", "Column", "Structured", "Trees", "UnreadableError"]
