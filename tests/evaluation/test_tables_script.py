"""eval/report/tables.py: what stands in README.md and eval/results comes from JSON, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.conftest import eval_script

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "eval" / "report" / "published.yaml"
pytestmark = pytest.mark.skipif(not PUBLISHED.is_file(), reason="eval/ is not in this installation")


@pytest.fixture(scope="module")
def tables():
    return eval_script("report.tables")


def row(task, subset, metric, value):
    return {"task": task, "subset": subset, "metric": metric, "value": value, "n": 1000}


@pytest.fixture
def checkout(tmp_path):
    results = tmp_path / "eval" / "results"
    (results / "main").mkdir(parents=True)
    (tmp_path / "eval" / "report").mkdir()
    (tmp_path / "eval" / "report" / "published.yaml").write_bytes(PUBLISHED.read_bytes())
    for pair, figures in {"en-ja": (0.5, 0.9), "en-de": (0.61, 0.97)}.items():
        rows = {
            step: [row("tatoeba", pair, "f1", value), row("tatoeba", pair, "accuracy", 1.0)]
            for step, value in zip(("pca-with-abtt", "refinement"), figures, strict=True)
        }
        rows["refinement"].append(row("file", f"stsb-xling.{pair}.tsv", "spearman", 0.7004))
        record = {"pair": pair, "teacher": "mini", "pairs": 0, "dims": {"refinement": 256}, "rows": rows}
        (results / "main" / f"{pair}-mini-all.json").write_text(json.dumps(record))
    few = {"pair": "en-ja", "teacher": "none", "pairs": 10000, "rows": {"refinement": [row("tatoeba", "en-ja", "f1", 0.2)]}}
    (results / "main" / "en-ja-none-10000.json").write_text(json.dumps(few))
    skipped = [row("tatoeba", "en-ja", "skipped", None), row("file", "stsb-xling.en-ja.tsv", "spearman", 0.7)]
    others = [{"model": "Other|one", **r} for r in skipped]
    (results / "baselines.json").write_text(json.dumps({"models": [{"name": "Other|one", "dim": 64}], "rows": others}))
    (tmp_path / "README.md").write_text("# A\n\n<!-- table:main -->\nold\n<!-- end -->\n\nafter\n", encoding="utf-8")
    return tmp_path


STATIC = "static-similarity-mrl-multilingual-v1 (static) †"
MTEB = "mteb's results repository, f4cc6c8b3 (2026-08-20)"
GOLDEN = f"""# A

<!-- table:main -->
| model († Tatoeba is in its training data) | dims | figures | Tatoeba en-de | Tatoeba en-ja | STS-B en-de | STS-B en-ja |
| --- | ---: | --- | ---: | ---: | ---: | ---: |
| + sentence PCA with ABTT (mini) † | - | measured here | 61.0 | 50.0 | - | - |
| + refinement (mini) † | 256 | measured here | **97.0** | **90.0** | **70.0** | **70.0** |
| Other\\|one | 64 | measured here | - | - | - | **70.0** |
| mGTE-base, the teacher | 768 | published: Wada et al., EMNLP 2025, Table 4 | 97.8 | 93.1 | - | - |
| MUSE | 300 | published: Wada et al., EMNLP 2025, Table 4 | 44.3 | - | - | - |
| Model2Vec M2V_multilingual_output | 256 | published: Wada et al., EMNLP 2025, Table 4 | 73.5 | 15.3 | - | - |
| SWE of the paper | 256 | published: Wada et al., EMNLP 2025, Table 4 | 95.1 | 79.0 | - | - |
| {STATIC} | 1024 | published: {MTEB} | 95.4 | 87.0 | - | - |
| potion-multilingual-128M (static) | 256 | published: {MTEB} | 64.1 | 48.5 | - | - |
| multilingual-e5-small | 384 | published: {MTEB} | 97.4 | 84.4 | - | - |
| LaBSE | 768 | published: {MTEB} | 99.2 | 95.4 | - | - |
<!-- end -->

