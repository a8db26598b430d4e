"""The figures in the sentences of README.md and docs, and where each comes from; eval/report/fill_prose.py puts them there.

SENTENCES has, for each page, pieces of its text with # in the place of each figure, and the values that belong there, from
eval/results. A value is written with as many digits as the page writes (zeros at the end of 558,000 are rounding). OTHERS
has the figures that nothing here measured: settings, what others published, promises, assumptions.
"""

from __future__ import annotations

from collections.abc import Callable

from eval.settings import Measured, one


def _served(measured: Measured) -> list[float]:
    record = measured("serve")
    built = record["questions"][0]["build_s"]
    asked = [one(record["questions"], what=what)["median_ms"] for what in ("phrases", "search")]
    ratios = [row["clock"] for row in record["ratios"] if row["texts"] == 64]
    return [built, *asked, min(ratios), max(ratios), min(record["memory"]["resident_mb"])]


def _stalled(measured: Measured) -> list[float]:
    record = measured("stalled")
    waits = [row["honest"]["1"]["longest_s"] for row in record["rows"]]
    return [len(waits), record["sockets"], max(row["above_mb"] for row in record["rows"]), max(waits)]


def _expected(measured: Measured) -> list[float]:
    """Return how many points an expected precision is too low and too high, by cosine at least and at most too low."""
    rows = [row for row in measured("mining_quality") if row.get("expected_precision")]
    off = [(row["score"] == "cosine", 100 * (row["expected_precision"] - row["precision"])) for row in rows]
    sides = [[points for cosine, points in off if cosine == kind] for kind in (False, True)]
    return [-min(sides[0]), max(sides[0]), -max(sides[1]), -min(sides[1])]


def _broken_indexes(measured: Measured) -> list[float]:
    """Return how many processes that change an index were killed, how many files damaged, and how many ended badly."""
    record = measured("index_faults")
    killed, runs = ([row[key] for row in record[kind].values()] for kind, key in (("kills", "killed"), ("flips", "runs")))
    return [sum(killed), sum(runs), len(record["wrong"])]


def _documents(measured: Measured) -> list[float]:
    found = measured("align")["documents"]
    return [found["documents"], 100 * found["precision"], 100 * found["recall"]]


Values = Callable[[Measured], list[float]]


SENTENCES: dict[str, list[tuple[str, Values]]] = {
    "docs/explanation/method.md": [
        (
            "vectors, # % and # % lie between",
            lambda m: [100 * part["languages"] for part in one(m("components"), teacher="e5-small")["components"][:2]],
        ),
    ],
    "docs/faq.md": [
        ("A million by a million lines took # GiB", lambda m: [m("bench_mine")["1000000"]["xswe clusters"]["peak_gib"]])
    ],
    "docs/how-to/filter.md": [
        (
            "Two cores filter some # pairs per second",
            lambda m: [one(m("filter_speed")["rows"], threads=2)["pairs_per_second"]],
        ),
        (
            "one core filters # pairs of en-de, # of en-ja and # of en-zh per second",
            lambda m: [
                one(m("filter_speed")["learned"], languages=f"en-{other}")["pairs_per_second"]
                for other in ("de", "ja", "zh")
            ],
        ),
    ],
    "docs/how-to/mine.md": [
        (
            "the estimate is # points too low to # too high (with `score=cosine`, over all of them, # to # too low;",
            _expected,
        ),
    ],
    "docs/how-to/install.md": [
        (
            "with `mini` (# MB), its teacher (# MB)",
            lambda m: [m.megabytes(f"xswe/{place}/mini/model.safetensors") for place in ("pretrained", "teacher")],
        ),
    ],
    "docs/how-to/reproduce.md": [("with one model per language pair: # (en-de), # (en-zh), # (en-ja)", Measured.paper)],
    "docs/how-to/search.md": [
        (
            "Tested by killing # processes while they changed an index, and by damaging # files; in # cases a promise was "
            "broken",
            _broken_indexes,
        ),
    ],
    "docs/how-to/serve.md": [
        (
            "are ready in # s the first time; then the concordance answers in # ms and the search in # ms on two idle "
            "cores, and "
            "clients that send 64 texts per request get # to # times the throughput of sentence-transformers' own "
            "static model behind "
            "the same kind of server ([table](../../eval/results/tables.md), `python -m eval.bench.serve`). - **Memory.** "
            "Memory stays at # MB",
            _served,
        ),
        (
            "In # attacks by # sockets each, the worst took # MB more than an idle server, and a client that asked for "
            "one text meanwhile waited # s",
            _stalled,
        ),
    ],
    "docs/models.md": [
        ("Tatoeba en-ja #)", lambda m: [m.main("en-ja-mini-all", "refinement", "tatoeba", "en-ja")]),
        ("32,000 pieces | 256 | # MB (int8)", lambda m: [m.megabytes("xswe/pretrained/mini/model.safetensors")]),
        ("120,000 pieces | 256 | # MB (int8)", lambda m: [m.megabytes("models/base/model.safetensors")]),
        ("| 320 | # MB (float16)", lambda m: [m.megabytes("xswe/teacher/mini/model.safetensors")]),
    ],
    "docs/results.md": [
        (
            "# shuffled documents a side, a tenth of which is alone, find each other with a precision of # % and a "
            "recall of # %",
            _documents,
        ),
        (
            "`mini` in float32 takes # times as long to encode",
            lambda m: [m("static_pairs")["rows"]["trained on: units and pairs"]["times as long to encode"]],
        ),
    ],
}

