"""Tables of speed and size from the benchmarks' JSON, for tables.py: one function a file, JSON in, Markdown out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import harmonic_mean
from typing import Any

from eval.report.encode_tables import fastest_peer
from eval.settings import one
from xswe.io.results import markdown

Record = Mapping[str, Any]


def training(record: Record) -> str:
    """Steps a second beside torch's optimisers (eval/bench/train.py)."""
    rows = [
        [what, name, f"{row['steps_per_second']:.1f}", f"{row['min']:.1f} to {row['max']:.1f}", f"{row['times_dense']:.1f}"]
        for what, found in record.items()
        if isinstance(found, dict)
        for name, row in found.items()
    ]
    return markdown(["batch", "optimiser", "steps/s", "range", "times dense Adam"], rows)


def trainer(record: Record) -> str:
    """Time to the same loss beside sentence-transformers' trainer (eval/bench/trainer.py)."""
    rows = []
    for what, found in record.items():
        if isinstance(found, dict):
            last, median = found["rounds"][-1], found["median"]
            seconds = f"{last['theirs']:.2f}", f"{last['seconds']:.2f}"
            rows.append(
                [what, f"{last['loss']:.4f}", *seconds, f"{median['times']:.1f}", f"{median['times_per_step']:.1f}"]
            )
    return markdown(
        ["batch", "loss", "s there (last round)", "s here (last round)", "times, to that loss", "times, a step"], rows
    )


def mining(record: Record) -> str:
    """Seconds and memory of the searches (eval/bench/mine.py)."""
    rows = []
    for size, found in record.items():
        if not size.isdigit():
            continue
        field = found.get("faiss flat + loop", {}).get("seconds")
        for name, row in found.items():
            cells = [f"{int(size):,}", name, f"{row['seconds']:.2f}", f"{row['peak_gib']:.2f}"]
            cells.append(f"{row['peak_anonymous_gib']:.2f}" if "peak_anonymous_gib" in row else None)
            cells.append(f"{field / row['seconds']:.2f}" if field else None)
            cells += [_percent(row.get(key)) for key in ("of_ceiling", "of_exact_pairs", "translations_found")]
            rows.append(cells)
    titles = [
        "seconds",
        "peak GiB",
        "of it not mapped from files",
        "times LASER's way",
        "% of the product's speed",
        "% of the exact pairs",
    ]
    return markdown(["lines a side", "method", *titles, "% of the translations"], rows)


def quality(record: list[Record]) -> str:
    """Precision and recall of mined pairs (eval/experiments/mining_quality.py)."""
    rows = []
    for row in record:
        counts = [f"{row[key]:,}" for key in ("lines", "gold", "found")]
        shares = [_percent(row.get(key)) for key in ("precision", "recall", "f1", "expected_precision")]
        how = [row.get("noise"), row.get("calibrated"), row["score"]]
        rows.append([row["set"], row["pair"], *how, *counts, *shares])
    titles = ["lines", "true pairs", "found", "precision", "recall", "F1", "precision it expected"]
    return markdown(["set", "pair", "noise", "threshold by", "score", *titles], rows)


def planted_in_short(record: list[Record]) -> str:
    """What was estimated of the precision, by the ratio and without gold, and what it was, a column a pair of languages."""
    kept = [row for row in record if (row["score"], row.get("calibrated")) == ("ratio", "mismatches")]
    pairs = list(dict.fromkeys(row["pair"] for row in kept))
    found = {(row["set"], row["noise"], row["pair"]): row for row in kept}
    rows = []
    for name, kind in dict.fromkeys((row["set"], row["noise"]) for row in kept):
        cells = [found[name, kind, pair] for pair in pairs]
        told = [f"{_percent(row['expected_precision']) or '-'} / {_percent(row['precision'])}" for row in cells]
        rows.append([name.removeprefix("planted "), kind, *told])
    return markdown(["lines with a translation", "noise", *pairs], rows)


def sparse(record: list[Record]) -> str:
    """Thresholds and estimates where few lines have a translation, by noise, lines and share."""
    return _sparse_by(record, ["noise", "size", "of lines"], ["noise", "lines", "% with a translation"])


def sparse_in_short(record: list[Record]) -> str:
    """The same by noise and share."""
    return _sparse_by(record, ["noise", "of lines"], ["noise", "% with a translation"])


