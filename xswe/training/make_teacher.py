"""How ``teacher=mini`` is made: a vocabulary, jointly trained static vectors, and a small encoder that starts from them.

Only parallel text and a real (English) sentence encoder go in. Each step is a stage of a run folder, like those of
:mod:`xswe.training.pipeline`.
"""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from xswe.corpus.bitext import CorpusConfig
from xswe.errors import ConfigError
from xswe.io.files import read_json, whole_folder, write_json
from xswe.io.parallel import single_threaded_blas
from xswe.model.static import StaticModel
from xswe.teacher.protocol import Teacher
from xswe.text.languages import check_languages
from xswe.training.encoder import EncoderConfig, EncoderShape, build, save, train_encoder
from xswe.training.features import RowVectors, vectors_stage
from xswe.training.inputs import Pair, UnitsConfig, make_bags, make_corpus, make_units, open_bags, open_part, sides
from xswe.training.objective import Objective
from xswe.training.pairs import ParallelBags
from xswe.training.refine import RefineConfig, refine
from xswe.training.stages import Stages, decisive, only_run

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class MakeTeacherConfig:
    """Everything that decides a teacher.

    Attributes:
        languages: codes; the first is the language of the distilled encoder.
        corpus: parallel text of the first language with each other.
        units: its vocabulary (sub-words).
        dim: dimensions of the static start.
        refine: how the static start is trained.
        static_objective: with which losses.
        shape: size of the encoder.
        encoder: how it is trained.
        objective: with which losses.
        seed: decides every random choice.
        threads: how many threads work.
    """

    languages: tuple[str, ...]
    corpus: CorpusConfig
    units: UnitsConfig
    dim: int = 256
    refine: RefineConfig = field(default_factory=RefineConfig)
    static_objective: Objective = field(default_factory=Objective)
    shape: EncoderShape = field(default_factory=EncoderShape)
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    objective: Objective = field(default_factory=Objective)
    seed: int = 0
    threads: int = 1


def make_teacher(
    config: MakeTeacherConfig, distilled: Teacher | None, folder: Path
) -> tuple[Path, StaticModel, dict[str, Any]]:
    """Make a teacher.

    Args:
        config: the settings.
        distilled: the encoder whose similarities are imitated; None for translation ranking alone.
        folder: the run folder.

    Returns:
        The teacher's folder, the static embedding it started from, and a report.
    """
    if len(check_languages(config.languages)) < 2:
        raise ConfigError("a teacher is made of translations: name at least two languages, as in pair=en-ja")
    if config.units.kind != "subwords":
        raise ConfigError(f"units.kind={config.units.kind!r}: an encoder is made of sub-words")
    if config.refine.sample_from != "corpus":
        raise ConfigError("refine.sample_from=contexts: a teacher in the making has no contexts; set corpus")
    with only_run(folder):
        return _Run(config, distilled, folder).result()


