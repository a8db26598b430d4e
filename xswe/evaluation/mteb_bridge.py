"""mteb's tasks: our encoders wrapped for ``mteb.evaluate``, and its results as rows."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from xswe.evaluation.encoders import SentenceEncoder
from xswe.evaluation.metrics import Row, pearson
from xswe.evaluation.tasks import Job, averages, import_mteb, jobs, score_vectors
from xswe.io.files import file_stamp, fingerprint
from xswe.io.products import row_products
from xswe.progress import track
from xswe.text.languages import LANGUAGES

logger = logging.getLogger(__name__)
# Types of tasks whose items are pairs, so that both sides have the same length.
_PAIR_TASKS = ("BitextMining", "STS", "PairClassification")
_BATCH = 1024  # texts per batch of mteb; the encoder joins the batches again


class MtebEncoder:
    """An encoder as mteb's ``EncoderProtocol``; mteb does not pass the language of a column, and ours need none."""

    def __init__(self, encoder: SentenceEncoder) -> None:
        from mteb.models.model_meta import ModelMeta, ScoringFunction

        self._encoder = encoder
        self.sides: dict[tuple[str, str], list[np.ndarray]] = {}  # vectors of each call, by subset and split
        self.sizes: dict[tuple[str, str], list[int]] = {}  # number of texts of each call, by subset and split
        about = encoder.about
        self.mteb_model_meta = ModelMeta(
            loader=None,
            name=f"{about.library}/{encoder.name.replace('/', '-').replace(':', '-')}",
            revision=encoder.identity,
            release_date=None,
            languages=[LANGUAGES[code].bcp for code in encoder.languages],
            n_parameters=encoder.parameters,
            n_embedding_parameters=encoder.parameters if about.static else None,
            memory_usage_mb=round(encoder.size / 2**20, 3),
            max_tokens=about.max_tokens,
            embed_dim=encoder.dim,
            license=about.license,
            open_weights=True,
            public_training_code=None,
            public_training_data=None,
            framework=list(about.framework),  # type: ignore[arg-type]
            similarity_fn_name=ScoringFunction.COSINE,
            use_instructions=False,
            training_datasets=None,
            adapted_from=about.adapted_from,
        )

    def encode(self, inputs: Any, *, task_metadata: Any, hf_split: str, hf_subset: str, **_: Any) -> np.ndarray:
        """Encode mteb's batches, float32 (n, d)."""
        texts = [text for batch in inputs for text in batch["text"]]
        vectors = self._encoder.encode(texts)
        self.sizes.setdefault((hf_subset, hf_split), []).append(len(texts))
        if task_metadata.type in ("BitextMining", "STS"):  # for the metrics that mteb lacks
            self.sides.setdefault((hf_subset, hf_split), []).append(vectors)
        return vectors

    def similarity(self, left: Any, right: Any) -> Any:
        """Return all cosines, a tensor (n, m)."""
        from mteb.similarity_functions import cos_sim

        return cos_sim(left, right)

    def similarity_pairwise(self, left: Any, right: Any) -> Any:
        """Return the cosines row by row, a tensor (n,)."""
        from mteb.similarity_functions import pairwise_cos_sim

        return pairwise_cos_sim(left, right)


def run_task(encoder: SentenceEncoder, task: str, root: Path | None, results: Path) -> list[Row]:
    """Run a task of mteb, or a preset of tasks, on the subsets in the encoder's languages: one row per metric and subset.

    ``root`` is a folder of data sets, None for the hub. A missing data set gives a row with the reason.
    """
    wanted, rows = jobs(task, encoder.languages)
    for job in track(wanted, task, unit="task") if len(wanted) > 1 else wanted:
        rows += _run(encoder, job, root, results)
    return rows + averages(task, rows)


def _run(encoder: SentenceEncoder, job: Job, root: Path | None, results: Path) -> list[Row]:
    mteb = import_mteb(f"the task {job.name}")
    wrapped, note = MtebEncoder(encoder), None
    try:
        if root is None:
            done = _evaluate(mteb, wrapped, job.task, results)
        else:
            state = fingerprint([_localise(part, root) for part in getattr(job.task, "tasks", [job.task])])
            note = f"local copy, files {state}"
            # Without a separate cache, datasets would reuse an earlier folder of the same name.
            with _datasets_cache(results / "data" / state):
                done = _evaluate(mteb, wrapped, job.task, results)
    except Exception as error:  # a damaged data set can raise anything in mteb or datasets; reported, never scored as zero
        reason = str(error)
        if not isinstance(error, _MissingError):
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            if root is None and _is_hub_error(error):
                reason = _hub_hint(job.task, reason)
            logger.warning("%s is skipped: %s", job.task.metadata.name, reason)
        return [Row(job.name, ours, "skipped", None, 0, "mteb", note=reason) for ours in job.subsets]
    return [row for result in done.task_results for row in _rows(job, result, wrapped, note)]


def _evaluate(mteb: Any, wrapped: MtebEncoder, task: Any, results: Path) -> Any:
    if task.metadata.type == "STS":
        task.load_data()  # data loaded before mteb runs are kept, and we need the scores
    options = {"show_progress_bar": False, "overwrite_strategy": "always", "co2_tracker": False}
    return mteb.evaluate(wrapped, task, cache=mteb.ResultCache(results), encode_kwargs={"batch_size": _BATCH}, **options)


class _MissingError(Exception):
    """A data set is missing in the folder ``data``."""


