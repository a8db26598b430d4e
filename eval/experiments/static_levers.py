"""What levers of static vectors are worth: each beside the same start, the static vectors of make_teacher.py.

    python -m eval.experiments.static_levers start=runs/mini-teacher/static [only="as it starts;pivots"] [seeds=0]
                                 [pieces=0] [vocabulary=mini] [mined=1] [threads=1] [runs=runs/static] [save=FOLDER]
                                 [output=FILE.json]

Refines the vectors on all bitexts of ``$XSWE_DATA/train``, one variation at a time, and evaluates on the development sets:
WMT 2023 by cosine and by margin, STS-B across and within languages, and the sample corpus between the languages that no
bitext joins; also on STS-B's train part, by which nothing is chosen, where it was not trained on; and by how well pairs are
mined that lie hidden among noise, of lines of the training files, and of lines that no training has seen. ``pieces`` above
0 trains a vocabulary of so many pieces; a new piece starts as the sum of the vectors of the start's pieces of it, which
leaves the vectors of texts nearly what they were; ``vocabulary`` is the tokenizer.json of a start that has pieces of its
own. ``seeds`` have commas between them; what is there is not measured again, and one training serves all variations that
differ only in what is done at its end. ``save`` keeps the model of the last variation. Seconds are those of the processor.
Rows marked as removed are of variations that did not help, and of which nothing is left here. The Tatoeba test, by which
nothing is chosen, and the minimal pairs of ``probe.py`` are measured beside; ``mined=0`` leaves out the mining, which takes
half of the time. ``PAIRS`` are the variations of ``pair_rows.py``, and others that begin with a finished table.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
import unicodedata
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from eval.experiments.mining_quality import bucc_shaped, hidden_pairs, noise_lines
from eval.experiments.pair_rows import (
    Contrasts,
    DistinctUnits,
    FurtherUnits,
    LengthUnits,
    learnt,
    triples_of,
)
from eval.experiments.probe import KINDS, probe
from eval.experiments.probe import read_pairs as minimal_pairs
from eval.settings import DATA, REQUIRED, RESULTS, numbers, run_script
from xswe.bitext.source import Source, read_pairs
from xswe.corpus.bitext import CorpusConfig
from xswe.corpus.cards import sample_sentences
from xswe.errors import ConfigError
from xswe.evaluation.encoders import StaticEncoder
from xswe.evaluation.evaluate import run_tasks
from xswe.evaluation.tasks import score_vectors
from xswe.io.files import arrays_digest, fingerprint, whole_file, write_json
from xswe.io.parallel import single_threaded_blas
from xswe.io.ragged import Bags, Texts
from xswe.model.bigrams import Bigrams, frequent_bigrams
from xswe.model.static import StaticModel, pool
from xswe.text.units import Units
from xswe.training.bags_stage import make_bags, open_bags
from xswe.training.corpus_stage import Corpus, make_corpus
from xswe.training.graded import GradedConfig, GradedLoss, read_graded
from xswe.training.objective import Objective
from xswe.training.pairs import ParallelBags
from xswe.training.refine import RefineConfig, refine
from xswe.training.shape import ShapeConfig, centred, temper
from xswe.training.stages import Stages
from xswe.training.units_stage import UnitsConfig, make_units

LANGUAGES = ("en", "de", "zh", "ja")
SENTENCES = 20_000  # of each language, of which the mean is taken
SHORTEST = 3  # letters of an English sentence that is a pivot
GOLD = str(DATA / "dev" / "stsb-train.en.tsv")  # CC BY-SA; the development sets are other sentences
DEFAULTS: dict[str, Any] = {
    **{"start": REQUIRED, "only": "", "seeds": "0", "pieces": 0, "vocabulary": "mini", "mined": 1},
    **{"threads": 1, "runs": "runs/static", "save": ""},
    "output": str(RESULTS / "static_levers.json"),
}
OBJECTIVE = Objective(margin=0.35)
NEAR = 0.02  # a rotation whose matrix is nowhere so far from identity turns nothing
NOISE = 20_000  # lines a side among which pairs are hidden
UNSEEN = ("zh",)  # languages of which there are so many lines that no training has seen
SHORT = 12  # units of a sentence that is not long
TRIPLES = 40_000  # pairs of each bitext that are made wrong
AS_MANY = -1  # rows for pairs: one for each unit


@dataclass(frozen=True)
class Variation:
    """What is done to the start.

    Attributes:
        pieces: of a vocabulary of its own; 0 for as many as the script is told.
        max_steps: of the refinement; 0 for none.
        batch_size: pairs a batch.
        neighbours: pairs a neighbourhood of a batch.
        pivots: train on pairs that share their English sentence, too.
        noise: train on pairs with a line that is among the noise of the mining sets, too.
        imitated: weight of a second loss, by which translations keep the similarities to the rest of the batch that the
            start finds (learning without forgetting; Li and Hoiem 2016).
        graded: graded pairs beside.
        averaged: trainings, each with a seed of its own, of whose tables the mean is taken.
        shape: what is done at the end.
        rate: learning rate, falling to 0 from the start, of a training that goes on from a finished table
            (``pair_rows.py``); 0 for the refinement.
        pairs: at most so many rows for pairs of neighbouring units; ``AS_MANY`` for as many as there are units.
        contrasts: weight of a loss of translations and the same with words exchanged.
        fixed: only the rows of pairs learn.
        alone: only the rows of units are taken of what was trained with pairs.
        lengths: power of the norms in sentences of up to ``SHORT`` units, and in others, which then have rows of their own.
        once: count each unit once a sentence.
        research: train on the bitexts for research only, too.
    """

    pieces: int = 0
    max_steps: int = 0
    batch_size: int = 1024
    neighbours: int = 0
    pivots: bool = False
    noise: bool = True
    imitated: float = 0.0
    graded: GradedConfig = field(default_factory=GradedConfig)
    averaged: int = 1
    shape: ShapeConfig = field(default_factory=ShapeConfig)
    rate: float = 0.0
    pairs: int = 0
    contrasts: float = 0.0
    fixed: bool = False
    alone: bool = False
    lengths: tuple[float, ...] = ()
    once: bool = False
    research: bool = False


_NEAR = Variation(max_steps=1200, batch_size=2048, neighbours=256, pivots=True)
_IMITATED = replace(_NEAR, imitated=1.0)
_MORE = replace(_IMITATED, pieces=120_000)
SHIPS = replace(_MORE, averaged=3)  # what eval/experiments/make_pretrained.py does to make ``base``
VARIATIONS: dict[str, Variation] = {
    "as it starts": Variation(),
    "norms 0.8": Variation(shape=ShapeConfig(norms=0.8)),
    "norms 0.8, centre 4": Variation(shape=ShapeConfig(0.8, 4)),
    "graded pairs, weight 0.1": Variation(max_steps=1500, graded=GradedConfig((GOLD,))),
    "pivots": Variation(max_steps=1500, pivots=True),
    "pivots, 2,048 in neighbourhoods of 256": _NEAR,
    "pivots, neighbourhoods, the noise of the mining sets left out": replace(_NEAR, noise=False),
    "pivots, neighbourhoods, the start imitated": _IMITATED,
    "120,000 pieces, pivots, neighbourhoods, the start imitated": _MORE,
    "120,000 pieces, pivots, neighbourhoods, the start imitated, tables of 3 seeds averaged": SHIPS,
    "120,000 pieces, pivots, neighbourhoods, the start imitated, graded pairs": replace(
        _MORE, graded=GradedConfig((GOLD,))
    ),
    "pivots, neighbourhoods, centre 2": replace(_NEAR, shape=ShapeConfig(centre=2)),
    "pivots, neighbourhoods, centre 2, graded pairs": replace(
        _NEAR, shape=ShapeConfig(centre=2), graded=GradedConfig((GOLD,))
    ),
}
_ON = Variation(max_steps=1500, rate=1e-3)
_PAIRED = replace(_ON, pairs=1 << 18)
PAIRS: dict[str, Variation] = {
    "as it starts": Variation(),
    "trained on: units": _ON,
    "trained on: units and pairs": _PAIRED,
    "trained on: units and pairs, the units alone": replace(_PAIRED, alone=True),
    "contrasts: units": replace(_ON, contrasts=0.3),
    "contrasts: units and pairs": replace(_PAIRED, contrasts=0.3),
    "contrasts: pairs alone": replace(_PAIRED, contrasts=0.3, fixed=True),
    "trained on: units and as many pairs": replace(_PAIRED, pairs=AS_MANY),
    "norms 0.8 in short sentences": Variation(lengths=(0.8, 1.0)),
    "norms 0.8 in long sentences": Variation(lengths=(1.0, 0.8)),
    "each unit once a sentence": Variation(once=True),
    "trained on: units, more bitext": replace(_ON, research=True),
    "trained on: units and pairs, more bitext": replace(_PAIRED, research=True),
}
EVERY = VARIATIONS | PAIRS


def pivots(folder: Path) -> dict[str, list[str]]:
    """Write the pairs of two other languages whose English is the same (letters and digits, any case); their paths."""
    sides: dict[str, dict[str, list[str]]] = {}
    for code in LANGUAGES[1:]:
        sides[code] = {}
        for path in sorted((DATA / "train" / f"en-{code}").glob("*.tsv.gz")):
            for english, other in read_pairs(Source((path,))):
                key = "".join(c for c in unicodedata.normalize("NFKC", english or "").lower() if c.isalnum())
                if len(key) >= SHORTEST:
                    sides[code].setdefault(key, []).append(other or "")
    found = {}
    folder.mkdir(parents=True, exist_ok=True)
    for a, b in combinations(LANGUAGES[1:], 2):
        with whole_file(folder / f"{a}-{b}.tsv") as temporary, temporary.open("w", encoding="utf-8") as stream:
            for key in (key for key in sides[a] if key in sides[b]):
                for pair in zip(dict.fromkeys(sides[a][key]), dict.fromkeys(sides[b][key]), strict=False):
                    stream.write("\t".join(pair) + "\n")
        found[f"{a}-{b}"] = [str(folder / f"{a}-{b}.tsv")]
    return found


@cache
def prepared(
    runs: Path, pieces: int, pivoted: bool, threads: int, vocabulary: str = "mini", research: bool = False
) -> tuple[Corpus, Units, Path]:
    """Return the corpus, the units and the bags: stages of the run folder, done once."""
    folders = ("train", "train-research-only") if research else ("train",)
    pairs = [f"en-{code}" for code in LANGUAGES[1:]]
    paths = {pair: [str(DATA / name / pair) for name in folders if (DATA / name / pair).is_dir()] for pair in pairs}
    paths |= pivots(runs / "pivots") if pivoted else {}
    corpus = make_corpus(Stages(runs), LANGUAGES, CorpusConfig(paths=paths), 0, threads)
    chosen = UnitsConfig(vocabulary="corpus", size=pieces, sample=40_000) if pieces else UnitsConfig(vocabulary=vocabulary)
    units = make_units(corpus, LANGUAGES, chosen, None)
    return corpus, units[0], make_bags(corpus, *units)[0]


def of_variation(variation: Variation, settings: dict[str, Any]) -> tuple[Corpus, Units, Path]:
    """Return the corpus, the units and the bags of a variation."""
    pieces = variation.pieces or settings["pieces"]
    how = settings["threads"], settings["vocabulary"], variation.research
    return prepared(Path(settings["runs"]), pieces, variation.pivots, *how)


_found: dict[tuple[Path, int], Bigrams | None] = {}


def bigrams_of(variation: Variation, corpus: Corpus, units: Units, bags: Path) -> Bigrams | None:
    """Return the pairs of neighbouring units that have rows in a variation, None where none has."""
    if variation.pairs and (bags, variation.pairs) not in _found:
        most = len(units) if variation.pairs == AS_MANY else variation.pairs
        sides = [side for pair in corpus.pairs for side in open_bags(bags, "train", pair) if side is not None]
        _found[bags, variation.pairs] = frequent_bigrams(sides, len(units), most)
    return _found[bags, variation.pairs] if variation.pairs else None


def further_units(variation: Variation, units: Units) -> FurtherUnits | None:
    """Return the units of a variation that looks them up in another way, else None."""
    return LengthUnits(units, SHORT) if variation.lengths else DistinctUnits(units) if variation.once else None


def trained_on(start: np.ndarray, variation: Variation, seed: int, corpus: Corpus, units: Units, bags: Path) -> np.ndarray:
    """Train a finished table on, with the rows of pairs or without."""
    bitexts = [ParallelBags(*open_bags(bags, "train", pair)) for pair in corpus.pairs]
    sizes: dict[str, Any] = {"max_steps": variation.max_steps, "batch_size": variation.batch_size}
    config = RefineConfig(**sizes, learning_rate=variation.rate, decay_start=0.0, seed=seed)
    contrasts = None
    if variation.contrasts:
        texts = []
        for bitext in corpus.part("train"):
            rows = np.sort(np.random.default_rng([seed, 41]).permutation(len(bitext))[:TRIPLES])
            texts.append(((list(bitext.source.take(rows)), list(bitext.target.take(rows))), bitext.languages))
        contrasts = Contrasts(triples_of(texts, units, seed), variation.contrasts, seed=seed)
    bigrams = bigrams_of(variation, corpus, units, bags)
    return learnt(start, bitexts, config, OBJECTIVE, contrasts, len(units) if variation.fixed else 0, bigrams)


def start_of(model: StaticModel, units: Units) -> np.ndarray:
    """Return the model's vectors for other pieces, float32 (pieces, d): each the sum of those of its own pieces."""
    if list(units.tokens) == list(model.units.tokens):
        return np.array(model.vectors, np.float32)
    bags = model.units.bags([token.replace("▁", " ") for token in units.tokens])
    return pool(np.asarray(model.vectors, np.float32), bags, normalise=False, threads=1) * bags.lengths[:, None].astype(
        "f4"
    )


