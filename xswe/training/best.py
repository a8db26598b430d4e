"""The best table of a training run: what early stopping keeps, and what a checkpoint has to hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from xswe.training.optimisers import Adam


class BestTable:
    """A table in training, and a copy of it as it was when its development loss was lowest.

    Args:
        matrix: float32 (rows, d), the table in training; read at each look.
        optimiser: what moves it, and counts the steps.

    Attributes:
        best: the copy; where there is no development loss, that of the last look.
        loss: its development loss.
        step: the steps that were taken then.
        history: one row a look: step, training loss, development loss.
        running: sum of the training losses since the last look.
    """

    def __init__(self, matrix: np.ndarray, optimiser: Adam) -> None:
        self.matrix, self.optimiser, self.best = matrix, optimiser, np.array(matrix)
        self.loss, self.step, self.running = float("inf"), 0, 0.0
        self.history: list[dict[str, float]] = []

    def begin(self, development: float) -> None:
        """Note the development loss before the first step."""
        self.loss = development
        self.history.append({"step": 0, "development_loss": development})

    def look(self, development: float | None) -> None:
        """Append a row to the history and keep the table if it is the best so far."""
        step = self.optimiser.steps
        since = step - int(self.history[-1]["step"] if self.history else 0)
        self.history.append({"step": step, "loss": self.running / max(1, since)})
        self.running = 0.0
        if development is not None:
            self.history[-1]["development_loss"] = development
        if development is None or development < self.loss:
            np.copyto(self.best, self.matrix)
            self.loss, self.step = development or 0.0, step

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return what decides the rest of the run, as arrays and JSON values for a checkpoint."""
        arrays = {"matrix": self.matrix, "moments": self.optimiser.moments, "best": self.best}
        values = {"best_loss": self.loss, "best_step": self.step, "history": self.history, "running": self.running}
        return arrays, {"steps": self.optimiser.steps, **values}

    def restore(self, arrays: dict[str, np.ndarray], values: dict[str, Any]) -> None:
        """Go on from such a state; the table and the optimiser are set back in place."""
        for own, name in ((self.matrix, "matrix"), (self.optimiser.moments, "moments"), (self.best, "best")):
            np.copyto(own, arrays[name])
        self.optimiser.steps, self.loss, self.step = values["steps"], values["best_loss"], values.get("best_step", 0)
        self.history, self.running = values["history"], values["running"]
