"""The first stage of a run: the cleaned corpus, split into parts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from xswe.corpus.bitext import Bitext, CorpusConfig, corpus_files, describe
from xswe.corpus.convert import open_training, prepare
from xswe.corpus.monolingual import Sentences, describe_sentences, load_sentences, sentence_files, split_parts
from xswe.errors import ConfigError
from xswe.io.files import read_json, write_json
from xswe.io.ragged import Texts, TextView, joined
from xswe.text.languages import check_languages
from xswe.training.stages import Stages, check_whole

PARTS = ("train", "development", "held_out")
Pair = tuple[str, ...]  # two languages, or one alone


def language_pairs(languages: Sequence[str], paths: Any) -> list[tuple[str, str]]:
    """Return the language pairs to train on.

    If ``corpus.paths`` is a mapping, it names them (entries of other languages are ignored); otherwise they are the first
    language with each of the others. ConfigError: a name is not a pair of known languages, or no pair is of the model's
    languages.
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
    folder: Path  # of the stage: one subfolder per part, and ``report.json``
    identity: str  # of the stage
    pairs: Sequence[Pair]  # the language pairs; for monolingual text only the language
    seed: int = 0  # decides which texts are drawn
    threads: int = 1  # number of threads

    def part(self, name: str) -> Sequence[Bitext | Sentences]:
        """Memory-map one part: ``train``, ``development`` or ``held_out``."""
        return [open_part(self.folder, name, pair) for pair in self.pairs]


def make_corpus(stages: Stages, languages: Sequence[str], config: CorpusConfig, seed: int, threads: int = 1) -> Corpus:
    """Stage ``corpus``: read, clean and split bitexts, or the sentences of a single language."""
    if len(languages) == 1:
        folder, identity = _make_sentences(stages, languages[0], config, seed, threads)
        return Corpus(stages, folder, identity, [(languages[0],)], seed, threads)
    pairs = language_pairs(languages, config.paths)
    files = corpus_files(config, pairs)
    inputs = {"-".join(pair): describe(config, found) for pair, found in files.items()} | {"seed": seed}

    def make(folder: Path, _: str) -> None:
        """Clean and split the pairs of each two languages, and report the counts."""
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
    """Check the training texts, which are outside the stage's folder; a missing text is reported when it is opened."""
    for pair in pairs:
        where = read_json(stage / "train" / f"{'-'.join(pair)}.json")
        place = Path(os.path.normpath(stage / where["text"]))
        for file in sorted(place.glob("*.npy")):
            check_whole(file, place, stage)


def _make_sentences(stages: Stages, language: str, config: CorpusConfig, seed: int, threads: int) -> tuple[Path, str]:
    found = sentence_files(config, language)

    def make(folder: Path, _: str) -> None:
        """Clean and split the sentences, and report the counts."""
        sentences, counts = load_sentences(config, language, found, threads)
        parts = split_parts(sentences, config, seed)
        for part in PARTS:
            parts[part].save(folder / part)
        if not len(parts["train"]):
            raise ConfigError(f"{language}: no training sentence is left of {counts['read']}; give a larger corpus")
        write_json(folder / "report.json", {language: counts | {part: len(parts[part]) for part in PARTS}})

    return stages.run("corpus", {language: describe_sentences(config, language, found), "seed": seed}, make)


def open_part(corpus: Path, part: str, pair: Pair) -> Bitext | Sentences:
    """Open one part of a converted corpus."""
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