def shaped(matrix: np.ndarray, corpus: Corpus, bags: Path, config: ShapeConfig) -> np.ndarray:
    """Temper and centre a table by some sentences of each language, as the pipeline does."""
    tempered, blocks = temper(matrix, config.norms), []
    for pair in corpus.pairs:
        for code, side in zip(pair, open_bags(bags, "train", pair), strict=True):
            if code != LANGUAGES[0] or pair == corpus.pairs[0]:
                rows = np.sort(np.random.default_rng([17, *map(ord, code)]).permutation(len(side))[:SENTENCES])
                blocks.append(pool(tempered, side.take(rows), normalise=False, threads=1))
    return centred(tempered, blocks, config.centre)


def beside(model: StaticModel) -> dict[str, float]:
    """Return figures by which nothing is chosen: Tatoeba's test, and the shares of minimal pairs that are told apart."""
    found: dict[str, float] = {}
    for code in LANGUAGES[1:]:
        pairs = hidden_pairs(DATA, code, True)[len(hidden_pairs(DATA, code, False)) :]
        for row in score_vectors(*(model.encode(list(side)) for side in zip(*pairs, strict=True)), "tatoeba", f"en-{code}"):
            if row.metric in ("accuracy", "margin_accuracy") and row.value is not None:
                found[f"tatoeba.en-{code}{' margin' if row.metric == 'margin_accuracy' else ''}"] = row.value
    for which in ("", " margin"):
        own = [v for k, v in found.items() if k.startswith("tatoeba.") and k.endswith("margin") == bool(which)]
        found[f"tatoeba{which}"] = statistics.mean(own)
    rows = probe(StaticEncoder(model, "model"), minimal_pairs())
    for question in ("translation", "strict"):
        for kind in KINDS:
            own = {row["language"]: row[kind] for row in rows if row["question"] == question}
            found |= {f"{question} {kind}.{code}": share for code, share in own.items()}
            found[f"{question} {kind}"] = statistics.mean(own.values())
    return found


