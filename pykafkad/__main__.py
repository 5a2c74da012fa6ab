"""`python -m pykafkad` is the program `pykafkad`."""

from __future__ import annotations

import sys

from pykafkad.cli import main

if __name__ == "__main__":
    sys.exit(main())
