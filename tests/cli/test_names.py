"""The same thing has the same name in every verb and public function; former names are refused with the new one."""

from __future__ import annotations

import inspect

import pytest

import xswe
from xswe.cli.help import settings
from xswe.cli.main import main
from xswe.cli.verbs import VERBS
from xswe.errors import ConfigError
from xswe.face import FORMER, spelling

FUNCTIONS = {name: getattr(xswe, name) for name in dir(xswe) if inspect.isfunction(getattr(xswe, name))}
PARAMETERS = {name: inspect.signature(call).parameters for name, call in FUNCTIONS.items()}
# What a text or a bitext is never called, and a side of one.
_OTHER_NAMES = {"passages", "documents", "texts", "sentences", "bitext", "given", "path", "file", "files", "src", "tgt"}
_BESIDE = {"find_terms": {"bitext"}}  # beside the input: its other side, as evidence
_METHODS = {"verify_index"}  # that of an index
_INSIDE = {"score_pairs": "score", "filter_bitext": "filter", "make_ensemble": "ensemble", "export_model": "export"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_a_function_reads_is_called_input_or_source_and_target(name):
    names = set(PARAMETERS[name])
    assert not names & _OTHER_NAMES - _BESIDE.get(name, set())
    assert ("source" in names) == ("target" in names)


@pytest.mark.parametrize("verb", VERBS)
def test_what_a_verb_reads_is_called_input_or_source_and_target(verb):
    names = {one.name for one in settings(verb)}
    assert not names & _OTHER_NAMES
    assert ("source" in names) == ("target" in names)
    assert names == {spelling(name) for name in names}
    insides = {path.partition(":")[2] for path in VERBS[verb].calls.values()} - _METHODS
    for inside in insides if verb != "train" else ():  # what its function has, under the same name
        call = PARAMETERS[_INSIDE.get(inside, inside)]
        assert {"source", "target", "input"} & set(call) <= names


@pytest.mark.parametrize(("name", "former", "new"), [(name, *pair) for name, own in FORMER.items() for pair in own.items()])
def test_a_former_name_is_refused_with_the_new_one_in_python(name, former, new):
    call = FUNCTIONS[_INSIDE.get(name, name)]
    assert new in inspect.signature(call).parameters
    assert former not in inspect.signature(call).parameters
    with pytest.raises(ConfigError, match=f"{former}= is now {new}="):
        call(**{former: "a"})


@pytest.mark.parametrize(
    ("verb", "former", "new"),
    [
        (verb, *pair)
        for verb, spec in VERBS.items()
        for path in spec.calls.values()
        for pair in FORMER.get(path.partition(":")[2], {}).items()
        if verb != "train"  # whose bitext is a group's: corpus.paths
    ],
)
def test_a_former_name_is_refused_with_the_new_one_at_the_prompt(verb, former, new, capsys):
    assert main([verb, f"{former}=a"]) == 2
    assert f"{former}= is now {new}=" in capsys.readouterr().err
