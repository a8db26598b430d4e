"""The figures in the sentences of README.md and docs, and where each comes from; eval/report/fill_prose.py puts them there.

SENTENCES has, for each page, pieces of its text with # in the place of each figure, and the values that belong there, from
eval/results. A value is written with as many digits as the page writes (zeros at the end of 558,000 are rounding). OTHERS
has the figures that nothing here measured: settings, what others published, promises, assumptions.
"""

from __future__ import annotations

from collections.abc import Callable

from eval.settings import PAIRS, Measured, one


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


def _split(measured: Measured) -> list[float]:
    rows = [row for row in measured("sentences")["rows"] if row["order"] == "shuffled"]
    sets = ("news en", "news de", "news zh", "wikipedia ja")
    ours = [one(rows, set=name, splitter=splitter)["f1"] for name in sets for splitter in ("blingfire", "xswe")]
    return [*ours, *(one(rows, set=name, splitter="sentencex")["f1"] for name in sets)]


def _judged(measured: Measured) -> list[float]:
    """Return F1 of the cascade and of its judge alone where 1 % and 10 % have a translation, and of the best cut."""
    (first, *_, own), (second, *_, other) = (_cascade(measured, "en-de", how) for how in ("cascade", "judge"))
    return [first, second, 1, own, other, 10, *_cascade(measured, "en-de", "judge, best cut")]


def _judged_at_best(measured: Measured) -> list[float]:
    """Return F1 of the cascade and of the judge's best cut in Japanese, where 1 % and where 10 % have a translation."""
    pairs = zip(*(_cascade(measured, "en-ja", how) for how in ("cascade", "judge, best cut")), strict=True)
    return [figure for pair in pairs for figure in pair]


def _cascade(measured: Measured, pair: str, how: str) -> list[float]:
    rows = [row for row in measured("cascade") if (row["judge"], row["pair"], row["how"]) == ("e5-small", pair, how)]
    return [100 * one(rows, share=share)["f1"] for share in (0.01, 0.1)]


def _expected(measured: Measured) -> list[float]:
    """Return how many points an expected precision is too low and too high, by cosine at least and at most too low."""
    rows = [row for row in measured("mining_quality") if row.get("expected_precision")]
    off = [(row["score"] == "cosine", 100 * (row["expected_precision"] - row["precision"])) for row in rows]
    sides = [[points for cosine, points in off if cosine == kind] for kind in (False, True)]
    return [-min(sides[0]), max(sides[0]), -max(sides[1]), -min(sides[1])]


def _family(measured: Measured) -> list[float]:
    base = measured("family_large")["rows"]["base"]["figures"]
    larger = measured("family_larger")["rows"]["base"]["figures"]
    names = ("tatoeba", "wmt23", "without bitext")
    return [*(100 * base[name] for name in names), 100 * larger["without bitext"]]


def _cut(measured: Measured) -> list[float]:
    """Return what vectors keep of the accuracy on WMT 2023 at 128 and 64 dimensions, and at 64 of a model of prefixes."""
    rows = measured("family")["rows"]
    places = [("base", 128), ("base", 64), ("prefixes 256, 128, 64", 64)]
    return [100 * rows[row][f"figures at {dim}"]["wmt23"] / rows[row]["figures"]["wmt23"] for row, dim in places]


def _imitated(measured: Measured) -> list[float]:
    rows = measured("family_large")["rows"]
    base, joint = rows["base"]["figures"], rows["distillation on all three"]["figures"]
    more = [100 * (joint[name] - base[name]) for name in base if name.startswith("stsb ")]
    similar = measured("family_similar")["rows"]["distillation on all three"]["figures"]
    return [min(more), max(more), *(100 * similar[name] for name in ("stsb-xling", "tatoeba", "wmt23"))]


def _recipe(measured: Measured) -> list[float]:
    runs = {pair: f"{pair}-e5-small-100000-paper" for pair in PAIRS}
    return [*(measured.main(run, "refinement", "tatoeba", pair) for pair, run in runs.items()), *measured.paper()]


def _minutes(measured: Measured) -> list[float]:
    found = [measured(f"main/{pair}-mini-all")["seconds"] / 60 for pair in PAIRS]
    return [min(found), max(found)]


_TRAINED = ("pivots, 2,048 in neighbourhoods of 256", "pivots, neighbourhoods, the start imitated")


