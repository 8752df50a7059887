"""A run that is interrupted or killed: ``engines_main.py folder engine``."""

from __future__ import annotations

import sys
from pathlib import Path

from engines_kit import Slow

from budge.audit.engines import run_blocks

if __name__ == "__main__":
    try:
        for _ in run_blocks(Slow(Path(sys.argv[1]), 60.0), range(8), n_jobs=2, engine=sys.argv[2]):
            pass
    except KeyboardInterrupt:
        sys.exit(130)
