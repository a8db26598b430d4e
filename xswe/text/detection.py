"""Detection of the language of a text.

The library ``lingua`` distinguishes eleven languages: the four of this library, and seven similar ones that are frequent
on the web. A text counts as another language's where one of these is clearly likelier, and otherwise as its own. Chinese
sentences and Japanese titles in Han alone look alike: where Japanese is expected, what is short and has no mark of a
sentence counts as Japanese.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import numpy as np

from xswe.errors import needs
from xswe.text.languages import LANGUAGES
from xswe.text.scripts import cjk_runs, has_kana


def likely_language(text: str) -> str:
    """Return which of the languages a text is likely in, by its script and its most frequent words; "" if unknown.

    What is not in Latin letters, Han or Kana is named by the Unicode name of its script, as in ``cyrillic``. The first 400
    characters are looked at.
    """
    text = text[:400]
    letters = [character for character in text if character.isalpha()]
    cjk = sum(stop - start for start, stop in cjk_runs(text))
    if letters and 2 * cjk >= len(letters):
        if has_kana(text):
            return "ja"
        return "zh" if len(text) > _HAN_ALONE or not set(text).isdisjoint(_SENTENCE_MARKS) else ""
    words = text.lower().split()
    counts = {code: sum(word in own.frequent for word in words) for code, own in LANGUAGES.items() if own.frequent}
    best = max(counts, key=counts.__getitem__)
    if counts[best] > sum(counts.values()) - counts[best]:
        return best
    if letters and not any(character < "\u0250" for character in letters) and not cjk:
        return unicodedata.name(letters[0], "").partition(" ")[0].lower()
    return ""


_OTHER_DETECTED = ("fr", "es", "it", "pt", "nl", "ru", "ko")
_DISTANCE = 0.1  # by which another language's probability must exceed the own one's
_HAN_ALONE = 12  # characters; a longer Japanese text has Kana
_SENTENCE_MARKS = "。，、！？；：“”"


@lru_cache(maxsize=1)
def _lingua() -> tuple[Any, dict[str, Any]]:
    """Return the detector, which loads its models when first used, and its name of each of our languages."""
    with needs("lingua-language-detector", "languages", "language detection"):
        import lingua
    codes = {code: getattr(lingua.IsoCode639_1, code.upper()) for code in _detected()}
    names = {code: lingua.Language.from_iso_code_639_1(codes[code]) for code in LANGUAGES}
    return lingua.LanguageDetectorBuilder.from_iso_codes_639_1(*codes.values()).build(), names


def _detected() -> dict[str, None]:
    """Return the codes of our languages, then of others that texts are often in."""
    return dict.fromkeys((*LANGUAGES, *_OTHER_DETECTED))


def detector() -> str:
    """Return a fingerprint of language detection: the library, its version, and the languages."""
    _lingua()
    return f"lingua {version('lingua-language-detector')} {' '.join(_detected())} {_DISTANCE}"


def in_other_language(texts: Sequence[str], language: str, threads: int = 1) -> np.ndarray:
    """Return bool (n,), True for texts in another language than ``language``; the answer depends on the text alone.

    With one thread the calling thread does all; with more, the library's own threads do, of which there are as many as
    processors (or ``RAYON_NUM_THREADS``). DependencyError: ``lingua-language-detector`` is not installed.
    """
    found, names = _lingua()
    if threads > 1:
        values = found.compute_language_confidence_values_in_parallel(list(texts))
    else:
        values = [found.compute_language_confidence_values(text) for text in texts]
    out = np.zeros(len(texts), bool)
    for row, (text, confidences) in enumerate(zip(texts, values, strict=True)):
        own = next(one.value for one in confidences if one.language == names[language])
        out[row] = confidences[0].value - own >= _DISTANCE
        if out[row] and language == "ja" and confidences[0].language == names["zh"]:
            out[row] = len(text) > _HAN_ALONE or has_kana(text) or not set(text).isdisjoint(_SENTENCE_MARKS)
    return out
