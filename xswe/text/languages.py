"""The languages, their scripts, the folding of traditional Chinese, rim words of terms, and texts in another language.

The library ``lingua`` tells eleven languages apart: the four of this library, and seven that are frequent on the web and
near to them. A text counts as another's where one of them is clearly the likelier; what is undecided counts as its own.
Of Han alone are Chinese sentences and Japanese titles alike: where Japanese is due, what is short and has no mark of a
sentence counts as Japanese.
"""

from __future__ import annotations

import io
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import normalizers

from xswe.errors import ConfigError, needs
from xswe.io.files import scratch


@dataclass(frozen=True)
class Language:
    """One language."""

    code: str  # ISO 639-1 code, the name used everywhere in the library
    name: str  # English name
    # as Unicode names its letters (``latin``, ``hangul``, ``cyrillic``) where words stand between blanks; runs of
    # ``han`` and ``kana`` need a segmenter
    script: str
    iso3: str  # ISO 639-3 code, as Tatoeba's files name it (Mandarin is ``cmn`` there)
    bcp: str  # the code that mteb uses

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
    with needs("opencc", "train", "folding Chinese characters"):
        from opencc import OpenCC
    convert = OpenCC("t2s").convert
    characters = (chr(code) for low, high in _HAN_BLOCKS for code in range(low, high))
    return {c: s for c in characters if (s := convert(c)) != c and len(s) == 1}


def folding_step() -> normalizers.Normalizer:
    """Return the normaliser that folds traditional characters into simplified ones."""
    return normalizers.Precompiled(compiled_charsmap(simplified_characters()))


def compiled_charsmap(table: dict[str, str]) -> bytes:
    """Compile a character table to sentencepiece's form, which ``tokenizers.normalizers.Precompiled`` reads.

    The table says what each character (or short text) becomes; an empty text removes it. The map is as sentencepiece
    serialises it: a double-array trie and its strings.
    """
    with needs("sentencepiece (with protobuf)", "train", "compiling a character table"):
        import sentencepiece
        from sentencepiece import sentencepiece_model_pb2
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


# Words that begin and end no term: what stands at the rim of a term's span in running text, nothing that itself is one.
# A rim word is one of these as a whole. Chinese and Japanese units may hold a particle and a part of the term (``の値``):
# ``FUSED`` has what is cut off such a unit, before and after it, where Han, Katakana or Latin letters remain.
RIM_WORDS: dict[str, str] = {
    "en": """
        a about after all also an and another any are as at be because been before between both but by can could did
        do does during each either for from had has have how however if in into is it its may might more most must no
        nor not of on only or other our over per should so some such than that the their them then there these they
        this those through to under until up us use used using via was we were what when where whether which while who
        will with within without would you your""",
    "de": """
        ab aber alle allem allen aller alles als also am an andere anderen auch auf aus bei beim bis da damit dann das
        dass dem den denen der deren des dessen die dies diese diesem diesen dieser dieses doch durch ein eine einem
        einen einer eines er es für gegen haben hat hier ihr ihre ihrem ihren ihrer ihres im in indem ins ist jede
        jedem jeden jeder jedes kann keine keinen können man mehr mehrere mit müssen muss nach nicht noch nur ob oder
        ohne pro sein seine sich sie sind so sodass sollte sollten über um und unter vom von vor war was wenn werden
        wie wird wo wurde wurden zu zum zur zwischen""",
    "zh": """
        的 了 和 与 或 及 以及 或者 并且 而 是 为 在 于 从 到 由 被 将 把 对 对于 以 其 此 该 这 这个 这些 那 那个 您
        你 我们 他们 它 它们 一个 一种 一些 某个 每个 各个 所有 任何 中的 上的 下的 可以 能够 应该 需要 必须 也 还 都
        就 则 若 若要 如果 请 让 向 通过 之间 等 用于 使用 进行 具有 包含 包括 提供 有关 关于 根据 按照 例如 但 但是
        因此 因为 由于 然后 同时 另外""",
    "ja": """
        の は を が に へ と で も や から まで より には では とは にも でも との への での からの までの として
        について による により によって に対して に対する に関する という といった など または および かつ この その
        あの これ それ こと もの ため 場合 とき です ます ました ません でした だ である であり する します した して
        され される されます された されて されている している しています できます できる いる います ある あります
        ない なる なります を使用 ください すべて すべての 各 さらに また ただし たとえば 例えば 次の 次に 以下の""",
}
# What is cut off before, and after, the rest of a unit.
FUSED: dict[str, tuple[str, str]] = {
    "zh": (
        """的 了 和 与 或 及 是 被 将 该 此 一个 每个 这个 这些 所有 任何 如果 若要 以及 或者""",
        """的 了 和 与 或 及 是 在 将 等 中的 上的""",
    ),
    "ja": (
        """の は を が に へ と で も や から まで より には では との への での からの として この その これらの
        すべての 各 次の""",
        """の は を が に へ と で も や から まで より には では とは との への での からの として について による
        により という など または および です ます する します した して され される されます された されて している
        しています しました できます を使用して である であり な""",
    ),
}


@lru_cache(maxsize=2)
def rim_words(japanese: bool) -> frozenset[str]:
    """Return the words of a text of Japanese, or of the other languages."""
    return frozenset(" ".join(words for code, words in RIM_WORDS.items() if code != ("zh" if japanese else "ja")).split())


@lru_cache(maxsize=2)
def fused_rims(japanese: bool) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what finds the particles at the beginning and the end of a run of Han and Kana, the longest first.

    In Japanese a particle is cut only where it stands beside other characters than Hiragana, to which it may belong.
    """
    before, after = (
        "|".join(sorted(words.split(), key=lambda word: (-len(word), word))) for words in FUSED["ja" if japanese else "zh"]
    )
    if japanese:
        return re.compile(rf"(?:{before})(?=[^ぁ-ゖ])"), re.compile(rf"(?<=[^ぁ-ゖ])(?:{after})$")
    return re.compile(f"(?:{before})(?=.)"), re.compile(f"(?<=.)(?:{after})$")


_FURTHER = ("fr", "es", "it", "pt", "nl", "ru", "ko")
_DISTANCE = 0.1  # by which another language's probability must exceed the own one's
_HAN_ALONE = 12  # characters; a longer Japanese text has Kana
_SENTENCE_MARKS = "。，、！？；：“”"


@lru_cache(maxsize=1)
def _lingua() -> tuple[Any, dict[str, Any]]:
    """Return the detector, which loads its models when first used, and its name of each of our languages."""
    with needs("lingua-language-detector", "languages", "telling languages apart"):
        import lingua
    codes = {code: getattr(lingua.IsoCode639_1, code.upper()) for code in (*LANGUAGES, *_FURTHER)}
    names = {code: lingua.Language.from_iso_code_639_1(codes[code]) for code in LANGUAGES}
    return lingua.LanguageDetectorBuilder.from_iso_codes_639_1(*codes.values()).build(), names


def detector() -> str:
    """Return what decides in which language a text is: the library, its version, and the languages."""
    _lingua()
    return f"lingua {version('lingua-language-detector')} {' '.join((*LANGUAGES, *_FURTHER))} {_DISTANCE}"


def in_other_language(texts: Sequence[str], language: str, threads: int = 1) -> np.ndarray:
    """Tell which of n texts are in another language than they should be, bool (n,); the answer depends on the text alone.

    With one thread the calling thread does all; with more, the library's own threads do, of which there are as many as
    processors (or ``RAYON_NUM_THREADS``).

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
