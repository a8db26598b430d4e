"""Every verb whose work others can do writes with each executor what it writes in one process."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from tests.conftest import eval_script
from xswe.__main__ import main
from xswe.cli.help import settings
from xswe.cli.verbs import VERBS
from xswe.work import run as run_module
from xswe.work.config import ExecutionConfig

pytest.importorskip("torch")
script = eval_script("experiments.local_faults")
SHARED = {verb for verb in VERBS if "execution" in {setting.name for setting in settings(verb)}}
NOT_SHARED = {"mine, scored", "mine, negatives", "train"}  # cases in which nothing is done in shards
CASES = [name for name, case in script.CASES.items() if case.words.split()[0] in SHARED and name not in NOT_SHARED]


def test_every_verb_that_others_can_work_for_has_a_case():
    assert {script.CASES[name].words.split()[0] for name in CASES} == SHARED


def words_of(task: ExecutionConfig) -> list[str]:
    own = {name: value for name, value in asdict(task).items() if value != getattr(ExecutionConfig, name)}
    return [f"execution.{name}={value}" for name, value in (own | {"shard": 20_000}).items()]


def run(case, folder, words, monkeypatch) -> str:
    monkeypatch.chdir(folder)
    assert main([*case.words.split(), *words]) == 0, words
    return case.content(folder)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What a verb writes in one process, once."""
    found: dict[str, str] = {}

    def content(name: str, monkeypatch: pytest.MonkeyPatch) -> str:
        if name not in found:
            script.write_inputs(folder := tmp_path_factory.mktemp("alone"))
            found[name] = run(script.CASES[name], folder, [], monkeypatch)
        return found[name]

    return content


@pytest.mark.parametrize("name", CASES)
def test_every_executor_writes_the_same_bytes(any_executor, name, alone, tmp_path, monkeypatch):
    case, done_by, go_through = script.CASES[name], [], run_module._go_through
    wanted = alone(name, monkeypatch)
    script.write_inputs(tmp_path)
    monkeypatch.setattr(run_module, "_go_through", lambda *given: done_by.append(given[2].kind) or go_through(*given))
    for task in any_executor.tasks * 9:
        found = run(case, tmp_path, words_of(task), monkeypatch)
        if found == wanted:
            break
    assert found == wanted
    assert any_executor.kind in done_by or any_executor.tasks[0].alone
    assert any_executor.tasks[0].has_peers or not [*tmp_path.glob("*.work")]