def _hidden(measured: Measured, score: str) -> float:
    """Return mini's F1 of BUCC-shaped sets by a score, the mean of three pairs."""
    rows = [row for row in measured("mining_quality") if row["set"] == "BUCC-shaped" and row["score"] == score]
    return 100 * sum(row["f1"] for row in rows) / len(rows)


def _of_base(measured: Measured, name: str, *rows: str) -> list[float]:
    """Return a figure of variations in 64,000 pieces, the mean over seeds."""
    found = measured("static_levers_64k")["rows"]
    seeds = [[run["figures"][name] for run in found[row]["seeds"].values()] for row in rows or _TRAINED]
    return [100 * sum(values) / len(values) for values in seeds]


def _levers(measured: Measured) -> list[float]:
    """Return the most by which a lever that does not matter changes Tatoeba and WMT23."""
    rows = measured("levers")["rows"]
    names = ("batch 512", "batch 2,048", "neighbourhoods of 16", "averaged over the last fifth", "dense Adam (paper)")
    names += ("near-duplicates masked", "constant rate")
    changes = [rows[row]["figures"][name] - rows["base"]["figures"][name] for row in names for name in ("tatoeba", "wmt23")]
    return [100 * max(map(abs, changes))]


def _broken_indexes(measured: Measured) -> list[float]:
    """Return how many processes that change an index were killed, how many files damaged, and how many ended badly."""
    record = measured("index_faults")
    killed, runs = ([row[key] for row in record[kind].values()] for kind, key in (("kills", "killed"), ("flips", "runs")))
    return [sum(killed), sum(runs), len(record["wrong"])]


def _novels(measured: Measured) -> list[float]:
    """Return lax F1 on the novels with the vectors of two encoders, the least first, and with our own."""
    rows = measured("align")["f1"]
    encoders = sorted(row["novels"]["lax"] for name, row in rows.items() if name.startswith("xswe, vectors of "))
    return [100 * value for value in (*encoders, rows["xswe"]["novels"]["lax"])]


def _documents(measured: Measured) -> list[float]:
    found = measured("align")["documents"]
    return [found["documents"], 100 * found["precision"], 100 * found["recall"]]


Values = Callable[[Measured], list[float]]


def _ablated(m: Measured, study: str, variant: object, step: str = "refinement") -> float:
    """Return a figure of an ablation on WMT 2023, F1 times 100; ``study`` may begin with the encoder's folder."""
    rows = m(f"ablation/{study}")["rows"]
    return 100 * float(one(rows, variant=variant, step=step, subset="wmt23.en-ja.tsv", metric="f1")["value"])


def _removed(m: Measured) -> list[float]:
    found = [_ablated(m, "e5-small/drop", number, "PCA with ABTT") for number in (0, 1, 3)]
    return [*found, *(_ablated(m, "e5-small/drop", number) for number in (0, 3))]


def _more_sentences(m: Measured) -> list[float]:
    gained = _ablated(m, "contexts", 10) - _ablated(m, "contexts", 1)
    return [*(_ablated(m, "e5-small/contexts", number) for number in (1, 2, 4)), gained]


def _fitted(m: Measured) -> list[float]:
    return [_ablated(m, "e5-small/pca_level", level, "PCA with ABTT") for level in ("sentence", "word")]


