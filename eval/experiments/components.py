"""What a teacher's vectors look like: a few words in their sentences, and what the first principal components hold.

    python -m eval.experiments.components teachers=mini,runs/e5-small output=eval/results/components.json

A sentence's vector is the mean of its token states; sentences are those of the sample corpus, whose lines say the same in
four languages. ``languages`` is the share of a component's variance that lies between the languages (eta squared): 0 where
they do not differ along it, 1 where nothing else does. ``words`` are places of a word's states in the plane of their two
first principal components. ``eval/experiments/convert_e5.py`` makes the folder of multilingual-e5-small.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from eval.settings import RESULTS, run_script
from xswe.corpus.cards import sample_sentences
from xswe.io.files import write_json
from xswe.teacher.protocol import TeacherConfig
from xswe.teacher.transformer import TransformerTeacher, load_teacher

# What is looked for in English, German and Japanese sentences.
WORDS = (("water", "Wasser", "水"), ("winter", "Winter", "冬"), ("book", "Buch", "本を"))
PLACES = 12  # of each word
DEFAULTS: dict[str, Any] = {"teachers": "mini", "lines": 400, "components": 8, "output": str(RESULTS / "components.json")}


def sentence_vectors(teacher: TransformerTeacher, texts: list[str]) -> np.ndarray:
    """Return the mean token state of each text: float64 (n, d)."""
    out = np.zeros((len(texts), teacher.dim))
    for states in teacher.states(texts, teacher.batches(texts)):
        for row, start, end in zip(states.rows, states.offsets[:-1], states.offsets[1:], strict=True):
            out[row] = states.hidden[start:end].mean(0, dtype=np.float64)
    return out


def measure(vectors: list[np.ndarray], components: int) -> list[dict[str, float]]:
    """Return the share of the variance, and the languages' of it, of the first principal components."""
    centred = np.concatenate(vectors) - np.concatenate(vectors).mean(0)
    _, sizes, directions = np.linalg.svd(centred, full_matrices=False)
    shares = sizes**2 / np.sum(sizes**2)
    found = []
    for share, direction in zip(shares[:components], directions, strict=False):
        along = (centred @ direction).reshape(len(vectors), -1)
        found.append({"variance": float(share), "languages": float(along.mean(1).var() / along.var())})
    return found


def word_states(teacher: TransformerTeacher, texts: list[str], word: str) -> np.ndarray:
    """Return the mean state of a word at each of its first places: float64 (n, d)."""
    held = [text for text in texts if word in text][:PLACES]
    found = []
    for states in teacher.states(held, teacher.batches(held)):
        for row, start, end in zip(states.rows, states.offsets[:-1], states.offsets[1:], strict=True):
            where = held[row].index(word)
            inside = (states.ends[start:end] > where) & (states.starts[start:end] < where + len(word))
            if inside.any():
                found.append(states.hidden[start:end][inside].mean(0, dtype=np.float64))
    return np.array(found)


def words(teacher: TransformerTeacher, sides: list[list[str]]) -> list[dict[str, Any]]:
    """Return each word's places in the plane of all their states."""
    english, german, _, japanese = sides
    held = [
        (word, word_states(teacher, *side))
        for row in WORDS
        for side in zip((english, german, japanese), row, strict=True)
        for word in side[1:]
    ]
    every = np.concatenate([states for _, states in held])
    plane = np.linalg.svd(every - every.mean(0), full_matrices=False)[2][:2]
    plane *= np.sign(plane[np.arange(2), np.abs(plane).argmax(1)])[:, None]
    return [{"word": word, "places": ((states - every.mean(0)) @ plane.T).round(4).tolist()} for word, states in held]


def main(settings: dict[str, Any]) -> None:
    """Measure each teacher."""
    sides = list(sample_sentences().values())
    found = []
    for name in settings["teachers"].split(","):
        teacher = load_teacher(TeacherConfig.named(name))
        lines = [side[: settings["lines"]] for side in sides]
        components = measure([sentence_vectors(teacher, side) for side in lines], settings["components"])
        found.append({"teacher": Path(name).name, "lines": len(lines[0]), "components": components})
        found[-1]["words"] = words(teacher, sides)
        print(Path(name).name, [f"{one['variance']:.2f} {one['languages']:.2f}" for one in components])
    write_json(Path(settings["output"]), found)


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
