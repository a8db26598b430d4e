"""mteb as the judge: an encoder of ours as mteb's, its tasks run by ``mteb.evaluate``, its results as rows."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from xswe.errors import ConfigError, DependencyError
from xswe.evaluation.encoders import SentenceEncoder
from xswe.evaluation.retrieval import bitext_retrieval
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
    """An encoder as mteb's ``EncoderProtocol``; mteb never tells a column's language, and ours need none."""

    def __init__(self, encoder: SentenceEncoder) -> None:
        from mteb.models.model_meta import ModelMeta, ScoringFunction

        self._encoder = encoder
        self.encoded: dict[tuple[str, str], list[np.ndarray]] = {}  # the vectors given, by subset and split
        self.mteb_model_meta = ModelMeta(
            loader=None,
            name=f"xswe/{encoder.name.replace('/', '-').replace(':', '-')}",
            revision=encoder.identity,
            release_date=None,
            languages=[LANGUAGES[code].bcp for code in encoder.languages],
            n_parameters=encoder.parameters,
            memory_usage_mb=encoder.parameters * 4 / 2**20,
            max_tokens=float("inf"),
            embed_dim=encoder.dim,
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
        vectors = self._encoder.encode(texts)
        self.encoded.setdefault((hf_subset, hf_split), []).append(vectors)
        return vectors

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


def run_task(encoder: SentenceEncoder, task: str, root: Path | None, results: Path) -> list[Row]:
    """Run one of mteb's tasks on the subsets of the encoder's languages.

    Args:
        encoder: what is evaluated.
        task: our name of the task.
        root: a folder that holds data sets under their hub names; None to let mteb ask the hub.
        results: folder of mteb's own result tree.

    Returns:
        A row a metric and subset. A data set that is not there gives one row without a value and with the reason.
    """
    try:
        import mteb
    except ImportError:
        raise DependencyError("mteb", "evaluate", f"the task {task}") from None
    judged, languages = MtebEncoder(encoder), encoder.languages
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
            judged, [the_task], cache=mteb.ResultCache(results), show_progress_bar=False, overwrite_strategy="always"
        )
    except Exception as error:  # whatever a damaged data set raises inside mteb and datasets; reported, never a zero
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        logger.warning("%s: %s", name, reason)
        return [_skipped(task, ours, reason) for ours in wanted]
    return [row for result in done.task_results for row in _rows(task, wanted, result, judged.encoded)]


def _state(folder: Path) -> str:
    """Return a fingerprint of a data set's files as they are now."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return fingerprint([(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files])


def _skipped(task: str, subset: str, reason: str) -> Row:
    return Row(task, subset, "skipped", None, 0, "mteb", note=reason)


def _rows(task: str, wanted: dict[str, str], result: Any, encoded: dict[tuple[str, str], list[np.ndarray]]) -> list[Row]:
    """Turn one mteb result into rows, and add what mteb does not measure on the same vectors."""
    ours = {theirs: mine for mine, theirs in wanted.items()}
    rows = []
    for split, scores in result.scores.items():
        for entry in scores:
            subset = entry["hf_subset"]
            sides = encoded.get((subset, split), [])
            about = {"n": len(sides[-1]) if sides else 0, "revision": result.dataset_revision, "split": split}
            theirs = {k: v for k, v in entry.items() if isinstance(v, float) and k != "main_score"}
            rows += [
                Row(task, ours[subset], k, v, source=f"mteb {result.mteb_version}", **about) for k, v in theirs.items()
            ]
            rows += [Row(task, ours[subset], k, v, **about) for k, v in _both_ways(theirs, sides).items()]
    return rows


def _both_ways(theirs: dict[str, float], sides: list[np.ndarray]) -> dict[str, float]:
    """Score an aligned bitext in both directions, by cosine and by margin; mteb looks one way and by cosine only.

    Empty unless the vectors are two aligned sides, which is so if our forward F1 is mteb's.
    """
    if "f1" not in theirs or len(sides) != 2 or len(sides[0]) != len(sides[1]):
        return {}
    found = bitext_retrieval(sides[0], sides[1])
    if abs(found["f1_forward"] - theirs["f1"]) > 1e-3:
        return {}
    by_margin = bitext_retrieval(sides[0], sides[1], margin=True)
    return {f"{k}_both_ways": found[k] for k in ("accuracy", "f1")} | {
        f"margin_{k}_both_ways": by_margin[k] for k in ("accuracy", "f1")
    }
