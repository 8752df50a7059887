"""Will predictions change, how much, how often: responsiveness verification with exact guarantees."""

from budge import constraints, errors
from budge.effects import Effect, Latent
from budge.features import Feature
from budge.interaction import InteractionModel

__version__ = "0.1.0.dev0"

__all__ = ["Effect", "Feature", "InteractionModel", "Latent", "__version__", "constraints", "errors"]