def figures(model: StaticModel, threads: int, trained_on: tuple[str, ...], mined: bool = True) -> dict[str, float]:
    """Return the figures of the development sets, and means over the pairs of each; and of the graded pairs, if unseen."""
    pairs = [f"en-{code}" for code in LANGUAGES[1:]]
    names = [*(f"wmt23.{p}" for p in pairs), *(f"stsb-xling.{p}" for p in pairs), *(f"stsb.{c}" for c in LANGUAGES)]
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as scratch:
        files = [str(DATA / "dev" / f"{name}.tsv") for name in names]
        files += [] if GOLD in trained_on else [GOLD]
        for row in run_tasks(StaticEncoder(model, "model", threads), files, None, Path(scratch)):
            wanted = {"accuracy": "", "margin_accuracy": " margin", "spearman": ""}
            if row.metric in wanted and row.value is not None:
                found[row.subset.removesuffix(".tsv") + wanted[row.metric]] = row.value
    unit = {code: model.encode(texts) for code, texts in sample_sentences().items()}
    for a, b in (("de", "zh"), ("de", "ja"), ("zh", "ja")):
        rows = score_vectors(unit[a], unit[b], "sample", f"{a}-{b}")
        found[f"sample.{a}-{b}"] = next(row.value for row in rows if row.metric == "accuracy" and row.value is not None)
    for code in LANGUAGES[1:] if mined else ():
        for folder, kind in (("train", "mining"), ("train-research-only", "mining unseen")):
            if folder == "train" or code in UNSEEN:
                for row in bucc_shaped(model, DATA, code, NOISE, ("ratio", "cosine"), folder):
                    found[f"{kind} {row['score']}.en-{code}"] = row["f1"]
    means = {kind: [v for k, v in found.items() if k.startswith(f"{kind}.") and not k.endswith("margin")] for kind in MEANS}
    means["wmt23 margin"] = [value for name, value in found.items() if name.endswith("margin")]
    return {**{kind: statistics.mean(values) for kind, values in means.items() if values}, **found, **beside(model)}