def _sparse_by(record: list[Record], keys: list[str], titles: list[str]) -> str:
    sets: dict[tuple[Any, ...], list[Record]] = {}
    for row in record:
        sets.setdefault(tuple(row[key] for key in keys), []).append(row)
    rows = []
    for key, found in sorted(sets.items()):
        about = [_percent(value) if name == "of lines" else str(value) for name, value in zip(keys, key, strict=True)]
        mean = (_percent(sum(row[name] for row in found) / len(found)) for name in ("f1", "best"))
        held = sum(row["told share"][1] <= row["share"] <= row["told share"][2] for row in found if row["told share"])
        off = [_off(found, name) for name in ("precision", "recall")]
        rows.append([*about, str(len(found)), *mean, _percent(min(row["of the best"] for row in found)), str(held), *off])
    last = ["sets", "F1", "best F1", "least part of the best, %", "share held", "precision: estimated - true", "recall"]
    return markdown([*titles, *last], rows)


def _off(found: list[Record], name: str) -> str:
    """Say by how many points the estimates of sets are off, at least and at most."""
    points = [100 * (row[f"told {name}"] - row[name]) for row in found if row[f"told {name}"] is not None]
    return f"{min(points):+.1f} to {max(points):+.1f}" if points else "-"


def near_duplicates(record: list[Record]) -> str:
    """Which near-duplicates dedup finds, beside a MinHash of characters (eval/experiments/near_duplicates.py)."""
    counts, shares = ["lines", "near-duplicates", "dropped"], ["precision", "precision at .7", "recall"]
    rows = []
    for row in record:
        figures = [f"{row[name]:,}" for name in counts] + [_percent(row[name]) or "-" for name in shares]
        rows.append([row["set"], row["method"], *figures])
    return markdown(["lines of", "method", *counts, *shares], rows)


def noise(record: list[Record]) -> str:
    """What the filter tells from good pairs (eval/experiments/filter_quality.py)."""
    figures = ["cosine", "length ratio", "dropped", "good dropped", "with numbers", "good with numbers"]
    rows = [[row["noise"], row["pair"], *(_percent(row[name]) for name in figures)] for row in record]
    return markdown(["noise", "pair", *figures], sorted(rows, key=lambda row: row[0]))


def mixtures(record: list[Record]) -> str:
    """What precision the filter tells of noisy bitext, and what is true (eval/experiments/filter_mixtures.py)."""
    cells: dict[tuple[Any, ...], dict[str, Record]] = {}
    for row in record:
        about = tuple(row[name] for name in ("model", "pair", "noise", "share", "pairs"))
        cells.setdefault(about, {})[row["method"]] = row
    rows = []
    for (model, pair, kind, share, pairs), found in cells.items():
        learned, cosine = found["learned"], found["cosine"]
        margin = next((row["true"] for name, row in found.items() if name.startswith("margin")), None)
        between = " to ".join(_percent(part) for part in learned["within"] or ()) or "-"
        figures = [_percent(learned["told"]) or "-", between, _percent(learned.get("true of what is judged"))]
        figures += [_percent(learned["true"]), _percent(learned["kept"]["good"])]
        figures += [_percent(cosine["told"]) or "-", _percent(cosine["true"]), _percent(cosine["kept"]["good"])]
        rows.append([model, pair, kind, _percent(share), f"{pairs:,}", *figures, _percent(margin)])
    titles = ["model", "pair", "noise", "% noise", "pairs", "told", "between", "true, as judged", "true", "good kept"]
    return markdown([*titles, "cosine: told", "true", "good kept", "margin: true"], rows)


def mixtures_by_kind(record: list[Record]) -> str:
    """What share of each kind of noise is kept, where all are mixed."""
    chosen = [row for row in record if row["noise"] == "mixed" and row["share"] == 0.4]
    kinds = [kind for kind in chosen[0]["kept"] if kind != "good"]
    rows = [
        [row["model"], row["pair"], row["method"], *(_percent(row["kept"].get(kind)) for kind in ("good", *kinds))]
        for row in chosen
    ]
    return markdown(["model", "pair", "method", "good", *kinds], rows)


def searching(record: Record) -> str:
    """What an index of sentences costs (eval/bench/search.py)."""
    titles = {
        "method": "method",
        "storage": "numbers",
        "build_s": "s to build",
        "build_cpu_s": "of processor",
        "open_ms": "ms to open",
        "median_ms": "ms a question",
        "question_cpu_ms": "of processor",
        "mb": "MB",
    }
    rows = [[*(str(row[key]) for key in titles), _percent(row["recall_at_10"])] for row in record["rows"]]
    return markdown([*titles.values(), "% of the exact ten"], rows)


def approximate(record: Record) -> str:
    """What approximate search finds, and in which time (eval/bench/approximate.py)."""
    titles = ["sentences", "method", "setting", "s to build", "ms a question", "% from outside", "% from inside"]
    rows = []
    for row in record["rows"]:
        setting = "" if row["method"] == "xswe exact" else f"{row['setting']}={row['value'] or 'null'}"
        figures = [f"{row['build_cpu_s']:.1f}", f"{row['ms']:.2f}"]
        shares = [_percent(row[f"recall_{name}"]) for name in ("outside", "inside")]
        rows.append([f"{row['sentences']:,}", row["method"], setting, *figures, *shares])
    return markdown(titles, rows)


