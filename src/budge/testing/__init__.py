"""What helps to test: the conformance suite for constraints of one's own, and random models.

``budge.testing.strategies`` holds the Hypothesis strategies; it alone needs Hypothesis.
"""

from budge.testing.candidates import random_candidates, random_start
from budge.testing.conformance import check_constraint

__all__ = ["check_constraint", "random_candidates", "random_start"]
