"""Surface forms of units: the spellings before the look-up folds them.

The look-up folds case, width and traditional characters, and its units may be parts of words. A unit is displayed in its
most frequent form in texts of a language, counting only occurrences that are whole words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Hashable, Sequence

import numpy as np

from xswe.io.parallel import over_blocks
from xswe.io.ragged import Texts, bounds_of
from xswe.text.borders import OPENING, traits_of_characters, within_word
from xswe.text.compiled.chunks import contents, new_table, number
from xswe.text.scripts import in_script
from xswe.text.stopwords import has_particle
from xswe.text.tokenizers import WORD_START
from xswe.text.units import AS_LOOKED_UP, BLOCK, Units, in_blocks
from xswe.text.words import WordUnits

_MIN_WORD_SHARE = 0.02  # of a unit's places; a unit that is a word less often is a part that sometimes looks like one
_MAX_LENGTH = 100  # characters of a form
_SAMPLE_SIZE = 1 << 20  # texts
_OPENING = np.array([ord(mark) for mark in OPENING], np.uint32)


class Forms:
    """Counts of the forms in which things occur."""

    def __init__(self) -> None:
        self._met: Counter[tuple[Hashable, str, bool]] = Counter()

    def add(self, thing: Hashable, form: str, within: bool, times: int = 1) -> None:
        """Count a form; ``within``: its capitals are its own, because it is within a sentence or has none."""
        self._met[thing, form, within] += times

    def ranked(self, things: Container[Hashable]) -> dict[Hashable, list[str]]:
        """Return the forms of some things, the most frequent within sentences first."""
        found: dict[Hashable, dict[str, list[int]]] = {}
        for (thing, form, within), times in self._met.items():
            if thing in things:
                counts = found.setdefault(thing, {}).setdefault(form, [0, 0])
                counts[0] += within * times
                counts[1] += times
        return {thing: sorted(forms, key=lambda form: (*forms[form], form), reverse=True) for thing, forms in found.items()}


class FormCounter:
    """Counter of the forms of ``units`` in texts of a language."""

    def __init__(self, units: Units, language: str) -> None:
        self.units, self.language = units, language
        self.places, self.words = np.zeros((2, len(units)), np.int64)  # of each unit: all, and those where it is a word
        self._table = new_table(1 << 12)
        self._keys, self._counts = [np.zeros(0, np.int64)], [np.zeros((0, 2), np.int64)]

    def add(self, texts: Sequence[str]) -> None:
        """Count the forms in a few thousand texts."""
        located, joined = self.units.locate(texts), "\n".join([*texts, ""])
        codes, data = np.frombuffer(joined.encode("utf-32-le"), "<u4"), np.frombuffer(joined.encode(), np.uint8)
        lengths = [len(text) + 1 for text in texts]
        first = bounds_of(lengths)[np.repeat(np.arange(len(texts)), located.bags.lengths)]
        ids, starts, ends = located.bags.ids.astype(np.int64), first + located.starts, first + located.ends
        traits = traits_of_characters()[codes]
        parts = within_word(traits[starts - 1], traits[starts]) | within_word(traits[ends - 1], traits[ends])
        rows = np.flatnonzero(~parts & (starts < ends) & (ends - starts <= _MAX_LENGTH))
        self.places += np.bincount(ids, minlength=len(self.places))
        self.words += np.bincount(ids[rows], minlength=len(self.places))
        ids, starts, ends = ids[rows], starts[rows], ends[rows]
        opening = np.isin(codes, _OPENING)
        within = ~(opening[starts - 1] | opening[starts - 2])
        widths = bounds_of(1 + (codes >= 0x80).astype(np.int64) + (codes >= 0x800) + (codes >= 0x10000))
        self._table, forms = number(self._table, data, widths[starts], widths[ends])
        keys, which = np.unique(forms * len(self.places) + ids, return_inverse=True)
        self._keys.append(keys)
        self._counts.append(np.stack([np.bincount(which, within), np.bincount(which)], 1).astype(np.int64))
        if sum(map(len, self._keys[1:])) > len(self._keys[0]) + BLOCK * 100:
            self._add_up()

    def _add_up(self) -> None:
        keys, which = np.unique(np.concatenate(self._keys), return_inverse=True)
        counts = np.zeros((len(keys), 2), np.int64)
        np.add.at(counts, which, np.concatenate(self._counts))
        self._keys, self._counts = [keys], [counts]

    def tally(self) -> tuple[Texts, np.ndarray, np.ndarray]:
        """Return the forms; their pairs with units, as form x units + unit; the pairs' counts in sentences and overall."""
        self._add_up()
        return contents(self._table)[0], self._keys[0], self._counts[0]


def commonest_forms(counters: Sequence[FormCounter]) -> Texts:
    """Return the most frequent form of each unit, by the counts of several counters in texts of one language.

    It is "" for a unit that is not a word, and ``=`` if the form is the unit as looked up, as it is for most. In Chinese, a
    unit's own simplified characters are chosen if they occur at all; in Japanese, a word with particles does not count.
    """
    units, language = counters[0].units, counters[0].language
    met, tokens, out = Forms(), units.tokens, [""] * len(units)
    places, words = (sum(getattr(counter, name) for counter in counters) for name in ("places", "words"))
    for counter in counters:
        texts, keys, counts = counter.tally()
        written = list(texts)
        for key, (within, times) in zip(keys.tolist(), counts.tolist(), strict=True):
            form, unit = divmod(key, len(units))
            met.add(unit, written[form], True, within)
            met.add(unit, written[form], False, times - within)
    spelt, forms = _spelling(units), met.ranked(range(len(units)))
    for unit in np.flatnonzero(words > _MIN_WORD_SHARE * places).tolist():
        own, token = forms[unit], tokens[unit].removeprefix(WORD_START)
        if language == "zh" and token in own:
            own = [token]
        form = next((one for one in own if one.isalpha() and in_script(one, language) and spelt(one, token)), "")
        out[unit] = "" if language == "ja" and has_particle(form) else AS_LOOKED_UP if form == token else form
    return Texts.of(out)


def _spelling(units: Units) -> Callable[[str, str], bool]:
    """Return a function that distinguishes forms of a word from longer words that were backed off to it."""
    if not isinstance(units, WordUnits):
        return lambda form, token: True
    steps = [units.splitter.normaliser(code).normalize_str for code in units.splitter.han_languages or (None,)]
    return lambda form, word: any(word in (folded := step(form), folded.lower()) for step in steps)


def count_forms(units: Units, texts: Sequence[str], language: str, threads: int = 1) -> Texts:
    """Return the most frequent form of each unit in texts of a language, like :func:`commonest_forms`.

    Of more than a million texts only every n-th block is read, as a sample.
    """
    step = BLOCK * -(-len(texts) // _SAMPLE_SIZE)
    starts = range(0, len(texts), max(step, 1))

    def count(first: int, last: int) -> FormCounter:
        """Count the forms of some blocks of texts, and release what has been read."""
        counter = FormCounter(units, language)
        for start in starts[first:last]:
            for block in in_blocks(texts[start : start + BLOCK]):
                counter.add(block)
            if hasattr(texts, "release"):
                texts.release()
        return counter

    return commonest_forms(over_blocks(count, len(starts), threads) or [FormCounter(units, language)])
