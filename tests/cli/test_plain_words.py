"""Words that are read without Hydra mean what they mean with it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cli import verbs
from xswe.cli.main import quoted
from xswe.cli.settings import composed_defaults, names, simple
from xswe.cli.verbs import VERBS

TOKENS = [
    "true",
    "null",
    "inf",
    "nan",
    "1e5",
    "1_0",
    "-",
    "+",
    "1",
    ".5",
    "5.",
    "01",
    "0x1",
    "a",
    "a b",
    "日",
    "é",
    "３",
    " ",
    ",",
]
TOKENS += [
    "???",
    "~",
    "/",
    ":",
    "=",
    "[",
    "]",
    "{",
    "'",
    '"',
    "\\",
    "(",
    "${a}",
    "$",
    "*",
    "@",
    "?",
    "|",
    "#",
    "%",
    "\t",
    "ON",
]
NAMED = ["encode", "model=mini", "input=a", "output=o"]
CASES = [
    [],
    *(["dtype=int8", f"threads={value}"] for value in ("1", "null", "01", "1.0", "-1", "+3", "1_0", "1e3", ".5", "a")),
    *(
        [f"input={value}"]
        for value in ("1984", "1.50", "true", "null", "日本.txt", "late train", "a=b", "a,b", "[a,1]", "[a, b]")
    ),
    *(
        [f"input={value}"]
        for value in ("", "[]", "[日本,a]", "'a,b'", '"x"', "~/a", "${output}", "a\\,b", "{a:b}", "s3://b/*.gz")
    ),
    ["threads=1", "threads=2"],
    ["execution.kind=array", "execution.index=0"],
    ["execution=ray"],
    ["split=TRUE", "language=de"],
]


def by_hydra(verb, words):
    return verbs.by_hydra(verb, *quoted(words, names(verb)))


def changed_by_hydra(verb, needed, words):
    """The settings that Hydra composes of the needed words, changed by further ones as its grammar reads these."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from omegaconf import OmegaConf

    from xswe.cli import compose

    config = OmegaConf.create(by_hydra(verb, needed))
    for override in OverridesParser.create().parse_overrides(quoted(words, names(verb))):
        OmegaConf.update(config, override.key_or_group, override.value(), merge=False)
    return compose.plain(config)


@pytest.mark.parametrize("words", CASES, ids=" ".join)
def test_words_are_read_as_hydra_reads_them(words):
    found = simple("encode", [*NAMED[1:], *words])
    assert found is None or repr(found) == repr(changed_by_hydra("encode", NAMED[1:], words))


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("corpus", ["action=list"]),
        ("corpus", ["pair=de-zh", "corpus=ccmatrix", "corpus/clean=web", "corpus.clean.ratio=3", "output=a"]),
        ("corpus", ["corpus.limit=5", "corpus=sample", "pair=ja", "threads=1"]),
        ("import", ["pair=en-de-ja", "input=[a.vec,b.vec]", "output=o"]),
        ("import", ["input=a.vec", "output=o"]),
    ],
)
def test_choices_of_groups_are_made_as_hydra_makes_them(verb, words):
    assert simple(verb, words) == by_hydra(verb, words)


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("corpus", ["pair=en-fr"]),
        ("corpus", ["pair=en-en"]),
        ("corpus", ["corpus=nope"]),
        ("corpus", ["corpus=xswe_data"]),  # of an environment variable
        ("corpus", ["corpus={limit:3}"]),
        ("corpus", ["execution=ray"]),
        ("corpus", ["--config-dir=a"]),
        ("train", ["pair=en-de"]),  # of recipes, which make further choices
    ],
)
def test_other_choices_are_left_to_hydra(verb, words):
    assert simple(verb, words) is None


def test_most_commands_need_no_hydra():
    read = [words for words in CASES if simple("encode", [*NAMED[1:], *words]) is not None]
    assert len(read) > len(CASES) / 2
    assert simple("encode", ["model=mini", "input=a"]) is None  # which Hydra's way complains of
    assert simple("encode", [*NAMED[1:], "modl=a"]) is None


@settings(deadline=None, max_examples=25)
@given(st.lists(st.sampled_from(TOKENS), max_size=4), st.booleans(), st.sampled_from(["input", "threads", "columns"]))
def test_any_value_is_read_as_hydra_reads_it_or_left_to_it(tokens, is_list, name):
    value = f"[{''.join(tokens)}]" if is_list else "".join(tokens)
    needed, word = ["model=mini", "source=a", "output=o", "target=b"], f"{name}={value}"
    if (found := simple("mine", [*needed, word])) is not None:
        assert repr(found) == repr(changed_by_hydra("mine", needed, [word]))


def test_a_plain_command_does_not_import_hydra(tmp_path):
    (tmp_path / "a.txt").write_text("A cat sleeps.\n", "utf-8")
    program = "import sys; from xswe.cli.main import main; main(sys.argv[1:])\n"
    program += "assert not {'hydra', 'omegaconf'} & set(sys.modules)"
    words = ["encode", "model=mini", "input=a.txt", "output=a.npy", "threads=1"]
    done = subprocess.run([sys.executable, "-c", program, *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("verb", VERBS)
def test_the_table_of_verbs_repeats_no_default_of_a_function(verb):
    spec = VERBS[verb]
    for name, value in spec.usual.items():
        VERBS[verb] = type(spec)(**{**vars(spec), "usual": {k: v for k, v in spec.usual.items() if k != name}})
        try:
            assert composed_defaults(verb)[name] != value, name
        finally:
            VERBS[verb] = spec


def test_lists_are_read_as_texts_or_numbers():
    assert simple("evaluate", ["model=mini", "tasks=[]"])["tasks"] == []
    assert simple("evaluate", ["model=mini", "tasks=[a,1984,true]"])["tasks"] == ["a", "1984", "true"]
    assert simple("evaluate", ["model=mini", "tasks=1984"])["tasks"] == "1984"
    assert simple("mine", ["columns=[0,2]", "model=mini", "output=c"])["columns"] == [0, 2]
    assert simple("evaluate", ["model=mini", "tasks=[a,]"]) is None


@pytest.mark.parametrize(
    "word",
    ["nope=1", "threshold", "execution=ray", "execution.nope=1", "nope.kind=1", "threshold.kind=1", "output=???"],
)
def test_words_that_are_no_settings_are_left_to_hydra(word):
    given = ["input=a", "output=b", "model=mini"]
    assert simple("dedup", given) is not None
    assert simple("dedup", [*given, word]) is None


def test_settings_of_sections_and_names_are_read():
    found = simple("dedup", ["input=1984", "output=b", "execution.kind=array", "execution.index=0", "threshold=0.5"])
    assert (found["input"], found["threshold"], found["execution"]["kind"], found["execution"]["index"]) == (
        "1984",
        0.5,
        "array",
        0,
    )
    assert {"input", "output", "model", "rejects"} <= names("dedup")
    assert not {"threshold", "threads", "execution", "column"} & names("dedup")