def approximate_in_short(record: Record) -> str:
    """Of each method the fastest setting that finds 97 % from outside, or what finds most."""
    groups: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for row in record["rows"]:
        groups.setdefault((row["sentences"], row["method"]), []).append(row)
    chosen = []
    for rows in groups.values():
        enough = [row for row in rows if row["recall_outside"] >= 0.97]
        best = min(enough, key=lambda row: row["ms"]) if enough else max(rows, key=lambda row: row["recall_outside"])
        chosen.append(best)
        chosen += [row for row in rows if row["value"] is None and row is not best]  # the default
    return approximate({"rows": chosen})


def filtering(record: Record) -> str:
    """How fast a bitext is filtered (eval/bench/filter.py)."""
    rows = [
        [
            str(row["threads"]),
            *(f"{row[key]:,}" for key in ("pairs_per_second", "pairs_per_processor_second")),
            str(row["busy"]),
        ]
        for row in record["rows"]
    ]
    return markdown(["threads", "pairs/s", "pairs/s of processor", "processors at work"], rows)


def filtering_learned(record: Record) -> str:
    """How fast a bitext is filtered by what is learnt from it, on one thread (eval/bench/filter.py)."""
    keys = ("pairs_per_second", "pairs_per_second_encoded", "pairs_per_second_after_encoding")
    rows = [
        [row["languages"], *(f"{row[key]:,}" for key in keys), f"{row['seconds_once']:.1f}"] for row in record["learned"]
    ]
    return markdown(["bitext", "pairs/s", "encoding alone", "after encoding", "s once"], rows)


def serving(record: Record) -> str:
    """What `serve` answers, beside StaticEmbedding behind the same kind of server (eval/bench/serve.py)."""
    found = {(row["server"], row["clients"], row["texts"]): row for row in record["rows"] if row["what"] == "embeddings"}
    rows = []
    for ratio in record["ratios"]:
        clients, texts = ratio["clients"], ratio["texts"]
        own = found.pop(("xswe", clients, texts))
        same = [row for (_, *asked), row in found.items() if asked == [clients, texts]]
        other = max(same, key=lambda row: row["texts_per_s"])
        speeds = [f"{one['texts_per_s']:,.0f}" for one in (own, other)]
        waits = [f"{own[key]:.1f}" for key in ("p50_ms", "p99_ms")]
        rows.append([str(clients), str(texts), *speeds, f"{ratio['clock']:.1f}", *waits])
    titles = ["clients", "texts a request", "texts/s", "StaticEmbedding's", "times as many", "median ms", "99 % within ms"]
    return markdown(titles, rows)


def asking(record: Record) -> str:
    """What a question to the passages of a server takes (eval/bench/serve.py)."""
    names = {
        **{"phrases": "the concordance", "exact": "the same, for a string", "fuzzy": "the same, for one with errors"},
        "search": "the search of sentences",
    }
    keys = ("median_ms", "least_ms", "processor_ms", "build_s")
    rows = [
        [names[row["what"]], f"{row['passages']:,}", *(f"{row[key]:,.0f}" for key in keys)] for row in record["questions"]
    ]
    return markdown(["question to", "passages", "median ms", "least ms", "ms of processor", "s to start"], rows)


def restarting(record: Record) -> str:
    """What those who ask see of a server that is stopped while it works (eval/bench/restarts.py)."""
    outcomes, most = record["outcomes"], record["seconds_to_end"]["most"]
    kinds = [sum(count for what, count in outcomes.items() if what.startswith(kind)) for kind in _OUTCOMES]
    titles = ["restarts", "requests", "answered", "refused by a whole answer", "not answered", "broken", "tracebacks"]
    row = [record["restarts"], record["requests"], *kinds, record["tracebacks"]]
    return markdown([*titles, "s to end, at most"], [[*(f"{number:,}" for number in row), f"{most:.1f}"]])


_OUTCOMES = ("answered", "refused", "unanswered", "broken")


def enduring(record: Record) -> str:
    """How long many clients wait who ask for long (eval/bench/endurance.py)."""
    rows = [
        [row["kind"], f"{row['requests']:,}", *(f"{row[key]:,.0f}" for key in ("p50_ms", "p99_ms", "longest_ms"))]
        for row in record["rows"]
        if not row["part"]
    ]
    return markdown(["asked for", "requests", "median ms", "99 % within ms", "longest ms"], rows)


