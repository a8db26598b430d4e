"""The run folder that the verb ``train`` writes."""

from __future__ import annotations

from pathlib import Path

from xswe.training.config import TrainConfig
from xswe.training.train import TrainResult, run_name, train
from xswe.work.config import LOCAL, ExecutionConfig


def train_run(
    config: TrainConfig,
    output: str | Path | None = None,
    *,
    keep_steps: bool = False,
    side_by_side: bool = False,
    dry: bool = False,
    execution: ExecutionConfig = LOCAL,
) -> TrainResult | str:
    """Train a model by settings in full into a run folder.

    Args:
        config: the settings.
        output: run folder; null for runs/<pair>/<recipe>-<fingerprint of the settings>, where the same command goes on.
        keep_steps: save the model after each step, too, under ``steps`` of the run folder.
        side_by_side: a run is a folder ``<recipe>-<fingerprint>`` in the output, beside others with which it shares the
            stages that are equal; ``-m`` sets it.
        dry: only check teacher, corpus and settings, and estimate time, memory and disk.
        execution: who counts words, and asks encoders for states and vectors.

    Raises:
        ConfigError: a setting is impossible.
        InputError: a file is missing or damaged.
    """
    within = Path(output or Path("runs") / "-".join(config.languages))
    folder = within if output and not side_by_side else within / run_name(config)
    if dry:
        from xswe.training.rehearsal import rehearse

        return str(rehearse(config, folder))
    return train(
        config.corpus.paths,
        config.languages,
        recipe=config,
        output=folder,
        shared=within if side_by_side else None,
        keep_steps=keep_steps,
        execution=execution,
    )
