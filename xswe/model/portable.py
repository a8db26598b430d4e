"""Word models for other libraries: a ``tokenizer.json`` that comes as close to the words' look-up as the format can.

sentence-transformers and model2vec turn text into ids through a ``tokenizer.json`` alone. The look-up of word units (the
unchanged word, in lower case, then its longest known prefix along the teacher's sub-words; Han and Kana by a segmenter) is
rebuilt there from the means of the format:

* Several strings may share a vector: the tensor ``mapping`` has the row of each token, and ``weights`` is 0 for tokens
  without one. Both libraries read the two.
* **The back-off is a best path.** A Unigram tokenizer takes the segmentation with the highest score. Its pieces are the
  teacher's, with the teacher's scores and no vectors, and the words, each with the score of the teacher's own segmentation
  of it plus a small bonus per character. A word as a prefix then costs nothing exactly where the teacher has a boundary,
  and the longest such word wins: the paper's rule.
* **Lower case** is spelled out: a lower-case word is also a token with an initial capital and in capitals.
* **Traditional characters**, which the words' look-up folds in Chinese text only, are spelled out if a model also knows
  Japanese.

The format cannot express mixed case (``iPhone`` for ``iphone``), a character's language by its sentence, or the segmenters
fugashi and jieba, which the best path over the vocabulary by Zipf's law replaces. Nor can it express that a text with Han
or Kana is taken as a whole, and any other is cut into words (the segmenter ``teacher-text``): there, such texts are cut
run by run, their Latin letters into words, and pieces with punctuation are never found.
``eval/experiments/agreement.py`` measures the remaining difference; :mod:`xswe.model.st_module` is the exact way for
sentence-transformers.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, islice, product
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from xswe.text.scripts import CJK_CHARACTERS, cjk_runs, has_kana
from xswe.text.segmenters import BY_TEACHER, WHOLE_TEXTS
from xswe.text.tokenizers import WORD_START, unknown_id
from xswe.text.words import WordUnits

logger = logging.getLogger(__name__)
_UNKNOWN = "<unk>"
_BONUS = 1e-4  # per character: above the rounding of a path's score, below the difference of two segmentations
_WORD_COST = 10.0  # of each word in place of a segmenter, compared with 0 … 12 for its rank
_MAX_SPELLINGS = 64  # of a word in traditional characters
_HAN, _KANA = (0x4E00, 0xA000), (0x3041, 0x3100)


@dataclass
class Lexicon:
    """Tokens for a tokenizer, each with its row in the matrix, -1 for none, and its score, which only Unigram reads."""

    scores: dict[str, float] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)

    def add(self, token: str, row: int, score: float = 0.0) -> None:
        """Add a token, unless it is empty or has a vector already."""
        if token not in ("", _UNKNOWN) and self.rows.get(token, -1) < 0:
            self.scores[token], self.rows[token] = score, row

    def tensors(self) -> dict[str, np.ndarray]:
        """Return ``mapping`` and ``weights`` for the unknown token (first) and all others."""
        rows = np.array([-1, *self.rows.values()], np.int32)
        return {"mapping": np.maximum(rows, 0), "weights": (rows >= 0).astype(np.float32)}


def write_portable(units: WordUnits, folder: Path, scales: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """Write the ``tokenizer.json`` of a word model, and return the other tensors of ``model.safetensors``.

    They are ``mapping``, int32 (tokens,), the row of each token; ``weights``, float32 (tokens,), its factor, 0 for a token
    without a vector; and the scales, if any.
    """
    if WHOLE_TEXTS in units.splitter.segmenters.values():
        what = "segmenter %s: the tokenizer.json for other libraries can only come near, as it cuts run by run; exact are "
        logger.warning(what + "xswe itself and its module for sentence-transformers", WHOLE_TEXTS)
    tokenizer, tensors = _wordpiece(units) if units.pieces is None else _unigram(units, units.pieces)
    (folder / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8", newline="")
    if scales is not None:
        tensors |= {"weights": tensors["weights"] * scales[tensors["mapping"]], "scales": scales}
    return tensors


def _unigram(units: WordUnits, pieces: Tokenizer) -> tuple[Tokenizer, dict[str, np.ndarray]]:
    """Build the tokenizer of a model with a back-off."""
    scorer = _Scorer(pieces)
    spell = _Spelling(units, pieces)
    lexicon = Lexicon()
    whole = WHOLE_TEXTS in units.splitter.segmenters.values()
    by_teacher = not set(BY_TEACHER).isdisjoint(units.splitter.segmenters.values())
    for row, word in enumerate(units.tokens):
        cjk = bool(cjk_runs(word))
        score = scorer(word) + _BONUS * len(word) if by_teacher or not cjk else _by_rank(row)
        marked = "" if cjk and not scorer.marks_cjk else WORD_START
        # With whole texts, a word is the piece itself, in every spelling that the teacher's normaliser turns into it.
        for spelling in spell.of_piece(word) if cjk and whole else spell.of_word(word):
            if spelling == word or spelling not in units.index:
                lexicon.add(marked + spelling, row, score)
                if cjk:
                    lexicon.add(spelling, row, score)
    for piece, score in scorer.scores.items():
        form = piece.removeprefix(WORD_START)
        mark = piece[: len(piece) - len(form)]
        if not cjk_runs(form):
            for spelling in spell.capitals(form) if scorer.lowers else [form]:
                lexicon.add(mark + spelling, -1, score)
        elif by_teacher:
            for spelling in spell.of_piece(form):
                lexicon.add(mark + spelling, spell.row(spelling), score)
    tokens = [(token, score) for token, score in lexicon.scores.items()]
    tokenizer = Tokenizer(models.Unigram([(_UNKNOWN, min(score for _, score in tokens)), *tokens], unk_id=0))
    tokenizer.normalizer = spell.normaliser
    cut: list[pre_tokenizers.PreTokenizer] = [
        pre_tokenizers.BertPreTokenizer(),
        pre_tokenizers.Split(Regex(f"[{CJK_CHARACTERS}]+"), "isolated"),
        pre_tokenizers.Metaspace(replacement=WORD_START, prepend_scheme="always"),
    ]
    if not scorer.marks_cjk:
        cut.append(pre_tokenizers.Split(Regex(f"{WORD_START}(?=[{CJK_CHARACTERS}])"), "removed"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(cut)
    return tokenizer, lexicon.tensors()


def _wordpiece(units: WordUnits) -> tuple[Tokenizer, dict[str, np.ndarray]]:
    """Build the tokenizer of a model without a back-off: a word is known as a whole or not at all.

    WordPiece does just that if its vocabulary has no continuations (``##``); only Han and Kana have them, whose runs are
    cut into the longest known words.
    """
    spell = _Spelling(units, None)
    lexicon = Lexicon()
    for row, word in enumerate(units.tokens):
        for spelling in spell.of_word(word):
            if spelling == word or spelling not in units.index:
                lexicon.add(spelling, row)
                if cjk_runs(word):
                    lexicon.add(f"##{spelling}", row)
    if units.splitter.segmenters:
        for character in map(chr, chain(range(*_HAN), range(*_KANA))):
            lexicon.add(character, -1)
            lexicon.add(f"##{character}", -1)
    vocabulary = {token: i for i, token in enumerate([_UNKNOWN, *lexicon.rows])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=_UNKNOWN, max_input_chars_per_word=100_000))
    tokenizer.normalizer = spell.normaliser
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.BertPreTokenizer(), pre_tokenizers.Split(Regex(f"[{CJK_CHARACTERS}]+"), "isolated")]
    )
    return tokenizer, lexicon.tensors()


def _by_rank(rank: int) -> float:
    """Score a word in place of a segmenter: fewer words win, and of equally many the more frequent ones (Zipf's law)."""
    return -_WORD_COST - math.log(rank + 1)


class _Scorer:
    """Scores a string by its best segmentation under the teacher's tokenizer.

    A tokenizer that is not a Unigram has no scores; every string then scores 0, and the longest known prefix wins.
    """

    def __init__(self, pieces: Tokenizer) -> None:
        model: dict[str, Any] = json.loads(pieces.to_str())["model"]
        self._pieces = pieces
        self.scores: dict[str, float] = {}
        self._by_id: list[float] = []
        if model["type"] == "Unigram":
            unknown = unknown_id(pieces)
            special = {added.content for added in pieces.get_added_tokens_decoder().values() if added.special}
            self._by_id = [score for _, score in model["vocab"]]
            self.scores = {
                piece: score for i, (piece, score) in enumerate(model["vocab"]) if i != unknown and piece not in special
            }
            if unknown is not None:
                self._by_id[unknown] = min(self._by_id) - 10.0
        self.marks_cjk = bool(self.scores) and pieces.encode("猫", add_special_tokens=False).tokens[0].startswith(
            WORD_START
        )
        normaliser = pieces.normalizer
        self.lowers = normaliser is not None and normaliser.normalize_str("A") == "a"

    def __call__(self, form: str) -> float:
        if not self._by_id:
            return 0.0
        last = len(self._by_id) - 1
        return sum(self._by_id[min(i, last)] for i in self._pieces.encode(form, add_special_tokens=False).ids)


class _Spelling:
    """The spellings that the words' look-up, or the teacher, reads as a given string."""

    def __init__(self, units: WordUnits, pieces: Tokenizer | None) -> None:
        self._units = units
        folding = units.splitter.folding
        if folding is not None and "ja" not in units.languages:
            # All Han is Chinese, so the tokenizer folds it as the splitter does.
            self.normaliser, folding = units.splitter.normaliser("zh"), None
        else:
            self.normaliser = units.splitter.normaliser(None)
        self._simplified = _folded(folding)
        self._of_words = _inverse(self._simplified)
        self._of_pieces = _inverse(_folded(pieces.normalizer if pieces is not None else None) | self._simplified)

    def capitals(self, word: str) -> Iterator[str]:
        """Yield a word and, if it is in lower case, its spellings with an initial capital and in capitals."""
        yield word
        if word == word.lower():
            others = dict.fromkeys((word[:1].upper() + word[1:], word.upper()))  # unlike a set, in this order
            yield from (other for other in others if other != word)

    def of_word(self, word: str) -> Iterator[str]:
        """Yield a word's spellings: with capitals, or in traditional characters (folded only in text without kana)."""
        if not cjk_runs(word):
            return self.capitals(word)
        return iter([word]) if has_kana(word) else _spellings(word, self._of_words)

    def of_piece(self, piece: str) -> Iterator[str]:
        """Yield the spellings that the teacher's normaliser turns into a piece of Han and Kana."""
        return _spellings(piece, self._of_pieces)

    def row(self, form: str) -> int:
        """Return the row of a form, unchanged or else folded; -1 for none."""
        found = self._units.identify(form)
        if found >= 0 or has_kana(form):
            return found
        return self._units.identify("".join(self._simplified.get(c, c) for c in form))


def _spellings(word: str, traditional: dict[str, list[str]]) -> Iterator[str]:
    """Yield a word's spellings, itself first, up to a limit."""
    every = product(*([c, *traditional.get(c, [])] for c in word))
    return ("".join(choice) for choice in islice(every, _MAX_SPELLINGS))


def _folded(normaliser: normalizers.Normalizer | None) -> dict[str, str]:
    """Map each Han character that a normaliser replaces with another one to that one."""
    characters = map(chr, range(*_HAN)) if normaliser is not None else iter(())
    folded = ((c, normaliser.normalize_str(c)) for c in characters)  # type: ignore[union-attr]
    return {c: simplified for c, simplified in folded if simplified != c and len(simplified) == 1}


def _inverse(folded: dict[str, str]) -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    for traditional, simplified in folded.items():
        out.setdefault(simplified, []).append(traditional)
    return out
