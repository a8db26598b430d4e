"""The second stage of a run: the units, from the texts of the corpus."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, assert_never

import numpy as np
from tokenizers import Tokenizer

from xswe.corpus.bitext import Bitext
from xswe.corpus.monolingual import Sentences
from xswe.corpus.splits import draw
from xswe.errors import ConfigError
from xswe.io.files import fingerprint, read_json, write_json
from xswe.io.ragged import Texts, TextView
from xswe.io.settings import check_choice, check_least
from xswe.model.folder import load_units
from xswe.progress import track
from xswe.teacher.protocol import Teacher
from xswe.teacher.transformer import mini_folder
from xswe.text.counting import most_frequent_of
from xswe.text.subwords import SubwordUnits
from xswe.text.tokenizers import folds, load_tokenizer, pieces_only, train_subwords, with_folding
from xswe.text.units import UnitKind, Units
from xswe.text.words import WordSplitter, WordUnits, most_frequent
from xswe.training.corpus_stage import Corpus, sides
from xswe.training.counting import count_by_shards
from xswe.training.pairs import WordCounts
from xswe.training.stages import OMIT_DEFAULT, fingerprint_fields

logger = logging.getLogger(__name__)
# A corpus with fewer pairs is too small to train a vocabulary on, and the one in the package is better.
_MIN_PAIRS = 30_000
_MOST_FREQUENT = 150_000  # words of a language without a number in units.most_frequent
SHIPPED = ("en", "de", "zh", "ja")  # the languages of the vocabulary and the teacher in the package
_COUNTED = 1 << 16  # texts tokenised at a time for counting tokens


@dataclass(frozen=True)
class UnitsConfig:
    """Settings of the units.

    Attributes:
        kind: ``subwords``, ``words`` or ``teacher``.
        vocabulary: for ``subwords``: ``corpus`` trains one on the corpus, ``mini`` takes the one in the package (four
            languages), a path takes that ``tokenizer.json``; ``auto`` is ``corpus`` with at least 30,000 pairs, another
            ``size`` or any other language, otherwise ``mini``.
        size: for ``subwords``: number of pieces.
        sample: for ``subwords``: pairs of each language pair, drawn at random, to train the vocabulary on.
        most_frequent: for ``words``: number of words of each language (paper: 150,000 en, de; 30,000 zh, ja).
        segmenters: for ``words``: ``teacher`` (paper) or ``jieba`` for zh, ``teacher`` (paper) or ``fugashi`` for ja; for
            both ``teacher-text``, the teacher's tokens of a whole text that holds Han or Kana (the authors' code).
        folding: whether to turn traditional Chinese into simplified if the model knows Chinese; the authors' code does no
            folding.
        lowercase: for ``words``: whether to lowercase texts first (the paper's models of one language).
    """

    kind: UnitKind = "subwords"
    vocabulary: str = "auto"
    size: int = 32_000
    sample: int = 100_000
    most_frequent: dict[str, int] = field(
        default_factory=lambda: {"en": 150_000, "de": 150_000, "zh": 30_000, "ja": 30_000}
    )
    segmenters: dict[str, str] = field(default_factory=lambda: {"zh": "teacher", "ja": "teacher"})
    folding: bool = field(default=True, metadata=OMIT_DEFAULT)
    lowercase: bool = field(default=False, metadata=OMIT_DEFAULT)

    def __post_init__(self) -> None:
        check_choice("units.kind", self.kind, UnitKind)
        check_least(self, "units", size=1, sample=1)
        if self.lowercase and self.kind != "words":
            why = {
                "subwords": "sub-words are in lower case already",
                "teacher": "a teacher's pieces cannot be changed",
            }
            raise ConfigError(f"units.lowercase=true is for units=words: {why[self.kind]}")


def token_lengths(teacher: Teacher, texts: Texts | TextView, name: str, rows: np.ndarray) -> np.ndarray:
    """Count the teacher's tokens of some texts, block by block, int64 (rows,)."""
    out = np.zeros(len(rows), np.int64)
    for start in track(range(0, len(rows), _COUNTED), f"count tokens {name}", unit="block"):
        out[start : start + _COUNTED] = teacher.lengths(texts.take(rows[start : start + _COUNTED]))
        texts.release()
    return out


def make_units(
    corpus: Corpus, languages: Sequence[str], config: UnitsConfig, pieces: Tokenizer | None
) -> tuple[Units, str]:
    """Stage ``units``: train, count or take over the units; return them and the stage's identity.

    ConfigError: the training texts have none.
    """
    bitexts = corpus.part("train")
    vocabulary = config.vocabulary
    if config.kind == "subwords" and vocabulary == "auto":
        # A size can be set only for a vocabulary that is trained, however small the corpus.
        pairs, asked = sum(map(len, bitexts)), config.size != UnitsConfig.size
        foreign = [code for code in languages if code not in SHIPPED]
        vocabulary = "corpus" if asked or foreign or pairs >= _MIN_PAIRS else "mini"
        why = f"units.size={config.size:,} is set" if asked else f"{pairs:,} pairs; {_MIN_PAIRS:,} are enough"
        why = f"mini has no pieces of {', '.join(foreign)}" if foreign else why
        logger.info("units.vocabulary=auto: %s (%s)", vocabulary, why)
    ready = _ready_tokenizer(config, vocabulary, pieces, languages)
    inputs: dict[str, Any] = {"languages": list(languages), "config": fingerprint_fields(config), "vocabulary": vocabulary}
    inputs["ready"] = fingerprint(ready.to_str()) if ready else None
    inputs["corpus"] = None if ready and config.kind != "words" else [corpus.identity, corpus.seed]

    def splitter() -> WordSplitter:
        return WordSplitter(languages, config.segmenters, ready, config.folding, config.lowercase)

    def share(shards: Path) -> dict[str, list[Path]]:
        return count_by_shards(corpus, languages, splitter(), shards) if config.kind == "words" else {}

    def make(folder: Path, counted: dict[str, list[Path]]) -> None:
        """Find the units, and save them."""
        if config.kind == "words":
            words, counts = _count_vocabulary(languages, config, splitter(), counted)
            counts.save(folder)
            units: Units = words
        elif ready:
            units = SubwordUnits(ready, config.kind, languages, folding=config.folding)
        else:
            sample = _sample_texts(bitexts, config.sample, corpus.seed)
            trained = train_subwords(sample, languages, config.size, corpus.threads, config.folding)
            units = SubwordUnits(trained, "subwords", languages, folding=config.folding)
        if not len(units):
            raise ConfigError(
                f"no word of {', '.join(languages)} in the training texts: see what they hold, and their languages"
            )
        units.save(folder)
        write_json(folder / "config.json", {"units": units.settings})

    folder, identity = corpus.stages.run_shared("units", inputs, share, make)
    return load_units(folder), identity


def _ready_tokenizer(
    config: UnitsConfig, vocabulary: str, pieces: Tokenizer | None, languages: Sequence[str]
) -> Tokenizer | None:
    """Return the existing tokenizer that the units consist of or need, if any."""
    match config.kind:
        case "words":
            return pieces
        case "teacher":
            return _teachers_tokenizer(config, pieces, languages)
        case "subwords":
            return None if vocabulary == "corpus" else _given_tokenizer(config, vocabulary, languages)
    assert_never(config.kind)


def _teachers_tokenizer(config: UnitsConfig, pieces: Tokenizer | None, languages: Sequence[str]) -> Tokenizer:
    if pieces is None:
        raise ConfigError("units.kind=teacher needs a teacher: set teacher=mini, or units=subwords")
    own = pieces_only(pieces)
    if config.folding:
        return with_folding(own, languages)
    _check_unfolded(own, "the teacher's tokenizer", languages)
    return own


def _given_tokenizer(config: UnitsConfig, vocabulary: str, languages: Sequence[str]) -> Tokenizer:
    given = pieces_only(load_tokenizer(mini_folder() / "tokenizer.json" if vocabulary == "mini" else Path(vocabulary)))
    if not config.folding:
        _check_unfolded(given, f"the tokenizer of units.vocabulary={vocabulary}", languages)
    return given


def _check_unfolded(tokenizer: Tokenizer, name: str, languages: Sequence[str]) -> None:
    """Refuse a tokenizer that folds traditional Chinese by itself although folding is off."""
    if "zh" in languages and folds(tokenizer):
        raise ConfigError(
            f"units.folding=false, but {name} folds traditional Chinese by itself: set units=subwords "
            "units.vocabulary=corpus, or units=words, or leave units.folding=true"
        )


def _sample_texts(bitexts: Sequence[Bitext | Sentences], pairs: int, seed: int) -> Iterator[str]:
    """Yield the texts of both sides of a random sample of each bitext."""
    for k, bitext in enumerate(bitexts):
        rows = np.sort(draw([seed, 13, k], len(bitext), pairs)[0])
        sample = bitext.take(rows)
        texts = [side for _, _, side in sides(sample)]
        yield from track(chain(*texts), f"sample {bitext.name}", len(texts) * len(rows), "text")


def _count_vocabulary(
    languages: Sequence[str], config: UnitsConfig, splitter: WordSplitter, counted: Mapping[str, Sequence[Path]]
) -> tuple[WordUnits, WordCounts]:
    most = {language: config.most_frequent.get(language, _MOST_FREQUENT) for language in languages}
    counts = {code: most_frequent_of(counted[code], most[code]) for code in languages}
    words = most_frequent(counts, most)
    return WordUnits(words, splitter, splitter.tokenizer), WordCounts.of(counts, most, words)


def read_report(stage: Path) -> dict[str, Any]:
    """Return the report of a stage."""
    return read_json(stage / "report.json")
