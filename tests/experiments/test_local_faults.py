"""Every verb in one process: killed, a full disk, damaged files, other settings and versions, two at once.

Of all verbs the faults that find most; one verb has all. ``eval/experiments/local_faults.py`` goes through the rest.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.conftest import EVAL, eval_script
from xswe.cli.verbs import VERBS

script = eval_script("experiments.local_faults")
ALL = ("filter",)
MOUNTED = ("disk full", "read only")  # which only root can arrange
FOR_ALL = ("killed", "cut off", "interrupted")


PROGRAM = """import json, sys
from eval.experiments.local_faults import trials
asked = json.loads(sys.argv[1])
json.dump([row for verbs, faults in asked for row in trials(verbs, faults, 1, 0)], sys.stdout)
"""


@pytest.fixture(scope="module")
def rows():
    """What came of each fault of each verb, once; of one process, as all its forks use what it has loaded."""
    every = [fault for fault in script.FAULTS if fault not in MOUNTED or os.geteuid() == 0]
    asked = [(ALL, every), ([verb for verb in script.CASES if verb not in ALL], FOR_ALL)]
    command = [sys.executable, "-c", PROGRAM, json.dumps(asked)]
    done = subprocess.run(command, cwd=EVAL.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("verb", script.CASES)
def test_a_fault_leaves_the_right_bytes_or_one_clear_error(verb, rows):
    own = [row for row in rows if row["verb"] == verb]
    assert len(own) >= len(FOR_ALL)
    assert not [row for row in own if row["problems"]]


def test_every_verb_is_in_the_table_of_faults():
    tried = {case.words.split()[0] for case in script.CASES.values()}
    assert tried.isdisjoint(script.APART)
    assert tried | set(script.APART) == set(VERBS)
    modes = {word for case in script.CASES.values() for word in case.words.split() if word.startswith("mode=")}
    assert modes >= {f"mode={mode}" for mode in VERBS["mine"].calls if mode != "mine"}
