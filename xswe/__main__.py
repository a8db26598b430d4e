"""``python -m xswe <verb> key=value …``."""

from __future__ import annotations

import sys

from xswe.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
