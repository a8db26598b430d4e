"""Sentences of one language, from plain text files or one side of bitexts."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from xswe.bitext.formats import format_by_name
from xswe.bitext.source import files_of
from xswe.bitext.texts import TextSource
from xswe.corpus.bitext import CorpusConfig, CorpusReport, describe
from xswe.corpus.cards import card_version, fetch_release, find_card, find_sources, is_card
from xswe.corpus.cleaning import DETECTS, CleanConfig
from xswe.corpus.decontamination import EvaluationTexts
from xswe.corpus.fetch import digest_of
from xswe.errors import ConfigError, InputError
from xswe.io.lines import Skipped, read_lines
from xswe.io.parallel import in_order
from xswe.io.ragged import Texts
from xswe.io.sources import is_tar, is_zip
from xswe.progress import bar
from xswe.text.boundaries import split_sentences, splitter
from xswe.text.detection import in_other_language
from xswe.text.languages import LANGUAGES
from xswe.text.sentences import is_document

logger = logging.getLogger(__name__)
_BLOCK_PARAGRAPHS = 1024
_CLEANED_AT_A_TIME = 8192
_FIRST_LINES = 10  # a file is a bitext if these all have tabs; plain text may have one


@dataclass(frozen=True, eq=False)
class Sentences:
    """Distinct sentences (``source``) of one language, whose code is the only one in ``languages``."""

    languages: tuple[str]
    source: Texts

    def __len__(self) -> int:
        return len(self.source)

    @property
    def name(self) -> str:
        """The language's code."""
        return self.languages[0]

    def take(self, rows: np.ndarray) -> Sentences:
        """Return the sentences ``rows``."""
        return Sentences(self.languages, self.source.take(rows))

    def save(self, folder: Path) -> None:
        """Write the texts into ``folder``."""
        folder.mkdir(parents=True, exist_ok=True)
        self.source.save(folder, f"{self.name}.source")

    @classmethod
    def open(cls, folder: Path, languages: tuple[str]) -> Sentences:
        """Memory-map what :meth:`save` wrote."""
        return cls(languages, Texts.open(folder, f"{languages[0]}.source"))


def sentences_of(found: Sequence[TextSource], split: bool, left_out: Skipped, threads: int = 1) -> Iterator[str]:
    """Yield sentences, stripped of whitespace and possibly empty; count those left out.

    With ``split``, each line of plain text is a paragraph, and split into sentences.
    """
    for one in found:
        texts = (text.strip() for text in one.read(left_out) if text is not None)
        yield from _cut(texts, one.language, threads) if split and not (one.bitexts or one.is_cut) else texts


def _cut(paragraphs: Iterator[str], language: str, threads: int) -> Iterator[str]:
    """Split paragraphs, block by block, and yield their sentences in order."""

    def sentences(block: list[str]) -> list[str]:
        return [text[a:b] for text in block for a, b in split_sentences(text, language)]

    for found in in_order(sentences, batches(paragraphs, _BLOCK_PARAGRAPHS), threads):
        yield from found


def batches(texts: Iterator[str], size: int) -> Iterator[list[str]]:
    """Yield lists of ``size`` texts."""
    while block := list(islice(texts, size)):
        yield block


def sentence_files(config: CorpusConfig, language: str) -> list[TextSource]:
    """Return the sources of a language; those of corpus cards are fetched.

    ``corpus.paths`` is a list of monolingual corpus cards and files of plain or running text, or a mapping, whose entry
    ``en`` is such a list; of an entry ``en-ja``, which lists bitexts, the English side is used. ConfigError: no path is
    given, no entry has the language, or a setting is for translations only.
    """
    if replace(config.clean, language="") != CleanConfig() or config.min_score is not None:
        raise ConfigError(
            "corpus.clean (except its language) and corpus.min_score are for translations; for one language set "
            "corpus/clean=none"
        )
    paths = config.paths if isinstance(config.paths, Mapping) else {language: config.paths or ()}
    found: list[TextSource] = []
    for name, given in paths.items():
        codes = tuple(str(name).split("-"))
        entries = [given] if isinstance(given, str) else list(given)
        if codes == (language,):
            files = _text_files(entries, config, language)
            found += [TextSource(str(path), language, on_error=config.on_error) for path in files]
        elif language in codes and len(codes) == 2 and set(codes) <= set(LANGUAGES):
            pair = codes[0], codes[1]
            bitexts = tuple(find_sources(entries, pair, config.columns, config.cache, config.offline))
            found.append(TextSource(str(name), language, False, config.on_error, bitexts, pair.index(language)))
    if not found:
        raise ConfigError(
            f"corpus.paths has {', '.join(map(str, paths)) or 'nothing'}: no entry has the language {language}"
        )
    return found


