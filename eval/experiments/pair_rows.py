"""Static vectors in which more than single units has rows: pairs of neighbours, or units by the length of their sentence.

A sentence stays a sum of rows that are looked up. The pairs of neighbouring units are those of ``refine.bigrams``,
whose rows are zero at the start, and learnt beside the units' rows, or alone. As a sum of units cannot tell
who does what to whom, and hardly a negation, such rows are also shown translations made wrong: two words exchanged, a
negation put in or taken out, a digit exchanged, each of which shares nearly all of its words with the right one.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xswe.io.files import fingerprint
from xswe.io.parallel import single_threaded_blas
from xswe.io.ragged import Bags, bounds_of, concatenate_bags
from xswe.model.bigrams import Bigrams
from xswe.text.segmenters import make_segmenter
from xswe.text.units import Units
from xswe.training.loop import Schedule
from xswe.training.objective import Objective
from xswe.training.optimisers import Adam
from xswe.training.pairs import ParallelBags
from xswe.training.refine import RefineConfig, Trainer


class FurtherUnits:
    """Units, and further ones that are found by looking at the ids of a sentence's units."""

    def __init__(self, units: Units) -> None:
        self.units, self.kind, self.languages = units, units.kind, units.languages

    @property
    def tokens(self) -> list[str]:
        """The strings of the units themselves; further ones have none."""
        return [*self.units.tokens, *[""] * (len(self) - len(self.units))]

    @property
    def identity(self) -> str:
        """A fingerprint of the units, and of which are the further ones."""
        return fingerprint(self.units.identity, type(self).__name__, len(self))

    def __len__(self) -> int:
        raise NotImplementedError

    def widened(self, bags: Bags) -> Bags:
        """Return the bags of sentences with the further units."""
        raise NotImplementedError

    def bags(self, texts: Sequence[str]) -> Bags:
        """Look texts up."""
        return self.widened(self.units.bags(texts))


class LengthUnits(FurtherUnits):
    """Units that have a second row for sentences of more than ``most`` units."""

    def __init__(self, units: Units, most: int) -> None:
        super().__init__(units)
        self._most = most

    def __len__(self) -> int:
        return 2 * len(self.units)

    def widened(self, bags: Bags) -> Bags:
        """Return the bags, with the second rows in long ones."""
        long = np.repeat(bags.lengths > self._most, bags.lengths)
        return Bags(bags.ids.astype(np.int32) + np.int32(len(self.units)) * long, bags.offsets)


class DistinctUnits(FurtherUnits):
    """Units of which a sentence counts each once, however often it has it."""

    def __len__(self) -> int:
        return len(self.units)

    def widened(self, bags: Bags) -> Bags:
        """Return the bags, without what comes again."""
        owner = np.repeat(np.arange(len(bags)), bags.lengths)
        _, first = np.unique(owner * len(self.units) + bags.ids, return_index=True)
        kept = np.zeros(len(bags.ids), bool)
        kept[first] = True
        return Bags(bags.ids[kept].astype(np.int32), bounds_of(kept)[bags.offsets])


# Translations made wrong. Each function returns a text that says something else in nearly the same words, or None.