def _longer(m: Measured) -> list[float]:
    return [_ablated(m, "e5-small/pick", "random") - _ablated(m, "e5-small/pick", "shortest")]


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
            "Two cores filter some # pairs a second",
            lambda m: [one(m("filter_speed")["rows"], threads=2)["pairs_per_second"]],
        ),
    ],
    "docs/how-to/mine.md": [
        ("it is # points too low to # too high (by cosine, of all, # to # too low;", _expected),
        (
            "F1 # against # where # % of the lines have a translation, # against # where # % have. With the threshold "
            "that is "
            "best in hindsight the judge alone reaches # and #:",
            _judged,
        ),
        ("finds more than it even then (# against #, # against #)", _judged_at_best),
    ],
    "docs/how-to/install.md": [
        (
            "with `mini` (# MB), its teacher (# MB)",
            lambda m: [m.megabytes(f"xswe/{place}/mini/model.safetensors") for place in ("pretrained", "teacher")],
        ),
    ],
    "docs/how-to/reproduce.md": [("of a model a pair: # (en-de), # (en-zh), # (en-ja)", Measured.paper)],
    "docs/how-to/search.md": [
        (
            "Tried with # processes that were killed while they changed an index, and with # files that were damaged; # of "
            "them ended otherwise",
            _broken_indexes,
        ),
    ],
    "docs/how-to/serve.md": [
        (
            "are ready in # s the first time; then the concordance answers in # ms and the search in # ms on two idle "
            "cores, and "
            "programs that send 64 texts a request get # to # times what sentence-transformers' own static model "
            "gives behind "
            "the same kind of server. Memory stays at # MB",
            _served,
        ),
        (
            "of # attacks by # sockets each the worst took # MB more than an idle server, and who asked for one text "
            "beside them waited # s",
            _stalled,
        ),
    ],
    "docs/how-to/train.md": [
        (
            "(Tatoeba #, WMT23 #), and # % between German, Chinese and Japanese, which it never saw together",
            lambda m: _family(m)[:3],
        ),
        ("128,000 pieces make that # %", lambda m: _family(m)[3:]),
        ("vectors keep # % of the accuracy, to 64, # % (# % where they were trained with prefixes)", _cut),
        ("similarities add # to # to STS-B in each language", lambda m: _imitated(m)[:2]),
        ("cross-lingual STS-B reaches # (Tatoeba #, WMT23 #).", lambda m: _imitated(m)[2:]),
        ("change Tatoeba and WMT23 by # or less", _levers),
    ],
    "docs/papers.md": [
        (
            "F1 of BlingFire and ours: en news # and #, de news # and #, zh news # and #, ja Wikipedia # and #; "
            "sentencex alone: #, #, #, #",
            _split,
        ),
        (
            "STS-B ja # instead of # after refinement, # before it",
            lambda m: [
                100 * one(m("imitation")["rows"], variant=centred, step=step, metric="spearman", task="file")["value"]
                for centred, step in ((True, "refinement"), (False, "refinement"), (False, "PCA with ABTT"))
            ],
        ),
    ],
    "docs/models.md": [
        ("Tatoeba en-ja #)", lambda m: [m.main("en-ja-mini-all", "refinement", "tatoeba", "en-ja")]),
        ("32,000 pieces | 256 | # MB (int8)", lambda m: [m.megabytes("xswe/pretrained/mini/model.safetensors")]),
        ("120,000 pieces | 256 | # MB (int8)", lambda m: [m.megabytes("models/base/model.safetensors")]),
        ("| 320 | # MB (float16)", lambda m: [m.megabytes("xswe/teacher/mini/model.safetensors")]),
    ],
    "docs/results.md": [
        ("touches more of the novels' (# and # against #)", _novels),
        (
            "(lax, # against #), and has fewer of them exact (strict, # against #)",
            lambda m: [
                100 * m("align")["f1"][name]["novels"][kind]
                for kind in ("lax", "strict")
                for name in ("vecalign, beads to 4 lines", "xswe")
            ],
        ),
        ("pairs in # to # minutes on", _minutes),
        (
            "are found at # by `mini`, at # without the second loss, at # with it (64,000 pieces, mean of seeds); "
            "by cosine alone at #, # and #.",
            lambda m: [
                figure for kind in ("ratio", "cosine") for figure in (_hidden(m, kind), *_of_base(m, f"mining {kind}"))
            ],
        ),
        (
            "finds hardly more (#)",
            lambda m: _of_base(m, "mining ratio", "pivots, neighbourhoods, the noise of the mining sets left out"),
        ),
        (
            "nothing is lost: # before all training, # without the second loss, # with it.",
            lambda m: _of_base(m, "mining unseen ratio", "as it starts", *_TRAINED),
        ),
        (
            "# with none removed, # with one, # with the papers' three; refinement does not make up for it (# against #)",
            _removed,
        ),
        ("1, 2 and 4 a word end at #, # and #, where `mini` gains # from 1 to 10", _more_sentences),
        ("and not on words gives # against # before the refinement", _fitted),
        ("end # higher on news than the shortest", _longer),
        ("ends on Tatoeba at #, # and #, where the paper has #, # and #", _recipe),
        (
            "# shuffled documents a side, a tenth of which is alone, find each other with a precision of # % and a "
            "recall of # %",
            _documents,
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
    "docs/how-to/search.md": ("0.5 times the root", "that finds 97 % of the exact ten"),
    "docs/how-to/several-machines.md": (
        *("shards of 16 MiB", "Since 2.59 Ray"),
        *("an estimated 200 bytes a line, 40 GB for 10^8", "writes 2 GB a second", "times 30 %, an assumption"),
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
    "docs/results.md": ("with 40 % of one side", "of 0.45", "power 0.8", "the power of 1.5"),
    "docs/tutorials/train.md": ("one sentence is 0.6",),
}
