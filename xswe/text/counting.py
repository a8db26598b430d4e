"""The most frequent words of a corpus of any size, counted in compiled code, on threads, in bounded memory.

Each thread counts in its own hash table. A full table is written to a file, partitioned by a hash of the word, and
emptied. At the end the counts of each partition are added up, and the most frequent words are chosen from all of them. The
counts are exact, and the same for any number of threads and files.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from zipfile import ZipFile

import numpy as np
from numba import njit
from numpy.lib.format import write_array

from xswe.io.compiler import LEAN, start_compiler
from xswe.io.files import whole_file
from xswe.io.parallel import Lock, parallel_for
from xswe.io.ragged import Bags, Texts, concatenate
from xswe.text.compiled.alphabet import CJK
from xswe.text.compiled.chunks import LONGEST, NewChunks, contents, distinct, new_table, number, remember
from xswe.text.compiled.lookup import Deferred
from xswe.text.compiled.viterbi import DONE, NO_SEARCH, UNLEARNT
from xswe.text.compiled.word_lookup import Ids, OneLanguage, WholeTexts, WordLookup
from xswe.text.units import BLOCK, in_blocks
from xswe.text.words import WordSplitter

_MAX_WORDS = 1 << 20  # in a thread's table before it is written to a file: some 200 MB
_RUN_SLOTS = 1 << 16  # of a thread's table of runs
_SCAN_BYTES = 1 << 17  # scanned at a time: there is room even if all of their chunks are new
_PARTS = 16
_ARRAYS = ("bytes", "offsets", "counts")  # of one part of a table
COUNTED = ".npz"  # suffix of files of counts


class WordCounter:
    """Counter of the words of texts; its files are added up by :func:`most_frequent_of`."""

    def __init__(self, splitter: WordSplitter) -> None:
        start_compiler()
        ids = Ids(lambda _: -1, lambda _: -1, splitter.tokenizer)
        lookups = {code: splitter.lookup(code, ids, new_table(1), _no_bags) for code in splitter.han_languages or (None,)}
        self.splitter, self._languages = splitter, WordLookup(lookups)

    def count(self, texts: Sequence[str], output: Path, threads: int = 1) -> None:
        """Write the words of texts and their counts to a file; several threads may call this at once.

        The file, an archive of numpy arrays, is written atomically. The counts do not depend on the number of threads.
        Memory-mapped texts are released as they are read. Words of over 65,535 bytes are left out.
        """
        own, lock = threading.local(), Lock()
        with whole_file(output, crowded=True) as temporary, ZipFile(temporary, "w") as archive:
            tables = _Tables(archive)
            counters: list[_Forms] = []

            def count(start: int, stop: int) -> None:
                """Count a block with the thread's own tables."""
                if not hasattr(own, "forms"):
                    own.forms = _Forms(self.splitter, self._languages, tables)
                    with lock:
                        counters.append(own.forms)
                own.forms.add(Texts.of(texts[start:stop]))
                if hasattr(texts, "release"):
                    texts.release()

            parallel_for(count, len(texts), BLOCK, threads)
            for counter in counters:
                counter.write()


def most_frequent_of(files: Sequence[Path], most: int) -> Counter[str]:
    """Add up the counts of files, and return the most frequent words; ties are broken alphabetically.

    Only a sixteenth of the words is in memory at a time, however many files there are.
    """
    words, totals = Texts.of([]), np.zeros(0, np.int64)
    for part in range(_PARTS) if most else ():
        more, counts = _added_up(files, part)
        words, totals = concatenate([words, more]), np.concatenate([totals, counts])
        if most < len(totals):  # keep all ties with the last word, to be broken alphabetically
            rows = np.flatnonzero(totals >= np.partition(totals, -most)[-most])
            words, totals = words.take(rows), totals[rows]
    ranked = sorted(zip((-totals).tolist(), words, strict=True))
    return Counter({word: -count for count, word in ranked[:most]})


@njit(**LEAN)
def _tally(numbers: np.ndarray, counts: np.ndarray) -> None:
    """Count numbers; negative ones stand for words counted elsewhere."""
    for k in numbers:
        if k >= 0:
            counts[k] += 1


def _no_bags(texts: list[str]) -> Bags:
    return Bags.of([[] for _ in texts])


class _Tables:
    """Tables of words and counts in a file, each partitioned by a hash of the word."""

    def __init__(self, archive: ZipFile) -> None:
        self._archive, self._lock, self._count = archive, Lock(), 0

    def write(self, words: Texts, keys: np.ndarray, counts: np.ndarray) -> None:
        """Append counted words, each to the part of the archive that its key decides."""
        shares = (keys >> np.uint64(32)) % np.uint64(_PARTS)
        with self._lock:
            for part in range(_PARTS):
                rows = np.flatnonzero((shares == part) & (counts > 0))
                chosen = words.take(rows)
                for name, array in zip(_ARRAYS, (chosen.data, chosen.offsets, counts[rows]), strict=True):
                    with self._archive.open(f"{part}.{self._count}.{name}.npy", "w", force_zip64=True) as stream:
                        write_array(stream, array)
            self._count += 1