def remembering(record: Record) -> str:
    """What the server's memory is meanwhile (eval/bench/endurance.py)."""
    parts = record["memory_mb"]
    head = ["clients", "s", "MB before", *(f"after {part}/{len(parts)}" for part in range(1, len(parts) + 1)), "at most"]
    numbers = [record["before"]["mb"], *parts, record["after"]["most_mb"]]
    row = [str(record["clients"]), f"{record['seconds']:.0f}", *(f"{number:.0f}" for number in numbers)]
    return markdown(head, [row])


def adding(record: Record) -> str:
    """How long searches wait while sentences are added (eval/bench/adding.py)."""
    rows = [
        [
            row["method"],
            row["meanwhile"],
            f"{row['calls']:,}",
            *(f"{row[key]:.1f}" for key in ("p50_ms", "p99_ms", "longest_ms")),
        ]
        for row in record["rows"]
        if row["call"] == "search"
    ]
    return markdown(["method", "meanwhile", "searches", "median ms", "99 % within ms", "longest ms"], rows)


def large_index(record: Record) -> str:
    """What questions to an index of ten million sentences take (eval/bench/large_index.py)."""
    rows = [
        [
            row["asked"],
            str(row["threads"]),
            *(f"{row[key]:.1f}" for key in ("median_ms", "least_ms", "cpu_ms")),
            f"{row['recall_at_10']:.2f}",
        ]
        for row in record["rows"]
    ]
    return markdown(["method", "threads", "median ms", "least ms", "ms of processor", "recall@10"], rows)


def pages(record: Record) -> str:
    """What a page of many pairs weighs and takes (eval/bench/report.py)."""
    rows = [
        [f"{row['pairs']:,}", f"{row['bytes'] / 1000:,.0f}", f"{row['made_processor_s']:.1f}", f"{row['shown_ms']:,.0f}"]
        for row in record["rows"]
    ]
    return markdown(["pairs", "kB", "s of processor to make", "ms to show"], rows)


CORPUS_PHASES = ("convert", "split", "count", "contexts", "epoch")


def corpora(record: Record) -> str:
    """How the phases of a corpus scale (eval/bench/corpus.py)."""
    rows = [
        [
            row["phase"],
            f"{row['millions']:g}",
            f"{row.get('words', 13):g}",
            f"{row['seconds']:.1f}",
            f"{row['pairs_per_second']:,}",
            f"{row['pairs_per_core_second']:,}",
            f"{row['peak_mib']:,}",
            f"{row['peak_anonymous_mib']:,}",
            f"{row['bytes'] / 1e6:,.0f}" if "bytes" in row else None,
        ]
        for row in sorted(record["rows"], key=lambda row: (CORPUS_PHASES.index(row["phase"]), row["millions"]))
    ]
    memory = ["peak MiB", "of it not mapped from files"]
    return markdown(
        [
            "phase",
            "million pairs",
            "words, half at most",
            "seconds",
            "pairs/s",
            "pairs/s a core",
            *memory,
            "MB on the disk",
        ],
        rows,
    )


def trade_off(record: Record) -> str:
    """Size against accuracy of the model in the package (eval/experiments/mini_tradeoff.py); vectors not turned."""
    metrics = ["wmt23 dev", "tatoeba test", "stsb-xling dev"]
    largest = max(row["units"] for row in record["rows"]), max(row["dims"] for row in record["rows"])
    rows = [
        [
            f"{row['units']:,}",
            str(row["dims"]),
            row["dtype"],
            f"{row['MB']:.1f}",
            f"{row['MB deflated']:.1f}",
            *(_percent(row[metric]) for metric in metrics),
        ]
        for row in record["rows"]
        if not row["turned"] and (row["dtype"] == "int8" or (row["units"], row["dims"]) == largest)
    ]
    return markdown(["pieces", "dimensions", "numbers", "MB", "MB in the wheel", *metrics], rows)


def shared(record: Record) -> str:
    """Size against accuracy where units share rows, beside fewer units and dimensions (mini_tradeoff.py), largest first."""
    rows = [
        [
            row["model"],
            f"{row['units']:,}",
            f"{row['dims']}{', turned' if row['turned'] else ''}",
            f"256 rows for {row['shared']} dimensions" if row["shared"] else "int8",
            f"{row['MB']:.1f}",
            f"{row['MB deflated']:.1f}",
            *(_percent(row[metric]) for metric in ("wmt23 dev", "wmt23 dev, margin")),
            _percent(row["wmt23 dev, margin"] - row["wmt23 dev"]),
            *(_percent(row[metric]) for metric in ("without bitext", "stsb-xling dev", "tatoeba test")),
        ]
        for row in sorted(record["rows"], key=lambda row: (row["model"] == "mini", -row["MB"]))
    ]
    sizes = ["model", "pieces", "dimensions", "numbers", "MB", "MB in a wheel"]
    figures = ["WMT23", "by margin", "cosine behind", "without bitext", "STS-B across", "Tatoeba test"]
    return markdown([*sizes, *figures], rows)


