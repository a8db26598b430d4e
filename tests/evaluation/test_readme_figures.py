"""The figures in the sentences of README and pages are those that were measured."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "eval").is_dir(), reason="eval/ is not in this installation")


def measured(name: str) -> Any:
    return json.loads((ROOT / "eval" / "results" / name).read_text(encoding="utf-8"))


def wrong(pattern: str, *expected: float) -> list[tuple[str, float]]:
    """Find a sentence, with ``#`` for each of its numbers; returns those that differ from what is expected, as written."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    text = " ".join(word for page in pages for word in page.read_text(encoding="utf-8").split())
    found = re.search(re.escape(pattern).replace(r"\#", r"([\d,]+(?:\.\d+)?)").replace(r"\ ", " "), text)
    assert found, f"no page has a sentence {pattern!r}"
    return [
        (written, number)
        for written, number in zip(found.groups(), expected, strict=True)
        if abs(float(written.replace(",", "")) - number) > 0.5 * last_digit(written) + 1e-9
    ]


def last_digit(written: str) -> float:
    """What the last digit of a number counts that is not a 0 at its end: 1000 in 558,000, and 0.1 in 1.0."""
    whole, _, decimals = written.replace(",", "").partition(".")
    return 10.0 ** -len(decimals) if decimals else 10.0 ** (len(whole) - len(whole.rstrip("0")))


def ratios(languages: Sequence[str], kind: str = "") -> tuple[float, float]:
    """The least and the most of our rate over the fastest of the others'."""
    spec = importlib.util.spec_from_file_location("encode_tables", ROOT / "eval" / "encode_tables.py")
    tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    rows = [row for row in measured("bench_encode.json")["rows"] if row["language"] in languages]
    found = [row["rates"]["xswe sub-words"] / tables.fastest_peer(row, kind) for row in rows]
    return min(found), max(found)


def test_encoding():
    record = measured("bench_encode.json")
    rates = {(row["language"], row["words"], row["threads"]): row["rates"]["xswe sub-words"] for row in record["rows"]}
    assert not wrong(
        "are encoded at # (English) and # (German) a second on one thread.", rates["en", 20, 1], rates["de", 20, 1]
    )
    assert not wrong("that is # to # times as many as by the fastest of Model2Vec", *ratios(("en", "de")))
    assert not wrong("and # to # times as many as with the same sub-words.", *ratios(("en", "de"), " sub-words"))
    assert not wrong("Chinese: # to # times, Japanese: # to # times.", *ratios(("zh",)), *ratios(("ja",)))
    bare = record["segmentation"]
    assert not wrong("take # and # times the bare library's time.", bare["ja: ours / bare"], bare["zh: ours / bare"])
    ours, words = record["processes"]["xswe sub-words"], record["processes"]["xswe words"]
    assert not wrong(
        "is there # s after the start of the process, import included (sub-words; words # s)",
        *(ours["cold start"], words["cold start"]),
    )
    others = {name: found["peak"] for name, found in record["processes"].items() if not name.startswith("xswe")}
    assert not wrong(
        "peaks at # MB with 32,000 pieces (the others: from # MB on), at # MB with 150,000 words (from # MB on).",
        *(ours["peak"], min(others.values()), words["peak"], min(v for name, v in others.items() if " words" in name)),
    )


def test_training():
    step = measured("bench_train.json")["batch 128, 2 threads"]
    lazy, sparse = step["xswe lazy Adam"], step["torch SparseAdam"]
    assert not wrong(
        "takes # ms: # times torch's fused dense Adam, # times SparseAdam.",
        1000 / lazy["steps_per_second"],
        lazy["times_dense"],
        lazy["steps_per_second"] / sparse["steps_per_second"],
    )
    trainer = measured("bench_trainer.json")
    assert not wrong(
        "it takes # times less time than sentence-transformers' trainer at batch 128, # times less at 2,048.",
        *(trainer[f"batch {size}"]["median"]["times"] for size in (128, 2048)),
    )


def test_mining():
    record = measured("bench_mine.json")
    found, large = record["100000"], record["1000000"]["xswe clusters"]
    exact, clusters = found["xswe exact"], found["xswe clusters"]
    assert not wrong(
        "exactly takes # s, as long as the matrix product alone: # times as fast as faiss' flat index",
        *(exact["seconds"], found["faiss flat + loop"]["seconds"] / exact["seconds"]),
    )
    assert abs(exact["seconds"] / found["product"]["seconds"] - 1) < 0.05
    assert not wrong("finds # % of the same pairs in # s", 100 * clusters["of_exact_pairs"], clusters["seconds"])
    assert not wrong("mines a million by a million in # minutes and # GiB.", large["seconds"] / 60, large["peak_gib"])


def test_phrases():
    record = measured("bench_phrases.json")
    own = {row["queries"]: row for row in record["side by side"] if row["what"] == "xswe"}
    figures = [own[n][what] for n in (1, 100, 10_000) for what in ("passages_per_second", "times")]
    figures.insert(1, record["words"])
    assert not wrong(
        "20 words of # passages (of # words) a second, # times as many as MiniLM's single pass allows in the same run; "
        "100 phrases at once, of # (# times); 10,000, of # (# times).",
        *figures,
    )
    first = {row["near"]: row["times"] for row in record["first stage"] if row["queries"] == 1}
    assert 1.5 < first[16] < 3  # "twice"


def test_the_family():
    large, larger, similar = (measured(f"family_{name}.json")["rows"] for name in ("large", "larger", "similar"))
    base, joint = large["base"]["figures"], similar["distillation on all three"]["figures"]
    assert not wrong(
        "as well as three bilingual ones (Tatoeba #, WMT23 #), and # % between German, Chinese and Japanese",
        *(100 * base[name] for name in ("tatoeba", "wmt23", "without bitext")),
    )
    assert not wrong("128,000 pieces make that # %", 100 * larger["base"]["figures"]["without bitext"])
    more = [
        100 * (large["distillation on all three"]["figures"][name] - base[name])
        for name in base
        if name.startswith("stsb ")
    ]
    assert not wrong("similarities add # to # to STS-B in each language", min(more), max(more))
    assert not wrong(
        "cross-lingual STS-B reaches # (Tatoeba #, WMT23 #).",
        *(100 * joint[name] for name in ("stsb-xling", "tatoeba", "wmt23")),
    )