after
"""


def test_golden_table(tables, checkout):
    def status(check):
        with pytest.raises(SystemExit) as end:
            tables.main(tables.DEFAULTS | {"root": str(checkout), "check": check})
        return end.value.code

    assert status(1) == 1
    assert "old" in (checkout / "README.md").read_text()
    assert status(0) == 0
    assert (checkout / "README.md").read_text(encoding="utf-8") == GOLDEN
    assert status(1) == 0


def test_a_table_without_figures_is_left_alone(tables, tmp_path):
    text = "<!-- table:ablation.drop -->\nold\n<!-- end -->\n"
    filled, remarks = tables.fill(text, tmp_path, {})
    assert filled == text
    assert "ablation/drop.json" in remarks[0]


def test_rivals_stand_in_columns_of_their_own_each_once(tables, checkout):
    published = yaml.safe_load(PUBLISHED.read_text(encoding="utf-8"))
    rows = tables.load(checkout / "eval" / "results", tables.TABLES["rivals"].sources)
    header, _, *lines = (
        [part.strip() for part in line.strip("|").split("|")]
        for line in tables.render(tables.TABLES["rivals"], rows, published).splitlines()
    )
    found = {line[0]: dict(zip(header, line, strict=True)) for line in lines}
    assert len(found) == len(lines)
    assert found["+ refinement (mini) †"]["Tatoeba en-ja"] == "**90.0**"
    assert found["+ refinement (mini) †"]["NTREX en-ja"] == "-"
    assert [name for name in found if name.endswith("†")] == ["+ refinement (mini) †", STATIC]
    labse = {"dims": "768", "BUCC en-de": "-", "BUCC.v2 en-zh": "99.2", "NTREX zh-ja": "97.5", "STS17 en-de": "73.9"}
    assert labse.items() <= found["LaBSE"].items()
    assert found["mGTE-base, the teacher"]["NTREX en-de"] == "99.1"


def test_models_are_marked_by_their_cards(tables):
    data = eval_script("report.training_data")
    for folder in ("xswe/pretrained/mini", "models/base", "xswe/teacher/mini"):
        assert {"Tatoeba", "Tanaka corpus"} <= data.of_card(folder) == data.of_pair("en-de-zh-ja"), folder
    assert data.of_pair("en-de") == {
        *(
            "Tatoeba",
            "WMT news test sets 2008-2018",
            "sample of Europarl, Common Crawl and news",
            "Microsoft's documentation",
        )
    }
    assert "Tatoeba" in data.trained_on({"pair": "en-ja", "teacher": "none"}, "refinement")
    assert "Tatoeba" in data.trained_on({"teacher": "mini", "pair": "en-ja"}, "teacher")
    assert not data.trained_on({"teacher": "e5-small", "pair": "en-ja"}, "teacher")
    assert not data.trained_on({"model": "LaBSE"})


def test_every_model_of_ours_with_a_figure_on_tatoeba_is_marked(tables):
    """In README and on all pages, but for encoders whose training texts nobody told."""
    rows = 0
    for file in [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), ROOT / "eval" / "results" / "tables.md"]:
        for place in tables._PLACE.finditer(file.read_text(encoding="utf-8")):
            header, _, *lines = place[0].splitlines()[1:-1]
            if "tatoeba" not in header.lower():
                continue
            for line in lines:
                ours = "| published: " not in line and "the teacher (e5-small)" not in line
                assert not ours or " † |" in line or "is in the training data of all" in header, f"{file}: {line}"
                rows += ours
    assert rows > 30


def test_an_unknown_table_is_an_error(tables, tmp_path):
    with pytest.raises(KeyError, match="table:mian is not declared"):
        tables.fill("<!-- table:mian -->\n<!-- end -->", tmp_path, {})


def test_sizes_are_in_order(tables, checkout):
    rows = tables.load(checkout / "eval" / "results", ("main",))
    lines = tables.render(tables.TABLES["sizes"], rows, {}).splitlines()[2:]
    assert [line.split(" | ")[0] for line in lines] == ["| 10,000", "| all"]


def test_ablations_show_every_main_figure(tables):
    rows = [
        {"variant": k, "step": "refinement", **row("held-out", "en-ja", m, k / 10)} for k in (1, 2) for m in ("f1", "mrr")
    ]
    found = tables.render(tables.TABLES["ablation.drop"], rows, {})
    assert found.splitlines()[0] == "| components removed | after | held-out en-ja |"
    assert found.splitlines()[2:] == ["| 1 | refinement | 10.0 |", "| 2 | refinement | **20.0** |"]


MINED = {"seconds": 2.0, "min": 1.9, "max": 2.1, "peak_gib": 0.25, "peak_anonymous_gib": 0.1}
MINED |= {"translations_found": 0.8}
STEP = {"steps_per_second": 500.0, "min": 450.0, "max": 510.0, "times_dense": 50.04}
PHASE = {
    "seconds": 2.0,
    "pairs_per_second": 10**6,
    "pairs_per_core_second": 600_000,
    "peak_mib": 1200,
    "peak_anonymous_mib": 80,
}
CUT = {"dtype": "int8", "turned": False, "MB": 3.0, "MB deflated": 2.0, "wmt23 dev": 0.9, "tatoeba test": 0.8}
SEARCHED = {"passages": 2000, "spans_per_second": 3e9, "scored": 0.125, "queries": 100}
HIDDEN = [{"model": "xswe", "method": "single pass", "subset": "de", "metric": "spearman", "value": 0.5, "n": 9}]
HIDDEN += [{**HIDDEN[0], "subset": "en", "metric": m, "value": v} for m, v in (("pearson", 0.61), ("spearman", 0.6))]
HIDDEN += [{**HIDDEN[0], "metric": "found", "value": 0.25}]
VARIED = {"refine_seconds": 60.4, "changes": [], "figures": {"tatoeba | en-de": 0.9, "tatoeba": 0.8}}
FAMILY = {"settings": [], "rows": {"base": {**VARIED, "figures at 64": {"tatoeba": 0.7}}, "margin 0": VARIED}}
TOLD = {"model": "m", "language": "en", "numbers": 1.0, "names": 0.5, "negation": 0.25, "roles": 0.0, "neighbours": 1.0}
PROBED = {"rows": [{**TOLD, "all": 0.55, "question": "translation"}, {**TOLD, "all": 0.1, "question": "strict"}]}
RUN = {"seconds": 61.0, "figures": {"wmt23": 0.967, "wmt23 margin": 0.98}}
OTHER = {"seconds": 63.0, "figures": {"wmt23": 0.969, "wmt23 margin": 0.98}}
SHAPED = {"rows": {"as it ships": {"seeds": {"0": RUN}}, "refined again": {"seeds": {"0": RUN, "1": OTHER}}}}
SPEEDS = {
    "static": (
        SHAPED,
        [
            "| as it ships | 96.7 | 98.0 | 1 | 61.0 |",
            "| refined again | 96.8 ± 0.14 | 98.0 ± 0.00 | 2 | 62.0 |",
        ],
    ),
    "probe.translation": (PROBED, ["| m | en | 100 | 50 | 25 | 0 | 100 | 55 |"]),
    "probe.strict": (PROBED, ["| m | en | 100 | 50 | 25 | 0 | 100 | 10 |"]),
    "levers": (FAMILY, ["| base | 80.0 | 60 |", "|   cut to 64 dimensions | 70.0 |", "| margin 0 | 80.0 | 60 |"]),
    "family": (FAMILY, ["| base | 80.0 | 60 |"]),
    "family.pairs": (FAMILY, ["| base | 90.0 |", "| margin 0 | 90.0 |"]),
    "phrases": (
        {"rows": HIDDEN},
        [
            "| xswe | single pass | measured here | 61.0 | 60.0 | - | - | 9 |",
            "| BM25 | full context | published, on STS-B-Context | 34.2 | 39.5 | - | - | - |",
        ],
    ),
    "phrases.languages": ({"rows": HIDDEN}, ["| xswe | single pass | 50.0 / 25 | 60.0 |"]),
    "speed.phrases": (
        {
            "side by side": [
                {"what": "xswe", "passages_per_second": 5000.0, "times": 1250.4, **SEARCHED},
                {"what": "encoder", "passages_per_second": 4.0, **SEARCHED},
            ]
        },
        ["| 100 | xswe | 2,000 | 5,000.0 | 3,000,000,000 | 12.5 | 1,250 |", "| 100 | encoder |"],
    ),
    "speed.mining": (
        {"k": 4, "1000": {"xswe exact": {**MINED, "of_ceiling": 0.9}, "faiss flat + loop": {**MINED, "seconds": 5.0}}},
        ["| 1,000 | xswe exact | 2.00 | 0.25 | 0.10 | 2.50 | 90.0 | - | 80.0 |"],
    ),
    "speed.training": (
        {"units": 5, "batch 128, 2 threads": {"xswe lazy Adam": STEP}},
        ["| batch 128, 2 threads | xswe lazy Adam | 500.0 | 450.0 to 510.0 | 50.0 |"],
    ),
    "speed.corpora": (
        {"rows": [{"phase": p, "millions": m, "bytes": 2e9, **PHASE} for m in (2.0, 5.0) for p in ("convert", "count")]},
        ["| convert | 2 | 13 | 2.0 | 1,000,000 | 600,000 | 1,200 | 80 | 2,000 |", "| convert | 5 |", "| count | 2 |"],
    ),
    "trade-off": (
        {"rows": [{"units": 9, "dims": d, "stsb-xling dev": d / 100, **CUT} for d in (64, 7)]},
        ["| 9 | 64 | int8 | 3.0 | 2.0 | 90.0 | 80.0 | 64.0 |", "| 9 | 7 |"],
    ),
}


@pytest.mark.parametrize("name", SPEEDS)
def test_tables_of_speed_come_from_their_files(tables, tmp_path, name):
    record, lines = SPEEDS[name]
    (tmp_path / tables.LAID_OUT[name][0]).write_text(json.dumps(record))
    filled, remarks = tables.fill(f"<!-- table:{name} -->\nold\n<!-- end -->\n", tmp_path, {})
    assert not remarks
    for line, wanted in zip(filled.splitlines()[3:], lines, strict=False):
        assert line.startswith(wanted)
    assert filled.endswith("|\n<!-- end -->\n")


def test_every_marked_place_of_the_checkout_is_declared(tables):
    files = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("eval/results/**/*.md")]
    named = {match["name"] for file in files for match in tables._PLACE.finditer(file.read_text(encoding="utf-8"))}
    assert "main" in named
    assert named <= {*tables.TABLES, *tables.LAID_OUT}
    assert set(tables.LAID_OUT) <= named


def test_published_figures_are_well_formed():
    published = yaml.safe_load(PUBLISHED.read_text(encoding="utf-8"))
    assert set(published["sources"]) == set(published) - {"sources"}
    for section in ("retrieval", "rivals", "xling_sts", "sts_en", "mteb_en"):
        for entry in published[section]:
            figures = [value for found in entry.values() if isinstance(found, dict) for value in found.values()]
            assert figures
            assert all(0 <= value <= 100 for value in figures)
    swe = published["sts_en"][-1]
    assert (swe["model"], swe["sts12"], swe["biosses"]) == ("SWE of the paper", {"en": 68.3}, {"en": 80.3})
