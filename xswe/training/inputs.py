"""The first stages: the cleaned and split corpus, the units, and the bags that everything after them shares."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import chain
from operator import call
from pathlib import Path
from typing import Any, assert_never

import numpy as np
from tokenizers import Tokenizer

from xswe.corpus.bitext import Bitext, CorpusConfig, corpus_files, describe, draw
from xswe.corpus.convert import open_training, prepare
from xswe.corpus.monolingual import Sentences, describe_sentences, load_sentences, sentence_files, split_parts
from xswe.errors import ConfigError
from xswe.io.files import fingerprint, read_json, write_json
from xswe.io.parallel import in_order
from xswe.io.ragged import Bags, Texts, TextView, bag_writer, concatenate_bags, joined
from xswe.io.settings import check_choice
from xswe.model.folder import load_units
from xswe.model.static import StaticModel
from xswe.progress import track
from xswe.teacher.protocol import Teacher
from xswe.teacher.transformer import mini_folder
from xswe.text.counting import COUNTED, WordCounter, most_frequent_of
from xswe.text.languages import check_languages
from xswe.text.tokenizers import folds, load_tokenizer, pieces_only, train_subwords, with_folding
from xswe.text.units import SubwordUnits, UnitKind, Units
from xswe.text.words import WordSplitter, WordUnits, most_frequent
from xswe.training.pairs import WordCounts
from xswe.training.stages import OMIT_DEFAULT, Stages, check_whole, fingerprint_fields
from xswe.work.once import once
from xswe.work.run import OPENED, run_shards
from xswe.work.stage import Job, Stage

logger = logging.getLogger(__name__)
PARTS = ("train", "development", "held_out")
Pair = tuple[str, ...]  # two languages, or one alone
# Below this many pairs a corpus is too small to learn pieces from, and the vocabulary in the package serves better.
_ENOUGH_PAIRS = 30_000
_MOST_FREQUENT = 150_000  # words of a language for which units.most_frequent names no number
SHIPPED = ("en", "de", "zh", "ja")  # the languages of the vocabulary and the teacher in the package
_TEXTS_PER_SHARD = 1 << 18  # whose words are counted as one shard
_COUNTED = 1 << 16  # texts tokenised at a time, only to be counted


@dataclass(frozen=True)
class UnitsConfig:
    """What gets a vector.

    Attributes:
        kind: ``subwords``, ``words`` or ``teacher``.
        vocabulary: for ``subwords``: ``corpus`` trains one on the corpus, ``mini`` takes the one in the package (four
            languages), a path takes that ``tokenizer.json``; ``auto`` is ``corpus`` from 30,000 pairs on, and
            where another ``size`` or a further language is asked for, else ``mini``.
        size: for ``subwords``: pieces.
        sample: for ``subwords``: pairs of each language pair, drawn at random, that the vocabulary is trained on.
        most_frequent: for ``words``: how many words of each language (paper: 150,000 en, de; 30,000 zh, ja).
        segmenters: for ``words``: zh by ``teacher`` (paper) or ``jieba``, ja by ``teacher`` (paper) or ``fugashi``; both
            by ``teacher-text``, the teacher's tokens of a whole text that holds Han or Kana (the authors' code).
        folding: whether traditional Chinese becomes simplified, where the model knows Chinese; the authors' code folds
            nothing.
        lowercase: for ``words``: whether texts are put in lower case first (the paper's models of one language).
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
        if self.lowercase and self.kind != "words":
            why = {
                "subwords": "sub-words are in lower case already",
                "teacher": "a teacher's pieces are as they are",
            }
            raise ConfigError(f"units.lowercase=true is for units=words: {why[self.kind]}")


def language_pairs(languages: Sequence[str], paths: Any) -> list[tuple[str, str]]:
    """Return the language pairs to train on.

    A mapping ``corpus.paths`` names them (entries of other languages are left aside); else it is the first language
    with each other.

    Raises:
        ConfigError: a name is no pair of known languages, or none of them is of the model's languages.
    """
    if isinstance(paths, Mapping):
        named = [check_languages(str(name).split("-")) for name in paths]
        pairs = [(pair[0], pair[1]) for pair in named if len(pair) == 2 and set(pair) <= set(languages)]
        if not pairs:
            raise ConfigError(f"corpus.paths has {', '.join(paths)}: none is a pair of {', '.join(languages)}")
        return pairs
    return [(languages[0], other) for other in languages[1:]]


@dataclass(frozen=True)
class Corpus:
    """The corpus stage of a run, which the later stages read."""

    stages: Stages  # of the run
    folder: Path  # of the stage: one sub-folder a part, and ``report.json``
    identity: str  # of the stage
    pairs: Sequence[Pair]  # the language pairs; of the sentences of a single language that alone
    seed: int = 0  # decides what is drawn
    threads: int = 1  # how many work

    def part(self, name: str) -> Sequence[Bitext | Sentences]:
        """Memory-map one part: ``train``, ``development`` or ``held_out``."""
        return [_open(self.folder, name, pair) for pair in self.pairs]


def make_corpus(stages: Stages, languages: Sequence[str], config: CorpusConfig, seed: int, threads: int = 1) -> Corpus:
    """Stage ``corpus``: read, clean and split the bitexts, or the sentences of a single language."""
    if len(languages) == 1:
        folder, identity = _make_sentences(stages, languages[0], config, seed, threads)
        return Corpus(stages, folder, identity, [(languages[0],)], seed, threads)
    pairs = language_pairs(languages, config.paths)
    files = corpus_files(config, pairs)
    inputs = {"-".join(pair): describe(config, found) for pair, found in files.items()} | {"seed": seed}

    def make(folder: Path, _: str) -> None:
        report = {}
        for pair, found in files.items():
            counts, sizes = prepare(found, pair, config, seed, folder, stages.folder, threads)
            report["-".join(pair)] = asdict(counts) | sizes
            if not sizes["train"]:
                raise ConfigError(f"{'-'.join(pair)}: no training pair is left ({counts.summary()}); give a larger corpus")
        write_json(folder / "report.json", report)

    folder, identity = stages.run("corpus", inputs, make)
    _check_texts(folder, pairs)
    return Corpus(stages, folder, identity, pairs, seed, threads)


def _check_texts(stage: Path, pairs: Sequence[Pair]) -> None:
    """Check the training texts, which are outside of the stage's folder; one that is not there is missed when opened."""
    for pair in pairs:
        where = read_json(stage / "train" / f"{'-'.join(pair)}.json")
        place = Path(os.path.normpath(stage / where["text"]))
        for file in sorted(place.glob("*.npy")):
            check_whole(file, place, stage)


def _make_sentences(stages: Stages, language: str, config: CorpusConfig, seed: int, threads: int) -> tuple[Path, str]:
    found = sentence_files(config, language)

    def make(folder: Path, _: str) -> None:
        sentences, counts = load_sentences(config, language, found, threads)
        parts = split_parts(sentences, config, seed)
        for part in PARTS:
            parts[part].save(folder / part)
        if not len(parts["train"]):
            raise ConfigError(f"{language}: no training sentence is left of {counts['read']}; give a larger corpus")
        write_json(folder / "report.json", {language: counts | {part: len(parts[part]) for part in PARTS}})

    return stages.run("corpus", {language: describe_sentences(config, found), "seed": seed}, make)


def _open(corpus: Path, part: str, pair: Pair) -> Bitext | Sentences:
    if len(pair) == 1:
        return Sentences.open(corpus / part, (pair[0],))
    languages = (pair[0], pair[1])
    return open_training(corpus, languages) if part == "train" else Bitext.open(corpus / part, languages)


def sides(bitext: Bitext | Sentences) -> list[tuple[str, str, Texts | TextView]]:
    """Return (``source`` or ``target``, language, texts) of each side."""
    if isinstance(bitext, Sentences):
        return [("source", bitext.name, bitext.source)]
    return [("source", bitext.languages[0], bitext.source), ("target", bitext.languages[1], bitext.target)]


def negatives_of(bitext: Bitext | Sentences) -> list[tuple[str, str, Texts | TextView]]:
    """Return (``negatives``, language, texts) of the negatives, if there are any."""
    if isinstance(bitext, Sentences) or bitext.negatives is None:
        return []
    return [("negatives", bitext.languages[1], bitext.negatives.texts)]


def texts_of(bitexts: Sequence[Bitext | Sentences], language: str) -> Texts | TextView:
    """Return all texts of one language."""
    return joined([side for bitext in bitexts for _, code, side in sides(bitext) if code == language])


def token_lengths(teacher: Teacher, texts: Texts | TextView, name: str, rows: np.ndarray) -> np.ndarray:
    """Count the teacher's tokens of some texts, a block at a time: int64 (rows,)."""
    out = np.zeros(len(rows), np.int64)
    for start in track(range(0, len(rows), _COUNTED), f"count tokens {name}", unit="block"):
        out[start : start + _COUNTED] = teacher.lengths(texts.take(rows[start : start + _COUNTED]))
        texts.release()
    return out


def make_units(
    corpus: Corpus, languages: Sequence[str], config: UnitsConfig, pieces: Tokenizer | None
) -> tuple[Units, str]:
    """Stage ``units``: train, count or take over the units; returns them and the stage's identity."""
    bitexts = corpus.part("train")
    vocabulary = config.vocabulary
    if config.kind == "subwords" and vocabulary == "auto":
        # A size that was asked for is that of a vocabulary of one's own, however small the corpus.
        pairs, asked = sum(map(len, bitexts)), config.size != UnitsConfig.size
        foreign = [code for code in languages if code not in SHIPPED]
        vocabulary = "corpus" if asked or foreign or pairs >= _ENOUGH_PAIRS else "mini"
        why = f"units.size={config.size:,} is set" if asked else f"{pairs:,} pairs; {_ENOUGH_PAIRS:,} are enough"
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
        units.save(folder)
        write_json(folder / "config.json", {"units": units.settings})

    folder, identity = corpus.stages.run_shared("units", inputs, share, make)
    return load_units(folder), identity


def _ready_tokenizer(
    config: UnitsConfig, vocabulary: str, pieces: Tokenizer | None, languages: Sequence[str]
) -> Tokenizer | None:
    """Return the existing tokenizer that the units are made of or need, if any."""
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
    """Refuse a tokenizer that folds traditional Chinese by itself where nothing is to be folded."""
    if "zh" in languages and folds(tokenizer):
        raise ConfigError(
            f"units.folding=false, but {name} folds traditional Chinese by itself: set units=subwords "
            "units.vocabulary=corpus, or units=words, or leave units.folding=true"
        )


def _sample_texts(bitexts: Sequence[Bitext | Sentences], pairs: int, seed: int) -> Iterator[str]:
    """Iterate over both sides of a random sample of each bitext."""
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


@dataclass(frozen=True)
class CountJob(Job):
    """Count the words of a range of a language's training texts."""

    folder: Path  # of the stage; the splitter is beside the shards
    corpus: Path  # folder of the corpus stage
    pairs: tuple[Pair, ...]
    sizes: tuple[tuple[str, int], ...]  # each language, and how many texts it has; the shards of the first come first
    texts: int  # of a shard

    def open(
        self, splitter: WordSplitter | None = None, threads: int = 1
    ) -> tuple[WordCounter, dict[str, Texts | TextView], int]:
        """Map the texts; the splitter is loaded, unless it is there already."""
        if splitter is None:
            splitter = WordUnits.load(self.folder / OPENED).splitter
        bitexts = [_open(self.corpus, "train", pair) for pair in self.pairs]
        return WordCounter(splitter), {code: texts_of(bitexts, code) for code, _ in self.sizes}, threads

    def share(self, opened: tuple[WordCounter, Any, int]) -> None:
        """Write the splitter."""
        none = _without_words(opened[0].splitter)

        def write(place: Path) -> None:
            none.save(place)
            write_json(place / "config.json", {"units": none.settings})

        once(self.folder / OPENED, none.identity, write)

    def shards(self) -> list[tuple[str, int]]:
        """Return the language and the first text of each shard."""
        return [(code, first) for code, size in self.sizes for first in range(0, size, self.texts)]

    def run(self, opened: Any, shard: int, output: Path) -> dict[str, Any]:
        """Write the words and counts."""
        (counter, texts, threads), (code, first) = opened, self.shards()[shard]
        part = texts[code][first : first + self.texts]
        counter.count(part, output, threads)
        texts[code].release()
        return {"lines": len(part)}


def _without_words(splitter: WordSplitter) -> WordUnits:
    return WordUnits([], splitter, splitter.tokenizer)


def count_by_shards(
    corpus: Corpus, languages: Sequence[str], splitter: WordSplitter, folder: Path
) -> dict[str, list[Path]]:
    """Count the words of the training texts, by whoever takes part; returns the files of each language."""
    execution, bitexts = corpus.stages.execution, corpus.part("train")
    sizes = tuple((code, len(texts_of(bitexts, code))) for code in languages)
    job = CountJob(folder.absolute(), corpus.folder.absolute(), tuple(corpus.pairs), sizes, _TEXTS_PER_SHARD)
    shards = job.shards()
    identity = fingerprint(_without_words(splitter).identity, corpus.identity, sizes, _TEXTS_PER_SHARD)

    stage = Stage(job.folder, "count words", len(shards), COUNTED, job, identity)
    stage.begin()
    # A shard at a time, of which all threads count their share: there may be but one a language.
    run_shards(stage, execution, 1, opened=job.open(splitter, corpus.threads))
    return {code: [stage.sound(n) for n, (own, _) in enumerate(shards) if own == code] for code in languages}


def make_bags(corpus: Corpus, units: Units, units_identity: str) -> tuple[Path, str]:
    """Stage ``bags``: look every training and development text up, once."""

    def make(folder: Path, _: str) -> None:
        """Look up each side, and save its bags."""
        for part in PARTS[:2]:
            for bitext in corpus.part(part):
                for name, _, side in [*sides(bitext), *negatives_of(bitext)]:
                    _look_up(units, side, folder, f"{part}.{bitext.name}.{name}", corpus.threads)
                if isinstance(bitext, Bitext) and bitext.negatives is not None:
                    np.save(folder / f"{part}.{bitext.name}.bounds.npy", bitext.negatives.bounds)

    return corpus.stages.run("bags", [corpus.identity, units_identity], make)


def make_exact_bags(corpus: Corpus, units: Units, bags: Path, bags_identity: str) -> tuple[Path, str]:
    """Stage ``exact``: what units each training text contains, found without a back-off.

    Where units have none, that is the stage ``bags``.
    """
    exact = units.exact
    if exact is units:
        return bags, bags_identity

    def make(folder: Path, _: str) -> None:
        """Look up each side, and save its bags."""
        for bitext in corpus.part("train"):
            for name, _, side in sides(bitext):
                _look_up(exact, side, folder, f"train.{bitext.name}.{name}", corpus.threads)

    return corpus.stages.run("exact", [bags_identity], make)


def _look_up(units: Units, texts: Texts | TextView, folder: Path, name: str, threads: int) -> None:
    """Write the bags of texts."""
    blocks = track(range(0, len(texts), 8192), f"look up {name}", unit="block")
    jobs = (partial(units.bags, texts[start : start + 8192]) for start in blocks)
    with bag_writer(folder, name, len(units.tokens)) as out:
        for bags in in_order(call, jobs, threads):
            out.append(bags.ids, bags.offsets)
            texts.release()


def open_bags(folder: Path, part: str, pair: Pair) -> tuple[Bags, Bags | None]:
    """Memory-map the bags of both sides of a bitext; the second is None for a single language."""
    name = f"{part}.{'-'.join(pair)}"
    return Bags.open(folder, f"{name}.source"), Bags.open(folder, f"{name}.target") if len(pair) == 2 else None


def open_negatives(folder: Path, part: str, pair: Pair) -> tuple[Bags, np.ndarray] | None:
    """Memory-map the bags of a bitext's negatives, and which pair has which (n + 1,); None if it has none."""
    name = f"{part}.{'-'.join(pair)}"
    if not (folder / f"{name}.bounds.npy").is_file():
        return None
    return Bags.open(folder, f"{name}.negatives"), np.load(folder / f"{name}.bounds.npy", mmap_mode="r")


def bags_of(folder: Path, pairs: Sequence[Pair], language: str) -> Bags:
    """Return the training bags of one language, in the order of :func:`texts_of`."""
    return concatenate_bags(
        [
            bags
            for pair in pairs
            for code, bags in zip(pair, open_bags(folder, "train", pair), strict=False)
            if code == language and bags is not None
        ]
    )


def read_report(stage: Path) -> dict[str, Any]:
    """Return what a stage counted."""
    return read_json(stage / "report.json")


@dataclass(frozen=True, eq=False)
class Tables:
    """Where each language's rows are."""

    languages: tuple[str, ...]  # codes
    units: Units  # what has a vector
    # each language has a table of its own (they stand one under the other, in one space), so that a string that two
    # languages share has two vectors; else all share one
    separate: bool

    def place(self, bags: Bags, language: str) -> Bags:
        """Turn a language's unit ids into rows."""
        first = self.languages.index(language) * len(self.units.tokens) if self.separate else 0
        return Bags(np.asarray(bags.ids) + np.int32(first), bags.offsets) if first else bags

    def model(self, matrix: np.ndarray, counts: Sequence[np.ndarray]) -> StaticModel:
        """Return a model that needs no language argument; languages' tables are averaged by how often each has a unit."""
        return StaticModel(self.units, self._merged(matrix, counts) if self.separate else matrix)

    def models(self, matrix: np.ndarray, counts: Sequence[np.ndarray]) -> dict[str, StaticModel]:
        """Return each language's own model; a unit that does not occur in the language is that of :meth:`model`."""
        if not self.separate:
            return dict.fromkeys(self.languages, StaticModel(self.units, matrix))
        merged, tables = self._merged(matrix, counts), matrix.reshape(len(self.languages), -1, matrix.shape[1])
        return {
            language: StaticModel(self.units, np.where((count > 0)[:, None], table, merged))
            for language, table, count in zip(self.languages, tables, counts, strict=True)
        }

    def _merged(self, matrix: np.ndarray, counts: Sequence[np.ndarray]) -> np.ndarray:
        weights = np.stack(counts).astype(np.float32)
        weights[:, weights.sum(0) == 0] = 1.0
        weights /= weights.sum(0)
        tables = matrix.reshape(len(self.languages), -1, matrix.shape[1])
        return np.einsum("lu,lud->ud", weights, tables).astype(np.float32)
