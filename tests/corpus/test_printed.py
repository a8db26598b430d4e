"""What is printed of cards, fetched and converted corpora, to the letter."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.bitext.test_blocks import moses_zip
from xswe.corpus import cards as catalogue
from xswe.corpus import convert as converting
from xswe.corpus.bitext import Bitext, CorpusConfig, CorpusReport
from xswe.corpus.cards import Card, Version, card_version, entries_of, find_card, sample_sentences
from xswe.corpus.convert import ConvertedCorpus, convert_corpus, fetch_corpora, list_corpora, show_corpora
from xswe.corpus.prepare import prepare_corpus
from xswe.errors import ConfigError
from xswe.io.ragged import Texts
from xswe.work.config import ExecutionConfig

EN_JA = ("en", "ja")
PAIRS = Version(
    "2",
    "moses-zip",
    pairs={"en-ja": "3 M", "de-en": None},
    codes={"ja": "jpn"},
    files=("{a}-{b}.zip",),
    urls=("https://a.org/{source}/{target}.zip", "https://b.org/{other}.zip"),
    columns={"a": 1, "b": 2},
)
HUB = Version("1", "hub", pairs={"en-ja": None}, repo="someone/pairs", config="en-{other}")
CARD = Card(
    "both",
    "Pairs of sentences. " * 6,
    "bitext",
    None,
    "CC BY 4.0",
    "most things",
    ("name the source", "no commercial use"),
    "Somebody, 2020",
    (PAIRS, HUB),
    ("its size",),
)
LINES = Card(
    "lines",
    "Text.",
    "monolingual",
    "https://c.org",
    "CC0",
    "anything",
    (),
    "none",
    (Version("7", "lines", languages=("en", "zh"), files=("{source}.txt",), urls=("https://c.org/{source}.txt",)),),
    (),
)
OWN = Card("local", "Your files.", "bitext", None, "yours", "what you may", (), "none", (), ())


@pytest.fixture
def known(monkeypatch):
    found = {card.name: card for card in (CARD, LINES, OWN)}
    for module in (catalogue, converting):
        monkeypatch.setattr(module, "cards", lambda: found)


def test_a_card_shows_what_it_says():
    wrapped = " ".join(["Pairs of sentences."] * 5), "Pairs of sentences."
    assert str(CARD).split("\n") == [
        "both (bitext)",
        *wrapped,
        "licence:  CC BY 4.0",
        "allows:   most things",
        "models:   name the source",
        "models:   no commercial use",
        "homepage: -",
        "cite:     Somebody, 2020",
        "version 2 (moses-zip): en-ja (3 M), de-en",
        "  https://a.org/{source}/{target}.zip",
        "  https://b.org/{other}.zip",
        "  columns: a 1, b 2",
        "version 1 (hub): en-ja",
        "  hub: someone/pairs en-{other}",
        "unchecked: its size",
    ]
    assert str(LINES).split("\n")[-3:] == ["cite:     none", "version 7 (lines): en, zh", "  https://c.org/{source}.txt"]
    assert CARD.terms == "CC BY 4.0 [name the source; no commercial use]"
    assert LINES.terms == "CC0"


def test_names_of_a_pair_are_the_cards_codes_in_both_orders():
    both = {"a": "en", "b": "jpn", "other": "jpn"}
    assert PAIRS.names(EN_JA) == both | {"source": "en", "target": "jpn"}
    assert PAIRS.names(("ja", "en")) == both | {"source": "jpn", "target": "en"}
    assert PAIRS.names(("de",)) == {"source": "de", "a": "de"}
    served = [one for one in (EN_JA, ("ja", "en"), ("en", "de"), ("de", "ja"), ("en",)) if PAIRS.serves(one)]
    assert served == [EN_JA, ("ja", "en"), ("en", "de")]
    assert LINES.versions[0].serves(("zh",))


def test_what_a_card_lacks_is_told_with_what_it_has(known):
    wrong = [
        (lambda: find_card("bth"), "unknown corpus 'bth': the cards are both, lines, local; python -m xswe corpus list"),
        (lambda: OWN.release(), "corpus local: nothing to fetch; give your own files, corpus.paths=[...]"),
        (lambda: CARD.release("3"), "corpus both has no version '3'; it has 2, 1"),
        (lambda: CARD.release_for(("de", "zh"), "1"), "corpus both 1 has no de-zh; it has en-ja"),
        (lambda: LINES.release_for(("de",)), "corpus lines 7 has no de; it has en, zh"),
        (
            lambda: card_version({"card": "both", "z": 1, "columns": 2}),
            "corpus.paths: 'columns' is no setting of a corpus card; they are card, version, min_score",
        ),
    ]
    for call, message in wrong:
        with pytest.raises(ConfigError) as caught:
            call()
        assert str(caught.value) == message
    assert CARD.release_for(EN_JA) is PAIRS
    assert CARD.release("1") is HUB


def test_entries_of_paths():
    assert entries_of("a.tsv", EN_JA) == ["a.tsv"]
    assert entries_of(None, EN_JA) == []
    assert entries_of(["a", "b"], EN_JA) == ["a", "b"]
    assert [entries_of({"en-ja": "a", "de-en": ["b"]}, pair) for pair in (EN_JA, ("de", "en"), ("en", "de"))] == [
        ["a"],
        ["b"],
        [],
    ]
    assert [card_version(entry) for entry in ({"card": "a"}, {"card": "a", "version": 1, "min_score": 2})] == [
        ("a", ""),
        ("a", "1"),
    ]


def test_the_sample_is_aligned_and_may_be_cut():
    whole, some = sample_sentences(), sample_sentences(2)
    assert {code: len(texts) for code, texts in whole.items()} == dict.fromkeys(("en", "de", "zh", "ja"), 1717)
    assert some == {code: texts[:2] for code, texts in whole.items()}


def test_all_cards_are_listed_with_their_licences(known):
    assert list_corpora().split("\n") == [
        "corpus  version  kind         pairs or languages",
        "------  -------  -----------  ------------------",
        "both          2  bitext       en-ja (3 M), de-en",
        "both          1  bitext       en-ja",
        "lines         7  monolingual  en, zh",
        "local         -  bitext       any",
        "",
        "licences, as their sources state them:",
        "both   CC BY 4.0 [name the source; no commercial use]",
        "lines  CC0",
        "",
        "python -m xswe corpus show corpus=ccmatrix",
    ]


def test_the_cards_that_a_configuration_names_are_shown(known):
    mapping = {"en": [{"card": "lines"}], "en-ja": [{"card": "both"}, "a.tsv", {"card": "lines"}]}
    for paths, shown in (([{"card": "both"}], [CARD]), (mapping, [LINES, CARD]), (["a.tsv"], [OWN])):
        assert show_corpora(CorpusConfig(paths=paths)) == "\n\n".join(map(str, shown))
    assert show_corpora(CorpusConfig(paths="sample")).startswith("name: sample\n")


def test_what_is_fetched_is_named_with_its_licence(known, tmp_path):
    for name, file in (("both", "en-jpn.zip"), ("lines", "en.txt")):
        (tmp_path / "downloads" / name).mkdir(parents=True)
        (tmp_path / "downloads" / name / file).touch()
    config = CorpusConfig(paths=[{"card": "both"}, "a.tsv"], cache=str(tmp_path), offline=True)
    terms = "licence: CC BY 4.0 [name the source; no commercial use]"
    assert fetch_corpora(config, EN_JA) == f"{tmp_path / 'downloads' / 'both' / 'en-jpn.zip'}\n{terms}"
    lines = dataclasses.replace(config, paths={"en": [{"card": "lines"}]})
    assert fetch_corpora(lines, ("en",)) == f"{tmp_path / 'downloads' / 'lines' / 'en.txt'}\nlicence: CC0"
    sample = fetch_corpora(CorpusConfig(paths="sample"), EN_JA).split("\n")
    assert (sample[0].endswith("corpora/sample/sentences.tsv"), sample[1:]) == (True, ["licence: CC0-1.0"])
    for paths, message in (
        ([{"card": "both", "version": "1"}], "corpus both 1 is read from the hub while it is converted"),
        (["a.tsv"], "name the corpus to fetch, as in  python -m xswe corpus fetch corpus=ccmatrix pair=en-ja"),
    ):
        with pytest.raises(ConfigError) as caught:
            fetch_corpora(dataclasses.replace(config, paths=paths), EN_JA)
        assert str(caught.value) == message


def test_a_report_adds_up_blocks():
    report = CorpusReport()
    report.add(7, np.array([0, 1, 14, 0, 1, 0, 2], np.uint8), {"NUL byte": 2})
    report.add(1400, np.concatenate([np.zeros(1300), np.full(100, 14)]).astype(np.uint8), {"NUL byte": 1})
    report.add(0, np.zeros(0, np.uint8), {})
    assert (report.read, report.kept) == (1407, 1303)
    assert report.dropped == {"blank": 2, "too long": 1, "hub": 101, "NUL byte": 3}
    counts = "1,407 pairs read, 1,303 kept{}; dropped: 3 NUL byte, 2 blank, 101 hub, 1 too long"
    assert report.summary() == counts.format("")
    assert report.summary(1303) == counts.format("")
    assert report.summary(1302) == counts.format(", of which corpus.limit draws 1,302")
    assert CorpusReport(1, 1).summary(what="sentences") == "1 sentences read, 1 kept; dropped: none"


def test_a_converted_corpus_says_what_became_of_its_pairs(tmp_path):
    (tmp_path / "a.npy").write_bytes(bytes(1_250_000))
    (tmp_path / "b.npy").write_bytes(bytes(1))
    bitext = Bitext(EN_JA, Texts.of(["a"] * 1303), Texts.of(["b"] * 1303))
    report = CorpusReport(1412, 1303, {"hub": 2, "blank": 2, "damaged archive": 1, "too long": 104})
    made = ConvertedCorpus(bitext, report, tmp_path, (CARD, LINES), 1302)
    text = str(made).split("\n")
    assert text == [
        "pairs            count",
        "---------------  -----",
        "read             1,412",
        "too long           104  a side of more characters than corpus.max_characters",
        "blank                2  a side without text",
        "hub                  2  a side that already occurs in corpus.clean.hubs pairs: boilerplate",
        "damaged archive      1  all that came after the damage",
        "kept             1,303",
        "",
        f"1,303 pairs, 1.3 MB: {tmp_path}",
        "corpus.limit: a training run draws 1,302 of them at random; all are converted",
        "licence: CC BY 4.0 [name the source; no commercial use]; cite: Somebody, 2020",
        "licence: CC0; cite: none",
    ]
    assert str(dataclasses.replace(made, limit=1303)).split("\n") == text[:-3] + text[-2:]


def test_a_corpus_of_a_card_is_converted_into_the_cache(known, tmp_path):
    (tmp_path / "downloads" / "both").mkdir(parents=True)
    files = {"source": "a\nb\n", "target": "あ\nい\n"}
    plain = dataclasses.replace(PAIRS, members={side: f"*.{code}" for side, code in zip(files, EN_JA, strict=True)})
    catalogue.cards()["both"] = dataclasses.replace(CARD, versions=(plain,))
    moses_zip(tmp_path / "downloads" / "both" / "en-jpn.zip", **files)
    config = CorpusConfig(paths=[{"card": "both"}], cache=str(tmp_path), offline=True, limit=1)
    made = convert_corpus(config, EN_JA, threads=1)
    assert (made.place.parent, made.cards, made.limit) == (tmp_path / "converted", (catalogue.cards()["both"],), 1)
    assert made.place.name.startswith("both.en-ja-")
    assert list(zip(made.bitext.source, made.bitext.target, strict=True)) == [("a", "あ"), ("b", "い")]
    for languages, threads, message in (
        (("en",), None, "a corpus has two languages, not 1: pair=en-ja"),
        (EN_JA, -1, "threads=-1: give at least 1, or null for all processors"),
        (EN_JA, True, "threads=True: give at least 1, or null for all processors"),
    ):
        with pytest.raises(ConfigError) as caught:
            convert_corpus(config, languages, threads=threads)
        assert str(caught.value) == message


def test_what_the_verb_does_by_its_action_and_output(known, tmp_path):
    (tmp_path / "a.tsv").write_text("a\tA\nb\tB\n", encoding="utf-8")
    own = CorpusConfig(paths=[str(tmp_path / "a.tsv")])
    assert prepare_corpus(action="list") == list_corpora()
    assert prepare_corpus(action="show", corpus=own) == str(OWN)
    with pytest.raises(ConfigError, match="name the corpus to fetch"):
        prepare_corpus(EN_JA, action="fetch", corpus=own)
    prepare_corpus(EN_JA, tmp_path / "b.jsonl", corpus=own)
    assert (tmp_path / "b.jsonl").read_text("utf-8").count("\n") == 2
    assert len(prepare_corpus(EN_JA, tmp_path / "made", corpus=own, threads=1).bitext) == 2
    for settings, message in (
        ({"output": "x.tmx"}, "output=x.tmx: files are converted to it; name them, as in corpus.paths=[a.tmx]"),
        (
            {"output": "x.tmx", "corpus": CorpusConfig(paths=["a.tsv", {"card": "both"}])},
            "output=x.tmx: files are converted to it; name them, as in corpus.paths=[a.tmx]",
        ),
        (
            {"output": "x.tmx", "corpus": dataclasses.replace(own, limit=3)},
            "corpus.limit does nothing with output=x.tmx, to which all pairs are written: leave it out",
        ),
        ({"action": "list", "output": "x"}, "output does nothing with list, which converts nothing: leave it out"),
        ({"action": "list", "output": "x.tmx"}, "output does nothing with list, which converts nothing: leave it out"),
        ({"action": "show", "threads": 1}, "threads does nothing with show, which converts nothing: leave it out"),
        (
            {"action": "fetch", "threads": 1, "execution": ExecutionConfig("array", 0, 2)},
            "execution.kind does nothing with fetch, which converts nothing: leave it out",
        ),
    ):
        with pytest.raises(ConfigError) as caught:
            prepare_corpus(EN_JA, **settings)
        assert str(caught.value) == message
