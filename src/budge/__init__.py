"""Will predictions change, how much, how often: responsiveness verification with exact guarantees."""

__version__ = "0.1.0.dev0"
