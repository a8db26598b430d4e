"""The settings of the public functions as keyword arguments, for type checkers.

Generated from the dataclasses of settings by tools/stubs.py, which is to be run, not this file to be changed.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

from xswe.corpus.bitext import CorpusConfig
from xswe.corpus.cleaning import CleanConfig
from xswe.corpus.contexts import ContextConfig
from xswe.evaluation.metrics import Bootstrap
from xswe.mining.hard_rules import FilterConfig
from xswe.search.lists import SearchConfig
from xswe.teacher.protocol import TeacherConfig
from xswe.training.config import PCAConfig, TrainConfig
from xswe.training.extract import ExtractConfig
from xswe.training.graded import GradedConfig
from xswe.training.objective import Objective
from xswe.training.refine import RefineConfig
from xswe.training.shape import ShapeConfig
from xswe.training.triplets import SpanTraining
from xswe.training.units_stage import UnitsConfig
from xswe.work.config import ExecutionConfig


class AlignSettings(TypedDict, total=False):
    """How sentences are aligned."""

    most: int
    gap: float
    merge: float
    length: float
    prior: float
    search: int
    min_score: float | None
    precision: float | None
    evidence: bool
    threads: int | None
    languages: Sequence[str]
    split: bool | None
    fixed: str | Path | Sequence[Any] | None
    uncorrected: str | Path | Sequence[Any] | None
    moved: bool
    gaps: bool
    bom: bool
    date: str | None


class BitextLinkSettings(TypedDict, total=False):
    """Settings of word links and the output made from them."""

    method: Literal["itermax", "intersection", "forward", "backward", "union", "transport"]
    prior: float
    min_score: float
    turns: int
    keep: float
    heat: float
    share: float
    what: Literal["links", "lexicon", "terms", "check"]
    terms: str | None
    consistency: bool
    columns: Sequence[int | str]
    languages: Sequence[str]
    tokens: bool
    on_error: Literal["raise", "skip"]
    most: int | None
    min_count: int


class SearchSettings(TypedDict, total=False):
    """Settings of a search for neighbours."""

    method: Literal["exact", "clusters"]
    memory: float
    clusters: int
    probes: int
    device: str
    seed: int
    threads: int | None


class ExecutionSettings(TypedDict, total=False):
    """Where the work of a verb is done."""

    kind: Literal["local", "array", "ray"]
    index: int | None
    count: int | None
    wait: float
    address: str | None
    workers: int | None
    cpus: float
    gpus: float
    shard: int


class DedupSettings(TypedDict, total=False):
    """What counts as a duplicate, and how duplicates are found."""

    threshold: float | None
    near: float | None
    digits: Literal["compare", "ignore"]
    column: int | str
    on_error: Literal["raise", "skip"]
    storage: Literal["float32", "float16", "int8"]
    keep: bool
    neighbours: SearchConfig | SearchSettings
    execution: ExecutionConfig | ExecutionSettings
    threads: int | None
    method: Literal["exact", "clusters"]


class DictionarySettings(TypedDict, total=False):
    """Which words are paired, and how."""

    best: int
    mutual: bool
    k: int
    candidates: int
    neighbours: SearchConfig | SearchSettings
    languages: Sequence[str]
    limit: int
    gold: str | None
    threads: int | None
    method: Literal["exact", "clusters"]


class ExportSettings(TypedDict, total=False):
    """Settings of an export."""

    format: Literal["folder", "word2vec", "word2vec-binary", "onnx", "bits"]
    dtype: Literal["float32", "float16", "int8"] | None
    dim: int
    rotate: bool
    keep: int
    shared: int


class FileSearchSettings(TypedDict, total=False):
    """Settings of a search in a file."""

    split: bool | None
    language: str | None
    k: int
    candidates: int
    mark: bool
    method: Literal["exact", "binary"]
    storage: Literal["float32", "float16", "int8"]
    rescored: int | None
    threads: int | None
    execution: ExecutionConfig | ExecutionSettings


class FilterSettings(TypedDict, total=False):
    """Which pairs to keep."""

    method: Literal["auto", "learned", "cosine"]
    threshold: Any
    precision: float | None
    gold: str | None
    duplicates: bool
    near_duplicates: bool
    copies: bool
    numbers: bool
    ratio: float
    letters: float
    script: float
    min_characters: int
    max_characters: int
    hubs: int
    columns: Sequence[int | str]
    languages: Sequence[str]
    language: Literal["", "lingua"]
    on_error: Literal["raise", "skip"]
    explain: bool
    evidence: bool
    rerank_share: float


class ImportSettings(TypedDict, total=False):
    """Settings of an import: the vectors, and how text is looked up in them."""

    format: Literal["text", "word2vec-binary", "model2vec", "wordllama"]
    tokenizer: str | None
    segmenters: Mapping[str, str]
    folding: bool
    merge: Literal["average", "first"]
    limit: int
    on_error: Literal["raise", "skip"]


class LinkSettings(TypedDict, total=False):
    """How words are linked."""

    method: Literal["itermax", "intersection", "forward", "backward", "union", "transport"]
    prior: float
    min_score: float
    turns: int
    keep: float
    heat: float
    share: float


class MannerSettings(TypedDict, total=False):
    """How beads are written."""

    languages: Sequence[str]
    gaps: bool
    bom: bool
    date: str | None
    original: str


class LineFilterSettings(TypedDict, total=False):
    """Which lines and candidate pairs are left out."""

    duplicates: bool
    min_characters: int
    script: bool
    identical: bool
    length_ratio: float
    numbers: bool


class MineSettings(TypedDict, total=False):
    """How translations are mined."""

    score: Literal["cosine", "ratio", "distance", "csls"]
    k: int
    select: Literal["max", "intersection", "forward", "backward", "kbest"]
    best: int
    threshold: Any
    precision: float | None
    gold: str | None
    min_score: float | None
    max_score: float | None
    rerank_share: float
    storage: Literal["float32", "float16", "int8"]
    ids: bool
    split: bool | None
    languages: Sequence[str]
    format: Literal["auto", "laser", "bucc", "catalogue", "tmx", "xliff", "xliff2", "csv", "jsonl", "latex", "markdown", "parquet", "xlsx"]
    on_error: Literal["raise", "skip"]
    neighbours: SearchConfig | SearchSettings
    filters: FilterConfig | LineFilterSettings
    keep: bool
    evidence: bool
    execution: ExecutionConfig | ExecutionSettings
    threads: int | None
    method: Literal["exact", "clusters"]


class NegativesSettings(TypedDict, total=False):
    """How hard negatives are chosen."""

    negatives: int
    candidates: int
    relative_margin: float
    min_score: float | None
    columns: Sequence[int | str]
    languages: Sequence[str]
    on_error: Literal["raise", "skip"]
    storage: Literal["float32", "float16", "int8"]
    neighbours: SearchConfig | SearchSettings
    threads: int | None
    method: Literal["exact", "clusters"]


class PhraseSearchSettings(TypedDict, total=False):
    """Settings of the search, and of reading files."""

    min_size: int
    max_size: int
    k: int
    min_score: float | None
    distinct: bool
    examples: int
    threads: int
    mode: Literal["phrases", "terms"]
    languages: Sequence[str]
    split: bool | None
    on_error: Literal["raise", "skip"]
    execution: ExecutionConfig | ExecutionSettings


class ScoreFileSettings(TypedDict, total=False):
    """How a bitext is read, scored and written."""

    score: Literal["cosine", "ratio", "distance", "csls"]
    k: int
    storage: Literal["float32", "float16", "int8"]
    neighbours: SearchConfig | SearchSettings
    columns: Sequence[int | str]
    languages: Sequence[str]
    on_error: Literal["raise", "skip"]
    format: Literal["auto", "laser", "bucc", "catalogue", "tmx", "xliff", "xliff2", "csv", "jsonl", "latex", "markdown", "parquet", "xlsx"]
    keep: bool
    threads: int | None
    method: Literal["exact", "clusters"]


class ServeSettings(TypedDict, total=False):
    """Settings of the application."""

    host: str
    port: int
    aliases: Sequence[str]
    api_key: str | None
    hosts: Sequence[str]
    origins: Sequence[str]
    max_bytes: int
    max_texts: int
    max_characters: int
    max_buffered: int
    max_connections: int
    waiting: int
    seconds: float
    threads: int | None
    access_log: bool
    log: Literal["text", "json"]
    keep: bool


class SpanSettings(TypedDict, total=False):
    """Settings of the span search."""

    min_size: int
    max_size: int
    k: int
    min_score: float | None
    distinct: bool
    examples: int
    threads: int


class CleanSettings(TypedDict, total=False):
    """Filters in addition to blank, over-long and repeated pairs; all are off by default."""

    normalise: Literal["", "NFC", "NFKC"]
    control: bool
    width: bool
    simplify: bool
    min_characters: int
    letters: float
    script: float
    ratio: float
    identical: bool
    near_duplicates: bool
    hubs: int
    language: Literal["", "lingua"]


class CorpusSettings(TypedDict, total=False):
    """Settings of a corpus: files, columns, cleaning, splits."""

    paths: Any
    cache: str
    offline: bool
    columns: Sequence[int]
    split: bool
    on_error: Literal["raise", "skip"]
    max_characters: int
    min_score: float | None
    clean: CleanConfig | CleanSettings
    decontaminate: Sequence[str]
    held_out: float
    development: float
    max_held_out: int
    max_development: int
    limit: int


class UnitsSettings(TypedDict, total=False):
    """Settings of the units."""

    kind: Literal["words", "teacher", "subwords"]
    vocabulary: str
    size: int
    sample: int
    most_frequent: Mapping[str, int]
    segmenters: Mapping[str, str]
    folding: bool
    lowercase: bool


class ContextSettings(TypedDict, total=False):
    """Settings for choosing contexts."""

    per_unit: int
    candidates: int
    pick: Literal["shortest", "random", "first"]
    length: Literal["units", "tokens"]
    seed: int


class ExtractSettings(TypedDict, total=False):
    """Settings of the extraction."""

    merge: Literal["average", "frequency", "separate"]
    shared: Literal["contexts", "vocabulary"]
    isolated: bool


class PCASettings(TypedDict, total=False):
    """Settings of the sentence PCA."""

    level: Literal["sentence", "word"]
    drop: Any
    dim: int
    sentences: int
    sample_from: Literal["corpus", "contexts"]
    norm: float
    spread: float


class RefineSettings(TypedDict, total=False):
    """Settings of the refinement; values of the EN paper are given where they differ from the defaults."""

    max_steps: int
    batch_size: int
    learning_rate: float
    decay_start: float
    optimiser: Literal["lazy", "dense"]
    max_grad_norm: float
    eval_steps: int
    patience: int
    seed: int
    threads: int
    duplicates: Literal["mask", "drop", "keep"]
    neighbours: int
    sample_from: Literal["corpus", "contexts"]
    per_unit: int
    epochs: float
    warmup: float
    schedule: Literal["linear", "cosine"]
    weight_decay: float
    patience_epochs: float
    start: str
    bigrams: int


class ObjectiveSettings(TypedDict, total=False):
    """A weighted sum of losses on a batch of translation pairs, or of sentences of one language."""

    temperature: float
    margin: float
    distillation: float
    distillation_temperature: float
    distillation_on: Sequence[str]
    distillation_centred: bool
    ranking: float
    prefixes: Sequence[int]
    prefix_weights: Sequence[float]
    directions: Literal["both", "source"]


class GradedSettings(TypedDict, total=False):
    """Settings of training on graded pairs."""

    paths: Sequence[str]
    weight: float
    temperature: float
    batch_size: int


class ShapeSettings(TypedDict, total=False):
    """Settings of the shape of the vectors, which is folded into the table."""

    norms: float
    centre: float


class SpanTrainingSettings(TypedDict, total=False):
    """Settings of the span-max training."""

    max_steps: int
    batch_size: int
    learning_rate: float
    scale: float
    similarity: Literal["normalised", "cosine"]
    min_size: int
    max_size: int
    around: int
    neighbours: float
    hard: int
    optimiser: Literal["lazy", "dense"]
    pairs: int
    triples: Sequence[Any]
    eval_steps: int
    seed: int
    threads: int


class TeacherSettings(TypedDict, total=False):
    """Settings of a teacher."""

    model: str
    revision: str | None
    prompt: str | None
    pooling: Literal["auto", "cls", "mean"]
    max_tokens: int
    batch_tokens: int
    dtype: Literal["float32", "bfloat16", "auto"]
    device: Literal["auto", "cpu", "cuda"]
    threads: int


class TrainSettings(TypedDict, total=False):
    """Everything that decides a model."""

    corpus: CorpusConfig | CorpusSettings
    units: str | UnitsConfig | UnitsSettings
    contexts: ContextConfig | ContextSettings
    extract: ExtractConfig | ExtractSettings
    pca: PCAConfig | PCASettings
    refine: RefineConfig | RefineSettings
    objective: str | Objective | ObjectiveSettings
    graded: GradedConfig | GradedSettings
    shape: ShapeConfig | ShapeSettings
    spans: SpanTraining | SpanTrainingSettings
    distilled: str | TeacherConfig | TeacherSettings | None
    seed: int
    threads: int | None
    clean: str | CleanConfig | CleanSettings


class SweepSettings(TrainSettings, total=False):
    """What all runs of a sweep have in common."""

    teacher: str | Path | TeacherConfig | TeacherSettings | None
    recipe: str | TrainConfig
    bootstrap: Bootstrap | None
