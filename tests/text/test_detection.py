"""Texts in another language than they should be."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from xswe.corpus.bitext import CorpusConfig, content_settings, corpus_files
from xswe.corpus.cleaning import CleanConfig
from xswe.corpus.convert import convert
from xswe.corpus.monolingual import load_sentences, sentence_files
from xswe.errors import ConfigError, DependencyError
from xswe.text import detection
from xswe.text.detection import in_other_language
from xswe.text.languages import LANGUAGES, Language

OWN = {
    "en": ["The cat is sleeping on the sofa.", "We signed the contract yesterday.", "Where is the station, please?"],
    "de": ["Die Katze schläft auf dem Sofa.", "Wir haben gestern den Vertrag unterschrieben.", "Wo ist der Bahnhof?"],
    "zh": ["猫在沙发上睡觉。", "我们昨天签了合同。", "请问车站在哪里？"],
    "ja": ["猫がソファで寝ています。", "昨日、契約書に署名しました。", "駅はどこですか。", "興福寺大乗院"],
}
FOREIGN = ["Le chat dort sur le canapé du salon.", "El gato duerme en el sofá.", "Кошка спит на диване.", "고양이가 잔다."]
WEB = CleanConfig(language="lingua")


@pytest.fixture(autouse=True)
def library():
    pytest.importorskip("lingua")


@pytest.mark.parametrize("language", sorted(OWN))
def test_ones_own_language_stays_and_others_go(language):
    others = [text for code, texts in OWN.items() if code != language for text in texts[:3]] + FOREIGN
    assert not in_other_language(OWN[language], language).any()
    assert in_other_language(others, language).all()
    assert in_other_language([], language).shape == (0,)


def test_what_is_in_no_language_stays():
    assert not in_other_language(["", "12.5 %", "?!", "2020-01-01"], "en").any()


def test_threads_change_nothing():
    texts = [text for one in OWN.values() for text in one] + FOREIGN + ["", "OK", "Hallo Tom"]
    for language in OWN:
        np.testing.assert_array_equal(in_other_language(texts, language), in_other_language(texts, language, threads=2))


def test_a_language_that_the_library_does_not_know_is_refused_and_others_are_told(monkeypatch):
    monkeypatch.setitem(LANGUAGES, "km", Language("km", "Khmer", "khmer", "khm", "khm-Khmr"))
    detection._lingua.cache_clear()
    assert not in_other_language(OWN["en"], "en").any()
    with pytest.raises(ConfigError, match="the library does not know Khmer"):
        in_other_language(OWN["en"], "km")
    detection._lingua.cache_clear()


class Named:
    """A detector that gives every text the same probabilities, and notes how it was asked."""

    def __init__(self, **probabilities):
        ranked = sorted(probabilities.items(), key=lambda item: -item[1])
        self.values = [SimpleNamespace(language=code, value=value) for code, value in ranked]
        self.asked = []

    def compute_language_confidence_values(self, text):
        self.asked.append("one")
        return self.values

    def compute_language_confidence_values_in_parallel(self, texts):
        self.asked.append("all")
        return [self.values for _ in texts]


HAN = "漢" * 12


@pytest.mark.parametrize(
    ("language", "probabilities", "text", "is_other"),
    [
        ("en", {"fr": 0.1, "en": 0.0}, "a", True),  # by a tenth
        ("en", {"fr": 0.1, "en": 0.001}, "a", False),
        ("en", {"en": 0.9, "fr": 0.1}, "a", False),
        ("ja", {"zh": 0.9, "ja": 0.1}, HAN, False),  # a title, perhaps
        ("ja", {"zh": 0.9, "ja": 0.1}, HAN + "漢", True),
        ("ja", {"zh": 0.9, "ja": 0.1}, "漢の", True),
        ("ja", {"zh": 0.9, "ja": 0.1}, "漢。", True),
        ("ja", {"fr": 0.9, "ja": 0.1, "zh": 0.0}, HAN, True),
        ("zh", {"ja": 0.9, "zh": 0.1}, HAN, True),
        ("ja", {"zh": 0.5, "ja": 0.45}, HAN + "漢。", False),
    ],
)
def test_another_language_must_be_likelier_by_a_tenth(monkeypatch, language, probabilities, text, is_other):
    found = Named(**probabilities)
    monkeypatch.setattr(detection, "_lingua", lambda: (found, {code: code for code in OWN}))
    assert in_other_language([text, text], language).tolist() == [is_other] * 2
    assert in_other_language([text], language, threads=2).tolist() == [is_other]
    assert found.asked == ["one", "one", "all"]


def pairs(folder, config, name, threads=1):
    files = corpus_files(config, [("en", "ja")])[("en", "ja")]
    bitext, report = convert(files, ("en", "ja"), config, folder / name, threads=threads)
    return list(zip(bitext.source, bitext.target, strict=True)), report


def test_pairs_with_a_side_in_another_language_are_dropped_and_counted(tmp_path):
    good = list(zip(OWN["en"], OWN["ja"], strict=False))
    bad = [(FOREIGN[0], OWN["ja"][0]), (OWN["en"][0], OWN["zh"][0]), ("", "x")]
    lines = "".join(f"{a}\t{b}\n" for a, b in [*good, *bad])
    (tmp_path / "a.tsv").write_text(lines, encoding="utf-8")
    config = CorpusConfig(paths=[str(tmp_path / "a.tsv")], clean=WEB)
    kept, report = pairs(tmp_path, config, "out")
    assert kept == good
    assert report.dropped == {"blank": 1, "other language": 2}
    assert pairs(tmp_path, config, "again", threads=2)[0] == good
    arrays = [sorted((p.name, p.read_bytes()) for p in (tmp_path / name).glob("*.npy")) for name in ("out", "again")]
    assert arrays[0] == arrays[1]


def test_sentences_of_one_language_too(tmp_path):
    (tmp_path / "a.txt").write_text("\n".join([*OWN["de"], *FOREIGN]), encoding="utf-8")
    config = CorpusConfig(paths=[str(tmp_path / "a.txt")], clean=WEB)
    sentences, report = load_sentences(config, "de", sentence_files(config, "de"))
    assert list(sentences.source) == OWN["de"]
    assert (report["kept"], report["dropped"]) == (3, {"other language": 4})


def test_the_setting_counts_only_where_it_decides():
    assert content_settings(CorpusConfig())["clean"].keys() == vars(CleanConfig()).keys() - {"language"}
    assert content_settings(CorpusConfig(clean=WEB)) != content_settings(CorpusConfig())
    with pytest.raises(ConfigError, match=r"corpus\.clean\.language='fasttext'"):
        CleanConfig(language="fasttext")


def test_without_the_library(monkeypatch):
    detection._lingua.cache_clear()
    monkeypatch.setitem(sys.modules, "lingua", None)
    with pytest.raises(DependencyError, match=r"xswe\[languages\]"):
        content_settings(CorpusConfig(clean=WEB))
