"""The languages, their scripts, and the folding of traditional to simplified Chinese.

The languages the library knows, and what it knows of each.
"""

from __future__ import annotations

import io
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from tokenizers import normalizers

from xswe.errors import ConfigError, DependencyError
from xswe.io.files import scratch


@dataclass(frozen=True)
class Language:
    """One language.

    Attributes:
        code: ISO 639-1 code, the name used everywhere in the library.
        name: English name.
        script: as Unicode names its letters (``latin``, ``hangul``, ``cyrillic``) where words stand between blanks; runs
            of ``han`` and ``kana`` need a segmenter.
        iso3: ISO 639-3 code, as Tatoeba's files name it (Mandarin is ``cmn`` there).
        bcp: the code that mteb uses.
    """

    code: str
    name: str
    script: str
    iso3: str
    bcp: str

    @property
    def spaced(self) -> bool:
        """Whether its words stand between blanks."""
        return self.script not in ("han", "kana")


LANGUAGES = {
    language.code: language
    for language in (
        Language("en", "English", "latin", "eng", "eng-Latn"),
        Language("de", "German", "latin", "deu", "deu-Latn"),
        Language("zh", "Chinese", "han", "cmn", "zho-Hans"),
        Language("ja", "Japanese", "kana", "jpn", "jpn-Jpan"),
    )
}


def check_languages(codes: Iterable[str]) -> tuple[str, ...]:
    """Return the codes as a tuple.

    Raises:
        ConfigError: a code is unknown, named twice, or there is none; the message lists the known ones.
    """
    codes = tuple(codes)
    known = ", ".join(f"{language.code} ({language.name})" for language in LANGUAGES.values())
    if unknown := [code for code in codes if code not in LANGUAGES]:
        raise ConfigError(f"unknown language {', '.join(map(repr, unknown))}: the known ones are {known}")
    if not codes or len(set(codes)) != len(codes):
        raise ConfigError(f"languages={list(codes)}: name at least one language, each once, of {known}")
    return codes


# Runs of script: the only thing that decides which adapter sees which characters.
#
# Latin (and any other spaced) script goes to the word adapter, runs of Han and Kana go to a segmenter. Kana anywhere in
# a sentence makes its Han runs Japanese where a model has both languages. No statistical detector takes part: the
# decision is the same for a sentence alone and in a batch.


# Han: ideographs, their extensions, iteration and zero marks. Kana: both syllabaries, the length mark, half-width forms.
# The compatibility ideographs are escaped: an editor that normalises would turn them into others.
_HAN = "々〇〻㐀-䶿一-鿿\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = "ぁ-ゖゝ-ゟァ-ヺー-ヿㇰ-ㇿｦ-ﾟ\U0001aff0-\U0001b16f"
CJK_CHARACTERS = _HAN + _KANA  # the inside of a character class, for any regular-expression engine
_CJK_RUN = re.compile(f"[{CJK_CHARACTERS}]+")
_AROUND_RUNS = re.compile(f"([{CJK_CHARACTERS}]+)")
_KANA_CHARACTER = re.compile(f"[{_KANA}]")
# ASCII characters that Unicode calls symbols but every word tokeniser of the field treats as punctuation.
_ASCII_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


def cjk_runs(text: str) -> list[tuple[int, int]]:
    """Return (start, end) of each maximal run of Han and Kana characters."""
    return [match.span() for match in _CJK_RUN.finditer(text)]


def around_runs(text: str) -> list[str]:
    """Cut a text at the borders of its runs of Han and Kana."""
    return [part for part in _AROUND_RUNS.split(text) if part]


def has_cjk(text: str) -> bool:
    """Tell whether any Han or Kana occurs."""
    return _CJK_RUN.search(text) is not None


def has_kana(text: str) -> bool:
    """Tell whether any Kana occurs."""
    return _KANA_CHARACTER.search(text) is not None


