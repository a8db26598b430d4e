"""The common interface of all models: encoding lists and streams, similarities, neighbours, the hub."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from xswe.errors import ConfigError
from xswe.io.arguments import no_text, several
from xswe.io.files import scratch
from xswe.io.parallel import in_order, parallel_for
from xswe.io.results import Result
from xswe.model.hub import push_folder

BLOCK = 4096  # texts that a thread looks up and pools at a time
_WORTH_SHARING = 256  # up to so many texts are encoded by one thread


class Neighbour(NamedTuple):
    """A word near to a text: the cosine, and the word."""

    score: float
    word: str


@dataclass(frozen=True)
class Neighbours(Result[Neighbour], row=Neighbour, entries="words"):
    """The words nearest to a ``text``, best first; a sequence of :class:`Neighbour`."""

    text: str
    words: tuple[Neighbour, ...]

    def __repr__(self) -> str:
        return f"Neighbours({self.text!r}: {', '.join(f'{near.word} {near.score:.3f}' for near in self)})"


class Encoding:
    """Base class of the models, which define ``dim`` and how to encode a block of texts; the rest follows from those."""

    @property
    def dim(self) -> int:
        """Dimensions of a vector."""
        raise NotImplementedError

    @property
    def languages(self) -> tuple[str, ...]:
        """Codes of the model's languages."""
        raise NotImplementedError

    @property
    def pair(self) -> tuple[str, ...]:
        """The languages of a model with two, the source first; empty for any other model."""
        return tuple(self.languages) if len(self.languages) == 2 else ()

    def encode_into(self, texts: Sequence[str], out: np.ndarray) -> None:
        """Encode ``n`` texts in this thread into float32 (n, d); :meth:`encode` calls it for each block."""
        raise NotImplementedError

    def save(self, folder: str | Path) -> None:
        """Write the model's folder atomically."""
        raise NotImplementedError

    def encode(self, texts: str | Iterable[str], *, threads: int = 1) -> np.ndarray:
        """Encode texts; their languages need not be given.

        Args:
            texts: one text, or any number of them.
            threads: how many threads share the work, look-up included. All read one matrix.

        Returns:
            float32 (n, d), or (d,) for one text; rows have Euclidean norm 1. A text without known units (such as an empty
            one) gives the zero vector. A text's vector does not depend on the other texts or the number of threads.

        Raises:
            TypeError: one of the texts is not a str; the message says which.
        """
        if isinstance(texts, str):
            return self.encode([texts])[0]
        rows = several(texts, "texts")
        out = np.empty((len(rows), self.dim), np.float32)

        def work(start: int, stop: int) -> None:
            self.encode_into(rows[start:stop], out[start:stop])

        # Blocks that give all threads equal shares, but none so small that the hand-over takes longer than encoding it.
        threads = max(1, threads)
        rounds = -(-len(rows) // (BLOCK * threads))
        block = -(-len(rows) // (rounds * threads)) if len(rows) > _WORTH_SHARING else _WORTH_SHARING
        try:
            parallel_for(work, len(rows), block, threads)
        except (TypeError, AttributeError) as error:
            raise (no_text(rows) or error) from None
        return out

    def encode_stream(self, texts: Iterable[str], *, threads: int = 1, block: int = BLOCK) -> Iterator[np.ndarray]:
        """Encode texts as they come, with only a few blocks of them in memory.

        Args:
            texts: any number of texts, taken one after the other as they are needed.
            threads: how many threads share the work.
            block: texts per block.

        Returns:
            An iterator over float32 (block, d), the last one shorter; together they are the rows of :meth:`encode`. No
            array is reused.

        Raises:
            TypeError: ``texts`` is one text, or one of them is not a str; the message says which.
        """
        source = iter(texts if isinstance(texts, Iterator) else several(texts, "texts"))

        def blocks() -> Iterator[tuple[int, list[str]]]:
            for start in count(0, block):
                if not (rows := list(islice(source, block))):
                    return
                yield start, rows

        def work(part: tuple[int, list[str]]) -> np.ndarray:
            """Encode some rows; name the first that is no text."""
            start, rows = part
            out = np.empty((len(rows), self.dim), np.float32)
            try:
                self.encode_into(rows, out)
            except (TypeError, AttributeError) as error:
                raise (no_text(rows, start) or error) from None
            return out

        return in_order(work, blocks(), threads)

    def similarity(self, left: str | Iterable[str], right: str | Iterable[str], *, threads: int = 1) -> Any:
        """Return the cosine of two texts, or the cosines of all texts on the left with all on the right.

        Args:
            left: a text, or n of them.
            right: a text, or m of them.
            threads: how many threads share the encoding.

        Returns:
            A float for two texts; float32 (n,) or (m,) if one side is a single text, else (n, m). A text without known
            units has a cosine of 0 with all others.

        Example:
            >>> import xswe
            >>> model = xswe.load("mini")
            >>> model.similarity("A cat sleeps.", "猫が寝ている。") > model.similarity("A cat sleeps.", "电车晚点了。")
            True
            >>> model.similarity("A cat sleeps.", ["猫が寝ている。", "电车晚点了。"]).shape
            (2,)
        """
        from xswe.io.products import products  # compiled: loading a model does without

        sides = [np.asarray(self.encode(side, threads=threads)) for side in (left, right)]
        found = products(*(np.atleast_2d(side) for side in sides), threads=threads)
        shape = [len(side) for side in sides if side.ndim == 2]
        return found.reshape(shape) if shape else float(found[0, 0])

    def word_cosines(self, text: str, language: str | None = None) -> dict[str, float]:
        """Return the words of a language, except the text itself, with their cosines with the text."""
        raise NotImplementedError

    def neighbours(self, text: str, *, language: str | None = None, k: int = 10) -> Neighbours:
        """Return the words of the model that are nearest in meaning to a word or text.

        Args:
            text: the word or text, in any language of the model; equal words are left out.
            language: only words of this language, as in :meth:`xswe.model.static.StaticModel.words`.
            k: how many.

        Raises:
            ConfigError: there is no such language, or ``k`` is below 1.

        Example:
            >>> import xswe
            >>> xswe.load("mini").neighbours("car", language="zh", k=1)[0].word
            '车'
        """
        if k < 1:
            raise ConfigError(f"k={k}: give at least 1")
        if not isinstance(text, str):
            raise TypeError(f"text is of type {type(text).__name__}: give one word or text, a str")
        found = self.word_cosines(text, language)
        best = sorted(found, key=found.__getitem__, reverse=True)[:k]
        return Neighbours(text, tuple(Neighbour(found[word], word) for word in best))

    if not TYPE_CHECKING:  # type checkers see one spelling only
        neighbors = neighbours

    def push_to_hub(
        self,
        repository: str,
        *,
        revision: str | None = None,
        private: bool = False,
        token: str | None = None,
        message: str = "Upload model",
    ) -> str:
        """Push the model, with a card, to the Hugging Face hub.

        Args:
            repository: ``user/name``; created if it does not exist.
            revision: the branch; None for the main one.
            private: whether a newly created repository is private.
            token: an access token; None for the stored one.
            message: the commit message.

        Returns:
            The address of the commit.

        Raises:
            ModelError: the hub refuses.
        """
        with scratch() as temporary:
            self.save(Path(temporary) / "model")
            return push_folder(Path(temporary) / "model", repository, revision, private, token, message)
