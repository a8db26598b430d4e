"""Detection of the language of a text.

The library ``lingua`` distinguishes the languages of this library and others that are frequent on the web. A text counts as
being in another language only if that is clearly likelier than the expected one. Chinese sentences and Japanese titles in
Han alone look alike: if Japanese is expected, a short text without sentence marks counts as Japanese.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import numpy as np

from xswe.errors import ConfigError, needs
from xswe.text.languages import LANGUAGES
from xswe.text.scripts import cjk_runs, has_kana


def likely_language(text: str) -> str:
    """Return the likely language of a text, by its script and most frequent words; "" if unknown.

    A text in another script than Latin, Han or Kana gives the known language in that script or, if it is not a single one,
    the Unicode name of the script, such as ``cyrillic``. Only the first 400 characters count.
    """
    text = text[:400]
    letters = [character for character in text if character.isalpha()]
    cjk = sum(stop - start for start, stop in cjk_runs(text))
    if letters and 2 * cjk >= len(letters):
        if has_kana(text):
            return "ja"
        return "zh" if len(text) > _MAX_HAN_ALONE or not set(text).isdisjoint(_SENTENCE_MARKS) else ""
    words = text.lower().split()
    counts = {code: sum(word in own.frequent for word in words) for code, own in LANGUAGES.items() if own.frequent}
    best = max(counts, key=counts.__getitem__)
    if counts[best] > sum(counts.values()) - counts[best]:
        return best
    if letters and not any(character < "\u0250" for character in letters) and not cjk:
        script = unicodedata.name(letters[0], "").partition(" ")[0].lower()
        codes = [code for code, language in LANGUAGES.items() if language.script == script]
        return codes[0] if len(codes) == 1 else script
    return ""


_OTHER_DETECTED = ("fr", "es", "it", "pt", "nl", "ru", "ko")
_MIN_DIFFERENCE = 0.1  # by which another language's probability must exceed that of the expected one
_MAX_HAN_ALONE = 12  # characters; longer Japanese texts have Kana
_SENTENCE_MARKS = "。，、！？；：“”"


@lru_cache(maxsize=1)
def _lingua() -> tuple[Any, dict[str, Any]]:
    """Return the detector, which loads its models when first used, and its name for each of our languages."""
    with needs("lingua-language-detector", "languages", "language detection"):
        import lingua
    table = lingua.IsoCode639_1
    codes = {code: getattr(table, code.upper()) for code in _detected() if hasattr(table, code.upper())}
    names = {code: lingua.Language.from_iso_code_639_1(codes[code]) for code in LANGUAGES if code in codes}
    return lingua.LanguageDetectorBuilder.from_iso_codes_639_1(*codes.values()).build(), names


def _detected() -> dict[str, None]:
    """Return the codes of our languages, then of other frequent ones."""
    return dict.fromkeys((*LANGUAGES, *_OTHER_DETECTED))


def detector() -> str:
    """Return a fingerprint of language detection: the library, its version, and the languages."""
    _lingua()
    return f"lingua {version('lingua-language-detector')} {' '.join(_detected())} {_MIN_DIFFERENCE}"


def in_other_language(texts: Sequence[str], language: str, threads: int = 1) -> np.ndarray:
    """Return bool (n,), True for texts in another language than ``language``; each answer depends on its text alone.

    With one thread the calling thread does all the work; otherwise the library uses its own threads, as many as processors
    (or ``RAYON_NUM_THREADS``). DependencyError: ``lingua-language-detector`` is not installed. ConfigError: it does not
    know the language.
    """
    found, names = _lingua()
    if language not in names:
        raise ConfigError(f"language=lingua: the library does not know {LANGUAGES[language].name}; leave it out")
    if threads > 1:
        values = found.compute_language_confidence_values_in_parallel(list(texts))
    else:
        values = [found.compute_language_confidence_values(text) for text in texts]
    out = np.zeros(len(texts), bool)
    for row, (text, confidences) in enumerate(zip(texts, values, strict=True)):
        own = next(one.value for one in confidences if one.language == names[language])
        out[row] = confidences[0].value - own >= _MIN_DIFFERENCE
        if out[row] and language == "ja" and confidences[0].language == names["zh"]:
            out[row] = len(text) > _MAX_HAN_ALONE or has_kana(text) or not set(text).isdisjoint(_SENTENCE_MARKS)
    return out
