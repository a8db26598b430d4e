"""Which script a text is in, and which language a file's name tells."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xswe.errors import ConfigError
from xswe.text.languages import LANGUAGES, base_language, check_languages, languages_in_name
from xswe.text.scripts import around_runs, cjk_runs, has_cjk, has_kana, in_script
from xswe.text.stopwords import spaced_language

MIXED = st.text("aé1 .д漢語かー々", max_size=8)


@given(MIXED)
def test_a_text_is_in_the_script_of_half_its_letters(text):
    letters = [one for one in text if one.isalpha()]
    latin = [one for one in letters if unicodedata.name(one).startswith("LATIN")]
    cjk = [one for one in text if one in "漢語かー々"]
    assert (has_cjk(text), has_kana(text)) == (bool(cjk), not {*text}.isdisjoint("かー"))
    half = len(letters) / 2
    for language in ("en", "de"):
        assert in_script(text, language) == (bool(letters) and len(latin) >= half)
    assert in_script(text, "ja") == (bool(cjk) and len(cjk) >= half)
    assert in_script(text, "zh") == (bool(cjk) and len(cjk) >= half and not has_kana(text))


@given(MIXED)
def test_runs_are_the_longest(text):
    runs, parts = cjk_runs(text), around_runs(text)
    assert "".join(parts) == text
    assert [part for part in parts if has_cjk(part)] == [text[start:end] for start, end in runs]
    assert all(parts)
    for start, end in runs:
        assert all(map(has_cjk, text[start:end]))
        assert not has_cjk(text[start - 1 : start] + text[end : end + 1])


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("a.en", ("en",)),
        ("en.txt", ("en",)),
        ("a-en.txt", ("en",)),
        ("a_de.txt", ("de",)),
        ("aen.txt", ()),
        ("a.en-de.tsv", ("en", "de")),
        ("en-de.ja.tsv", ("ja",)),  # the last
        ("a.fr.txt", ()),
        ("a.en-fr.txt", ()),
        ("", ()),
    ],
)
def test_the_name_of_a_file_tells_its_languages(name, codes):
    assert languages_in_name(name) == codes


def test_codes():
    assert [base_language(code) for code in ("en", "en-GB", "zh_Hant", " DE ")] == ["en", "en", "zh", "de"]
    assert check_languages(iter(["en", "ja"])) == ("en", "ja")
    known = ", ".join(f"{code} ({language.name})" for code, language in LANGUAGES.items())
    for codes, message in (
        (["xx", "en", "yy"], f"unknown language 'xx', 'yy': the known ones are {known}"),
        ([], f"languages=[]: name at least one language, each once, of {known}"),
        (["en", "en"], f"languages=['en', 'en']: name at least one language, each once, of {known}"),
    ):
        with pytest.raises(ConfigError) as caught:
            check_languages(codes)
        assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "language"),
    [("The cat of it", "en"), ("DER Hund", "de"), ("the der", ""), ("the der die", "de"), ("", ""), ("was war", "")],
)
def test_the_stopwords_of_a_text_tell_its_language(text, language):
    assert spaced_language(text) == language
