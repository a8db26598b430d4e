"""How ``teacher=mini`` was made: a vocabulary, jointly trained static vectors, and a small encoder that starts from them.

    python -m eval.experiments.make_teacher output=runs/mini-teacher [bitext=…] [pair=en-de-zh-ja] [teacher=minilm]
                                            [threads=0] [refine.max_steps=…] [encoder.max_steps=…]

Only parallel text and a real (English) sentence encoder go in; ``teacher=none`` for translation ranking alone. ``bitext``
is read as YAML, by default ``{en-de: [$XSWE_DATA/train/en-de], …}``; names with dots are settings of the sections below.
Each step is a stage of the run folder, like those of ``xswe.train``. Two to three hours on two cores with bfloat16
instructions; most of it is MiniLM's vectors of 860,000 sentences and the encoder's own training. The latter is shared out
by ``torchrun --nproc-per-node=N -m eval.experiments.make_teacher …``, on one machine or several that share the folder: the
first process makes all that comes before, and each encodes a part of every batch, to the losses of one process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import load_file, save_file

from eval.experiments.encoder import EncoderConfig, EncoderShape, Peers, build, save, train_encoder
from eval.settings import bitext_of, run_script, split_words
from xswe.corpus.bitext import CorpusConfig
from xswe.errors import ConfigError
from xswe.io import settings as from_values
from xswe.io.choices import update
from xswe.io.files import whole_folder, write_json
from xswe.io.parallel import available_threads, single_threaded_blas
from xswe.model.static import StaticModel
from xswe.teacher.protocol import Teacher, TeacherConfig
from xswe.text.languages import check_languages
from xswe.text.units import Units
from xswe.training.bags_stage import make_bags, open_bags
from xswe.training.corpus_stage import Corpus, Pair, make_corpus, sides
from xswe.training.objective import Objective
from xswe.training.pairs import ParallelBags
from xswe.training.refine import RefineConfig, refine
from xswe.training.stages import Stages, fingerprint_fields, only_run, versions
from xswe.training.teacher_vectors import RowVectors, vectors_stage
from xswe.training.train import load_encoder, teacher_settings
from xswe.training.units_stage import UnitsConfig, make_units, read_report

DEFAULTS: dict[str, Any] = {
    "output": None,
    "bitext": "",
    "pair": "en-de-zh-ja",
    "teacher": "minilm",
    "threads": 0,
    "seed": 0,
}


_UNITS = UnitsConfig(vocabulary="corpus")
_REFINE = RefineConfig(max_steps=8000, eval_steps=250, patience=0)
_STATIC = Objective(margin=0.35, distillation=1.0, distillation_temperature=0.1)
_ENCODER = Objective(margin=0.3, distillation=1.0, distillation_temperature=0.1)


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
    corpus: CorpusConfig = field(default_factory=CorpusConfig)
    units: UnitsConfig = _UNITS
    dim: int = 256
    refine: RefineConfig = _REFINE
    static_objective: Objective = _STATIC
    shape: EncoderShape = field(default_factory=EncoderShape)
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    objective: Objective = _ENCODER
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
    peers = Peers.here()
    if peers.rank:
        peers.told()  # that all which comes before the encoder is there
    with nullcontext() if peers.rank else only_run(folder):
        corpus = make_corpus(Stages(folder), config.languages, config.corpus, config.seed, config.threads)
        units = make_units(corpus, config.languages, config.units, None)
        return _Run(config, distilled, folder, corpus, units[0], *make_bags(corpus, *units)).result()


@dataclass
class _Run:
    """The stages after the corpus is looked up."""

    config: MakeTeacherConfig
    distilled: Teacher | None
    folder: Path
    corpus: Corpus
    units: Units
    bags: Path
    bags_id: str

    def result(self) -> tuple[Path, StaticModel, dict[str, Any]]:
        """Return the teacher's folder, its static start, and what the stages reported."""
        vectors = self.vectors()
        static, static_id = self.static(vectors)
        peers, target = Peers.here(), self.folder / "teacher"
        if peers.rank:
            peers.gathered([])  # before the first begins, whose unfinished stage would be in the way
            if checkpoint := peers.told():
                self.trained(static, vectors, Path(checkpoint))
            return target, StaticModel(self.units, static), {}
        peers.told("made")
        peers.gathered([])
        made, asked = self.encoder(static, static_id, vectors)
        if not asked:  # it was there
            peers.told()
        with whole_folder(target) as temporary:
            for file in made.rglob("*"):
                if file.is_file() and file.name not in ("stage.json", "report.json"):
                    (temporary / file.relative_to(made)).parent.mkdir(exist_ok=True)
                    (temporary / file.relative_to(made)).write_bytes(file.read_bytes())
        report = {"corpus": read_report(self.corpus.folder), "encoder": read_report(made)}
        return target, StaticModel(self.units, static), report

    def vectors(self) -> dict[Pair, RowVectors] | None:
        """Stage ``vectors``: the distilled encoder's vectors of the hub language's sentences, each distinct one once."""
        if self.distilled is None:
            return None
        hub = self.config.languages[0]
        bitexts = self.corpus.part("train")
        if any(bitext.languages[0] != hub for bitext in bitexts):
            raise ConfigError(f"every bitext must have {hub} as its first language, whose sentences are distilled")
        inputs, hubs = [self.corpus.identity, self.distilled.identity], [sides(bitext)[0][2][:] for bitext in bitexts]
        return dict(zip(self.corpus.pairs, vectors_stage(self.corpus.stages, inputs, self.distilled, hubs), strict=True))

    def bitexts(self, part: str, vectors: dict[Pair, RowVectors] | None) -> list[ParallelBags]:
        """Return the tokenised bitexts of a part, with the distilled vectors for training."""
        teacher = vectors if vectors and part == "train" else {}
        made = [ParallelBags(*open_bags(self.bags, part, pair), teacher=teacher.get(pair)) for pair in self.corpus.pairs]
        return [bitext for bitext in made if len(bitext)]

    def static(self, vectors: dict[Pair, RowVectors] | None) -> tuple[np.ndarray, str]:
        """Stage ``static``: static vectors of all languages, from random ones."""
        c = self.config
        settings = replace(c.refine, seed=c.seed, threads=c.threads)

        def make(folder: Path, identity: str) -> None:
            start = np.random.default_rng([c.seed, 19]).normal(0.0, 0.02, (len(self.units.tokens), c.dim))
            start[[not token for token in self.units.tokens]] = 0.0
            parts = self.bitexts("train", vectors), self.bitexts("development", None)
            checkpoint = self.corpus.stages.checkpoint("static", identity)
            with single_threaded_blas():
                made = refine(start.astype(np.float32), *parts, settings, c.static_objective, checkpoint=checkpoint)
            save_file({"embeddings": made.matrix}, folder / "static.safetensors")
            write_json(folder / "report.json", {"best_step": made.best_step, "history": made.history})

        imitated = "" if self.distilled is None else self.distilled.identity
        inputs = [self.bags_id, imitated, c.dim, {**fingerprint_fields(settings), "threads": None}]
        folder, identity = self.corpus.stages.run("static", [*inputs, fingerprint_fields(c.static_objective)], make)
        return load_file(folder / "static.safetensors")["embeddings"], identity

    def trained(
        self, static: np.ndarray, vectors: dict[Pair, RowVectors] | None, checkpoint: Path
    ) -> tuple[Any, list[dict[str, float]]]:
        """Build the encoder and train it; returns it, and the history."""
        c = self.config
        norms = np.linalg.norm(static, axis=1)
        model = build(static / np.float32(norms[norms > 0].mean()), c.shape, c.seed)
        parts = self.bitexts("train", vectors), self.bitexts("development", None)
        settings = replace(c.encoder, seed=c.seed, threads=c.threads)
        return model, train_encoder(model, *parts, settings, c.objective, checkpoint=checkpoint)

    def encoder(self, static: np.ndarray, static_id: str, vectors: dict[Pair, RowVectors] | None) -> tuple[Path, bool]:
        """Stage ``encoder``: the encoder itself; returns also whether it had to be made, in which the others took part."""
        c, asked = self.config, []
        settings = replace(c.encoder, seed=c.seed, threads=c.threads)

        def make(folder: Path, identity: str) -> None:
            """Train the encoder, and save it."""
            checkpoint = self.corpus.stages.checkpoint("encoder", identity)
            asked.append(Peers.here().told(str(checkpoint)))
            model, history = self.trained(static, vectors, checkpoint)
            save(model, self.units.tokenizer, folder)  # type: ignore[attr-defined]
            write_json(
                folder / "report.json", {"history": history, "pairs": ["-".join(pair) for pair in self.corpus.pairs]}
            )

        inputs = [static_id, asdict(c.shape), {**asdict(settings), "threads": None}, fingerprint_fields(c.objective)]
        return self.corpus.stages.run("encoder", inputs, make)[0], bool(asked)