def in_script(text: str, language: str) -> bool:
    """Tell whether at least half of a text's letters are in the script of its language."""
    cjk = sum(stop - start for start, stop in cjk_runs(text))
    if LANGUAGES[language].spaced:
        letters, script = sum(map(str.isalpha, text)), LANGUAGES[language].script.upper()
        own = sum(c.isalpha() and unicodedata.name(c, "").startswith(script) for c in text)
        return letters > 0 and 2 * own >= letters
    if language == "zh" and has_kana(text):
        return False
    return cjk > 0 and 2 * cjk >= sum(map(str.isalpha, text))


@lru_cache(maxsize=1)
def kana_codes() -> np.ndarray:
    """Return for each character code whether it is Kana, bool (0x110000,)."""
    return _codes_of_script(_KANA_CHARACTER)


@lru_cache(maxsize=1)
def cjk_codes() -> np.ndarray:
    """Return for each character code whether it is Han or Kana, bool (0x110000,)."""
    return _codes_of_script(_CJK_RUN)


def _codes_of_script(wanted: re.Pattern[str]) -> np.ndarray:
    characters = "".join(" " if 0xD800 <= code < 0xE000 else chr(code) for code in range(0x40000))  # none beyond
    out = np.zeros(0x110000, bool)
    for match in wanted.finditer(characters):
        out[slice(*match.span())] = True
    return out


@lru_cache(maxsize=65536)
def is_punctuation(character: str) -> bool:
    """Tell whether a character is punctuation: Unicode category P, or an ASCII symbol."""
    return character in _ASCII_PUNCTUATION or unicodedata.category(character).startswith("P")


# Folding traditional Chinese characters into simplified ones, as a table that a tokenizer can carry.
#
# OpenCC's conversion is taken character by character, so that the very same table works inside ``tokenizer.json`` (as a
# ``Precompiled`` normaliser) in every library that reads it. Phrase rules, which a table cannot hold, are left out: of
# two traditional characters that share a simplified one nothing is lost, and the few that depend on their neighbours (乾
# in 乾坤) are folded alike in training and at inference.


_HAN_BLOCKS = ((0x3400, 0x4DC0), (0x4E00, 0xA000), (0xF900, 0xFB00), (0x20000, 0x30000))


@lru_cache(maxsize=1)
def simplified_characters() -> dict[str, str]:
    """Map each traditional character to its simplified one, for all that differ (about 5,000, from OpenCC)."""
    try:
        from opencc import OpenCC
    except ImportError:
        raise DependencyError("opencc", "train", "folding Chinese characters") from None
    convert = OpenCC("t2s").convert
    characters = (chr(code) for low, high in _HAN_BLOCKS for code in range(low, high))
    return {c: s for c in characters if (s := convert(c)) != c and len(s) == 1}


def folding_step() -> normalizers.Normalizer:
    """Return the normaliser that folds traditional characters into simplified ones."""
    return normalizers.Precompiled(compiled_charsmap(simplified_characters()))


def compiled_charsmap(table: dict[str, str]) -> bytes:
    """Compile a character table to sentencepiece's form, which ``tokenizers.normalizers.Precompiled`` reads.

    Args:
        table: what each character (or short text) becomes; an empty text removes it.

    Returns:
        The map as sentencepiece serialises it (a double-array trie and its strings).
    """
    try:
        import sentencepiece
        from sentencepiece import sentencepiece_model_pb2
    except ImportError:
        raise DependencyError("sentencepiece (with protobuf)", "train", "compiling a character table") from None
    model = io.BytesIO()
    with scratch() as folder:
        rules = Path(folder) / "rules.tsv"
        # Only the normaliser of this throw-away model is wanted; the two lines it is trained on do not matter.
        rules.write_text("".join(f"{_codes(a)}\t{_codes(b)}\n" for a, b in sorted(table.items())), encoding="ascii")
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["a b c d e f g", "h i j k l m n"]),
            model_writer=model,
            vocab_size=24,
            hard_vocab_limit=False,
            normalization_rule_tsv=str(rules),
            minloglevel=2,
        )
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    return proto.normalizer_spec.precompiled_charsmap


def _codes(text: str) -> str:
    """Write a text as the rules' file wants it: hexadecimal code points with blanks between them."""
    return " ".join(f"{ord(character):X}" for character in text)
