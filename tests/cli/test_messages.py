"""What is said of wrong words, and of what a verb has done: the whole line."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from xswe.cli import main as module
from xswe.cli.main import _explain, _is_interrupt, _mistake, main
from xswe.cli.run import _bitext, _check_files, _summary, _write_report
from xswe.cli.settings import _NeedsHydra, _read, arguments, as_keys, check_shape, check_used, composed_defaults
from xswe.errors import ConfigError


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (
            "Could not find 'recipe/papr'\n\nAvailable options in 'recipe':\n\tpaper\n\tstatic\nConfig search path: x",
            "unknown recipe 'papr': choose one of paper, static",
        ),
        ("Could not find 'corpus/clean/no'", "unknown corpus/clean 'no': choose one of those in conf"),
        (
            "Could not find 'recipe/a,b'",
            "recipe=a,b names several: python -m xswe train -m runs them one after the other",
        ),
        (
            "Error parsing override 'output' missing EQUAL at '<EOF>'",
            "output: a setting is key=value, as in output=a.tsv; python -m xswe train --help lists them",
        ),
        (
            "token recognition error at: '[' See https://hydra.cc/docs/override_grammar/basic for details",
            "cannot parse a setting (token recognition error at: '['): quote names with brackets or commas within the "
            "quotes, as in \"tasks=['a [1].tsv',b.tsv]\"",
        ),
        (
            "Could not override 'refine.batch_siz'. Key is not in struct",
            "there is no setting 'refine.batch_siz'; did you mean refine.batch_size? "
            "python -m xswe train --help lists them",
        ),
        ("Could not override 'qqq'.", "there is no setting 'qqq'; python -m xswe train --help lists them"),
        ("other\n  words", "other words; see python -m xswe train --help"),
    ],
)
def test_a_message_of_hydra_is_told_in_one_line(message, said):
    assert _explain(ValueError(message), "train") == said


def test_an_unknown_pair_is_told_by_its_language():
    assert _explain(ValueError("Could not find 'pair/en-xx'"), "train").startswith("unknown language 'xx'")
    assert _explain(ValueError("Could not find 'pair/en-de'"), "train") == (
        "unknown pair 'en-de': choose one of those in conf"
    )


@pytest.mark.parametrize(
    ("verb", "argument", "said"),
    [
        ("dedup", "texts=a", "texts= is now input="),
        ("dedup", "+texts=a", "+texts= is now input="),
        ("dedup", "texts", ""),
        ("dedup", "--threshold", "--threshold: write threshold=…, without dashes"),
        ("train", "--keep-steps", "--keep-steps: write keep_steps=…, without dashes"),
        ("dedup", "--nothing", ""),
        (
            "dedup",
            "~threshold",
            "~threshold: a setting always has a value: threshold=…; python -m xswe dedup --help lists them",
        ),
        ("dedup", "~hydra/job_logging", ""),
        ("dedup", "threshold=1", ""),
    ],
)
def test_a_wrong_word_is_answered(verb, argument, said):
    assert _mistake(verb, argument) == said


def test_an_interrupt_may_be_hidden_in_an_error_of_a_library():
    assert _is_interrupt(KeyboardInterrupt())
    assert not _is_interrupt(ValueError())
    assert not _is_interrupt(None)
    outer, inner = ValueError(), RuntimeError()
    outer.__context__, inner.__context__ = inner, KeyboardInterrupt()
    assert _is_interrupt(outer)


@pytest.mark.parametrize(
    ("words", "status", "said", "stream"),
    [
        ([], 2, "usage: python -m xswe <verb> key=value ...", "err"),
        (["help"], 0, "usage: python -m xswe <verb> key=value ...", "out"),
        (["-h"], 0, "usage: python -m xswe <verb> key=value ...", "out"),
        (["help", "mine"], 0, "python -m xswe mine: ", "out"),
        (["mine", "-h"], 0, "python -m xswe mine: ", "out"),
        (["min"], 2, "xswe: unknown verb 'min': the verbs are ", "err"),
        (
            ["completion"],
            2,
            "xswe: completion for which shell: choose one of bash, zsh, fish, as in xswe completion bash",
            "err",
        ),
        (["--complete", "zsh", "ded"], 0, "dedup \n", "out"),
        (["-V"], 0, "0.", "out"),
    ],
)
def test_what_is_said_without_running_a_verb(capsys, words, status, said, stream):
    assert main(words) == status
    captured = capsys.readouterr()
    assert getattr(captured, stream).startswith(said)
    assert getattr(captured, "err" if stream == "out" else "out") == ""


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (ConfigError("drop=3: too many\nlines"), 2, "xswe: pca.drop=3: too many\nxswe: lines\n"),
        (BrokenPipeError(), 0, ""),
        (
            OSError(28, "No space left", "b.txt"),
            2,
            "xswe: b.txt: No space left; make room, and give the same command again\n",
        ),
        (OSError(13, "Permission denied"), 2, "xswe: a.tsv: Permission denied (HYDRA_FULL_ERROR=1 shows where)\n"),
    ],
)
def test_an_error_of_a_verb_is_told_with_its_keys(monkeypatch, capfd, error, status, said):
    def run(verb, values):
        raise error

    monkeypatch.setattr("xswe.cli.run.run", run)
    monkeypatch.setattr("xswe.cli.settings.check_shape", lambda verb, values: values)
    monkeypatch.setattr(module, "_hang_up", lambda: None)
    values = {"output": "a.tsv", "pca": {"drop": 3}}
    with pytest.raises(SystemExit) as ended:
        module._call("train", lambda: values, False, True)
    assert (ended.value.code, capfd.readouterr().err) == (status, said)
    if status:
        with pytest.raises(type(error)):
            module._call("train", lambda: values, True, True)


@pytest.mark.parametrize("output", ["-", "/dev/stdout", "a.tsv"])
def test_a_summary_does_not_mix_with_the_output(monkeypatch, capsys, output):
    monkeypatch.setattr("xswe.cli.run.run", lambda verb, values: "summary")
    monkeypatch.setattr("xswe.cli.settings.check_shape", lambda verb, values: values)
    module._call("train", lambda: {"output": output}, False, True)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == (("summary\n", "") if output == "a.tsv" else ("", "summary\n"))


def test_names_of_the_library_become_keys_where_they_are_one():
    values = {"drop": 1, "pca": {"dim": 3, "drop": 2, "size": 1}, "units": {"size": 4}}
    message = "dim=3, drop=2, size=1 and 'dim=3' of a.dim=3"
    assert as_keys(message, values) == "pca.dim=3, drop=2, size=1 and 'dim=3' of a.dim=3"
    skip = "a.txt:3: bad; fetch it again, or set on_error=skip to leave it out"
    assert as_keys(skip, {"on_error": "raise"}) == skip
    assert as_keys(skip, {"corpus": {"on_error": "raise"}}).endswith("corpus.on_error=skip to leave it out")
    assert as_keys(skip, {}) == "a.txt:3: bad; fetch it again"
    columns = "few; set columns=[…] (counted from 0), or on_error=skip to leave such lines out"
    assert as_keys(columns, {}) == "few; write the two texts, and a tab between, on each line"


def test_bitext_is_one_file_or_two():
    for given, found in (
        ({"input": "a", "source": None, "target": None}, ["a"]),
        ({"input": None, "source": "b", "target": "c"}, ["b", "c"]),
    ):
        assert _bitext(given, "x") == found
    for wrong in (
        {"input": None, "source": None, "target": None},
        {"input": None, "source": "b", "target": None},
        {"input": "a", "source": "b", "target": None},
        {"input": "a", "source": "b", "target": "c"},
    ):
        with pytest.raises(ConfigError, match=r"^x needs input= "):
            _bitext(wrong, "x")
    two = {"input": None, "source": "b", "target": "c"}
    assert _bitext(two | {"columns": [0, 1]}, "x") == ["b", "c"]
    with pytest.raises(ConfigError, match="columns does nothing without input="):
        _bitext(two | {"columns": [1, 2]}, "x")
    assert _bitext({"input": "a", "source": None, "target": None, "columns": [1, 2]}, "x") == ["a"]


@pytest.mark.parametrize(
    ("mode", "name", "only"),
    [("mine", "candidates", "negatives"), ("mine", "columns", "score and negatives"), ("score", "best", "mine")],
)
def test_settings_of_another_mode_are_refused(mode, name, only):
    usual = composed_defaults("mine")
    check_used("mine", mode, usual | {"hydra": {}, "mode": mode})
    with pytest.raises(ConfigError) as raised:
        check_used("mine", mode, usual | {name: "changed"})
    assert str(raised.value) == f"{name} does nothing with mode={mode}, only with mode={only}: leave it out"
    check_used("mine", "negatives", usual | {"candidates": 3})
    check_used("dedup", "", {"anything": 1})  # which has no modes


def test_a_report_is_checked_before_the_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.html").touch()
    (tmp_path / "de").touch()
    _check_files({"report": None, "input": "-", "output": "-"})
    _check_files({"output": "de", "languages": ["en", "de"], "language": "de", "pair": {"languages": ["en", "de"]}})
    _check_files({"report": "b.html", "input": "-", "output": "a.tsv"})
    for values, said in (
        ({"report": "b.pdf"}, "call it report.html"),
        ({"input": "-", "gold": "-"}, "^input=- gold=-: only one of them can be read from standard input$"),
        ({"report": "a.html", "queries": "a.html"}, "report=a.html: is also read"),
        ({"report": "b.html", "output": "b.html"}, "report=b.html: is the output, too"),
        ({"report": "b.html", "rejects": "./b.html"}, "report=b.html: is the rejects, too"),
    ):
        with pytest.raises(ConfigError, match=said):
            _check_files(values)


def test_a_summary_is_said_as_the_verb_says_it(tmp_path):
    class Result(list):
        def __str__(self):
            return "result"

    assert _summary("dedup", "", "text", {}, 1.0) == "text"
    assert _summary("dedup", "", Result([0] * 20), {"output": "a"}, 2.0) == "result\n2.0 s, 10 lines/s: a"
    (page := tmp_path / "a.html").write_bytes(bytes(1_250_000))
    assert _summary("report", "", page, {"output": str(page)}, 2.0) == f"report: {page} (1.2 MB)"
    good = Result([1])
    good.precision = "good"
    assert _summary("lexicon", "", good, {"output": "a"}, 2.0) == "result: a"
    good.summary = lambda: "own"
    assert _summary("lexicon", "", good, {"output": "a"}, 2.0) == "own: a"


def test_words_are_put_into_one_form_before_they_are_read(monkeypatch, capsys):
    monkeypatch.setattr(module, "_run_until_interrupted", lambda verb, rest: (verb, rest))
    for words, rest in (
        (["corpus", "list", "limit=1"], ["action=list", "limit=1"]),
        (["corpus"], []),
        (["corpus", "limit=1", "list"], ["limit=1", "list"]),
        (["mine", "list"], ["list"]),
        (["mine", "neighbors.method=neighbors"], ["neighbours.method=neighbors"]),
    ):
        assert main(words) == (words[0], rest)
    assert main(["--complete", "fish"]) == 0  # all verbs
    assert capsys.readouterr().out.splitlines()[0].startswith("train\t")
    assert main(["--complete", "bash", "xswe ded"]) == 0
    assert capsys.readouterr().out == "dedup \n"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["a=1", "-m", "b=2"], ["-m", "a=1", "b=2"]),
        (["a=1", "--multirun"], ["--multirun", "a=1"]),
        (["recipe=a", "distilled=b", "recipes=c"], ["recipe@_global_=a", "teacher@distilled=b", "recipes=c"]),
        (["hydra.run.dir=x"], ["hydra.run.dir=x", "hydra.output_subdir=.hydra"]),
        (["hydra.run.dir=x", "hydra.output_subdir=y"], ["hydra.run.dir=x", "hydra.output_subdir=y"]),
        (
            ["hydra.sweep.dir=x"],
            ["hydra.sweep.dir=x", "hydra.sweep.subdir=${hydra.job.num}", "hydra.output_subdir=.hydra"],
        ),
        (
            ["hydra.sweep.dir=x", "hydra.sweep.subdir=y"],
            ["hydra.sweep.dir=x", "hydra.sweep.subdir=y", "hydra.output_subdir=.hydra"],
        ),
    ],
)
def test_hydra_is_given_its_folders(words, found):
    from xswe.cli.compose import overrides

    assert overrides(words) == found


def test_a_report_is_given_the_settings_of_its_run(monkeypatch):
    written = []
    monkeypatch.setattr("xswe.report.write.shown_with", lambda result: {"settings", "model"})
    monkeypatch.setattr("xswe.report.write.write_report", lambda *given, **named: written.append((given, named)))
    values = {"report": "a.html", "k": 3, "pca": {"drop": 1}, "hydra": {"x": 1}}
    assert (
        _write_report(values, ["result"], "mini")
        == _write_report(values, ["result"], model := object())
        == "\nreport: a.html"
    )
    settings = {"of the run": {"report": "a.html", "k": 3}, "pca": {"drop": 1}}
    assert written == [((["result"], "a.html"), {"model": one, "settings": settings}) for one in (None, model)]
    assert _write_report(values | {"report": None}, ["result"]) == _write_report(values, "text") == ""
    assert len(written) == 2


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            {"data": "${oc.env:XSWE_NOWHERE}/x"},
            "data is in the folder of the variable XSWE_NOWHERE, which is not set: export XSWE_NOWHERE=DIR",
        ),
        ({"a": "???"}, "a is not set: give a=…"),
        ({"b": "???", "a": {"c": "???"}}, "a.c, b are not set: give a.c=… b=…"),
        ({"a": "${nope}"}, "Interpolation key 'nope' not found full_key: a object_type=dict"),
    ],
)
def test_a_setting_that_cannot_be_resolved_is_told(values, said):
    from omegaconf import OmegaConf

    from xswe.cli.compose import plain

    with pytest.raises(ConfigError) as raised:
        plain(OmegaConf.create(values))
    assert str(raised.value) == said


@pytest.mark.parametrize("is_several", [True, False])
def test_several_runs_lie_side_by_side_unless_each_has_its_output(monkeypatch, is_several):
    from hydra.types import RunMode
    from omegaconf import OmegaConf

    from xswe.cli import compose

    mode = SimpleNamespace(mode=RunMode.MULTIRUN if is_several else RunMode.RUN)
    monkeypatch.setattr(compose, "HydraConfig", SimpleNamespace(initialized=lambda: True, get=lambda: mode))
    given = {"output": "a", "side_by_side": False}
    assert compose.plain(OmegaConf.create(given)) == given | {"side_by_side": is_several}
    assert compose.plain(OmegaConf.create({"output": "a"})) == {"output": "a"}
    own = given | {"output": "${name}", "name": "b"}
    assert compose.plain(OmegaConf.create(own)) == {"output": "b", "name": "b", "side_by_side": False}


@pytest.mark.parametrize(
    ("word", "as_value", "as_text"),
    [
        ("", "", ""),
        ("true", True, "true"),
        ("NULL", None, None),
        ("12", 12, "12"),
        ("+3", 3, "+3"),
        ("-0.5", -0.5, "-0.5"),
        (".5", 0.5, ".5"),
        ("a.tsv", "a.tsv", "a.tsv"),
        ("a b", "a b", "a b"),
        ("日本.txt", "日本.txt", "日本.txt"),
    ],
)
def test_a_word_is_read_as_its_value_or_as_text(word, as_value, as_text):
    assert (_read(word, False), _read(word, True)) == (as_value, as_text)
    assert type(_read(word, False)) is type(as_value)
    if word in ("", "a b", "日本.txt"):  # not so within a list
        with pytest.raises(_NeedsHydra):
            _read(word, False, True)
    else:
        assert _read(word, False, True) == as_value


@pytest.mark.parametrize(
    "word", ["???", "007", "1e5", "1_000", "inf", "NaN", "1.", "a  b", " a", "a,b", "{a:1}", "'a'", "${a}"]
)
def test_other_words_are_left_to_hydra(word):
    with pytest.raises(_NeedsHydra):
        _read(word, False)


def test_settings_of_another_shape_are_refused_with_the_cure():
    usual = composed_defaults("filter") | {"model": "mini", "output": "a", "input": "b"}
    assert check_shape("filter", usual) == usual
    for changed, said in (
        ({"inptu": 1}, "there is no setting 'inptu'; did you mean input?"),
        ({"execution": "ray"}, "execution=ray: execution has settings of its own, execution.…=; --help lists them"),
        ({"output": ["a", "b"]}, "output=['a', 'b']: give one name, without brackets"),
        ({"input": ["a"]}, "input=['a']: give one name, without brackets; two aligned files are source= and target="),
        ({"output": None}, "output is not set: give output=…"),
    ):
        with pytest.raises(ConfigError) as raised:
            check_shape("filter", usual | changed)
        assert str(raised.value).startswith(said)
    chosen = "; a file chooses it by  defaults: [override /execution: ray, _self_]"
    with pytest.raises(ConfigError) as raised:
        check_shape("filter", usual | {"execution": "ray"})
    assert str(raised.value).endswith(chosen)
    listed = composed_defaults("evaluate") | {"model": {"a": 1}, "tasks": "tatoeba", "hydra": {}}
    assert check_shape("evaluate", listed)["tasks"] == ["tatoeba"]


def test_arguments_are_those_of_the_function_and_its_settings():
    usual = composed_defaults("mine") | {"model": "mini", "source": "a", "target": "b", "output": "c"}
    given = arguments("mine", "mine", usual | {"score": "auto", "neighbours": {"method": "exact"}, "threads": 3})
    assert (given["model"], given["source"], given["output"]) == ("mini", "a", "c")
    assert given["config"].neighbours.threads == 3
    assert given["config"].score == type(given["config"])().score
    assert arguments("mine", "mine", usual | {"score": "cosine"})["config"].score == "cosine"
    assert [arguments("mine", "mine", usual | {"report": one})["config"].evidence for one in (None, "a.html")] == [
        False,
        True,
    ]
    with pytest.raises(ConfigError, match=r"^mode=score needs output=…$"):
        arguments("mine", "score", usual | {"output": None, "input": ["a"]})
