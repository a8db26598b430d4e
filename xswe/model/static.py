"""The static model: units, one vector per unit, and for a text the mean of them (EN paper 3.1).

Averaging has two implementations with the same bytes: the compiled one of :mod:`xswe.model.kernels`, and one in plain numpy
for a few texts in a process that has not loaded the compiler's run time yet, as loading takes longer than they do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from xswe.errors import ConfigError, ModelError
from xswe.io.files import arrays_digest, fingerprint
from xswe.io.parallel import over_blocks
from xswe.io.ragged import Bags, Texts
from xswe.model import folder as storage
from xswe.model.bigrams import Bigrams
from xswe.model.counts import check_counts, languages_of_units, narrow_counts
from xswe.model.encoding import BLOCK, Encoding
from xswe.model.precision import PRECISIONS, WIDEST, Precision, check_precision, convert, restore, share_rows
from xswe.text.folding import japanese_characters
from xswe.text.languages import LANGUAGES, check_languages
from xswe.text.scripts import in_script
from xswe.text.stopwords import has_particle
from xswe.text.subwords import SubwordUnits
from xswe.text.tokenizers import WORD_START
from xswe.text.units import AS_LOOKED_UP, Units

# Compiled code pays from so many gathered rows: to call it once it is loaded, to load it, or (the sum over all calls of the
# process) to compile it first, which takes some 0.3 s.
_MIN_ROWS_TO_LOAD, _MIN_ROWS_TO_CALL = 400, 8
_MIN_ROWS_TO_COMPILE = 200_000
_NO_SCALES = np.ones(1, np.float32)


class _PoolingHeuristic:
    """Decides whether to gather rows by compiled code, which is compiled once many rows have been gathered."""

    def __init__(self) -> None:
        self._loaded, self._waited = False, 0

    def __call__(self, rows: int) -> bool:
        """Return True if so many rows are worth it."""
        if rows < (_MIN_ROWS_TO_CALL if self._loaded else _MIN_ROWS_TO_LOAD):
            return False
        if not self._loaded:
            from xswe.io.compiler import is_compiled
            from xswe.model.kernels import pool_rows

            self._waited += rows
            self._loaded = self._waited >= _MIN_ROWS_TO_COMPILE or is_compiled(pool_rows)
        return self._loaded


_worth_compiling = _PoolingHeuristic()


def pool(
    matrix: np.ndarray,
    bags: Bags,
    *,
    normalise: bool,
    threads: int = 1,
    out: np.ndarray | None = None,
    scales: np.ndarray | None = None,
) -> np.ndarray:
    """Return the mean of the rows of each of n bags, float32 (n, d), in ``out`` if given.

    ``matrix`` is (units, d) float32, float16 or int8, C-contiguous, and read without a float32 copy; ``scales``, float32
    (units,), multiply the rows of an int8 matrix. If ``normalise``, results have Euclidean norm 1, or stay zero for a bag
    that is empty or whose rows cancel.
    """
    out = np.empty((len(bags), matrix.shape[1]), np.float32) if out is None else out
    if not _worth_compiling(len(bags.ids)):
        pool_plainly(matrix, scales, bags, normalise, out)
        return out
    from xswe.model.kernels import pool_rows

    # numba has no float16 on CPUs: the kernel reads its bits.
    numbers = matrix.view(np.uint16) if matrix.dtype == np.float16 else matrix
    factors = _NO_SCALES if scales is None else scales

    def work(start: int, stop: int) -> None:
        squares = np.empty(out.shape[1], np.float32)
        pool_rows(numbers, factors, bags.ids, bags.offsets[start : stop + 1], normalise, out[start:stop], squares)

    over_blocks(work, len(bags), threads)
    return out


def pool_plainly(matrix: np.ndarray, scales: np.ndarray | None, bags: Bags, normalise: bool, out: np.ndarray) -> None:
    """Pool as :func:`pool`, in numpy, with the same additions in the same order."""
    ids = bags.ids.tolist()
    for i, (start, stop) in enumerate(pairwise(bags.offsets.tolist())):
        total = out[i]
        total[:] = 0.0
        for unit in ids[start:stop]:
            row = matrix[unit].astype(np.float32, copy=False)
            total += row if scales is None else row * scales[unit]
        divisor = np.sqrt(_fold(total * total)) if normalise else np.float32(stop - start)
        if divisor > 0:
            total *= np.float32(1.0) / divisor


def _fold(numbers: np.ndarray) -> np.float32:
    """Sum an array by folding it in halves, in place."""
    size = len(numbers)
    while size > 1:
        half = size // 2
        numbers[:half] += numbers[size - half : size]
        size -= half
    return np.float32(numbers[0])


# The model: units, one vector per unit, and ``encode``.


@dataclass(frozen=True, eq=False)
class StaticModel(Encoding):
    """Static word vectors that encode sentences.

    Attributes:
        units: the function from text to unit ids.
        matrix: (units, d) float32, float16 or int8, row ``i`` the vector of unit ``i``; zero for a unit without one. The
            rows of bigrams come after those of the units.
        description: the other entries of ``config.json`` (teacher, corpora, training), as plain JSON values.
        scales: float32 (rows,), the factor of each row of an int8 matrix; None for the others.
        counts: unsigned integers (languages, units), how often each unit occurred in each language's training text, by
            which :meth:`words` tells languages of one script apart; None if not known. Vectors do not depend on them.
        shared: dimensions of a part of an int8 matrix in which units share rows, see :meth:`share_rows`; 0 for none.
        forms: for each language, how its texts write each unit, as :func:`xswe.text.forms.count_forms` returns it; None if
            not known. :meth:`words` and :meth:`neighbours` show them; vectors do not depend on them.
        bigrams: the pairs of adjacent units that also have rows, which count like units in a text; None for none.

    Example:
        >>> import xswe
        >>> model = xswe.load("mini")
        >>> vectors = model.encode(["A cat sleeps.", "猫が寝ている。"])
        >>> bool(vectors[0] @ vectors[1] > 0.5)  # the cosine: rows have norm 1
        True
    """

    units: Units
    matrix: np.ndarray
    description: dict[str, Any] = field(default_factory=dict)
    scales: np.ndarray | None = None
    counts: np.ndarray | None = None
    shared: int = 0
    forms: tuple[Texts, ...] | None = None
    bigrams: Bigrams | None = None

    def __post_init__(self) -> None:
        matrix, scales = self.matrix, self.scales
        if matrix.ndim != 2 or matrix.dtype.name not in PRECISIONS:
            raise ModelError(f"the matrix is {matrix.dtype} {matrix.shape}, expected float32, float16 or int8 (units, d)")
        if (scales is not None) != (matrix.dtype == np.int8):
            raise ModelError("an int8 matrix needs scales, and no other has any")
        if scales is not None and (scales.dtype != np.float32 or scales.shape != matrix.shape[:1]):
            raise ModelError(f"the scales are {scales.dtype} {scales.shape}, expected float32 ({len(matrix)},)")
        further = "" if self.bigrams is None else f" and {len(self.bigrams)} bigrams of {self.bigrams.units}"
        if len(matrix) != len(self.units) + len(self.bigrams or ()) or (
            self.bigrams is not None and self.bigrams.units != len(self.units)
        ):
            raise ModelError(f"{len(matrix)} vectors for {len(self.units)} units{further}")
        if self.shared and self.bigrams is not None:
            raise ModelError("a model with rows for bigrams shares none: leave shared out")
        if self.shared and scales is None:
            raise ModelError(f"rows are shared in an int8 matrix only, this one is {matrix.dtype}: leave shared out")
        if self.counts is not None:
            check_counts(self.counts, len(self.languages), len(self.units))
        if self.forms is not None and [len(own) for own in self.forms] != [len(self.units)] * len(self.languages):
            raise ModelError(f"forms of {[len(own) for own in self.forms]} units, expected {len(self.units)} a language")

    @classmethod
    def load(cls, folder: str | Path) -> StaticModel:
        """Load a model folder.

        Raises:
            ModelError: a file, which it names, is missing, damaged, too new, or does not fit the others.
        """
        return cls(*storage.load(Path(folder)))

    def __repr__(self) -> str:
        kind, languages = self.units.kind, "-".join(self.languages)
        rows = str(len(self.units)) if self.bigrams is None else f"{len(self.units)} + {len(self.bigrams)} bigrams"
        return f"StaticModel({kind}, {languages}, {rows} x {self.dim} {self.dtype})"

    @property
    def dim(self) -> int:
        """Dimensions of a vector."""
        return int(self.matrix.shape[1])

    @cached_property
    def identity(self) -> str:
        """A fingerprint of everything that determines :meth:`encode`: the units, and the numbers of the matrix.

        It depends on the content of the folder, not on its path: on ``model.safetensors``, ``tokenizer.json`` (for word
        models, ``words.json`` and ``backoff.json``) and the units in ``config.json``, but not on the description or the
        model card.
        """
        arrays = [self.matrix]
        arrays += [] if self.scales is None else [self.scales]
        arrays += [] if self.bigrams is None else [self.bigrams.pairs]
        return fingerprint(self.units.identity, arrays_digest(*arrays))

    @property
    def dtype(self) -> Precision:
        """The precision of the matrix: float32, float16 or int8."""
        return self.matrix.dtype.name  # type: ignore[return-value]

    @property
    def vectors(self) -> np.ndarray:
        """The matrix as float32 (rows, d), whatever its precision; the matrix itself if it is float32."""
        return restore(self.matrix, self.scales)

    def rows(self, ids: np.ndarray) -> np.ndarray:
        """Return the vectors of some units or bigrams, float32 (n, d)."""
        return restore(self.matrix[ids], None if self.scales is None else self.scales[ids])

    @property
    def languages(self) -> tuple[str, ...]:
        """Codes of the model's languages."""
        return self.units.languages

    def encode_into(self, texts: Sequence[str], out: np.ndarray) -> None:
        """Encode ``n`` texts in this thread into float32 (n, d); :meth:`encode` calls it for each block."""
        self.pool(self.units.bags(texts), out=out)

    def widen(self, bags: Bags) -> Bags:
        """Return bags of units with the rows of their bigrams appended; unchanged if the model has no bigrams."""
        return bags if self.bigrams is None else self.bigrams.widen(bags, _worth_compiling(len(bags.ids)))

    def pool(self, bags: Bags, out: np.ndarray | None = None) -> np.ndarray:
        """Return the unit vectors of n texts given as bags, float32 (n, d), in ``out`` if given."""
        return pool(self.matrix, self.widen(bags), normalise=True, out=out, scales=self.scales)

    def words(self, language: str | None = None) -> dict[str, int]:
        """Return the units that are words, as texts write them, with their rows, in the order of the rows.

        Case, width and traditional characters, which the look-up folds, are those of the commonest form in the model's
        training texts (:attr:`forms`); units that are only parts of words there are left out, and so are Japanese ones
        with particles. A model without forms shows its units as they are looked up, in Japanese with Japanese characters;
        of parts of words, it leaves out only those of a spaced script that do not begin one.

        Args:
            language: only words of this language. If the script does not decide (English and German; Han in a model of
                Chinese and Japanese), the model's :attr:`counts` do: a word may belong to both, and one that never
                occurred belongs to none. Without counts, the script alone decides. None for all, each in the form of the
                language that uses it most.

        Raises:
            ConfigError: there is no such language.

        Example:
            >>> import xswe
            >>> mini = xswe.load("mini")
            >>> mini.words("ja")["時間"] == mini.words("zh")["时间"]
            True
        """
        codes = self.languages if language is None else check_languages([language])
        if language not in self._words_of:
            self._words_of[language] = self._find_words(language, codes)
        return dict(self._words_of[language])

    @cached_property
    def plain_words(self) -> tuple[str, ...]:
        """The units that are words, as they are looked up, in the order of the rows."""
        return tuple(replace(self, forms=None).words())

    @cached_property
    def _words_of(self) -> dict[str | None, dict[str, int]]:
        """The words of each language requested so far: finding them takes a tenth of a second."""
        return {}

    def _find_words(self, language: str | None, codes: Sequence[str]) -> dict[str, int]:
        """Find the words that :meth:`words` returns."""
        spaced = {code for code in codes if LANGUAGES[code].spaced}
        tokens = self.units.tokens
        forms = self._forms_in(language, [token.removeprefix(WORD_START) for token in tokens])
        marked = any(token.startswith(WORD_START) for token in tokens)
        counted = language is not None and language in self.languages and self.counts is not None
        out: dict[str, int] = {}
        for row, (token, form) in enumerate(zip(tokens, forms, strict=True)):
            word = token.removeprefix(WORD_START)
            if not word.isalpha() or not form or form in out:
                continue
            starts = not marked or token.startswith(WORD_START)
            if any(in_script(word, code) and (starts or code not in spaced) for code in codes) and not (
                counted and self._is_foreign(word, row, language)
            ):
                out[form] = row
        return out

    def _forms_in(self, language: str | None, words: list[str]) -> list[str]:
        """Return how a language, or the one that uses each most, writes units; "" for those that are not words.

        ``words`` are the units as they are looked up.
        """
        if self.forms is None or language not in (None, *self.languages):
            if language != "ja" or not isinstance(self.units, SubwordUnits) or self.units.tokenizer.normalizer is None:
                return words
            unfolded = str.maketrans(japanese_characters(self.units.tokenizer.normalizer.normalize_str))
            words = [word.translate(unfolded) for word in words]
            return ["" if has_particle(word) else word for word in words]
        wanted = self.forms if language is None else [self.forms[self.languages.index(language)]]
        written = [
            [word if form == AS_LOOKED_UP else form for form, word in zip(own, words, strict=True)] for own in wanted
        ]
        if language is not None:
            return written[0]
        counts = np.zeros((len(wanted), len(words))) if self.counts is None else self.counts
        most = np.argmax((counts + 1.0) * np.stack([own.sizes > 0 for own in wanted]), axis=0)
        return [written[code][row] for row, code in enumerate(most.tolist())]

    def _is_foreign(self, word: str, row: int, language: str | None) -> bool:
        """Return True if other languages of the model share the word's script, and the word is not the language's own."""
        rivals = any(in_script(word, code) for code in self.languages if code != language)
        return rivals and not self._owners[self.languages.index(language), row]

    @cached_property
    def _owners(self) -> np.ndarray:
        """The languages of each unit, bool (languages, units)."""
        unknown = np.zeros((len(self.languages), len(self.units)), np.uint8)
        return languages_of_units(unknown if self.counts is None else self.counts)

    def word_cosines(self, text: str, language: str | None = None) -> dict[str, float]:
        """Return the words of a language (see :meth:`words`), except the text itself, with their cosines with the text."""
        from xswe.io.products import norms, row_products  # compiled: loading a model does without

        own = self.units.bags([text]).ids.tolist()
        words = {
            word: row for word, row in self.words(language).items() if word.casefold() != text.casefold() and [row] != own
        }
        table = self.rows(np.fromiter(words.values(), np.int64, len(words)))
        lengths = norms(table)
        cosines = row_products(table, self.encode(text)) / np.where(lengths > 0, lengths, np.inf)
        return dict(zip(words, cosines.tolist(), strict=True))

    def quantize(self, dtype: Precision) -> StaticModel:
        """Return the model with its matrix in another precision, from which it encodes without conversion.

        Args:
            dtype: ``float32``, ``float16`` or ``int8`` (with a float32 scale per row).

        Raises:
            ConfigError: the precision is unknown.
            ModelError: the vectors do not fit it.

        Example:
            >>> import xswe
            >>> xswe.load("mini").quantize("float16").dtype
            'float16'
        """
        if check_precision(dtype) == self.dtype:
            return replace(self, shared=0) if self.shared else self
        matrix, scales = convert(self.vectors, dtype)
        return replace(self, matrix=matrix, scales=scales, shared=0)

    def share_rows(self, width: int = 4) -> StaticModel:
        """Return the model with 256 rows, shared by all units, in each part of ``width`` dimensions (product quantisation).

        A folder then has one byte per unit and part, at 4 dimensions a quarter of an int8 matrix; other libraries do not
        open it. In memory, the matrix is int8 like any other, as large and as fast; ``quantize("int8")`` makes the model
        an ordinary one. Frequent units are approximated better, by the root of the model's :attr:`counts`, if any.

        Args:
            width: dimensions of a part, 1 to 8: the wider, the smaller and coarser.

        Raises:
            ConfigError: the width is out of bounds, or the model has rows for bigrams.

        Example:
            >>> import xswe
            >>> model = xswe.load("mini").prune(4000).share_rows(8)
            >>> (model.dtype, model.shared)
            ('int8', 8)
        """
        if not 1 <= width <= WIDEST:
            raise ConfigError(f"shared={width}: a part has 1 to {WIDEST} dimensions")
        if self.bigrams is not None:
            raise ConfigError(f"shared={width}: a model with rows for bigrams shares none; make it smaller by dtype=int8")
        counts = np.zeros(len(self.matrix)) if self.counts is None else self.counts.sum(axis=0, dtype=np.float64)
        matrix, scales = share_rows(self.vectors, width, np.sqrt(counts + 1.0))
        return replace(self, matrix=matrix, scales=scales, shared=width)

    def truncate(self, dim: int) -> StaticModel:
        """Return the model with only its first ``dim`` dimensions.

        Works best if it was trained with ``objective.prefixes``; otherwise, :meth:`rotate` it first.

        Raises:
            ConfigError: the model has fewer.

        Example:
            >>> import xswe
            >>> xswe.load("mini").rotate().truncate(64).encode("A cat sleeps.").shape
            (64,)
        """
        if not 0 < dim <= self.dim:
            raise ConfigError(f"dim={dim}: the model has {self.dim} dimensions; keep between 1 and as many")
        return replace(self, matrix=np.ascontiguousarray(self.matrix[:, :dim]), shared=0)

    def rotate(self) -> StaticModel:
        """Rotate the vectors so that the first dimensions hold the most variance; all cosines stay the same.

        The axes are the principal axes of the units' vectors about zero: nothing is subtracted, which preserves inner
        products. The result is float32.
        """
        matrix = self.vectors.astype(np.float64)
        _, axes = np.linalg.eigh(matrix.T @ matrix)
        axes = axes[:, ::-1]
        axes *= np.where(axes[np.abs(axes).argmax(0), np.arange(axes.shape[1])] < 0, -1.0, 1.0)  # one sign everywhere
        return replace(self, matrix=np.ascontiguousarray(matrix @ axes, np.float32), scales=None, shared=0)

    def count_units(self, texts: Iterable[str]) -> np.ndarray:
        """Count how often each unit occurs in texts, int64 (units,)."""
        counts = np.zeros(len(self.units), np.int64)
        lines = iter(texts)
        while block := list(islice(lines, BLOCK)):
            counts += self.units.bags(block).counts(len(counts))
        return counts

    def counted(self, texts: Mapping[str, Iterable[str]]) -> StaticModel:
        """Return the model with new counts and forms of its units, from texts in its languages.

        Args:
            texts: texts to count in, by the code of each of the model's languages.

        Raises:
            ConfigError: the languages are not the model's.

        Example:
            >>> import xswe
            >>> model = xswe.load("mini").counted({"en": ["a cat"], "de": ["eine Katze"], "zh": ["猫"], "ja": ["ねこ"]})
            >>> list(model.words("de"))
            ['eine', 'Katze']
        """
        if set(texts) != set(self.languages):
            raise ConfigError(f"texts of {', '.join(texts)}: give texts of each of {', '.join(self.languages)}")
        from xswe.text.forms import FormCounter, commonest_forms

        counts, forms = np.zeros((len(self.languages), len(self.units)), np.int64), []
        for own, code in zip(counts, self.languages, strict=True):
            counter, lines = FormCounter(self.units, code), iter(texts[code])
            while block := list(islice(lines, BLOCK)):
                own += self.units.bags(block).counts(len(own))
                counter.add(block)
            forms.append(commonest_forms([counter]))
        return replace(self, counts=narrow_counts(counts), forms=tuple(forms))

    def prune(self, keep: int, counts: np.ndarray | None = None) -> StaticModel:
        """Return the model with only its most frequent units.

        Single characters, special tokens and the unknown piece of a Unigram tokenizer are always kept, so that it still
        covers any text: shorter pieces take the place of a dropped one. A bigram is kept if both its units are.

        Args:
            keep: how many.
            counts: int (units,), how often each occurs in some text, as :meth:`count_units` returns; None for a Unigram
                piece's own score, or the order of words, which begins with the most frequent if xswe counted them.

        Raises:
            ConfigError: there are fewer units, ``keep`` is less than the characters, or the tokenizer cannot lose pieces.

        Example:
            >>> import xswe
            >>> len(xswe.load("mini").prune(20_000).matrix)
            20000
        """
        if not 0 < keep <= len(self.units):
            raise ConfigError(f"keep={keep}: the model has {len(self.units)} units; keep between 1 and as many")
        units, kept = self.units.prune(keep, counts)
        bigrams, places = (None, kept[:0]) if self.bigrams is None else self.bigrams.prune(kept)
        rows = np.concatenate([kept, len(self.units) + places])
        return replace(
            self,
            units=units,
            matrix=self.matrix[rows],
            scales=None if self.scales is None else self.scales[rows],
            counts=None if self.counts is None else self.counts[:, kept],
            forms=None if self.forms is None else tuple(own.take(kept) for own in self.forms),
            bigrams=bigrams,
        )

    def save(self, folder: str | Path, *, dtype: Precision | None = None) -> None:
        """Write the model folder atomically; see :mod:`xswe.model.folder`.

        Args:
            folder: its path.
            dtype: precision of the stored matrix; None for the model's own.
        """
        model = self if dtype is None else self.quantize(dtype)
        storage.save(
            storage.Contents(
                model.units,
                model.matrix,
                model.description,
                model.scales,
                model.counts,
                model.shared,
                model.forms,
                model.bigrams,
            ),
            Path(folder),
        )
