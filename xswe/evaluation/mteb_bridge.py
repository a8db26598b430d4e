"""mteb as the judge: a model of ours as an mteb encoder, its tasks run by ``mteb.evaluate``, its results as rows."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from xswe.embedding.static import StaticEmbedding
from xswe.errors import ConfigError, DependencyError
from xswe.evaluation.rows import Row
from xswe.files import fingerprint
from xswe.language.codes import LANGUAGES

logger = logging.getLogger(__name__)

# Our task names: mteb's name, and for each language pair (or language) of ours its subset there.
TASKS: dict[str, tuple[str, dict[str, str]]] = {
    "tatoeba": ("Tatoeba", {"en-de": "deu-eng", "en-zh": "cmn-eng", "en-ja": "jpn-eng"}),
    "bucc": ("BUCC", {"en-de": "de-en", "en-zh": "zh-en"}),
    "bucc.v2": ("BUCC.v2", {"en-de": "de-en", "en-zh": "zh-en"}),
    "sts17": ("STS17", {"en-de": "en-de", "en": "en-en"}),
    "sts22": ("STS22", {"en-de": "de-en", "en-zh": "zh-en", "en": "en", "de": "de", "zh": "zh"}),
    "sts22.v2": ("STS22.v2", {"en-de": "de-en", "en-zh": "zh-en", "en": "en", "de": "de", "zh": "zh"}),
}


class MtebEncoder:
    """A static embedding as mteb's ``EncoderProtocol``; mteb never tells a column's language, and none is needed."""

    def __init__(self, model: StaticEmbedding, name: str = "xswe/model", threads: int = 1) -> None:
        from mteb.models.model_meta import ModelMeta, ScoringFunction

        self._model, self._threads = model, threads
        self.encoded: dict[tuple[str, str], int] = {}  # texts of the last call for each subset and split
        entries = model.matrix.size
        self.mteb_model_meta = ModelMeta(
            loader=None,
            name=name if "/" in name else f"xswe/{name}",
            revision=fingerprint(model.units.settings, float(np.abs(model.matrix).sum()), list(model.matrix.shape)),
            release_date=None,
            languages=[LANGUAGES[code].bcp for code in model.languages],
            n_parameters=entries,
            n_embedding_parameters=entries,
            memory_usage_mb=entries * 4 / 2**20,
            max_tokens=float("inf"),
            embed_dim=model.dim,
            license=None,
            open_weights=True,
            public_training_code=None,
            public_training_data=None,
            framework=["NumPy", "safetensors"],
            similarity_fn_name=ScoringFunction.COSINE,
            use_instructions=False,
            training_datasets=None,
        )

    def encode(self, inputs: Any, *, hf_split: str = "", hf_subset: str = "", **_: Any) -> np.ndarray:
        """Encode mteb's batches, float32 (n, d)."""
        texts = [text for batch in inputs for text in batch["text"]]
        self.encoded[hf_subset, hf_split] = len(texts)
        return self._model.encode(texts, threads=self._threads)

    def similarity(self, left: Any, right: Any) -> np.ndarray:
        """All cosines, (n, m)."""
        return np.atleast_2d(left) @ np.atleast_2d(right).T

    def similarity_pairwise(self, left: Any, right: Any) -> np.ndarray:
        """Cosines row by row, (n,)."""
        return np.einsum("ij,ij->i", np.atleast_2d(left), np.atleast_2d(right))


def subsets(task: str, languages: Sequence[str]) -> dict[str, str]:
    """Return our pair name and mteb's subset of a task, for the pairs and languages that the model knows."""
    if task not in TASKS:
        raise ConfigError(f"unknown task {task!r}: the known ones are {', '.join(TASKS)}, or the path of a file")
    return {ours: theirs for ours, theirs in TASKS[task][1].items() if set(ours.split("-")) <= set(languages)}


def run_task(encoder: MtebEncoder, task: str, languages: Sequence[str], root: Path | None, results: Path) -> list[Row]:
    """Run one of mteb's tasks on the subsets of the model's languages.

    Args:
        encoder: the model.
        task: our name of the task.
        languages: codes of the model's languages.
        root: a folder that holds data sets under their hub names; None to let mteb ask the hub.
        results: folder of mteb's own result tree.

    Returns:
        A row a metric and subset. A data set that is not there gives one row without a value and with the reason.
    """
    try:
        import mteb
    except ImportError:
        raise DependencyError("mteb", "evaluate", f"the task {task}") from None
    wanted = subsets(task, languages)
    name = TASKS[task][0]
    if not wanted:
        return [_skipped(task, "-", f"{name} has no subset for {', '.join(languages)}")]
    the_task = mteb.get_task(name, hf_subsets=list(wanted.values()))
    hub_name = the_task.metadata.dataset["path"]
    if root is not None:
        folder = (root / hub_name).resolve()
        if not folder.is_dir():
            return [_skipped(task, ours, f"{folder} is missing: put the data set {hub_name} there") for ours in wanted]
        # Without a cache of its own, datasets would serve any earlier folder of the same name.
        local = {**the_task.metadata.dataset, "path": str(folder), "cache_dir": str(results / "data" / _state(folder))}
        the_task.metadata = the_task.metadata.model_copy(update={"dataset": local})
    try:
        done = mteb.evaluate(
            encoder, [the_task], cache=mteb.ResultCache(results), show_progress_bar=False, overwrite_strategy="always"
        )
    except Exception as error:  # whatever a damaged data set raises inside mteb and datasets; reported, never a zero
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        logger.warning("%s: %s", name, reason)
        return [_skipped(task, ours, reason) for ours in wanted]
    return [row for result in done.task_results for row in _rows(task, wanted, result, encoder.encoded)]


def _state(folder: Path) -> str:
    """Return a fingerprint of a data set's files as they are now."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return fingerprint([(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files])


def _skipped(task: str, subset: str, reason: str) -> Row:
    return Row(task, subset, "skipped", None, 0, "mteb", note=reason)


def _rows(task: str, wanted: dict[str, str], result: Any, encoded: dict[tuple[str, str], int]) -> list[Row]:
    """Turn one mteb result into rows."""
    ours = {theirs: mine for mine, theirs in wanted.items()}
    rows = []
    for split, scores in result.scores.items():
        for entry in scores:
            subset = entry["hf_subset"]
            n = encoded.get((subset, split), 0)
            for metric, value in entry.items():
                if isinstance(value, float) and metric != "main_score":
                    source = f"mteb {result.mteb_version}"
                    rows.append(Row(task, ours[subset], metric, value, n, source, result.dataset_revision, split))
    return rows
