"""Stochastic downstream effects: what the world adds after the subject has acted.

An effect acts on the value reached, x + c, by adding, setting or multiplying; then it may be rounded and clipped.
What it amounts to, ε, is never rejected: that would change its law. Effects are drawn in the order of their
parents, and draws that several share are named: latent.
"""

from budge.effects.declared import Effect, Latent, in_order
from budge.effects.drawing import draw_effects
from budge.effects.problems import effect_problems

__all__ = ["Effect", "Latent", "draw_effects", "effect_problems", "in_order"]