def _is_hub_error(error: BaseException) -> bool:
    """Return True if a data set could not be fetched: no network, no such data set, no permission."""
    return isinstance(error, OSError) or type(error).__module__.partition(".")[0] in (
        "datasets",
        "httpx",
        "huggingface_hub",
    )


def _hub_hint(task: Any, reason: str) -> str:
    """Return the reason with a hint for a data set that neither the hub nor its cache has."""
    names = dict.fromkeys(part.metadata.dataset["path"] for part in getattr(task, "tasks", [task]))
    places = " and ".join(f"DIR/{name}" for name in names)
    return f"neither the hub nor its cache has it ({reason}); check the network, or put it into {places} and set data=DIR"


def _localise(task: Any, root: Path) -> str:
    """Make a task read its data set from a folder; return a fingerprint of the folder's current files."""
    hub_name = task.metadata.dataset["path"]
    folder = (root / hub_name).resolve()
    if not folder.is_dir():
        raise _MissingError(f"{root / hub_name} is missing; put the data set {hub_name} there, or set data=null")
    task.metadata = task.metadata.model_copy(update={"dataset": {**task.metadata.dataset, "path": str(folder)}})
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return fingerprint([file_stamp(path) for path in files])


@contextmanager
def _datasets_cache(folder: Path) -> Iterator[None]:
    """Within the block, make the library ``datasets`` keep its prepared files in a folder."""
    import datasets

    before = datasets.config.HF_DATASETS_CACHE
    datasets.config.HF_DATASETS_CACHE = folder
    try:
        yield
    finally:
        datasets.config.HF_DATASETS_CACHE = before


def _rows(job: Job, result: Any, wrapped: MtebEncoder, note: str | None) -> list[Row]:
    """Convert a result of mteb to rows, and add the metrics that mteb lacks, from the same vectors."""
    ours = {theirs: mine for mine, theirs in job.subsets.items()}
    rows = []
    for split, scores in result.scores.items():
        for entry in scores:
            subset = entry["hf_subset"]
            sizes = wrapped.sizes.get((subset, split), [])
            paired = job.task.metadata.type in _PAIR_TASKS
            about = {
                "n": sizes[-1] if paired and sizes else sum(sizes),
                "revision": result.dataset_revision,
                "split": split,
                "note": _note(job, subset, split, sizes, note),
            }
            theirs = {k: float(v) for k, v in entry.items() if isinstance(v, float) and math.isfinite(v)}
            if "main_score" not in theirs:
                reason = f"mteb's main score is {entry.get('main_score')}"
                rows.append(Row(job.name, ours[subset], "skipped", None, source="mteb", **{**about, "note": reason}))
            sides = wrapped.sides.get((subset, split), [])
            own = _both_ways(job.name, ours[subset], theirs, sides)
            scored = _scored(job, subset, split, theirs, sides)
            for metric, value in theirs.items():
                items = own[f"{metric}_forward"].items if f"{metric}_forward" in own else scored.get(metric)
                version = f"mteb {result.mteb_version}"
                rows.append(Row(job.name, ours[subset], metric, value, source=version, items=items, **about))
            rows += [
                Row(job.name, ours[subset], f"{metric}_both_ways", row.value, items=row.items, **about)
                for metric, row in own.items()
                if not metric.endswith(("_forward", "_backward"))
            ]
    return rows


def _scored(job: Job, subset: str, split: str, theirs: dict[str, float], sides: list[np.ndarray]) -> dict[str, np.ndarray]:
    """Return cosines and scores of a similarity task, float64 (2, n), keyed by the metrics that correlate them.

    Empty unless their correlation matches mteb's.
    """
    if job.task.metadata.type != "STS" or len(sides) != 2 or not job.task.data_loaded:
        return {}
    data = job.task.dataset
    scores = np.array(data.get(subset, data)[split]["score"], np.float64)
    items = np.stack([row_products(*sides).astype(np.float64), scores])
    if not abs(pearson(*items) - theirs.get("cosine_pearson", math.inf)) <= 1e-3:
        return {}
    return dict.fromkeys(("cosine_spearman", "cosine_pearson"), items)


def _note(job: Job, subset: str, split: str, sizes: list[int], note: str | None) -> str | None:
    """Return where the data came from, and whether its size differs from mteb's statistics."""
    stats = (job.task.metadata.descriptive_stats or {}).get(split, {})
    expected = stats.get("hf_subset_descriptive_stats", {}).get(subset, stats).get("num_samples")
    aligned = job.task.metadata.type in _PAIR_TASKS and len(sizes) == 2 and sizes[0] == sizes[1]
    if aligned and expected and sizes[0] != expected:
        return ", ".join(filter(None, [note, f"{sizes[0]:,} of the data set's {expected:,} pairs"]))
    return note


def _both_ways(task: str, subset: str, theirs: dict[str, float], sides: list[np.ndarray]) -> dict[str, Row]:
    """Score an aligned bitext in both directions, by cosine and by margin; mteb uses one direction and cosine only.

    Empty unless our F1 in one direction matches mteb's, which shows that the vectors are two aligned sides. mteb may encode
    the columns in either order; its own product may break near-ties differently, hence the tolerance.
    """
    if "f1" not in theirs or len(sides) != 2 or len(sides[0]) != len(sides[1]):
        return {}
    for left, right in (sides, sides[::-1]):
        found = {row.metric: row for row in score_vectors(left, right, task, subset)}
        if found and abs((found["f1_forward"].value or 0.0) - theirs["f1"]) <= 5e-3:
            return found
    return {}