MEANS = (
    "wmt23",
    "sample",
    "stsb-xling",
    *(f"mining{which} {kind}" for which in ("", " unseen") for kind in ("ratio", "cosine")),
)


def slower(model: StaticModel) -> float:
    """Return how many times the processor's seconds of units alone it takes to encode with further rows, in turns."""
    texts = Texts.of(noise_lines(DATA, LANGUAGES[1], NOISE)[0])
    units = model.units.units if isinstance(model.units, FurtherUnits) else model.units
    plain, clocks = StaticModel(units, model.matrix[: len(units)]), np.zeros((7, 2))
    for clock in clocks:
        for k, one in enumerate((plain, model)):
            begun = time.process_time()
            one.encode(texts)
            clock[k] = time.process_time() - begun
    return float(np.median(clocks[:, 1]) / np.median(clocks[:, 0]))


def without_noise(bitexts: list[ParallelBags], units: Units) -> list[ParallelBags]:
    """Leave out the pairs of which a line is among the noise of the mining sets."""
    noise = {key for code in LANGUAGES[1:] for side in noise_lines(DATA, code, 2 * NOISE) for key in keys(units.bags(side))}
    kept = []
    for bitext in bitexts:
        sides = zip(*(keys(side) for side in bitext.sides), strict=True)
        rows = np.flatnonzero([noise.isdisjoint(pair) for pair in sides])
        kept.append(ParallelBags(*(side.take(rows) for side in bitext.sides)))
    return kept


