"""Every verb in one process: killed, a full disk, damaged files, other settings and versions, two at once.

One verb has all faults. All others are killed, and what they left is cut off; what an
interrupt does to them is in ``tests/cli/test_interrupted.py``. ``eval/experiments/local_faults.py`` goes
through the rest.
"""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from tests.conftest import EVAL, eval_script
from xswe.cli.verbs import VERBS

script = eval_script("experiments.local_faults")
ALL = "filter"
MOUNTED = ("disk full", "read only")  # which only root can arrange
EVERY = [fault for fault in script.FAULTS if fault not in MOUNTED or os.geteuid() == 0]


PROGRAM = """import json, sys
from eval.experiments.local_faults import trials
json.dump(list(trials(*json.loads(sys.argv[1]), 1, 0)), sys.stdout)
"""


def outcomes(python, verbs, faults):
    """Return what came of each fault of each verb, once; of one process, as all its forks use what it has loaded."""
    command = [python / "python", "-c", PROGRAM, json.dumps([verbs, faults])]
    done = subprocess.run(command, cwd=EVAL.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert len(rows) == len(verbs) * len(faults)
    return rows


def problems(rows):
    return [f"{row['fault']}: {problem}" for row in rows for problem in row["problems"]]


@pytest.mark.slow
def test_whatever_happens_to_one_verb_leaves_the_right_bytes_or_one_clear_error(warm_python):
    assert not problems(outcomes(warm_python, [ALL], EVERY))


@pytest.fixture(scope="module")
def others(warm_python):
    return outcomes(warm_python, [verb for verb in script.CASES if verb != ALL], ["cut off"])


@pytest.mark.slow
@pytest.mark.parametrize("verb", [verb for verb in script.CASES if verb != ALL])
def test_a_fault_of_any_other_leaves_the_right_bytes_or_one_clear_error(verb, others):
    assert not problems([row for row in others if row["verb"] == verb])


def test_every_verb_is_in_the_table_of_faults():
    tried = {case.words.split()[0] for case in script.CASES.values()}
    assert tried.isdisjoint(script.APART)
    assert tried | set(script.APART) == set(VERBS)
    modes = {word for case in script.CASES.values() for word in case.words.split() if word.startswith("mode=")}
    assert modes >= {f"mode={mode}" for mode in VERBS["mine"].calls if mode != "mine"}