def agreement(record: Record) -> str:
    """How well three libraries agree on one folder (agreement.py)."""
    rows = [
        [row["model"], row["language"], row["library"], *(_percent(row[f"cosine >= {c}"], 2) for c in (".9999", ".999999"))]
        for row in record["rows"]
    ]
    return markdown(["model", "language", "library", "% of lines with cosine >= 0.9999", ">= 0.999999"], rows)


def _percent(value: float | None, digits: int = 1) -> str | None:
    return None if value is None else f"{100 * value:.{digits}f}"


# How a kind of units is called, and its rows: the model ("{}" for the language beside English), and the way it was opened.
_UNITS = {
    "sub-words": ("subwords", ""),
    "the pieces of a WordPiece teacher": ("teacher (WordPiece)", ""),
    "words, one pair (de, zh and ja each with en)": ("words, en-{}", ""),
    "words, four languages": ("words, four languages", ""),
    "words, no back-off, en-de": ("words, en-de, no back-off", ""),
    "words by fugashi (ja)": ("words, fugashi", ""),
    "words by jieba (zh)": ("words, jieba", ""),
    "words, the module of our own": ("words, en-{}", ", exact"),
}


def agreement_in_short(record: Record) -> str:
    """% of lines whose vectors in sentence-transformers agree with ours to a cosine of 0.999999 (agreement.py)."""
    found = {(row["model"], row["language"], row["library"]): row["cosine >= .999999"] for row in record["rows"]}
    rows = []
    for units, (model, way) in _UNITS.items():
        cells: list[str | None] = []
        for language in ("en", "de", "zh", "ja"):
            name = model.format("de" if language == "en" else language)
            share = found.get((name, language, f"sentence-transformers{way}"))
            cells.append(None if share is None else f"{100 * share:.2f}".removesuffix(".00"))
        rows.append([units, *cells])
    return markdown(["units", "en", "de", "zh", "ja"], rows)


def large(record: Record) -> str:
    """How mining by clusters grows with the lines (eval/bench/mine_large.py)."""
    rows = []
    others = {"faiss": ", faiss, few lists", "stopes": ", faiss as in stopes"}
    ours = {row["lines"]: row for row in record["rows"] if row["method"] not in others}
    for row in sorted(record["rows"], key=lambda row: (row["lines"], row["method"] in others, row["kills"])):
        what = f"{row['lines']:,}{others.get(row['method'], '')}"
        what += f", killed {['', 'once', 'twice'][row['kills']]}" if row["kills"] else ""
        sizes = [f"{row[key]:.2f}" for key in ("peak_gib", "peak_own_gib", "work_disk_gib")]
        times = [
            f"{row[key] / ours[row['lines']][key]:.1f}" if row["method"] in others else None
            for key in ("processor_seconds", "peak_gib")
        ]
        rows.append([what, f"{row['processor_seconds']:,.0f}", *sizes, *times, _percent(row["recall"])])
    sizes = ["resident, GiB", "of it not mapped from files", "work folder, GiB", "times xswe's seconds", "its memory"]
    return markdown(["lines a side", "processor seconds", *sizes, "% of the planted pairs"], rows)


def faults(record: Record, local: Record) -> str:
    """Count the runs that were broken on purpose (eval/experiments/faults.py, local_faults.py), and how they ended."""
    names = {"mine": "mine, clusters", "mine-exact": "mine, exact", "train-words": "train, words"}
    runs = [
        {
            **row,
            "verb": names.get(row["verb"], row["verb"]),
            "ended": row["same_bytes"],
            "at_work": row["hit_while_at_work"],
        }
        for row in record["runs"]
    ]
    runs += [{**row, "by": "local", "ended": not row["problems"], "at_work": row["hit"]} for row in local["runs"]]
    verbs = [*dict.fromkeys(row["verb"] for row in runs), None]
    rows = []
    for verb in verbs:
        own = [row for row in runs if verb in (None, row["verb"])]
        counts = [sum(row["by"] == by for row in own) for by in ("local", "array", "ray")]
        ends = [sum(row["at_work"] for row in own), sum(not row["ended"] for row in own)]
        rows.append([f"`{verb}`" if verb else "all", *(f"{count:,}" for count in (*counts, *ends))])
    ways = ["one process", "arrays of three tasks", "a Ray of two nodes"]
    return markdown(["", *ways, "hit while at work", "ended otherwise"], rows)