# What each pattern finds is its last group.
_NOUNS = {
    "en": re.compile(
        r"\b(?:[Tt]he|[Aa]n?|[Mm]y|[Hh]is|[Hh]er|[Ii]ts|[Oo]ur|[Yy]our|[Tt]heir|[Tt]his|[Tt]hat) ([a-z]{3,})\b"
        r"|(?<=[a-z,] )([A-Z][a-z]+)\b|^([A-Z][a-z]+)(?= [a-z]+(?:s|ed)\b)"
    ),
    "de": re.compile(r"(?<=[a-zß,] )([A-ZÄÖÜ][a-zäöüß]+)\b"),
    "ja": re.compile(r"([一-鿿々]+|[ァ-ヶー]+)(?=[はがをにとのへも])"),
}
_INSERTED = {
    "en": [
        (re.compile(r"\b(is|are|was|were|am|can|could|will|would|should|must|has|have|had)\b"), r"\1 not"),
        (re.compile(r"\b(I|you|we|they|You|We|They) (?=[a-z])"), r"\1 do not "),
    ],
    "de": [
        (re.compile(r"\b([Ee])in(e|en|er|em|es)?\b"), lambda m: ("K" if m[1] == "E" else "k") + f"ein{m[2] or ''}"),
        (
            re.compile(r"\b(ist|sind|war|waren|bin|kann|können|will|wird|werden|muss|soll|habe|hat|haben|hatte)\b"),
            r"\1 nicht",
        ),
        (re.compile(r"(?=[.!?]$)"), " nicht"),
    ],
    "zh": [(re.compile(r"(?=是|会|能|要|想|喜欢|知道|可以|应该)"), "不"), (re.compile(r"(?=看到|听到|去过|完成)"), "没")],
    "ja": [
        (re.compile(r"ました"), "ませんでした"),
        (re.compile(r"ます"), "ません"),
        (re.compile(r"です"), "ではありません"),
        (re.compile(r"(?<=て|で)いる"), "いない"),
        (re.compile(r"だった"), "ではなかった"),
        (re.compile(r"だ(?=。|$)"), "ではない"),
    ],
}
_REMOVED = {
    "en": [
        (re.compile(r" not\b"), ""),
        (re.compile(r"\b([Cc])an(?:not|'t)\b"), r"\1an"),
        (re.compile(r"\b([Dd])on't "), ""),
        (re.compile(r"\b(is|are|was|were|could|would|should|has|have|had)n't\b"), r"\1"),
        (re.compile(r"\bnever "), ""),
    ],
    "de": [
        (re.compile(r" nicht\b"), ""),
        (re.compile(r"\b([Kk])ein(e|en|er|em|es)?\b"), lambda m: ("E" if m[1] == "K" else "e") + f"in{m[2] or ''}"),
        (re.compile(r" nie\b"), ""),
    ],
    "zh": [(re.compile(r"没有|没|不"), "")],
    "ja": [
        (re.compile(r"ませんでした"), "ました"),
        (re.compile(r"ません"), "ます"),
        (re.compile(r"(?:では|じゃ)ない"), "だ"),
        (re.compile(r"(?<=て|で)いない"), "いる"),
    ],
}
_DIGIT = re.compile(r"\d")


def _swapped(text: str, spans: list[tuple[int, int]], draw: random.Random) -> str | None:
    """Exchange two different words of a text that stand no more than five words of the list apart."""
    for _ in range(4):
        if len(spans) < 2:
            return None
        k = draw.randrange(len(spans) - 1)
        (a, b), (c, d) = spans[k], spans[draw.randrange(k + 1, min(k + 6, len(spans)))]
        if text[a:b].lower() != text[c:d].lower() and b <= c:
            first, second = text[a:b], text[c:d]
            if a == 0 and first[0].isupper():
                second = second[0].upper() + second[1:]
            return text[:a] + second + text[b:c] + first + text[d:]
    return None


def order_changed(text: str, language: str, draw: random.Random, chinese: Callable[[str], Any]) -> str | None:
    """Exchange two nouns or names, as far as their surroundings tell them: who does what to whom changes."""
    if language == "zh":
        return _swapped(text, [(a, b) for a, b in chinese(text) if b - a > 1 and text[a:b].isalpha()], draw)
    return _swapped(text, [match.span(match.lastindex or 0) for match in _NOUNS[language].finditer(text)], draw)


def negated(text: str, language: str) -> str | None:
    """Take a negation out; put one in where there is none."""
    for pattern, other in (*_REMOVED[language], *_INSERTED[language]):
        changed = pattern.sub(other, text, count=1)
        if changed != text:
            return changed
    return None


def digit_changed(text: str, draw: random.Random) -> str | None:
    """Exchange one digit."""
    places = [match.start() for match in _DIGIT.finditer(text)]
    if not places:
        return None
    place = draw.choice(places)
    return text[:place] + draw.choice("0123456789".replace(text[place], "")) + text[place + 1 :]


