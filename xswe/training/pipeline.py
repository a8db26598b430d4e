"""The training pipeline: corpus, units, bags, extraction, sentence PCA, teacher's vectors, refinement, model.

Each stage is a function of earlier stages and its own settings and leaves one artefact in the run folder; a killed run
resumes where it stopped, and a run with other settings repeats only the stages that they change.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from xswe.bitext.source import Source
from xswe.corpus.bitext import Bitext, CorpusConfig
from xswe.corpus.cards import SAMPLE
from xswe.corpus.contexts import BY_TOKENS, Contexts, choose_contexts
from xswe.corpus.monolingual import Sentences
from xswe.corpus.splits import draw
from xswe.errors import ConfigError
from xswe.io.files import fingerprint, save_tensors, write_json
from xswe.io.parallel import single_threaded_blas
from xswe.io.ragged import Bags, Texts
from xswe.model.bigrams import Bigrams, frequent_bigrams
from xswe.model.counts import narrow_counts
from xswe.model.ensemble import load_single, locate
from xswe.model.static import pool
from xswe.teacher.protocol import Teacher
from xswe.text.forms import count_forms
from xswe.text.spans import cut_texts, make_cutter
from xswe.text.units import Units
from xswe.text.words import LOWER
from xswe.training.bags_stage import Tables, bags_of, make_bags, make_exact_bags, open_bags, open_negatives
from xswe.training.components import Components
from xswe.training.config import OF_WORDS, PCAConfig, TrainConfig, Trained, check_settings, sample_paths
from xswe.training.corpus_stage import Corpus, Pair, make_corpus, sides, texts_of
from xswe.training.extract import BY_VOCABULARY, SEPARATE, LanguageSample, Sums, averaged, sums_by_shard
from xswe.training.graded import GradedLoss, describe_graded, read_graded
from xswe.training.loop import RunLog
from xswe.training.pairs import PairRows, ParallelBags, WordCounts, distinct_rows, draw_pairs
from xswe.training.refine import OF_CONTEXTS, refine, train_spans
from xswe.training.shape import centred, temper
from xswe.training.stages import Stages, fingerprint_fields, only_run
from xswe.training.teacher_vectors import RowVectors, as_imitated, vectors_stage
from xswe.training.triplets import (
    ParallelWords,
    WordTriples,
    describe_triples,
    find_triples,
    read_triples,
    runs_of,
    split_triples,
)
from xswe.training.units_stage import make_units, read_report, token_lengths
from xswe.work.config import LOCAL, ExecutionConfig

logger = logging.getLogger(__name__)
# Among fewer pairs than this, translations are found at once: the loss (always zero for a single pair) stops falling while
# the table still improves, and early stopping would discard the training.
_MIN_DEVELOPMENT = 10


def run_stages(
    config: TrainConfig,
    teacher: Teacher | None,
    folder: Path,
    *,
    distilled: Teacher | None = None,
    shared: Path | None = None,
    execution: ExecutionConfig = LOCAL,
) -> Trained:
    """Train a model, writing only stages into the run folder, or into ``shared``, which several runs may share.

    Training starts from a teacher's states, and some kinds of units use its tokenizer; without a teacher it starts from
    random vectors. If ``objective.distillation`` is above 0, the model imitates ``distilled``'s vectors of each pair's side
    in the model's first language (or of the source if neither side is).
    """
    distilled = distilled if config.objective.imitating else None
    check_settings(config, teacher, distilled)
    place, peers = shared or folder, execution.has_peers
    several = peers or shared is not None  # whether several processes may be at work in the place
    with nullcontext() if place == folder else only_run(folder, peers), only_run(place, several), single_threaded_blas():
        stages = Stages(place, several, execution)
        pieces = None if teacher is None else teacher.tokenizer
        corpus = make_corpus(stages, *corpus_of(config), config.seed, config.threads)
        units = make_units(corpus, config.languages, config.units, pieces)
        bags = make_bags(corpus, *units)
        run = _Run(config, teacher, distilled, folder, corpus, *units, *bags)
        steps: dict[str, np.ndarray] = {}
        if config.refine.start:
            start, identity = run.given_start(config.refine.start)
            steps["start"] = start
        elif teacher is None:
            start, identity = run.random_start()
        else:
            steps["extraction"], extracted = run.extraction(teacher)
            steps["PCA without ABTT"], _ = run.pca(steps["extraction"], extracted, replace(config.pca, drop=0))
            start, identity = run.pca(steps["extraction"], extracted, config.pca)
            steps["PCA with ABTT"] = start
        vectors = run.vectors()
        if config.refine.trains:
            start, identity = run.refinement(start, identity, vectors)
        steps["refinement"] = start
        if config.spans.max_steps:
            steps["span training"] = run.span_training(start, identity)
        if config.shape.on:
            steps["shape"] = run.shaped(steps[next(reversed(steps))])
        return run.result(steps, vectors)


def corpus_of(config: TrainConfig) -> tuple[tuple[str, ...], CorpusConfig]:
    """Return the languages of the bitexts (a single language that ranks is both sides), and the corpus settings."""
    sampled = OF_CONTEXTS[config.refine.sample_from]
    single = len(config.languages) == 1 and config.objective.needs_pairs
    languages, corpus = _own_pairs(config) if single else (config.languages, config.corpus)
    if corpus.paths == SAMPLE:
        corpus = replace(corpus, paths=sample_paths(languages))
    # With contexts, development pairs are drawn later from pairs with a context, so none are set aside here.
    return languages, replace(corpus, development=0.0) if sampled else corpus


def _own_pairs(config: TrainConfig) -> tuple[tuple[str, str], CorpusConfig]:
    """Return a single language as both sides of a pair, and the corpus of its pairs (anchor, positive)."""
    (code,) = config.languages
    paths = config.corpus.paths
    if isinstance(paths, Mapping):
        paths = next((paths[name] for name in (f"{code}-{code}", code) if name in paths), None)
    if not paths or paths == SAMPLE:
        raise ConfigError(
            f"{code} alone has no translations to rank: give pairs of its texts, as in corpus.paths=[pairs.jsonl] with the "
            "fields anchor and positive, or set objective=distillation, or a pair"
        )
    return (code, code), replace(config.corpus, paths=paths)


@dataclass
class _Run:
    """The stages after the look-up of the corpus; :func:`run_stages` passes their results from one to the next."""

    config: TrainConfig
    teacher: Teacher | None
    distilled: Teacher | None
    folder: Path
    corpus: Corpus
    units: Units
    units_id: str
    bags: Path
    bags_id: str
    report: dict[str, Any] = field(default_factory=dict)

    @property
    def stages(self) -> Stages:
        return self.corpus.stages

    @property
    def pairs(self) -> Sequence[Pair]:
        return self.corpus.pairs

    @property
    def sampled(self) -> bool:
        """Whether pairs are drawn from those with a context sentence."""
        return OF_CONTEXTS[self.config.refine.sample_from]

    @cached_property
    def tables(self) -> Tables:
        return Tables(tuple(self.config.languages), self.units, SEPARATE[self.config.extract.merge])

    @cached_property
    def bigrams(self) -> Bigrams | None:
        """Stage ``bigrams``: the most frequent pairs of neighbouring units of the training texts."""
        if not (most := self.config.refine.bigrams):
            return None

        def make(folder: Path, _: str) -> None:
            """Count bigrams, and save the units of each."""
            sides = (side for pair in self.pairs for side in open_bags(self.bags, "train", pair) if side is not None)
            if (found := frequent_bigrams(sides, len(self.units), most)) is None:
                raise ConfigError("refine.bigrams: none is frequent; give a larger corpus, or set refine.bigrams=0")
            save_tensors(folder / "bigrams.safetensors", {"bigrams": found.pairs})

        folder, _ = self.stages.run("bigrams", [self.bags_id, most], make)
        found = Bigrams(load_file(folder / "bigrams.safetensors")["bigrams"], len(self.units))
        self.report["bigrams"] = len(found)
        return found

    def result(self, steps: dict[str, np.ndarray], vectors: dict[str, list[RowVectors]]) -> Trained:
        """Gather the results of the stages, given the matrix after each step."""
        held_out = {b.name: tuple(t[:] for *_, t in sides(b)) for b in self.corpus.part("held_out")}
        counts = [self.bags_of(language).counts(len(self.units.tokens)) for language in self.config.languages]
        tables = replace(self.tables, bigrams=self.bigrams)
        models = {name: tables.model(matrix, counts) for name, matrix in steps.items()}
        by_language = {name: tables.models(matrix, counts) for name, matrix in steps.items()}
        known = vectors["held_out"][0] if "held_out" in vectors else None
        return Trained(
            models[next(reversed(steps))],
            models,
            by_language,
            held_out,
            known[np.arange(len(known))] if known is not None else None,
            lambda language: texts_of(self.corpus.part("train"), language),
            narrow_counts(np.stack(counts)),
            tuple(self.forms_of(language) for language in self.config.languages),
            {"corpus": read_report(self.corpus.folder), "units": len(self.units.tokens), **self.report},
            self.stages.seconds,
        )

    def bags_of(self, language: str) -> Bags:
        return bags_of(self.bags, self.pairs, language)

    def forms_of(self, language: str) -> Texts:
        """Return the forms of each unit in the training texts of a language."""
        return count_forms(self.units, texts_of(self.corpus.part("train"), language), language, self.config.threads)

    def vectors(self) -> dict[str, list[RowVectors]]:
        """Stage ``vectors``: the imitated encoder's vectors of one side of each bitext, by part of the corpus."""
        if self.distilled is None:
            return {}
        hub, alone = self.config.languages[0], len(self.pairs[0]) == 1
        parts = ["train", "development"] + (["held_out"] if alone else [])  # for evaluation against the encoder
        texts, read = [], []
        for part in parts:
            for bitext in self.part(part):
                by_code = {code: (name, side) for name, code, side in reversed(sides(bitext))}
                name, side = by_code.get(hub, ("source", bitext.source))
                texts.append(side[:])
                read.append(name)
        inputs: list[Any] = [self.corpus.identity, self.distilled.identity, *parts[1:]]
        inputs += [read] if "target" in read else []  # omitted in the usual case
        inputs += [{"drawn": self.drawn_inputs()}] if self.sampled else []
        made = iter(vectors_stage(self.stages, inputs, self.distilled, texts))
        return {part: [next(made) for _ in self.pairs] for part in parts}

    @cached_property
    def exact(self) -> tuple[Path, str]:
        """Stage ``exact``: the units that each training text contains."""
        return make_exact_bags(self.corpus, self.units, self.bags, self.bags_id)

    def exact_bags_of(self, language: str) -> Bags:
        return bags_of(self.exact[0], self.pairs, language)

    @cached_property
    def contexts(self) -> tuple[dict[str, Contexts], str]:
        """Stage ``contexts``: each language's context sentences, chosen among its distinct training sentences."""
        c, languages, teacher = self.config, self.config.languages, self.teacher
        inputs: list[Any] = [self.exact[1], fingerprint_fields(c.contexts)]
        own: Sequence[np.ndarray | None] = [None] * len(languages)
        if BY_VOCABULARY[c.extract.shared] and self.units.kind == "words":
            own = list(WordCounts.open(self.stages.folder / f"units-{self.units_id}").own)
            inputs.append({"shared": c.extract.shared})
        by_tokens = BY_TOKENS[c.contexts.length]
        if teacher and by_tokens:
            inputs.append({"tokens": teacher.identity})

        def make(folder: Path, _: str) -> None:
            """Choose, and save the rows."""
            bitexts = self.corpus.part("train")
            for language, wanted in zip(languages, own, strict=True):
                texts, bags, exact = texts_of(bitexts, language), self.bags_of(language), self.exact_bags_of(language)
                distinct = distinct_rows(bags) if self.units.exact is self.units else distinct_rows(bags, exact)
                lengths = partial(token_lengths, teacher, texts, language) if teacher and by_tokens else None
                chosen = choose_contexts(
                    bags, len(self.units.tokens), c.contexts, distinct, exact=exact, wanted=wanted, lengths=lengths
                )
                chosen.save(folder, language)

        folder, identity = self.stages.run("contexts", inputs, make)
        return {language: Contexts.open(folder, language) for language in languages}, identity

    def samples(self, contexts: dict[str, Contexts]) -> Iterator[LanguageSample]:
        """Gather the inputs of the extraction for each language."""
        bitexts = self.corpus.part("train")
        for language, chosen in contexts.items():
            texts = texts_of(bitexts, language).take(chosen.sentences)
            texts = Texts.of(map(LOWER.normalize_str, texts)) if self.config.units.lowercase else texts
            yield LanguageSample(language, texts, chosen, self.exact_bags_of(language).counts(len(self.units.tokens)))

    def part(self, name: str) -> Sequence[Bitext | Sentences]:
        """Return the bitexts for refinement (``train``, ``development``), or for evaluation (``held_out``)."""
        if not self.sampled or name == "held_out":
            return self.corpus.part(name)
        whole = zip(self.corpus.part("train"), self.sampled_rows, strict=True)
        return [bitext.take(getattr(rows, name)) for bitext, rows in whole]

    @cached_property
    def sampled_rows(self) -> list[PairRows]:
        """The pairs of each bitext to refine on: those with a context sentence of some unit."""
        c = self.config
        bitexts = [[side for side in open_bags(self.bags, "train", pair) if side is not None] for pair in self.pairs]

        def development(size: int) -> int:
            return min(c.corpus.max_development, int(size * c.corpus.development))

        return draw_pairs(self.pairs, bitexts, self.contexts[0], c.refine.per_unit, development, c.seed)

    def drawn_inputs(self) -> list[Any]:
        c = self.config
        return [self.contexts[1], c.refine.per_unit, c.corpus.development, c.corpus.max_development, c.seed]

    def extraction(self, teacher: Teacher) -> tuple[np.ndarray, str]:
        """Average the teacher's states over the contexts of each unit; return the table and its identity."""
        c, (contexts, _) = self.config, self.contexts
        inputs = [self.exact[1], fingerprint_fields(c.contexts), fingerprint_fields(c.extract), teacher.identity]

        def share(shards: Path) -> tuple[list[LanguageSample], Sums]:
            samples = list(self.samples(contexts))
            return samples, sums_by_shard(teacher, self.units, samples, c.extract, shards, self.stages.execution)

        def make(folder: Path, shared: tuple[list[LanguageSample], Sums]) -> None:
            """Average the states, and save the matrix."""
            made = averaged(teacher, self.units, shared[0], c.extract, shared[1])
            save_tensors(folder / "extract.safetensors", {"embeddings": made.matrix, "contexts": made.contexts})
            write_json(
                folder / "report.json",
                {
                    "sentences_encoded": made.passes,
                    "sentences_encoded_by_reference": made.reference_passes,
                    "units_with_contexts": int((made.contexts > 0).sum()),
                    "units_with_vector": int(made.matrix.any(1).sum()),
                },
            )

        folder, identity = self.stages.run_shared("extract", inputs, share, make)
        self.report["extraction"] = read_report(folder)
        return load_file(folder / "extract.safetensors")["embeddings"], identity

    def pca(self, matrix: np.ndarray, matrix_id: str, settings: PCAConfig) -> tuple[np.ndarray, str]:
        """Stage ``pca``: fit components on sentences of all languages, and project the vectors of units."""

        def make(folder: Path, _: str) -> None:
            """Fit, project, and save the matrix."""
            words = iter([matrix[matrix.any(1)]])
            vectors = words if OF_WORDS[settings.level] else self.sentence_vectors(matrix, settings)
            pca = Components(settings.drop, settings.dim).fit(vectors)
            projected = pca.transform(matrix)
            projected[~matrix.any(1)] = 0.0  # a unit without a vector keeps none
            if settings.norm:
                norms = np.linalg.norm(projected, axis=1)
                projected *= np.float32(settings.norm / norms[norms > 0].mean())
            tensors = {"embeddings": projected, "mean": pca.mean_, "components": pca.components_}
            save_tensors(folder / "pca.safetensors", tensors)
            write_json(
                folder / "report.json",
                {
                    "drop": pca.drop_,
                    "dim": pca.dim,
                    "sentences": pca.n_samples_seen_,
                    "explained_variance_ratio": [round(float(x), 6) for x in pca.explained_variance_ratio_[:300]],
                },
            )

        folder, identity = self.stages.run("pca", [matrix_id, fingerprint_fields(settings), self.config.seed], make)
        self.report["pca"] = read_report(folder)
        if settings == self.config.pca:
            what = "sentence PCA: the first %d of %d components are removed (pca.drop=%s%s), the next %d are kept"
            why = ": a hundredth of them" if settings.drop == "auto" else ""
            logger.info(what, self.report["pca"]["drop"], matrix.shape[1], settings.drop, why, settings.dim)
        return load_file(folder / "pca.safetensors")["embeddings"], identity

    def sentence_vectors(self, matrix: np.ndarray, settings: PCAConfig) -> Iterator[np.ndarray]:
        """Yield blocks of sentence vectors, which are means of units' vectors, of a random sample of each language."""
        for k, language in enumerate(self.config.languages):
            bags = self.tables.place(self.bags_of(language), language)
            distinct = self.contexts[0][language].sentences if OF_CONTEXTS[settings.sample_from] else distinct_rows(bags)
            rows = distinct[draw([self.config.seed, 17, k], len(distinct), settings.sentences)[0]]
            rows = np.sort(rows[bags.offsets[rows + 1] > bags.offsets[rows]])
            for start in range(0, len(rows), 4096):
                block: Bags = bags.take(rows[start : start + 4096])
                yield pool(matrix, block, normalise=False, threads=self.config.threads)

    def shaped(self, matrix: np.ndarray) -> np.ndarray:
        """Temper and centre the vectors, which takes only seconds and is not a stage."""
        tempered = temper(matrix, self.config.shape.norms)
        return centred(tempered, self.sentence_vectors(tempered, self.config.pca), self.config.shape.centre)

    def given_start(self, name: str) -> tuple[np.ndarray, str]:
        """Return the vectors of an existing model."""
        model = load_single(locate(name))
        if model.units.tokens != self.units.tokens or model.bigrams is not None or model.dim != self.config.pca.dim:
            raise ConfigError(
                f"refine.start={name}: {model!r} has other units or dimensions than this run, or has bigrams; set "
                f"pca.dim={model.dim}, and as units.vocabulary the tokenizer.json of its folder, or mini"
            )
        return model.vectors, model.identity

    def random_start(self) -> tuple[np.ndarray, str]:
        """Return random vectors, for training without a teacher; separate tables start from the same vectors."""
        c = self.config.pca
        settings: list[float] = [len(self.units.tokens), c.dim, self.config.seed]
        settings += [] if c.spread == PCAConfig.spread else [c.spread]
        generator = np.random.default_rng([self.config.seed, 19])
        matrix = generator.normal(0.0, c.spread, (len(self.units.tokens), c.dim)).astype(np.float32)
        matrix[[not token for token in self.units.tokens]] = 0.0
        if self.tables.separate:
            return np.tile(matrix, (len(self.config.languages), 1)), fingerprint("random separate", settings)
        return matrix, fingerprint("random", settings)

    def parallel(self, part: str, vectors: dict[str, list[RowVectors]]) -> list[ParallelBags]:
        """Return a part of the corpus as bags for the trainer."""
        teachers: Sequence[RowVectors | None] = vectors.get(part) or [None] * len(self.pairs)
        made = []
        for pair, teacher in zip(self.pairs, teachers, strict=True):
            source, target = open_bags(self.bags, "train" if self.sampled else part, pair)
            if self.sampled:
                rows = getattr(self.sampled_rows[self.pairs.index(pair)], part)
                source, target = source.take(rows), None if target is None else target.take(rows)
            placed = None if target is None else self.tables.place(target, pair[1])
            alike = len(pair) == 2 and pair[0] == pair[1]
            further = self.negatives(part, pair)
            made.append(ParallelBags(self.tables.place(source, pair[0]), placed, teacher, alike, *further))
        return made

    def negatives(self, part: str, pair: Pair) -> tuple[Bags, np.ndarray] | tuple[()]:
        """Return the negatives of a bitext, and the bounds of each pair's; empty if it has none."""
        found = open_negatives(self.bags, "train" if self.sampled else part, pair)
        if found and self.sampled:
            raise ConfigError(
                "refine.sample_from=contexts draws pairs without negatives, but the corpus has negatives: set it to corpus"
            )
        return (self.tables.place(found[0], pair[1]), found[1]) if found else ()

    @cached_property
    def has_enough(self) -> list[bool]:
        """Which bitexts have enough development pairs for early stopping; warns of those that do not."""
        parts = self.part("development")
        for one in parts:
            if len(one) < _MIN_DEVELOPMENT and self.config.corpus.development:
                logger.warning(
                    "%s: %d development pairs are too few to stop early by, or to choose the best table: give a larger "
                    "corpus, or a larger corpus.development",
                    one.name,
                    len(one),
                )
        return [len(one) >= _MIN_DEVELOPMENT for one in parts]

    def refinement(self, start: np.ndarray, start_id: str, vectors: dict[str, list[RowVectors]]) -> tuple[np.ndarray, str]:
        """Refine the table on pairs, and keep the history; return the table and its identity."""
        c = replace(self.config.refine, seed=self.config.seed, threads=self.config.threads)
        settings = [{**fingerprint_fields(c), "threads": None}, fingerprint_fields(self.config.objective)]
        imitated = [self.distilled.identity] if self.distilled is not None else []
        log, given, bigrams = RunLog(self.folder), self.config.graded, self.bigrams

        def make(folder: Path, identity: str) -> None:
            """Refine the table; a killed run resumes from its checkpoint."""
            imitable = as_imitated(vectors, self.config.objective.distillation_centred)
            training = self.parallel("train", imitable)
            development = self.parallel("development", imitable)
            development = [one for one, has_enough in zip(development, self.has_enough, strict=True) if has_enough]
            checkpoint = self.stages.checkpoint("refine", identity)
            begun = time.monotonic()
            files = read_graded(given.paths, self.units)
            graded = GradedLoss(files, given, self.config.seed) if files else None
            made = refine(
                start,
                training,
                development,
                c,
                self.config.objective,
                graded,
                bigrams=bigrams,
                checkpoint=checkpoint,
                log=log,
            )
            logger.info("refined in %.0f s, %d steps, best %d", time.monotonic() - begun, made.steps, made.best_step)
            save_tensors(folder / "refine.safetensors", {"embeddings": made.matrix})
            write_json(folder / "report.json", {"steps": made.steps, "best_step": made.best_step, "history": made.history})

        sampled = [{"drawn": self.drawn_inputs()}] if self.sampled else []
        folder, identity = self.stages.run(
            "refine", [self.bags_id, start_id, settings, *imitated, *sampled, *describe_graded(given)], make
        )
        self.report["refinement"] = read_report(folder)
        log.close(self.report["refinement"]["history"])
        return load_file(folder / "refine.safetensors")["embeddings"], identity

    def words(self, part: str) -> list[ParallelWords]:
        """Split some pairs of each bitext in a part of the corpus into words."""
        if not self.config.spans.pairs:
            return []
        bitexts = self.corpus.part(part)
        wanted = self.has_enough if part == "development" else list(map(bool, map(len, bitexts)))
        chosen = zip(bitexts, wanted, strict=True)
        return [self.words_of(bitext) for bitext, want in chosen if want and isinstance(bitext, Bitext)]

    def words_of(self, bitext: Bitext) -> ParallelWords:
        cutter, threads = make_cutter(self.units), self.config.threads
        part = bitext.take(runs_of(len(bitext), self.config.spans.pairs, self.config.seed))
        return ParallelWords(cut_texts(cutter, part.source, threads), cut_texts(cutter, part.target, threads))

    def triples(self, files: Sequence[Source]) -> tuple[list[WordTriples], list[WordTriples]]:
        """Split the triples of files into words, and set some aside for development."""
        if not files:
            return [], []
        c = self.config
        columns = read_triples(files, c.corpus, c.spans.pairs, c.seed)
        cutter = make_cutter(self.units)
        whole = WordTriples(*(cut_texts(cutter, texts, c.threads) for texts in columns))
        train, development = split_triples(whole, c.corpus.development, c.corpus.max_development, c.seed)
        return [train], [development] if len(development) >= _MIN_DEVELOPMENT else []

    def span_training(self, start: np.ndarray, start_id: str) -> np.ndarray:
        """Train the table for spans, and return it."""
        c = replace(self.config.spans, seed=self.config.seed, threads=self.config.threads)
        log = RunLog(self.folder / "spans")
        files = find_triples(c.triples) if c.triples else []
        inputs = [self.bags_id, start_id, {**asdict(c), "threads": None, "triples": None}]
        inputs += [{"triples": describe_triples(files, self.config.corpus)}] if files else []

        def make(folder: Path, identity: str) -> None:
            """Train on words of the bitext and on triples; a killed run resumes from its checkpoint."""
            checkpoint = self.stages.checkpoint("spans", identity)
            learnt, measured = self.triples(files)
            training: list[ParallelWords | WordTriples] = [*self.words("train"), *learnt]
            development: list[ParallelWords | WordTriples] = [*self.words("development"), *measured]
            matrix, history = train_spans(start, training, development, c, checkpoint=checkpoint, log=log)
            save_tensors(folder / "spans.safetensors", {"embeddings": matrix})
            write_json(folder / "report.json", {"history": history})

        folder, _ = self.stages.run("spans", inputs, make)
        self.report["spans"] = read_report(folder)
        history = self.report["spans"]["history"]
        log.close(history)
        if losses := [row["development_loss"] for row in history if "development_loss" in row]:
            what = "span training: loss of the development phrases %.3f before, %.3f after"
            logger.info(what, losses[0], min(losses))
        return load_file(folder / "spans.safetensors")["embeddings"]