def empty_shards(record: Record) -> str:
    """Lay out what shards cost that hold nothing (eval/bench/shards.py)."""
    rows = []
    for here, there in zip(record["local"], record["ray"], strict=True):
        figures = [(row["processor_ms_a_shard"], row["resident_mib"]) for row in (here, there)]
        rows.append(
            [f"{here['shards']:,}", *(text for cost, memory in figures for text in (f"{cost:.1f}", f"{memory:,.0f}"))]
        )
    return markdown(["shards", "ms a shard, here", "MiB", "ms a shard, Ray", "MiB"], rows)


def sharded(record: Record) -> str:
    """Lay out what encoding by shards takes, times one stream's processor seconds (eval/bench/shards.py)."""
    rows = [
        [dtype, *(f"{found['processor_ratios'][how]:.2f}" for how in ("parts", "shards"))]
        for dtype, found in record["encode"].items()
    ]
    return markdown(["dtype", "a file a shard", "joined to one file"], rows)


# What a task of before_after.py is called.
_TASKS = {
    "encode": "encode 40,000 lines, warm",
    "step": "train, 400 steps of refinement",
    "exact": "mine 20,000 lines with as many, exact",
    "clusters": "the same by clusters",
    "phrases": "100 phrases in 20,000 passages",
    "conversion": "corpus, 20,000 pairs",
    "first.encode": "first use: encode 2,000 lines",
    "first.mine": "first use: mine 2,000 lines with as many",
    "first.score": "first use: mode=score, 2,000 pairs",
    "first.phrases": "first use: 100 phrases in 2,000 passages",
    "first.corpus": "first use: corpus, 2,000 pairs",
    "first.train": "first use: train pair=en-ja",
}


def versions(record: Record) -> str:
    """Seconds of v0.1 and of now, in turns on an idle machine (eval/bench/before_after.py)."""
    rows = []
    for task in (task for task in _TASKS if task in record):
        clock, processor = record[task]["clock"], record[task]["processor"]
        times = [f"{clock[which]:.2f}" for which in ("before", "after", "ratio")]
        rows.append([_TASKS[task], *times, f"{processor['ratio']:.2f}", str(record[task]["rounds"])])
    return markdown(["seconds", "v0.1", "now", "now / v0.1", "of the processor", "rounds"], rows)


def workers(record: Record) -> str:
    """What one worker of a Ray and two do, beside one process (eval/bench/shards.py); no clock of a busy machine."""
    rows = []
    for verb, row in record["workers"].items():
        runs = [row["runs"][way] for way in ("here", "1", "2")]
        processor = [f"{run['processor_seconds']:,.1f}" for run in runs]
        idle = max(run["load"] for run in runs) <= row["cores"]
        clock = [f"{run['work_seconds']:,.1f}" for run in runs[1:]] + [f"{row['speedup']:.2f}"] if idle else ["–"] * 3
        busier = f"{runs[2]['busiest_worker_seconds']:,.1f}" if "busiest_worker_seconds" in runs[2] else "–"
        rows.append([verb, f"{row['lines']:,}", f"{runs[1]['shards']:,}", *processor, busier, *clock])
    processor = ["processor seconds, one process", "one worker", "two workers", "the busier of two"]
    return markdown(["", "lines", "shards", *processor, "seconds of the shards, one worker", "two", "times as fast"], rows)


def commands(record: Record) -> str:
    """Lay out what whole commands take on two workers of a cluster, beside two threads."""
    rows = []
    for verb, row in [*record["commands"].items(), *record["commands with little to do"].items()]:
        here, there = row["seconds"]["here"], row["seconds"]["2"]
        digits = 0 if here > 10 else 1
        rows.append([verb, f"{row['lines']:,}", f"{here:.{digits}f}", f"{there:.{digits}f}", f"{there / here:.2f}"])
    return markdown(["", "lines", "two threads, s", "two workers, s", "times as long"], rows)


# What large jobs cost on machines of a given size, computed from what was measured on a small one. Nothing of this was run:
# it is arithmetic, and all numbers that were not measured here stand below under their names.
SENTENCE_BYTES = 120  # of 20 words
DISK = 2e9  # bytes a second that a node reads or writes, of one file system that all share
CORES = 16  # of a node
CARD = {"name": "H200", "bf16": 990e12, "float32": 67e12, "share": 0.3}  # peaks of its data sheet, and how much is reached
MGTE = {"parameters": 113e6, "tokens": 30}  # of mGTE-base beside its embeddings, and a sentence's; 768 dimensions
DIM, K = 256, 6  # of the vectors, and the length of lists: 4, and 2 that calibration strikes


