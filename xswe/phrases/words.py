"""Where words and their vectors come from: static models, and the token states of encoders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from xswe.errors import ModelError
from xswe.model.ensemble import AnyModel, Ensemble, load_single, locate
from xswe.model.static import StaticModel, pool
from xswe.teacher.protocol import Teacher
from xswe.text.spans import Cut, cut_texts, make_cutter, places_of, words_at


class WordSource(Protocol):
    """Turns texts into words with vectors."""

    @property
    def identity(self) -> list[object]:
        """What decides its results, as JSON values."""

    def cut(self, texts: Sequence[str], threads: int) -> tuple[np.ndarray, Cut]:
        """Cut texts; returns the float32 (rows, d) table that the cut's ids point into, and the cut."""

    def places(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return where the words of each text stand: int32 (words, 2), first character and one past the last."""

    def queries(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors of phrases, float32 (n, d); zero where nothing is known."""


def open_words(model: AnyModel | WordSource) -> WordSource:
    """Return a model as a source of words.

    Raises:
        ModelError: it is an ensemble, whose parts cut texts each in its own way.
    """
    if isinstance(model, Ensemble):
        raise ModelError("an ensemble, where one table of vectors is needed; give one of its parts, as in model.parts[0]")
    return StaticWords(model) if isinstance(model, StaticModel) else model


def load_words(which: str, threads: int) -> WordSource:
    """Load a model by its name as a source of words; ``teacher:NAME`` is an encoder, whose token states are then used."""
    if not which.startswith("teacher:"):
        return StaticWords(load_single(locate(which)))
    from xswe.teacher.protocol import TeacherConfig
    from xswe.teacher.transformer import load_teacher

    teacher = load_teacher(TeacherConfig.named(which.removeprefix("teacher:"), threads))
    return TeacherWords(teacher, teacher.checksum())


class StaticWords:
    """The words of a static embedding.

    Args:
        model: the embedding.
    """

    def __init__(self, model: StaticModel) -> None:
        self.matrix = np.ascontiguousarray(model.vectors, np.float32)
        self._cutter = make_cutter(model.units)
        self.model = model

    def words(self) -> list[str]:
        """Return the model's units that are words."""
        return list(self.model.words())

    @property
    def identity(self) -> list[object]:
        """The model's."""
        return [self.model.identity]

    def cut(self, texts: Sequence[str], threads: int = 1) -> tuple[np.ndarray, Cut]:
        """Cut texts; the table is the model's."""
        return self.matrix, cut_texts(self._cutter, texts, threads)

    def places(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return where the words of each text stand, int32 (words, 2)."""
        return self._cutter.places(texts)

    def queries(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors of phrases, float32 (n, d)."""
        return pool(self.matrix, self.cut(texts)[1].bags, normalise=True)


class TeacherWords:
    """The words of a teacher's single pass (SLICE 3): a word's vector is the sum of its token states.

    Args:
        teacher: the encoder.
        identity: what tells it from another, as a JSON value.
    """

    block_characters = 100_000  # a state a token is kept, so blocks are smaller than a static model's
    in_context = True

    def __init__(self, teacher: Teacher, identity: object = None) -> None:
        self.teacher, self._identity = teacher, identity
        self._places: dict[str, np.ndarray] = {}  # of the last texts cut, to save them a second pass

    @property
    def identity(self) -> list[object]:
        """The teacher."""
        return ["tokens", self.teacher.name, self._identity]

    def cut(self, texts: Sequence[str], threads: int = 1) -> tuple[np.ndarray, Cut]:
        """Run the teacher once over each text; every token's state is a row of the table."""
        rows: list[np.ndarray] = [np.zeros((0, self.teacher.dim), np.float32)] * len(texts)
        groups: list[list[tuple[int, int]]] = [[] for _ in texts]
        self._places = {}
        for row, hidden, found in self._words(texts):
            self._places[texts[row]] = places_of(found)
            kept = [t for first, last, _, _ in found for t in range(first, last)]
            rows[row], groups[row] = hidden[kept], [(first, last) for first, last, _, _ in found]
        words = np.concatenate([[0], np.cumsum([last - first for group in groups for first, last in group])]).astype(
            np.int64
        )
        ends = np.concatenate([[0], np.cumsum([len(group) for group in groups])]).astype(np.int64)
        matrix = np.concatenate(rows) if rows else np.zeros((0, self.teacher.dim), np.float32)
        return np.ascontiguousarray(matrix), Cut(np.arange(len(matrix), dtype=np.int32), words, ends)

    def places(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return where the words of each text stand, int32 (words, 2)."""
        found = {text: self._places[text] for text in texts if text in self._places}
        rest = [text for text in texts if text not in found]
        found |= {rest[row]: places_of(words) for row, _, words in self._words(rest)}
        return [found.get(text, places_of([])) for text in texts]

    def queries(self, texts: Sequence[str]) -> np.ndarray:
        """Mean token states of phrases, scaled to norm 1, float32 (n, d)."""
        matrix, cut = self.cut(texts)
        return (
            pool(matrix, cut.bags, normalise=True) if len(matrix) else np.zeros((len(texts), self.teacher.dim), np.float32)
        )

    def _words(self, texts: Sequence[str]) -> Iterator[tuple[int, np.ndarray, list[tuple[int, int, int, int]]]]:
        """Yield the row, the token states, and the words (see :func:`words_at`) of each text that is not blank."""
        filled = [i for i, text in enumerate(texts) if text.strip()]
        some = [texts[i] for i in filled]
        for states in self.teacher.states(some, self.teacher.batches(some)) if some else ():
            for k, place in enumerate(states.rows.tolist()):
                a, b = states.offsets[k], states.offsets[k + 1]
                yield filled[place], states.hidden[a:b], words_at(some[place], states.starts[a:b], states.ends[a:b])