# What is no result: of a setting or a constant, of somebody else, a promise that a test holds, an assumption.
OTHERS: dict[str, tuple[str, ...]] = {
    "README.md": ("8 to 100 MB", "Python 3.11", "Apache-2.0"),
    "docs/faq.md": ("(1.04, 1.2)", "Python 3.11"),
    "docs/how-to/align.md": ("from which 95 % are expected", "for 2.0"),
    "docs/how-to/install.md": ("Python 3.11",),
    "docs/how-to/own-data.md": ("Apache-2.0",),
    "docs/how-to/phrases.md": ("SLICE 3.1",),
    "docs/how-to/reports.md": ("below 2 MB",),
    "docs/how-to/search.md": ("0.5 times the square root", "that finds 97 % of the exact ten"),
    "docs/how-to/several-machines.md": (
        *("shards of 16 MiB", "Since 2.59 Ray"),
        *("an estimated 200 bytes a line, 40 GB for 10^8", "write 2 GB a second", "times 30 %, an assumption"),
    ),
    "docs/how-to/train.md": ("10 GB a language",),
    "docs/how-to/threshold.md": ("1.2 of one is not 1.2 of the other",),
    "docs/how-to/upgrade.md": ("From 0.2 to 0.3", "indexes of 0.2", "Unfinished work of 0.2", "those of 0.2"),
    "docs/how-to/use.md": ("a cosine of 0.999999",),
    "docs/models.md": ("Apache-2.0", "32.8 MB, 8.3 MB as int8"),
    "docs/papers.md": (  # the comparison with the authors' code: as its page says, found once
        *(
            "SLICE 3.1",
            "T .05",
            "Adam, .001",
            "AdamW .2",
            "~ 1 % of the pairs",
            "standard error is about 1.1",
            ": .8 on average",
        ),
        *("55 % are then the same", ".99972 (en), .99999 (ja)", ".999997 on words", "11 % (en-ja) to 15 % (en-de)"),
        "0.3 to 1.1 % of good sentences and 96 to 99 %",
    ),
    "docs/results.md": (
        "with 40 % of one side",
        "of 0.45",
        "power 0.8",
        "the power of 1.5",
        "detects 10 points more",
        "kept to 95 %",
        "instead of 2 % stayed",
    ),
    "docs/tutorials/train.md": ("one sentence is 0.6",),
}