def jobs(encode: Record, mine: Record) -> list[dict[str, Any]]:
    """Return every job: hours of a thread or card, and of a node's disk; the larger one on one node is what binds."""
    rates = [row["rates"]["xswe sub-words"] for row in encode["rows"] if row["words"] == 20 and row["threads"] == 1]
    pairs = 1e10 / mine["threads"] / mine["100000"]["xswe exact"]["seconds"]  # of the exact search, a thread and second
    # Mining by clusters takes n sqrt(n) from 10^6 lines on.
    clusters = mine["threads"] * mine["1000000"]["xswe clusters"]["seconds"] * 1000
    partial = 256 * 0.4e9  # bytes of the sums that shards leave at most: 128,000 units of 768 numbers each
    flops = 2 * MGTE["parameters"] * MGTE["tokens"] * 1e8
    exact = 1e16 * 2 * DIM
    encoded = 1e10 / harmonic_mean(rates)
    read = 1e10 * SENTENCE_BYTES
    lists = 2 * 1e8 * K * 8
    probes = 8
    return [
        job("encode 10^10 sentences, float32", encoded, 0, read + 1e10 * DIM * 4 * 3),  # joined: once more read and written
        job("the same, int8 in `vectors/*.npy`", encoded, 0, read + 1e10 * (DIM + 4)),
        job(
            "extract 10^8 sentences, mGTE-base",
            0,
            flops / CARD["bf16"] / CARD["share"],
            1e8 * SENTENCE_BYTES + 2 * partial,
        ),
        job("mine 10^8 x 10^8, clusters, int8", clusters, 0, 2 * 1e8 * DIM * (2 + probes) + 4 * probes * lists),
        job(
            "mine 10^9 x 10^9, clusters, int8",
            clusters * 10**1.5,
            0,
            2 * 1e9 * DIM * (2 + probes) + 40 * probes * lists,
        ),
        job("mine 10^8 x 10^8, exact", 1e16 / pairs, 0, 64 * 2 * 1e8 * DIM * 4),
        job("mine the same on cards, full float32", 0, exact / CARD["float32"] / CARD["share"], 64 * 2 * 1e8 * DIM * 4),
    ]


def job(name: str, threads: float, cards: float, moved: float) -> dict[str, Any]:
    """Return one job; seconds in, hours out."""
    disk = moved / DISK
    alone = threads / CORES or cards
    work = "the teacher" if "extract" in name else "the product" if "mine" in name else "encoding"
    return {
        "job": name,
        "thread_hours": threads / 3600,
        "card_hours": cards / 3600,
        "terabytes": moved / 1e12,
        "node_hours": max(alone, disk) / 3600,
        "binds": "storage" if disk > alone else work,
    }


def in_short(*records: Record) -> str:
    """What each part does on two cores, and how many times as fast it is as what it stands beside in the same run."""
    encode, train, trainer, mine, phrases, corpus, teacher = records
    rows: list[list[Any]] = []

    def span(values: list[float], digits: int = 1) -> str:
        return " to ".join(f"{value:,.{digits}f}" for value in (min(values), max(values)))

    def times(languages: str, kind: str = "") -> str:
        found = (row for row in encode["rows"] if row["language"] in languages.split())
        return span([row["rates"]["xswe sub-words"] / fastest_peer(row, kind) for row in found])

    whole = "the fastest of Model2Vec, sentence-transformers, WordLlama"
    for name, language in (("English", "en"), ("German", "de"), ("Chinese", "zh"), ("Japanese", "ja")):
        row = one(encode["rows"], language=language, words=20, threads=1)
        rate = f"{row['rates']['xswe sub-words']:,.0f} a second"
        rows.append([f"encode {name} sentences of 20 words, one thread", rate, whole, times(language)])
    rows.append(
        ["the same, English and German", None, "the fastest of them with the same sub-words", times("en de", " sub-words")]
    )
    for title, code in (("fugashi", "ja"), ("jieba", "zh")):
        rows.append(
            [f"words cut by {title}", None, "the bare library", f"{1 / encode['segmentation'][f'{code}: ours / bare']:.1f}"]
        )
    found = train["batch 128, 2 threads"]
    steps = found["xswe lazy Adam"]["steps_per_second"]
    for name in ("torch dense Adam, fused", "torch SparseAdam"):
        ratio = f"{steps / found[name]['steps_per_second']:.0f}"
        rows.append(["a step of 128 pairs, 180,000 x 256", f"{1000 / steps:.1f} ms", name, ratio])
    for size in (128, 2048):
        ratio = f"{trainer[f'batch {size}']['median']['times']:.0f}"
        rows.append([f"train to the same loss, batches of {size:,}", None, "sentence-transformers' trainer", ratio])
    exact, clusters = (mine["100000"][f"xswe {how}"] for how in ("exact", "clusters"))
    ratio = mine["100000"]["faiss flat + loop"]["seconds"] / exact["seconds"]
    rows.append(
        [
            "mine 100,000 x 100,000 lines exactly",
            f"{exact['seconds']:.0f} s",
            "faiss' flat index, LASER's margin loop",
            f"{ratio:.1f}",
        ]
    )
    kept = f"{100 * clusters['of_exact_pairs']:.0f} % of the same pairs"
    rows.append(
        [
            "the same by clusters",
            f"{clusters['seconds']:.0f} s, {kept}",
            "exact",
            f"{exact['seconds'] / clusters['seconds']:.1f}",
        ]
    )
    large = mine["1000000"]["xswe clusters"]
    rows.append(
        [
            "a million lines x a million, clusters",
            f"{large['seconds'] / 60:.1f} minutes, {large['peak_gib']:.1f} GiB",
            None,
            None,
        ]
    )
    for queries in (1, 100, 10_000):
        row = one(phrases["side by side"], what="xswe", queries=queries)
        rate = f"{row['passages_per_second']:,.0f} passages a second"
        rows.append(
            [
                f"find {queries:,} {'phrase' if queries == 1 else 'phrases'} in passages of {phrases['words']:.0f} words",
                rate,
                "MiniLM's single pass",
                f"{row['times']:,.0f}",
            ]
        )
    converted = [row for row in corpus["rows"] if row["phase"] == "convert" and row.get("words", 13) == 13]
    memory = max(row["peak_mib"] for row in corpus["rows"]) / 1024
    rate = f"{span([row['pairs_per_second'] for row in converted], 0)} pairs a second"
    rows.append(["read, clean and convert a zip of pairs", f"{rate}, {memory:.1f} GiB at most", None, None])
    rows.append(["extract from an encoder of mGTE's size", None, "its bare forward pass", f"{teacher['ratio']:.2f}"])
    return markdown(["what", "figure", "beside", "times as fast"], rows)


