"""The language that a text is likely in, at the borders of its rules."""

from __future__ import annotations

import pytest

from xswe.text.detection import likely_language
from xswe.text.languages import LANGUAGES


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The cat is small.", "en"),
        ("Die Katze ist klein und grau.", "de"),
        ("Katze", ""),
        ("", ""),
        ("12.5 %", ""),
        ("the der", ""),  # a word of either
        ("the der of", "en"),
        ("The der das", "de"),
        ("猫が寝る", "ja"),
        ("猫が the cat", "en"),  # fewer letters of Han and Kana than others
        ("猫猫 ab", ""),
        ("猫。", "zh"),
        ("猫" * 12, ""),  # a longer Japanese text would have Kana
        ("猫" * 13, "zh"),
        ("猫" * 13 + "b" * 13, "zh"),  # half of the letters
        ("猫" * 13 + "b" * 14, ""),
        ("猫" * 13 + "b" * 14 + " the", "en"),
        ("猫" * 399 + "の", "ja"),
        ("猫" * 400 + "の", "zh"),  # the first 400 characters are looked at
        ("x" * 396 + " the", "en"),
        ("x" * 397 + " the", ""),
        ("Кошка спит", "cyrillic"),
        ("고양이", "hangul"),
        ("مرحبا", "arabic"),
        ("ɐbc", ""),
        ("ɐ", "latin"),  # from there on, no letter of the languages known here
        ("ə猫", ""),
    ],
)
def test_a_text_is_named_by_its_script_and_its_frequent_words(text, language):
    assert likely_language(text) == language


def test_each_frequent_word_tells_its_language_in_any_case():
    for code, language in LANGUAGES.items():
        own = language.frequent.difference(*(other.frequent for other in LANGUAGES.values() if other != language))
        assert {likely_language(word.upper()) for word in own} <= {code}