def keys(bags: Bags) -> list[bytes]:
    """Return what marks each bag: equal texts have equal keys."""
    ids = np.asarray(bags.ids, np.int32)
    return [ids[a:b].tobytes() for a, b in pairwise(bags.offsets.tolist())]


def imitating(bitext: ParallelBags, start: np.ndarray) -> ParallelBags:
    """Return a bitext with a teacher's vector of each pair: that of the start, of both sides together."""
    source, target = (pool(start, side, normalise=True, threads=1) for side in bitext.sides)
    source += target
    source /= np.maximum(np.linalg.norm(source, axis=1, keepdims=True), np.float32(1e-9))
    return ParallelBags(*bitext.sides, source)


def trained(start: np.ndarray, variation: Variation, seed: int, settings: dict[str, Any]) -> tuple[np.ndarray, float]:
    """Refine the start as a variation says, or take what was made of it before; also the seconds of the processor."""
    runs, threads, steps = Path(settings["runs"]), settings["threads"], variation.max_steps
    corpus, units, bags = of_variation(variation, settings)
    same = replace(variation, averaged=1, shape=ShapeConfig())
    kept = runs / "trained" / f"{fingerprint(arrays_digest(start), asdict(same), seed)}.safetensors"
    if kept.exists():
        found = load_file(kept)
        return found["matrix"], float(found["seconds"][0])
    begun, given = time.process_time(), variation.graded
    if variation.rate:
        matrix = trained_on(start, variation, seed, corpus, units, bags)
        return matrix, time.process_time() - begun
    bitexts = [ParallelBags(*open_bags(bags, "train", pair)) for pair in corpus.pairs]
    bitexts = bitexts if variation.noise else without_noise(bitexts, units)
    bitexts = [imitating(bitext, start) for bitext in bitexts] if variation.imitated else bitexts
    objective = replace(OBJECTIVE, distillation=variation.imitated, distillation_on=("cross",))
    sizes: dict[str, Any] = {"max_steps": steps, "batch_size": variation.batch_size, "neighbours": variation.neighbours}
    config = RefineConfig(**sizes, eval_steps=steps, patience=0, seed=seed, threads=threads)
    graded = GradedLoss(read_graded(given.paths, units), given, seed) if given.paths else None
    with single_threaded_blas():
        matrix = refine(start.copy(), bitexts, [], config, objective, graded).matrix
    seconds = time.process_time() - begun
    kept.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(kept) as temporary:
        save_file({"matrix": matrix, "seconds": np.array([seconds])}, temporary)
    return matrix, seconds