def wrong_translations(
    sides: tuple[Sequence[str], Sequence[str]], languages: tuple[str, str], seed: int
) -> tuple[list[str], list[str], list[str]]:
    """Return sentences, their translations, and these made wrong; either side is the translation half of the time."""
    draw, chinese = random.Random(seed), make_segmenter("jieba", "zh", None) if "zh" in languages else lambda _: []
    found: tuple[list[str], list[str], list[str]] = ([], [], [])
    for k, pair in enumerate(zip(*sides, strict=True)):
        right, language = pair[k % 2], languages[k % 2]
        makers = [
            lambda text=right, code=language: order_changed(text, code, draw, chinese),
            lambda text=right, code=language: negated(text, code),
            lambda text=right: digit_changed(text, draw),
        ]
        draw.shuffle(makers)
        wrong = next((made for maker in makers if (made := maker())), None)
        if wrong is not None:
            for column, text in zip(found, (pair[1 - k % 2], right, wrong), strict=True):
                column.append(text)
    return found


class Contrasts:
    """A loss of triples that a trainer adds to each step: a softmax of two, the translation and that made wrong.

    Args:
        bags: of the sentences, their translations, and the wrong ones, n each, one after the other.
        weight: of the loss.
        temperature: of the cosines.
        size: triples a step.
        seed: decides which.
    """

    def __init__(self, bags: Bags, weight: float, temperature: float = 0.05, size: int = 512, seed: int = 0) -> None:
        self.bags, self.weight, self.temperature, self.size, self.seed = bags, weight, temperature, size, seed

    def draw(self, step: int) -> tuple[Bags, np.ndarray]:
        """Return the bags of a step's triples, and a number for each."""
        count = len(self.bags) // 3
        rows = np.random.default_rng([self.seed, 47, step]).integers(0, count, min(self.size, count))
        return self.bags.take(np.concatenate([rows, count + rows, 2 * count + rows])), np.zeros(len(rows))

    def __call__(self, unit: np.ndarray, scores: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss of triples and its gradient, float32 (3k, d), given their unit vectors."""
        sentence, right, wrong = np.split(unit, 3)
        ahead = np.einsum("ij,ij->i", sentence, right - wrong) / self.temperature
        factor = np.float32(self.weight / self.temperature / len(ahead))
        pull = (-factor / (1 + np.exp(ahead)))[:, None].astype(np.float32)
        gradient = np.concatenate([pull * (right - wrong), pull * sentence, -pull * sentence])
        return self.weight * float(np.logaddexp(0, -ahead).mean()), gradient


class _Above:
    """An optimiser that moves only the rows from one on."""

    def __init__(self, optimiser: Adam, first: int) -> None:
        self._optimiser, self._first = optimiser, first

    @property
    def steps(self) -> int:
        """The number of steps taken."""
        return self._optimiser.steps

    def step(self, ids: np.ndarray, starts: np.ndarray, stops: np.ndarray, gradients: np.ndarray, rate: float) -> None:
        """Move the table against the gradient of a batch, but for its first rows."""
        kept = ids >= self._first
        bounds = bounds_of(kept)
        self._optimiser.step(ids[kept], bounds[starts], bounds[stops], gradients, rate)


def learnt(
    start: np.ndarray,
    bitexts: Sequence[ParallelBags],
    config: RefineConfig,
    objective: Objective,
    contrasts: Contrasts | None = None,
    fixed: int = 0,
    bigrams: Bigrams | None = None,
) -> np.ndarray:
    """Return a table, float32 (rows, d), that was trained on pairs, and on contrasts; its first ``fixed`` rows stay.

    ``start`` has the rows of bigrams, too.
    """
    table = np.array(start, np.float32, order="C")
    trainer = Trainer(table, config, objective, contrasts, bigrams)  # type: ignore[arg-type]
    if fixed:
        trainer.optimiser = _Above(trainer.optimiser, fixed)  # type: ignore[assignment]
    schedule = Schedule(tuple(map(len, bitexts)), config.batch_size, config.seed)
    with single_threaded_blas():
        for step in range(config.max_steps):
            which, rows = schedule.at(step)
            trainer.step(bitexts[which], rows, config.rate_at(step))
    return trainer.matrix


def triples_of(
    texts: Sequence[tuple[tuple[Sequence[str], Sequence[str]], tuple[str, str]]], units: Units, seed: int
) -> Bags:
    """Make the bags of :class:`Contrasts` of some pairs of texts and their languages."""
    columns: tuple[list[str], list[str], list[str]] = ([], [], [])
    for sides, languages in texts:
        for column, made in zip(columns, wrong_translations(sides, languages, seed), strict=True):
            column.extend(made)
    return concatenate_bags([units.bags(column) for column in columns])