def _added_up(files: Sequence[Path], part: int) -> tuple[Texts, np.ndarray]:
    """Return the distinct words of one part of all files, and their counts, int64 (n,)."""
    table, totals = new_table(1 << 12), np.zeros(0, np.int64)
    for path in files:
        with np.load(path) as archive:
            for place in range(len(archive.files) // (_PARTS * len(_ARRAYS))):
                data, offsets, counts = (archive[f"{part}.{place}.{name}"] for name in _ARRAYS)
                table, numbers = number(table, data, offsets[:-1], offsets[1:])
                totals = np.concatenate([totals, np.zeros(int(table.used[0]) - len(totals), np.int64)])
                np.add.at(totals, numbers, counts)
    return contents(table)[0], totals


class _Forms:
    """The words seen by one thread, and their counts."""

    def __init__(self, splitter: WordSplitter, languages: WordLookup, tables: _Tables) -> None:
        self.splitter, self._languages, self._tables = splitter, languages, tables
        self._scanners: dict[str | None, _Scanner] = {}
        self._pieces: dict[str | None, np.ndarray] = {}  # counts of the pieces of whole texts
        self._begin()

    def _begin(self) -> None:
        self.table, self.counts = new_table(1 << 12), np.zeros(1 << 12, np.int64)
        self._scanners.clear()  # they cache runs as the numbers of their words

    def add(self, texts: Texts) -> None:
        """Count the words of texts in each of their languages, a few texts at a time."""
        for code, rows in self._languages.languages_of(texts):
            part = texts if len(rows) == len(texts) else texts.take(rows)
            lookup = self._languages.of(code)
            if isinstance(lookup, WholeTexts):
                pieces = self._pieces.setdefault(code, np.zeros(len(lookup.forms), np.int64))
                part, lookup = lookup.tally(part, pieces), lookup.words
            offsets, start = part.offsets, 0
            while start < len(part):
                stop = max(start + 1, int(np.searchsorted(offsets, offsets[start] + _SCAN_BYTES, "right")) - 1)
                scanner = self._scanners.get(code) or self._scanners.setdefault(code, _Scanner(lookup, self))
                self._add_plainly(scanner.count(part[start:stop]))
                start = stop
                if self.table.used[0] >= _MAX_WORDS:
                    self.write()

    def _add_plainly(self, texts: Texts) -> None:
        for block in in_blocks(texts):
            words = Texts.of([word.form for text in block for word in self.splitter(text)])
            fits = words.sizes <= LONGEST  # the limit of a table
            self.add_spans(words.data, words.offsets[:-1][fits], words.offsets[1:][fits])

    def add_spans(
        self, data: np.ndarray, starts: np.ndarray, ends: np.ndarray, times: np.ndarray | None = None
    ) -> np.ndarray:
        """Add ``times`` (None for 1) to the counts of the words ``data[starts[k]:ends[k]]``; return their numbers."""
        self.table, numbers = number(self.table, data, starts, ends)
        self.add_numbers(numbers, times)
        return numbers

    def add_numbers(self, numbers: np.ndarray, times: np.ndarray | None = None) -> None:
        """Count words by their numbers; negative ones are ignored."""
        if int(self.table.used[0]) > len(self.counts):
            self.counts = np.concatenate([self.counts, np.zeros(int(self.table.used[0]), np.int64)])
        if times is not None:
            np.add.at(self.counts, numbers, times)
        else:
            _tally(numbers, self.counts)

    def write(self) -> None:
        """Write all words to the file, and empty the table."""
        for code, pieces in self._pieces.items():
            lookup = self._languages.of(code)
            if isinstance(lookup, WholeTexts):
                met = [i for i in np.flatnonzero(pieces).tolist() if lookup.forms[i]]
                words = Texts.of([lookup.forms[i] for i in met])
                self.add_spans(words.data, words.offsets[:-1], words.offsets[1:], pieces[met])
                pieces[:] = 0
        words, keys = contents(self.table)
        self._tables.write(words, keys, self.counts[: len(keys)])
        self._begin()


class _Scanner(Deferred):
    """Scanner of texts whose Han is in one language, for a thread's :class:`_Forms`."""

    def __init__(self, of: OneLanguage, forms: _Forms) -> None:
        super().__init__(of._alphabet, forms.table, of._slow)
        self._lock, self._of, self._forms = of._lock, of, forms

    def count(self, texts: Texts) -> Texts:
        """Count the words of texts; return the texts that the compiled code cannot scan."""
        status = self._count(texts)
        rows = np.flatnonzero(status == UNLEARNT)
        if len(rows):
            self.learn(texts.take(rows))
            status[rows] = self._count(texts.take(rows))
        return texts.take(np.flatnonzero(status != DONE))

    def _count(self, texts: Texts) -> np.ndarray:
        self._known = self._forms.table
        ids, ends, status, fresh = self._scan(texts, NO_SEARCH, self._known, True)
        self._forms.add_numbers(ids[: ends[-1]])
        met = len(fresh.where)
        runs = fresh.pieces[:met] == CJK
        words = fresh.where[~runs].astype(np.int64)
        self._forms.add_spans(fresh.text, words[:, 0], words[:, 0] + words[:, 1])
        if runs.any():
            self._add_runs(fresh, fresh.where[runs])
        return status

    def _add_runs(self, fresh: NewChunks, where: np.ndarray) -> None:
        """Count the words of runs of Han and Kana; cache short runs with the numbers of their words."""
        runs, which = distinct(fresh.text, where)
        order, cut = self._of.cut(runs)
        times = np.bincount(which, minlength=len(runs))[order]
        runs = runs if (np.diff(order) == 1).all() else runs.take(order)
        numbers = self._forms.add_spans(cut.data, cut.starts, cut.ends, np.repeat(times, cut.sizes))
        columns = (runs.offsets[:-1], runs.sizes, np.cumsum(cut.sizes) - cut.sizes, cut.sizes)
        kept = np.stack(columns, axis=1).astype(np.int32)[runs.sizes <= self._longest_run]
        self._own.words = remember(self._table(), NewChunks(kept, runs.data, numbers.astype(np.int32)), _RUN_SLOTS)
