"""A language with blanks between its words needs an entry in the table of languages, and nothing else."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from xswe.alignment.terms import _well_formed
from xswe.bitext.checks import check_languages_of, detected_languages
from xswe.corpus.cleaning import _classes, _of_script
from xswe.errors import ConfigError
from xswe.io.ragged import Texts
from xswe.mining.verdicts import BitextFilter, PairFilter
from xswe.model.card import _examples
from xswe.model.static import StaticModel
from xswe.text.boundaries import has_rules, split_sentences, splitter
from xswe.text.languages import LANGUAGES, Language, languages_in_name
from xswe.text.languages.language import Abbreviations, word_set
from xswe.text.numbers import check_numbers_in_words
from xswe.text.scripts import in_script
from xswe.text.stopwords import passage_stopwords
from xswe.text.subwords import SubwordUnits
from xswe.text.tokenizers import train_subwords
from xswe.training.config import TrainConfig, check_settings

TEXTS = ["The cat is small.", "The dog is big.", "고양이는 작다.", "개는 크다.", "고양이는 크다."]


@pytest.fixture(autouse=True)
def korean(monkeypatch):
    monkeypatch.setitem(LANGUAGES, "ko", Language("ko", "Korean", "hangul", "kor", "kor-Hang"))


def test_its_script_tells_its_words():
    assert in_script("고양이는 작다", "ko")
    assert not in_script("cat", "ko")
    assert not in_script("猫は小さい", "ko")
    assert not in_script("고양이", "en")
    classes = _classes(Texts.of(["고양이는 K-pop 작다"]))
    assert [one.tolist() for one in _of_script(classes, "ko")] == [[6], [10]]
    assert [one.tolist() for one in _of_script(classes, "en")] == [[4], [10]]


def test_its_script_tells_its_side_of_a_bitext(monkeypatch, caplog):
    sides = ["The cat is small."] * 20, ["고양이는 작다."] * 20
    assert detected_languages(*sides) == ("en", "ko")
    check_languages_of("a.tsv", ("en", "ko"), *sides)
    monkeypatch.setitem(LANGUAGES, "qx", Language("qx", "Another", "hangul", "qxx", "qxx-Zyyy"))  # in the same script
    check_languages_of("a.tsv", ("en", "ko"), *sides)
    assert detected_languages(*sides) == ()
    assert not caplog.messages


def test_a_model_encodes_it_and_lists_its_words():
    units = SubwordUnits(train_subwords(TEXTS * 20, ("en", "ko"), 60), "subwords", ("en", "ko"))
    model = StaticModel(units, np.eye(len(units.tokens), 64, dtype=np.float32))
    assert model.encode(TEXTS).any(axis=1).all()
    korean = model.words("ko")
    assert korean
    assert not set(korean) & set(model.words("en"))
    assert _examples(("ko",)) == '["…"]'


def test_its_words_end_no_term_of_other_languages(monkeypatch):
    """``fine`` and ``time`` of a further language are nouns of English."""
    own = {"boundary_stopwords": frozenset(("fine",)), "general": frozenset(("time",)), "pronouns": frozenset(("hire",))}
    own |= {"leading": frozenset(("case",)), "homographs": frozenset(("fine",))}
    monkeypatch.setitem(LANGUAGES, "qx", Language("qx", "Another", "latin", "qxx", "qxx-Zyyy", **own))
    for term in ("fine", "parking fine", "time", "car hire", "case law"):
        assert [_well_formed(term, code) for code in ("en", "ja", "qx")] == [True, True, False]
    assert [_well_formed("last", code) for code in ("en", "ko", "ja", "de")] == [False, False, False, True]
    assert "fine" not in passage_stopwords("a fine", False, ("en", "qx"))  # "a" tells English
    assert "fine" in passage_stopwords("fine", False, ("en", "qx"))
    assert "fine" not in passage_stopwords("fine", False, ("en", "de"))


def test_that_its_numbers_in_words_are_unknown_is_said_once(caplog):
    check_numbers_in_words.cache_clear()
    for _ in range(2):
        PairFilter(None, BitextFilter(languages=("en", "ko"), numbers=True, method="cosine"), 1)
        PairFilter(None, BitextFilter(languages=("en", "de"), numbers=True, method="cosine"), 1)
    assert caplog.messages == ["in Korean, only numbers in digits are recognised, not in words"]


def test_a_code_that_is_an_english_word_names_no_language_of_a_file_but_after_a_period(monkeypatch):
    monkeypatch.setitem(LANGUAGES, "it", Language("it", "Italian", "latin", "ita", "ita-Latn"))
    languages_in_name.cache_clear()
    names = ("do-it.txt", "make_it.tsv", "it.txt", "manual.it.txt", "news.en-it.tsv", "news_ko.txt")
    assert [languages_in_name(name) for name in names] == [(), (), (), ("it",), ("en", "it"), ("ko",)]
    languages_in_name.cache_clear()


KOREAN = [
    "안녕하세요.",
    "저는 학생입니다.",
    '그는 "가자."라고 말했다.',
    "값은 3.5달러입니다!",
    "정말요?",
    "Dr. Kim이 왔다.",
    "1990년에 태어났다.",
]


def test_running_text_is_cut_by_general_rules_and_that_is_said_once(tmp_path, capsys):
    pytest.importorskip("sentencex")
    from xswe.__main__ import main
    from xswe.text import boundaries

    boundaries._rules_of.cache_clear()
    (tmp_path / "a.txt").write_text(" ".join(KOREAN) + "\n\n" + KOREAN[0] + "\n", encoding="utf-8")
    assert main(["split", f"input={tmp_path / 'a.txt'}", "language=ko", f"output={tmp_path / 'b.txt'}"]) == 0
    assert (tmp_path / "b.txt").read_text("utf-8").splitlines() == [*KOREAN, KOREAN[0]]
    assert split_sentences("가. 나.", "ko") == [(0, 2), (3, 5)]
    said = capsys.readouterr()
    assert "8 sentences in 2 paragraphs, by general rules: there are none for ko" in said.out
    assert said.err.count("no rules for sentence boundaries in Korean: using general ones") == 1
    assert has_rules("de")


@pytest.mark.parametrize(
    ("script", "marked"),
    [
        ("arabic", "مرحبا؟| نعم.| لا۔| هذا جيد."),
        ("ethiopic", "አማርኛ።| ሁለተኛ፧| ሦስተኛ።"),
        ("devanagari", "नमस्ते।| क्या?| हाँ॥| ठीक।"),
        ("khmer", "ខ្ញុំទៅ។| គាត់មក៕| ទេ។"),
        ("cyrillic", "Он пришёл.| «Она ушла!»| И всё.| Да."),
        ("latin", "Kom hit!| Dr. Berg kom kl. 5.| Nej."),
        ("hangul", "가。나！다？".replace("。", "。|").replace("！", "！|")),
    ],
)
def test_sentences_end_with_the_marks_of_any_script(monkeypatch, script, marked):
    pytest.importorskip("sentencex")
    monkeypatch.setitem(LANGUAGES, "qx", Language("qx", "Another", script, "qxx", "qxx-Zyyy"))
    text = marked.replace("|", "")
    assert [text[a:b] for a, b in split_sentences(text, "qx")] == [part.strip() for part in marked.split("|")]


@pytest.mark.parametrize(
    "marked",
    [
        "Fin etc.| Él vino.| Y etc.| ¿Qué hora es?| Vive con el Dr. Álvarez.| ¡Hola!|¿Ya?| Dijo «¿no?» y se fue.",
        "Konec!!| Škoda.| Bylo to dobré (velmi dobré).| Šel ve 2 hod. Žižkovem.| Je tu.|Čekal, a pak šel.",
        "Это др. Иванов.| Он спал!!| Она ушла.|Потом, всё.",
    ],
)
def test_sentences_of_an_added_language_begin_with_any_capital_letter(monkeypatch, marked):
    pytest.importorskip("sentencex")
    lists = ("Dr hod др", "", "etc", "", "Él Qué Он", "")
    own = Abbreviations(*(word_set(words) for words in lists))
    monkeypatch.setitem(LANGUAGES, "es", Language("es", "Another", "latin", "qxx", "qxx-Zyyy", abbreviations=own))
    text = marked.replace("|", "")
    assert [text[a:b] for a, b in split_sentences(text, "es")] == [part.strip() for part in marked.split("|")]


def test_other_abbreviations_are_another_way_to_split(monkeypatch):
    pytest.importorskip("sentencex")
    before = {code: splitter(code) for code in LANGUAGES}
    own = LANGUAGES["en"].abbreviations
    assert own is not None
    for one in fields(own):
        more = replace(own, **{one.name: getattr(own, one.name) | {"Xyz"}})
        monkeypatch.setitem(LANGUAGES, "en", replace(LANGUAGES["en"], abbreviations=more))
        assert [code for code in before if splitter(code) != before[code]] == ["en"]


def test_the_teacher_in_the_package_does_not_read_it(fake_teacher):
    fake_teacher.name = "mini"
    with pytest.raises(ConfigError, match="teacher=mini does not read ko: set teacher=none"):
        check_settings(TrainConfig(languages=("en", "ko")), fake_teacher, None)
