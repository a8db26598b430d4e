"""Word translation: the neighbours of two vocabularies by CSLS, and how good they are against a given lexicon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from xswe.corpus.blocks import read_pairs
from xswe.corpus.formats import PairFile
from xswe.errors import ConfigError, InputError
from xswe.io.lines import read_lines
from xswe.mining.margin import Pairs, score_candidates, select
from xswe.model.ensemble import AnyModel
from xswe.model.static import StaticModel
from xswe.search.neighbours import find_neighbours
from xswe.search.types import SearchConfig
from xswe.text.languages import LANGUAGES, check_languages


@dataclass(frozen=True)
class LexiconConfig:
    """How words are paired.

    Attributes:
        best: length of a word's list of translations.
        mutual: keep a pair only if each word is in the other's list.
        k: neighbours that CSLS takes its means over (MUSE: 10).
        candidates: nearest words by cosine among which CSLS chooses.
        neighbours: how they are sought.
    """

    best: int = 1
    mutual: bool = True
    k: int = 10
    candidates: int = 50
    neighbours: SearchConfig = field(default_factory=SearchConfig)

    def __post_init__(self) -> None:
        if min(self.best, self.k) < 1 or self.candidates < max(self.best, self.k):
            raise ConfigError(
                f"best={self.best}, k={self.k}, candidates={self.candidates}: need 1 <= best, k <= candidates"
            )


@dataclass(frozen=True)
class Precision:
    """How good a lexicon is on the source words of a gold lexicon."""

    at_1: float  # fraction of the words whose first translation is a gold one
    at_5: float  # fraction with a gold one among the first five
    words: int  # gold source words that are in the source vocabulary, with a gold translation in the target's
    gold: int  # all gold source words


def vocabularies(model: StaticModel, languages: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words of two languages.

    Raises:
        ConfigError: the languages share a script, and the model has no counts that tell its units apart.
    """
    source, target = check_languages(languages)
    scripts = {LANGUAGES[code].script if LANGUAGES[code].spaced else "han" for code in (source, target)}
    if len(scripts) == 1 and model.counts is None:
        raise ConfigError(
            f"{source} and {target} share a script, and the model has no counts of its units that would tell them apart "
            "(counts.safetensors, which train writes): give word lists, source=words.txt target=words.txt"
        )
    return list(model.words(source)), list(model.words(target))


def read_words(path: str | Path, limit: int = 0) -> list[str]:
    """Read distinct words, one a line; what follows a tab (a count, say) is not looked at.

    Raises:
        InputError: the file is missing or has no word.
    """
    words: dict[str, None] = {}
    for _, line in read_lines(path):
        if word := (line or "").split("\t")[0].strip():
            words[word] = None
        if limit and len(words) >= limit:
            break
    if not words:
        raise InputError(path, "no word in it", "give a file with a word a line")
    return list(words)


def make_lexicon(
    model: AnyModel, source: Sequence[str], target: Sequence[str], config: LexiconConfig | None = None
) -> Pairs:
    """Pair words by CSLS.

    Args:
        model: what encodes the words; those without any known unit are paired with nothing.
        source: distinct words.
        target: distinct words.
        config: how.

    Returns:
        Pairs by source word, then rank.
    """
    config = config or LexiconConfig()
    vectors = [model.encode(list(words), threads=config.neighbours.workers) for words in (source, target)]
    known = [np.flatnonzero(np.abs(each).max(1, initial=0) > 0) for each in vectors]
    parts = [np.ascontiguousarray(each[rows]) for each, rows in zip(vectors, known, strict=True)]
    lists = find_neighbours(parts[0], parts[1], config.candidates, config.neighbours)
    forward = select(score_candidates(lists, "csls", config.k), "kbest", config.best)
    if config.mutual:
        backward = select(score_candidates(lists.reversed(), "csls", config.k), "kbest", config.best)
        there = np.int64(max(1, len(known[1])))
        both = np.isin(forward.source * there + forward.target, backward.target * there + backward.source)
        forward = forward.take(both)
    return Pairs(forward.scores, known[0][forward.source], known[1][forward.target], forward.rank)


def precision(
    model: AnyModel,
    source: Sequence[str],
    target: Sequence[str],
    gold: str | Path,
    config: LexiconConfig | None = None,
) -> Precision:
    """Compare with a gold lexicon, ``source<TAB>target`` a line, a word's translations on lines of their own.

    Case is not looked at. Words outside the vocabularies cannot be found and do not count; ``words`` tells how many do.
    """
    config = config or LexiconConfig()
    config = replace(config, best=5, mutual=False, candidates=max(5, config.candidates))
    answers: dict[str, set[str]] = {}
    for a, b in read_pairs(PairFile(Path(gold))):
        if a and b:
            answers.setdefault(a.casefold(), set()).add(b.casefold())
    there = {word.casefold() for word in target}
    queries = [w for w in source if w.casefold() in answers and answers[w.casefold()] & there]
    if not queries:
        raise InputError(gold, "no pair of words of both vocabularies", "check the languages and their order")
    # All source words take part, for a target's neighbourhood is made of them.
    found = make_lexicon(model, source, target, config)
    lists: dict[int, list[str]] = {}
    for row, column in zip(found.source.tolist(), found.target.tolist(), strict=True):
        lists.setdefault(row, []).append(target[column].casefold())
    place = {word: i for i, word in enumerate(source)}
    answered = [(lists.get(place[word], []), answers[word.casefold()]) for word in queries]
    first, five = (np.mean([not right.isdisjoint(words[:n]) for words, right in answered]) for n in (1, 5))
    return Precision(float(first), float(five), len(queries), len(answers))
