"""Which of some texts are in another language than they should be, by the library ``lingua``.

Eleven languages are told apart: the four of this library, and seven that are frequent on the web and near to them. A text
counts as another's where one of them is clearly the likelier; what is undecided counts as its own. Of Han alone are Chinese
sentences and Japanese titles alike: where Japanese is due, what is short and has no mark of a sentence counts as Japanese.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import numpy as np

from xswe.errors import DependencyError
from xswe.text.languages import LANGUAGES, has_kana

_FURTHER = ("fr", "es", "it", "pt", "nl", "ru", "ko")
_DISTANCE = 0.1  # by which another language's probability must exceed the own one's
_HAN_ALONE = 12  # characters; a longer Japanese text has Kana
_SENTENCE_MARKS = "。，、！？；：“”"


@lru_cache(maxsize=1)
def _lingua() -> tuple[Any, dict[str, Any]]:
    """Return the detector, which loads its models when first used, and its name of each of our languages."""
    try:
        import lingua
    except ImportError:
        raise DependencyError("lingua-language-detector", "languages", "telling languages apart") from None
    codes = {code: getattr(lingua.IsoCode639_1, code.upper()) for code in (*LANGUAGES, *_FURTHER)}
    names = {code: lingua.Language.from_iso_code_639_1(codes[code]) for code in LANGUAGES}
    return lingua.LanguageDetectorBuilder.from_iso_codes_639_1(*codes.values()).build(), names


def detector() -> str:
    """Return what decides in which language a text is: the library and its version, and the languages.

    Raises:
        DependencyError: it is not installed.
    """
    _lingua()
    return f"lingua {version('lingua-language-detector')} {' '.join((*LANGUAGES, *_FURTHER))} {_DISTANCE}"


def in_other_language(texts: Sequence[str], language: str, threads: int = 1) -> np.ndarray:
    """Tell which texts are in another language; the answer depends on the text alone.

    Args:
        texts: n texts.
        language: what they should be: ``en``, ``de``, ``zh`` or ``ja``.
        threads: with one, the calling thread does all; with more, the library's own threads, of which there are as many as
            processors (or ``RAYON_NUM_THREADS``).

    Returns:
        bool (n,).

    Raises:
        DependencyError: ``lingua-language-detector`` is not installed.
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
