"""What is given in a list is read like the lines of a file, or refused; a blank in a list of settings is refused."""

from __future__ import annotations

import dataclasses
import inspect
import re
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cli.test_records_counted import COMMANDS, add_odd_lines
from tests.cli.verbs import composed
from tests.conftest import eval_script
from xswe.cli.settings import arguments, check_shape, function
from xswe.cli.verbs import VERBS
from xswe.errors import ConfigError, XsweError
from xswe.io.settings import changed
from xswe.io.signatures import config_class, parts
from xswe.training.config import TrainConfig

script = eval_script("experiments.local_faults")
FIRST: dict[tuple[str, str], list[str]] = {}  # the first command of each mode
for words in [*COMMANDS.values(), *(case.words.split() for case in script.CASES.values())]:
    calls = VERBS[words[0]].calls
    FIRST.setdefault((words[0], next((one for one in calls if f"mode={one}" in words), next(iter(calls)))), words)


def name_of(one: str | tuple[str, str]) -> str:
    return one if isinstance(one, str) else " ".join(one).strip()


class Call(NamedTuple):
    """A verb's function, and what it is given."""

    function: Any
    given: dict[str, Any]

    def rows(self, **given: Any) -> Any:
        """Return the rows of a result, or what it prints, and the bytes of its output, if it has one."""
        shutil.rmtree("o", ignore_errors=True)  # an index
        result = self.function(**self.given | given)
        output = Path(str(self.given.get("output", "")))
        written = output.read_bytes() if output.is_file() else b""
        return list(map(repr, result.records())) if hasattr(result, "records") else str(result), written


@pytest.fixture
def call(request, tmp_path, monkeypatch):
    """The call of a command on files with odd lines."""
    verb, mode = request.param
    script.write_inputs(tmp_path)
    monkeypatch.chdir(tmp_path)
    for number, file in enumerate(tmp_path.glob("*.t*")):
        add_odd_lines(file, False, number % 2 == 1)
    call = function(VERBS[verb].calls[mode])
    values = check_shape(verb, composed(verb, *FIRST[verb, mode][1:]))
    given = arguments(verb, mode, values | ({"languages": values["pair"]["languages"]} if "pair" in values else {}))
    if "rejects" in given:  # a list is filtered in memory
        given.pop("output")
    return Call(call, given)


TEXTS = [
    (mode, word.partition("=")[0])
    for mode, words in FIRST.items()
    for word in words
    if word.endswith((".txt", ".tsv", ".en", ".de")) and word.partition("=")[0] not in ("output", "corpus.paths")
]


@pytest.mark.parametrize(("call", "name"), TEXTS, indirect=["call"], ids=name_of)
def test_texts_in_a_list_are_read_like_lines_or_refused(call, name):
    file = Path(call.given[name])
    rows = [tuple(line.split("\t")) for line in file.read_text("utf-8").split("\n")[:-1]]
    texts = rows if len(rows[0]) > 1 else [text for (text,) in rows]
    try:
        found = call.rows(**{name: texts})
    except (TypeError, XsweError) as error:
        refused = str(error)
    else:
        refused = ""
    assert found == call.rows() if not refused else re.search(rf"{name}.*: give ", refused)


LISTS = [  # of settings, and of names
    (mode, name)
    for mode in FIRST
    for name, kind, _, section in parts(function(VERBS[mode[0]].calls[mode[1]]))
    if ("tuple[str" in kind or "tuple[int" in kind or "Sequence[" in kind) and section is None
    if name not in ("input", "source", "target", "queries") or "Sequence[str | Path]" in kind
]


@pytest.mark.parametrize("blank", ["", " "])
@pytest.mark.parametrize(("call", "name"), LISTS, indirect=["call"], ids=name_of)
def test_a_blank_in_a_list_of_settings_is_refused(call, name, blank):
    given = call.given | {name: (blank, blank)}
    if name not in inspect.signature(call.function).parameters:
        given = call.given | {"config": dataclasses.replace(call.given["config"], **{name: ("en", blank)})}
    with pytest.raises((XsweError, TypeError), match=rf"{name}|unknown language"):
        call.function(**given)


@pytest.mark.parametrize(("verb", "mode"), [(verb, mode) for verb, spec in VERBS.items() for mode in spec.calls])
def test_a_blank_in_a_list_among_keywords_is_refused(verb, mode):
    cls = config_class(function(VERBS[verb].calls[mode]))
    for field in dataclasses.fields(cls) if cls and cls is not TrainConfig else ():
        if str(field.type).startswith("tuple["):
            with pytest.raises(ConfigError, match=rf"^{field.name}=\['a', ''\]: leave out the blank$"):
                changed(cls(), {field.name: ("a", "")}, verb)