class _Run:
    """One pass through the stages."""

    def __init__(self, config: MakeTeacherConfig, distilled: Teacher | None, folder: Path) -> None:
        self.config, self.distilled, self.folder = config, distilled, folder
        self.stages = Stages(folder)
        c = config
        self.corpus, self.corpus_id, self.pairs = make_corpus(self.stages, c.languages, c.corpus, c.seed, c.threads)
        units = make_units(
            self.stages, self.corpus, self.corpus_id, self.pairs, c.languages, c.units, None, c.seed, c.threads
        )
        self.units, self.units_id = units
        self.bags, self.bags_id = make_bags(
            self.stages, self.corpus, [self.corpus_id, self.units_id], self.pairs, self.units, c.threads
        )

    def result(self) -> tuple[Path, StaticModel, dict[str, Any]]:
        """Return the teacher's folder, its static start, and what the stages reported."""
        vectors = self.vectors()
        static, static_id = self.static(vectors)
        made = self.encoder(static, static_id, vectors)
        target = self.folder / "teacher"
        with whole_folder(target) as temporary:
            for file in made.rglob("*"):
                if file.is_file() and file.name not in ("stage.json", "report.json"):
                    (temporary / file.relative_to(made)).parent.mkdir(exist_ok=True)
                    (temporary / file.relative_to(made)).write_bytes(file.read_bytes())
        report = {"corpus": read_json(self.corpus / "report.json"), "encoder": read_json(made / "report.json")}
        return target, StaticModel(self.units, static), report

    def vectors(self) -> dict[Pair, RowVectors] | None:
        """Stage ``vectors``: the distilled encoder's vectors of the hub language's sentences, each distinct one once."""
        if self.distilled is None:
            return None
        hub = self.config.languages[0]
        bitexts = open_part(self.corpus, "train", self.pairs)
        if any(bitext.languages[0] != hub for bitext in bitexts):
            raise ConfigError(f"every bitext must have {hub} as its first language, whose sentences are distilled")
        inputs, hubs = [self.corpus_id, self.distilled.identity], [sides(bitext)[0][2][:] for bitext in bitexts]
        return dict(zip(self.pairs, vectors_stage(self.stages, inputs, self.distilled, hubs), strict=True))

    def bitexts(self, part: str, vectors: dict[Pair, RowVectors] | None) -> list[ParallelBags]:
        """Return the tokenised bitexts of a part, with the distilled vectors for training."""
        teacher = vectors if vectors and part == "train" else {}
        made = [ParallelBags(*open_bags(self.bags, part, pair), teacher=teacher.get(pair)) for pair in self.pairs]
        return [bitext for bitext in made if len(bitext)]

    def static(self, vectors: dict[Pair, RowVectors] | None) -> tuple[np.ndarray, str]:
        """Stage ``static``: static vectors of all languages, from random ones."""
        c = self.config
        settings = replace(c.refine, seed=c.seed, threads=c.threads)

        def make(folder: Path, identity: str) -> None:
            start = np.random.default_rng([c.seed, 19]).normal(0.0, 0.02, (len(self.units.tokens), c.dim))
            start[[not token for token in self.units.tokens]] = 0.0
            parts = self.bitexts("train", vectors), self.bitexts("development", None)
            checkpoint = self.stages.checkpoint("static", identity)
            with single_threaded_blas():
                made = refine(start.astype(np.float32), *parts, settings, c.static_objective, checkpoint=checkpoint)
            save_file({"embeddings": made.matrix}, folder / "static.safetensors")
            write_json(folder / "report.json", {"best_step": made.best_step, "history": made.history})

        imitated = "" if self.distilled is None else self.distilled.identity
        inputs = [self.bags_id, imitated, c.dim, {**decisive(settings), "threads": None}]
        folder, identity = self.stages.run("static", [*inputs, decisive(c.static_objective)], make)
        return load_file(folder / "static.safetensors")["embeddings"], identity

    def encoder(self, static: np.ndarray, static_id: str, vectors: dict[Pair, RowVectors] | None) -> Path:
        """Stage ``encoder``: the encoder itself."""
        c = self.config
        settings = replace(c.encoder, seed=c.seed, threads=c.threads)

        def make(folder: Path, identity: str) -> None:
            """Build the encoder, train it, and save it."""
            norms = np.linalg.norm(static, axis=1)
            model = build(static / np.float32(norms[norms > 0].mean()), c.shape, c.seed)
            history = train_encoder(
                model,
                self.bitexts("train", vectors),
                self.bitexts("development", None),
                settings,
                c.objective,
                checkpoint=self.stages.checkpoint("encoder", identity),
            )
            save(model, self.units.tokenizer, folder)  # type: ignore[attr-defined]
            write_json(folder / "report.json", {"history": history, "pairs": ["-".join(pair) for pair in self.pairs]})

        inputs = [static_id, asdict(c.shape), {**asdict(settings), "threads": None}, decisive(c.objective)]
        return self.stages.run("encoder", inputs, make)[0]
