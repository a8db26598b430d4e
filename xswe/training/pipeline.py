"""The papers' steps chained: corpus, units, bags, extraction, sentence PCA, refinement, model.

Each stage is a function of earlier stages and its own settings and leaves one artefact in the run folder; a run that was
killed goes on where it stopped, and a run with other settings redoes only what they change.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer

from xswe.corpus.bitext import CorpusConfig
from xswe.corpus.contexts import ContextConfig, choose_contexts
from xswe.embedding.pooling import pool
from xswe.embedding.static import StaticEmbedding
from xswe.errors import ConfigError
from xswe.files import fingerprint, write_json
from xswe.language.bags import Bags
from xswe.language.codes import check_languages
from xswe.language.texts import Texts
from xswe.parallel import single_threaded_blas
from xswe.teacher.base import Teacher
from xswe.training.extract import ExtractConfig, Extraction, LanguageSample, extract
from xswe.training.inputs import (
    UnitsConfig,
    bags_of,
    corpus_report,
    make_bags,
    make_corpus,
    make_units,
    open_bags,
    open_part,
    texts_of,
)
from xswe.training.objective import Objective
from xswe.training.refine import ParallelBags, RefineConfig, equal_bags, refine
from xswe.training.sentence_pca import SentencePCA
from xswe.training.stages import Stages, only_run

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class PCAConfig:
    """Settings of the sentence PCA.

    Attributes:
        level: what the components are fitted on: ``sentence`` (paper) or ``word``, each unit once (its ablation).
        drop: components removed, ``auto`` for floor(d / 100).
        dim: components kept, and the model's dimensions.
        sentences: of each language, drawn at random (paper: 100,000).
        norm: mean norm that the vectors are scaled to before the refinement, 0 for the teacher's own scale (paper). One
            factor for all: it changes no similarity, only how far one step of Adam goes.
    """

    level: str = "sentence"
    drop: Any = "auto"
    dim: int = 256
    sentences: int = 100_000
    norm: float = 0.0

    def __post_init__(self) -> None:
        if self.level not in ("sentence", "word"):
            raise ConfigError(f"pca.level={self.level!r}: use sentence or word")


@dataclass(frozen=True)
class TrainConfig:
    """Everything that decides a model.

    Attributes:
        languages: codes; the first is the hub of the language pairs.
        corpus: what to learn from.
        units: what gets a vector.
        contexts: which sentences represent a unit.
        extract: how their states become its vector.
        pca: the sentence PCA.
        refine: the contrastive refinement.
        objective: its losses.
        seed: decides every random choice.
        threads: how many threads work.
    """

    languages: tuple[str, ...]
    corpus: CorpusConfig
    units: UnitsConfig = field(default_factory=UnitsConfig)
    contexts: ContextConfig = field(default_factory=ContextConfig)
    extract: ExtractConfig = field(default_factory=ExtractConfig)
    pca: PCAConfig = field(default_factory=PCAConfig)
    refine: RefineConfig = field(default_factory=RefineConfig)
    objective: Objective = field(default_factory=Objective)
    seed: int = 0
    threads: int = 1


@dataclass
class TrainResult:
    """What a run made.

    Attributes:
        model: the model.
        stages: the embedding after each step, by name, in order; matrices of the steps before the last may be wider.
        held_out: for each language pair the two sides of its held-out part.
        report: counts of the corpus, forward passes, variance of the components, history of the refinement.
        seconds: how long each stage took.
    """

    model: StaticEmbedding
    stages: dict[str, StaticEmbedding]
    held_out: dict[str, tuple[Texts, Texts]]
    report: dict[str, Any]
    seconds: dict[str, float]


def train(
    config: TrainConfig,
    teacher: Teacher | None,
    folder: Path,
    *,
    teacher_identity: str = "",
    pieces: Tokenizer | None = None,
) -> TrainResult:
    """Train a model.

    Args:
        config: the settings.
        teacher: the encoder whose states are the start; None starts from random vectors.
        folder: the run folder; an earlier run's stages in it are used again where they fit.
        teacher_identity: a fingerprint of the teacher and its settings.
        pieces: the teacher's tokenizer, for units and back-off.

    Returns:
        The model and what is known about how it came about; nothing but stages is written.
    """
    check_languages(config.languages)
    with only_run(folder), single_threaded_blas():
        return _Run(config, teacher, folder, teacher_identity, pieces).result()


class _Run:
    """One pass through the stages."""

    def __init__(
        self,
        config: TrainConfig,
        teacher: Teacher | None,
        folder: Path,
        teacher_identity: str,
        pieces: Tokenizer | None,
    ) -> None:
        self.config, self.teacher, self.teacher_identity = config, teacher, teacher_identity
        self.stages = Stages(folder)
        self.folders: dict[str, Path] = {}
        c = config
        self.corpus, corpus_id, self.pairs = make_corpus(self.stages, c.languages, c.corpus, c.seed, c.threads)
        self.units, units_id = make_units(
            self.stages, self.corpus, corpus_id, self.pairs, c.languages, c.units, pieces, c.seed, c.threads
        )
        self.bags, self.bags_id = make_bags(
            self.stages, self.corpus, [corpus_id, units_id], self.pairs, self.units, c.threads
        )
        self.report: dict[str, Any] = {"corpus": corpus_report(self.corpus), "units": len(self.units.tokens)}

    def result(self) -> TrainResult:
        steps: dict[str, np.ndarray] = {}
        if self.teacher is not None:
            extraction, extract_id = self.extraction(self.teacher)
            steps["extraction"] = extraction
            without = replace(self.config.pca, drop=0)
            steps["PCA without ABTT"], _ = self.pca(extraction, extract_id, without)
            start, start_id = self.pca(extraction, extract_id, self.config.pca)
            steps["PCA with ABTT"] = start
        else:
            start, start_id = self.random_start()
        final = self.refinement(start, start_id) if self.config.refine.steps else start
        steps["refinement"] = final
        held_out = {b.name: (b.source[:], b.target[:]) for b in open_part(self.corpus, "held_out", self.pairs)}
        models = {name: StaticEmbedding(self.units, matrix) for name, matrix in steps.items()}
        return TrainResult(models["refinement"], models, held_out, self.report, self.stages.seconds)

    def samples(self) -> Iterator[LanguageSample]:
        """Choose each language's context sentences, among its distinct training sentences."""
        bitexts = open_part(self.corpus, "train", self.pairs)
        for language in self.config.languages:
            bags, texts = bags_of(self.bags, self.pairs, language), texts_of(bitexts, language)
            distinct = np.sort(np.unique(equal_bags(bags), return_index=True)[1])
            size = len(self.units.tokens)
            contexts = choose_contexts(bags, size, self.config.contexts, among=distinct)
            yield LanguageSample(language, texts.take(contexts.sentences), contexts, bags.counts(size))

    def extraction(self, teacher: Teacher) -> tuple[np.ndarray, str]:
        """Stage ``extract``."""
        c = self.config
        inputs = [self.bags_id, asdict(c.contexts), asdict(c.extract), self.teacher_identity]

        def make(folder: Path, identity: str) -> None:
            samples = list(self.samples())
            checkpoint = self.stages.checkpoint("extract", identity)
            made: Extraction = extract(teacher, self.units, samples, c.extract, checkpoint=checkpoint, identity=identity)
            save_file({"embeddings": made.matrix, "contexts": made.contexts}, folder / "extract.safetensors")
            write_json(
                folder / "report.json",
                {
                    "sentences_encoded": made.passes,
                    "sentences_encoded_by_reference": made.reference_passes,
                    "units_with_contexts": int((made.contexts > 0).sum()),
                    "units_with_vector": int(made.matrix.any(1).sum()),
                },
            )

        folder, identity = self.stages.run("extract", inputs, make)
        self.report["extraction"] = corpus_report(folder)
        return load_file(folder / "extract.safetensors")["embeddings"], identity

    def pca(self, matrix: np.ndarray, matrix_id: str, settings: PCAConfig) -> tuple[np.ndarray, str]:
        """Stage ``pca``: fit on sentences of all languages, project the unit vectors."""

        def make(folder: Path, _: str) -> None:
            words = iter([matrix[matrix.any(1)]])
            vectors = words if settings.level == "word" else self.sentence_vectors(matrix, settings.sentences)
            pca = SentencePCA(settings.drop, settings.dim).fit(vectors)
            projected = pca.transform(matrix)
            projected[~matrix.any(1)] = 0.0  # a unit without a vector stays without one
            if settings.norm:
                norms = np.linalg.norm(projected, axis=1)
                projected *= np.float32(settings.norm / norms[norms > 0].mean())
            tensors = {"embeddings": projected, "mean": pca.mean_, "components": pca.components_}
            save_file({k: np.ascontiguousarray(v) for k, v in tensors.items()}, folder / "pca.safetensors")
            write_json(
                folder / "report.json",
                {
                    "drop": pca.drop_,
                    "dim": pca.dim,
                    "sentences": pca.n_samples_seen_,
                    "explained_variance_ratio": [round(float(x), 6) for x in pca.explained_variance_ratio_[:300]],
                },
            )

        folder, identity = self.stages.run("pca", [matrix_id, asdict(settings), self.config.seed], make)
        self.report["pca"] = corpus_report(folder)
        return load_file(folder / "pca.safetensors")["embeddings"], identity

    def sentence_vectors(self, matrix: np.ndarray, most: int) -> Iterator[np.ndarray]:
        """Yield blocks of sentence vectors: means of unit vectors, a random sample of each language."""
        for k, language in enumerate(self.config.languages):
            bags = bags_of(self.bags, self.pairs, language)
            distinct = np.unique(equal_bags(bags), return_index=True)[1]
            rows = np.random.default_rng([self.config.seed, 17, k]).permutation(np.sort(distinct))[:most]
            rows = np.sort(rows[bags.lengths[rows] > 0])
            for start in range(0, len(rows), 4096):
                block: Bags = bags.take(rows[start : start + 4096])
                yield pool(matrix, block, normalise=False, threads=self.config.threads)

    def random_start(self) -> tuple[np.ndarray, str]:
        """Random vectors, for training without a teacher."""
        settings = [len(self.units.tokens), self.config.pca.dim, self.config.seed]
        generator = np.random.default_rng([self.config.seed, 19])
        matrix = generator.normal(0.0, 0.02, (len(self.units.tokens), self.config.pca.dim)).astype(np.float32)
        matrix[[not token for token in self.units.tokens]] = 0.0
        return matrix, fingerprint("random", settings)

    def refinement(self, start: np.ndarray, start_id: str) -> np.ndarray:
        """Stage ``refine``."""
        c = replace(self.config.refine, seed=self.config.seed, threads=self.config.threads)
        settings = [{**asdict(c), "threads": None}, asdict(self.config.objective)]

        def make(folder: Path, identity: str) -> None:
            parts = [
                [ParallelBags(*open_bags(self.bags, part, pair)) for pair in self.pairs]
                for part in ("train", "development")
            ]
            checkpoint = self.stages.checkpoint("refine", identity)
            begun = time.monotonic()
            made = refine(start, parts[0], [p for p in parts[1] if len(p)], c, self.config.objective, checkpoint=checkpoint)
            logger.info("refined in %.0f s, %d steps, best %d", time.monotonic() - begun, made.steps, made.best_step)
            save_file({"embeddings": made.matrix}, folder / "refine.safetensors")
            write_json(folder / "report.json", {"steps": made.steps, "best_step": made.best_step, "history": made.history})

        folder, _ = self.stages.run("refine", [self.bags_id, start_id, settings], make)
        self.report["refinement"] = corpus_report(folder)
        return load_file(folder / "refine.safetensors")["embeddings"]