def costs(encode: Record, mine: Record) -> str:
    """What large jobs would cost."""
    head = ["job", "thread hours", f"{CARD['name']} hours", "TB read and written", "one node, hours", "what binds"]
    body = [
        [
            row["job"],
            *(f"{row[name]:,.1f}" if row[name] else "–" for name in ("thread_hours", "card_hours", "terabytes")),
            f"{row['node_hours']:,.1f}",
            row["binds"],
        ]
        for row in jobs(encode, mine)
    ]
    return markdown(head, body)


# A table, the files that it is made of, and who makes it of them.
SPEED: dict[str, tuple[str, Callable[..., str]]] = {
    "costs": ("bench_encode.json bench_mine.json", costs),
    "speed.in_short": (
        "bench_encode.json bench_train.json bench_trainer.json bench_mine.json bench_phrases.json corpus.json teacher.json",
        in_short,
    ),
    "speed.training": ("bench_train.json", training),
    "speed.trainer": ("bench_trainer.json", trainer),
    "speed.mining": ("bench_mine.json", mining),
    "mining": ("mining_quality.json", quality),
    "dedup": ("near_duplicates.json", near_duplicates),
    "mining.sparse": ("sparse_mining.json", sparse),
    "mining.sparse.in_short": ("sparse_mining.json", sparse_in_short),
    "mining.in_short": ("mining_quality.json", planted_in_short),
    "filter": ("filter_quality.json", noise),
    "filter.mixtures": ("filter_mixtures.json", mixtures),
    "filter.kinds": ("filter_mixtures.json", mixtures_by_kind),
    "speed.versions": ("versions.json", versions),
    "speed.workers": ("shards.json", workers),
    "speed.commands": ("shards.json", commands),
    "speed.large": ("mine_large.json", large),
    "speed.shards": ("shards.json", sharded),
    "speed.shards.empty": ("shards.json", empty_shards),
    "faults": ("faults.json local_faults.json", faults),
    "speed.filter": ("filter_speed.json", filtering),
    "speed.filter.learned": ("filter_speed.json", filtering_learned),
    "speed.search": ("search.json", searching),
    "speed.approximate": ("approximate.json", approximate_in_short),
    "speed.approximate.all": ("approximate.json", approximate),
    "speed.serve": ("serve.json", serving),
    "speed.questions": ("serve.json", asking),
    "speed.restarts": ("restarts.json", restarting),
    "speed.adding": ("adding.json", adding),
    "speed.large_index": ("large_index.json", large_index),
    "speed.endurance": ("endurance.json", enduring),
    "speed.endurance.memory": ("endurance.json", remembering),
    "speed.pages": ("report.json", pages),
    "speed.corpora": ("corpus.json", corpora),
    "trade-off": ("mini_tradeoff.json", trade_off),
    "shared": ("shared.json", shared),
    "agreement": ("agreement.json", agreement),
    "agreement.in_short": ("agreement.json", agreement_in_short),
}