@contextmanager
def group() -> Iterator[None]:
    """Be one of a group of processes, where torchrun started this one; its threads end before the interpreter does."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        yield
        return
    torch.distributed.init_process_group("gloo", timeout=timedelta(days=7))  # what the first makes alone takes hours
    try:
        yield
    finally:
        torch.distributed.destroy_process_group()


@group()
def main(settings: dict[str, Any], further: dict[str, Any]) -> None:
    """Make a teacher, and say where it is."""
    languages, threads = check_languages(settings["pair"].split("-")), settings["threads"] or available_threads()
    values = asdict(MakeTeacherConfig(languages))
    paths = bitext_of(settings["bitext"]) or {f"en-{code}": [f"$XSWE_DATA/train/en-{code}"] for code in languages[1:]}
    update(values, {"corpus.paths": named(paths), "seed": settings["seed"], "threads": threads, **further})
    config = from_values.build(MakeTeacherConfig, values, "")
    described = teacher_settings(settings["teacher"])
    encoder = replace(from_values.build(TeacherConfig, described, "teacher"), dtype="bfloat16") if described else None
    folder = Path(settings["output"])
    teacher, static, report = make_teacher(config, load_encoder(encoder, threads), folder)
    if Peers.here().rank:
        return
    static.save(folder / "static")
    recorded = {
        "teacher": encoder and asdict(encoder),
        **asdict(replace(config, corpus=replace(config.corpus, paths=paths))),
    }
    write_json(folder / "results.json", {"settings": recorded, "report": report, "versions": versions()})
    print(
        f"teacher: {teacher}\nthe static vectors it started from: {folder / 'static'}\nhistory: {folder / 'results.json'}"
    )


def named(paths: Any) -> Any:
    """Return paths with the folder that ``XSWE_DATA`` names in its place."""
    return {pair: [os.path.expandvars(path) for path in own] for pair, own in paths.items()}


if __name__ == "__main__":
    words, changes = split_words(sys.argv[1:], DEFAULTS)
    run_script(lambda settings: main(settings, changes), DEFAULTS, __doc__, words)
