"""The notebooks run from top to bottom, through the public API alone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def cells(notebook: Path) -> list[str]:
    """The code of a notebook."""
    found = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in found if cell["cell_type"] == "code"]


@pytest.mark.parametrize("notebook", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_runs_and_imports_nothing_deep(notebook, tmp_path):
    for library in ("matplotlib", "scipy", "torch"):
        pytest.importorskip(library)
    code = "\n".join(cells(notebook))
    assert not re.search(r"from xswe|import xswe\.|xswe\.\w+\.", code)
    env = {**os.environ, "MPLBACKEND": "agg", "XSWE_PROGRESS": "0", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Katze" in done.stdout
    assert "mini" in (tmp_path / "scores.md").read_text(encoding="utf-8")
    assert (tmp_path / "cosines.png").stat().st_size > 5000
