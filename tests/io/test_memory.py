"""What the compiler takes to start is given back, and compiled code runs as before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

STEPS = """
import re
def resident():
    return int(re.search(r"RssFile:\\s+(\\d+)", open("/proc/self/status").read())[1]) >> 10
import numpy as np
from xswe.io import compiler as memory
before = resident()
memory._nothing()  # what every other function would start
started = resident()
memory.start_compiler()
left = resident()
assert memory.changes(np.zeros(1, np.int64), 1, 5)  # loaded after
assert not memory.changes(np.zeros(1, np.int64), 0, 5)
print(before, started, left)
"""


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="only Linux tells and takes back pages")
def test_the_compilers_pages_are_given_back():
    done = subprocess.run([sys.executable, "-c", STEPS], check=True, capture_output=True, text=True)
    before, started, left = map(int, done.stdout.split())
    assert started > before > left + 10