def _text_files(entries: Sequence[Any], config: CorpusConfig, language: str) -> list[Path]:
    """Return the text files of entries of ``corpus.paths``; fetch those of corpus cards."""
    out: list[Path] = []
    for entry in entries:
        if is_card(entry):
            out += _fetched(entry, config, language)
            continue
        if isinstance(entry, Mapping):
            raise ConfigError(f"corpus.paths={entry}: columns are for bitexts; name the pair, as in {{en-ja: [...]}}")
        for path in files_of(entry):
            _refuse_bitext(path, language)
            out.append(path)
    if not out:
        raise ConfigError("the corpus has no files: set corpus.paths=[a.txt.gz,...]")
    return out


def _fetched(entry: Mapping[str, Any], config: CorpusConfig, language: str) -> list[Path]:
    """Fetch the files of a monolingual corpus card."""
    name, version = card_version(entry)
    card = find_card(name)
    release = card.release_for((language,), version)
    if release.format != "lines":
        raise ConfigError(
            f"corpus {card.name} is no text file: save its sentences, one a line, and set corpus.paths=[FILE]"
        )
    return fetch_release(card, release, (language,), config.cache, config.offline)


def _refuse_bitext(path: Path, language: str) -> None:
    """Raise InputError if a file is a bitext, judged by its name or the tabs in its first lines."""
    if is_document(path):
        return
    packed = is_zip(path) or is_tar(path)
    kind = "archive" if packed else format_by_name(path)
    if kind == "tsv":
        texts = (text for _, text in read_lines(path, on_error="skip") if text and text.strip())
        first = list(islice(texts, _FIRST_LINES))
        if not first or not all("\t" in text for text in first):
            return
    other = next(code for code in ("ja", "en") if code != language)
    raise InputError(
        path,
        f"a bitext ({kind}), where plain text of one language is read",
        f"name its languages, and one side of it is taken, as in corpus.paths={{{language}-{other}:[{path.name}]}}",
    )


def describe_sentences(config: CorpusConfig, language: str, found: Sequence[TextSource]) -> list[Any]:
    """Return the settings, checksums, sides and languages that determine the sentences and their split."""
    out: list[Any] = [[describe(config, one.sources), one.side, [file.languages for file in one.bitexts]] for one in found]
    return out + ([{"split": splitter(language)}] if config.split or any(one.is_cut for one in found) else [])


def load_sentences(
    config: CorpusConfig, language: str, found: Sequence[TextSource], threads: int = 1
) -> tuple[Sentences, dict[str, Any]]:
    """Return the sentences in file order, without blank, over-long, repeated, evaluation and foreign ones, and the counts.

    With ``config.split``, plain text, a paragraph a line, is split into sentences on ``threads`` threads.
    """
    report, skipped = CorpusReport(), Skipped()
    evaluation = EvaluationTexts(config.decontaminate) if config.decontaminate else None
    seen: set[bytes] = set()
    kept: list[bytes] = []
    with bar(f"read {language}", unit="sentence") as progress:
        for text in sentences_of(found, config.split, skipped, threads):
            report.read += 1
            progress.update()
            raw = text.encode("utf-8", "replace")
            key = hashlib.blake2b(raw, digest_size=10).digest()
            long = len(text) > config.max_characters
            if reason := "too long" if long else "duplicate" if key in seen else "" if text else "blank":
                report.dropped[reason] = report.dropped.get(reason, 0) + 1
                continue
            seen.add(key)
            kept.append(raw)
    report.checksums = {str(path): digest_of(path) for one in found for file in one.sources for path in file.files}
    for reason, count in skipped.counts.items():
        report.dropped[reason] = report.dropped.get(reason, 0) + count
    texts = Texts.packed(kept)
    if evaluation is not None:
        exact, normalised = evaluation.known(texts)
        for reason, rows in (("evaluation text", exact), ("evaluation text, normalised", normalised & ~exact)):
            if rows.any():
                report.dropped[reason] = int(rows.sum())
        texts = texts.take(np.flatnonzero(~(exact | normalised)))
    if DETECTS[config.clean.language]:
        in_language = [
            start + np.flatnonzero(~in_other_language(list(texts[start : start + _CLEANED_AT_A_TIME]), language, threads))
            for start in range(0, len(texts), _CLEANED_AT_A_TIME)
        ]
        rows = np.concatenate([np.zeros(0, np.int64), *in_language])
        if len(rows) < len(texts):
            report.dropped["other language"] = len(texts) - len(rows)
        texts = texts.take(rows)
    report.kept = len(texts)
    sentences = Sentences((language,), texts)
    logger.info("%s: %s", language, report.summary(config.limit, "sentences"))
    return sentences, asdict(report)


def split_parts(sentences: Sentences, config: CorpusConfig, seed: int) -> dict[str, Sentences]:
    """Split sentences at random into ``train``, ``development`` and ``held_out``, disjoint as they are distinct."""
    order = np.random.default_rng([seed, 7]).permutation(len(sentences))
    if config.limit:
        order = order[: config.limit]
    held_out = min(config.max_held_out, int(len(order) * config.held_out))
    development = min(config.max_development, int(len(order) * config.development))
    cuts = {
        "held_out": order[:held_out],
        "development": order[held_out : held_out + development],
        "train": order[held_out + development :],
    }
    return {part: sentences.take(np.sort(rows)) for part, rows in cuts.items()}
