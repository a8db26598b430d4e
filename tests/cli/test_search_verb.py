from __future__ import annotations

import io
import json
import re
import sys

import pytest

from tests.cli.verbs import command, composed, run_verb
from xswe.errors import ConfigError, InputError, ModelError


@pytest.fixture
def documents(tmp_path, monkeypatch):
    lines = ["Wir kaufen Brot.", "Der Zug nach Kyoto hat Verspätung.", "", "Eine Katze schläft auf dem Dach."]
    (tmp_path / "de.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    return tmp_path


def test_a_phrase_on_the_command_line_is_a_phrase_and_its_span_is_marked(documents):
    said = command("search", composed("search", "model=mini", "input=de.txt", "queries=late", "k=1"))
    assert said.split("  ")[1].startswith("Der Zug nach Kyoto")
    assert said.endswith("[Verspätung].")
    whole = command("search", composed("search", "model=mini", "input=de.txt", "queries=late", "k=1", "mark=false"))
    assert whole.endswith("  Der Zug nach Kyoto hat Verspätung.")


def test_an_index_that_is_kept_answers_without_model_or_documents(documents):
    (documents / "q.txt").write_text("a cat on the roof\n\nbread\n", encoding="utf-8")
    first = command("search", composed("search", "model=mini", "input=de.txt", "queries=q.txt", "index=kept", "k=1"))
    assert command("search", composed("search", "index=kept", "queries=q.txt", "k=1")) == first
    assert [part.split(":")[0] for part in first.split("\n\n")] == ["a cat on the roof", "bread"]
    command("search", composed("search", "index=kept", "queries=q.txt", "k=1", "output=a.json"))
    rows = json.loads((documents / "a.json").read_text(encoding="utf-8"))
    assert [(row["query"], row["row"]) for row in rows] == [("a cat on the roof", 3), ("bread", 0)]


def test_without_queries_a_terminal_is_asked(documents, monkeypatch, capsys):
    terminal = io.StringIO("bread\nnichts dergleichen\n\nnever read\n")
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stdin", terminal)
    assert command("search", composed("search", "model=mini", "input=de.txt", "k=1", "mark=false")) == ""
    said = capsys.readouterr().out
    assert said.startswith("Index(4 sentences, 256 dimensions, float32, exact)")
    assert "Wir kaufen Brot." in said
    assert said.count("> ") == 3


def test_an_index_is_verified_without_a_question(documents, capsys):
    command("search", composed("search", "model=mini", "input=de.txt", "queries=late", "index=kept"))
    said = command("search", composed("search", "index=kept", "mode=verify"))
    assert re.fullmatch(r"kept: 4 sentences and \d+ files are what was written", said)
    for name in ("codes.npy", "model/config.json"):
        data = bytearray((documents / "kept" / name).read_bytes())
        data[200] ^= 1
        (documents / "kept" / name).write_bytes(data)
    done = run_verb("search", "index=kept", "mode=verify", cwd=documents)
    assert done.returncode == 2
    assert [line.split(": ")[1] for line in done.stderr.splitlines()] == ["kept/codes.npy", "kept/model/config.json"]
    (documents / "kept" / "codes.npy").unlink()
    with pytest.raises(ModelError, match=r"kept/model/config.json: bytes 0 to"):
        command("search", composed("search", "index=kept", "queries=late"))


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        (["model=mini", "queries=late"], ConfigError, "give model= and input="),
        (["index=s3://bucket/x"], ConfigError, "^index=s3://bucket/x: only texts are read from remote storage"),
        (
            ["model=mini", "input=de.txt", "queries=absent.txt"],
            InputError,
            "no such file; give a text file, or a phrase",
        ),
        (["model=mini", "input=de.txt", "queries=late", "output=a.html"], ConfigError, "the suffix says the format"),
        (["index=kept", "input=other.txt", "queries=late"], ConfigError, "of another file"),
        (["mode=verify"], ConfigError, "^mode=verify needs index="),
        (["index=kept", "mode=verify", "k=3"], ConfigError, "k does nothing with mode=verify, only with mode=search"),
        (["index=absent", "mode=verify"], ModelError, "absent: no index"),
    ],
)
def test_mistakes_are_named(documents, words, error, message):
    (documents / "other.txt").write_text("Anderes\n", encoding="utf-8")
    if "index=kept" in words:
        command("search", composed("search", "model=mini", "input=de.txt", "queries=late", "index=kept"))
    with pytest.raises(error, match=message):
        command("search", composed("search", *words))