def averaged(tables: Sequence[np.ndarray]) -> np.ndarray:
    """Return the mean of several trainings' tables, each turned to lie as the first does.

    Trainings that begin with the same table stay so near it that turning them would do no more than round.

    Args:
        tables: float32 (units, d), of one vocabulary.

    Returns:
        float32 (units, d).

    Raises:
        ConfigError: the tables are not of one shape.
    """
    first, turned = tables[0], []
    for table in tables:
        if table.shape != first.shape:
            raise ConfigError(f"tables of {first.shape} and {table.shape} have no mean: give those of one vocabulary")
        left, _, right = np.linalg.svd(table.T.astype(np.float64) @ first)
        rotation = left @ right
        turned.append(table if np.abs(rotation - np.eye(len(rotation))).max() < NEAR else table @ rotation)
    return np.mean(turned, axis=0, dtype=np.float64).astype(np.float32)


def varied(variation: Variation, seed: int, settings: dict[str, Any]) -> tuple[StaticModel, float]:
    """Make the model of a variation; also the seconds of the processor that it took."""
    corpus, units, bags = of_variation(variation, settings)
    matrix, seconds = start_of(StaticModel.load(settings["start"]), units), 0.0
    more, bigrams = further_units(variation, units), bigrams_of(variation, corpus, units, bags)
    if variation.lengths:
        matrix = np.concatenate([temper(matrix, power) for power in variation.lengths])
    elif bigrams is not None:
        matrix = np.concatenate([matrix, np.zeros((len(bigrams), matrix.shape[1]), np.float32)])
    if variation.max_steps:
        seeds = range(seed * variation.averaged, (seed + 1) * variation.averaged)
        tables, costs = zip(*(trained(matrix, variation, k, settings) for k in seeds), strict=True)
        matrix, seconds = averaged(tables), sum(costs)
    begun = time.process_time()
    if variation.shape.on:
        matrix = shaped(matrix, corpus, bags, variation.shape)
    if variation.alone:
        matrix, bigrams = matrix[: len(units)], None
    return StaticModel(more or units, matrix, bigrams=bigrams), seconds + time.process_time() - begun  # type: ignore


def main(settings: dict[str, Any]) -> None:
    """Measure what is not there yet."""
    output = Path(settings["output"])
    given = {"pieces": settings["pieces"]}
    given |= {"vocabulary": settings["vocabulary"]} if settings["vocabulary"] != "mini" else {}
    known = {"settings": given, "model": Path(settings["start"]).name, "rows": {}}
    report: dict[str, Any] = json.loads(output.read_text()) if output.exists() else known
    if report["settings"] != given:
        raise ConfigError(f"{output} is of other settings ({report['settings']}): name another output=")
    chosen = settings["only"].split(";") if settings["only"] else list(VARIATIONS)
    if unknown := [name for name in chosen if name not in EVERY]:
        raise ConfigError(f"only={settings['only']}: there is no {unknown[0]!r}; choose from {';'.join(EVERY)}")
    for name in chosen:
        row = report["rows"].setdefault(name, {"seeds": {}})
        for seed in numbers(settings["seeds"], "seeds", least=0):
            if str(seed) in row["seeds"] and not settings["save"]:
                continue
            variation = EVERY[name]
            model, seconds = varied(variation, seed, settings)
            if model.bigrams is not None or isinstance(model.units, FurtherUnits):
                row["times as long to encode"] = slower(model)
            row["seeds"][str(seed)] = {
                "seconds": round(seconds, 1),
                "figures": figures(model, settings["threads"], variation.graded.paths, bool(settings["mined"])),
            }
            write_json(output, report)
            if settings["save"]:
                replace(model, description={"variation": name, "seed": seed, **given}).save(settings["save"])


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
