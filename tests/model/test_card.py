"""The model card: golden text, and the licence that follows from the sources'."""

from __future__ import annotations

import os
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import yaml
from tokenizers import Tokenizer, models

import xswe
from xswe.corpus.cards import cards
from xswe.io.sources import PACKED
from xswe.model.bigrams import Bigrams
from xswe.model.card import card, write_card
from xswe.model.licences import Source, derive, sources_of
from xswe.model.static import StaticModel
from xswe.text.subwords import SubwordUnits
from xswe.text.words import WordSplitter, WordUnits

GOLDEN = Path(__file__).parent / "golden_card.md"


@pytest.fixture
def model():
    tokenizer = Tokenizer(models.Unigram([("<unk>", -9.0), ("cat", -1.0), ("猫", -1.0)], unk_id=0))
    return StaticModel(SubwordUnits(tokenizer, "subwords", ("en", "ja")), np.eye(3, 4, dtype=np.float32))


@pytest.fixture
def known():
    return {
        "name": "xswe-en-ja",
        "settings": {
            "pair": {"name": "en-ja", "languages": ["en", "ja"]},
            "teacher": {"model": "alibaba-nlp-community/gte-multilingual-base", "revision": None},
            "corpus": {"paths": ["a.tsv"]},
            "refine": {"steps": 2500, "rate": 0.002},
        },
        "rows": [
            {"task": "held-out", "subset": "en-ja", "metric": "accuracy", "value": 0.912, "n": 1000, "note": "refinement"},
            {"task": "held-out", "subset": "en-ja", "metric": "margin_accuracy", "value": 0.934, "n": 1000, "note": None},
            {"task": "sts", "subset": "en-ja", "metric": "spearman", "value": 0.6852, "n": 1500, "revision": "abc"},
            {"task": "bucc", "subset": "en-ja", "metric": "f1", "value": None, "n": 0, "note": "no such pair"},
        ],
        "sources": [
            Source("Tatoeba", "CC BY 2.0 FR", 54033, by="tatoeba.org"),
            Source("Kyoto", "CC BY-SA 3.0"),
            Source("docs", "MIT"),
        ],
        "versions": {"python": "3.11.9", "xswe": "0.1.0"},
    }


def test_golden(model, known):
    text = card(model, **known)
    if os.environ.get("XSWE_UPDATE_GOLDEN"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_front_matter_is_what_the_hub_reads(model, known):
    huggingface_hub = pytest.importorskip("huggingface_hub")
    data = huggingface_hub.ModelCard(card(model, **known)).data
    assert data.language == ["en", "ja"]
    assert (data.license, data.library_name) == ("cc-by-sa-4.0", "xswe")
    assert data.base_model == "alibaba-nlp-community/gte-multilingual-base"
    values = {(r.dataset_type, r.metric_type): r.metric_value for r in data.eval_results}
    assert values == {("held-out", "accuracy"): 91.2, ("sts", "spearmanr"): 68.52}


def test_a_card_without_anything_known(model):
    text = card(model, name="mine", settings={})
    front = yaml.safe_load(text.split("---")[1])
    assert front["license"] == "other"
    assert "metrics" not in front
    assert "## Figures" not in text
    assert "not recorded" in text


def test_a_card_says_where_units_share_rows(model):
    text = card(model.share_rows(2), name="small", settings={})
    assert "256 rows for each 2 dimensions" in text
    assert "Other libraries do not open the folder" in text
    assert "The folder also opens" not in text


def test_word_models_say_that_other_libraries_come_close():
    units = WordUnits(["cat"], WordSplitter(("en",), {}, None), None)
    text = card(StaticModel(units, np.ones((1, 2), np.float32)), name="w", settings={})
    assert "st_module" in text
    assert "Other languages" not in text


def test_a_folder_with_a_card_opens_everywhere(model, known, tmp_path):
    model.save(tmp_path / "m")
    write_card(tmp_path / "m", card(model, **known))
    assert xswe.load(tmp_path / "m").dim == 4
    model2vec = pytest.importorskip("model2vec")
    opened = model2vec.StaticModel.from_pretrained(str(tmp_path / "m"))
    assert (opened.language, opened.base_model_name) == (["en", "ja"], "alibaba-nlp-community/gte-multilingual-base")


@pytest.mark.parametrize(
    ("licences", "expected"),
    [
        (["CC0-1.0"], "cc0-1.0"),
        (["CC0-1.0", "MIT"], "mit"),
        (["MIT collection", "Apache-2.0 collection"], "apache-2.0"),
        (["CC BY 2.0 FR", "MIT"], "cc-by-4.0"),
        (["CC BY 4.0", "CC BY-SA 3.0", "MIT"], "cc-by-sa-4.0"),
        (["CC-BY-SA-4.0"], "cc-by-sa-4.0"),
        (["CC BY(-SA)"], "cc-by-sa-4.0"),
        (["CC BY-NC 4.0", "MIT"], "other"),
        (["cc-by-nd-4.0"], "other"),
        (["research use"], "other"),
        (["GPL-3.0"], "other"),
        (["none of its own; the texts stay under the terms of the web pages"], "other"),
        (["MIT", None], "other"),
        (["CC BY 4.0", "NTT's terms of use for JParaCrawl"], "other"),
        ([], "other"),
    ],
)
def test_the_most_demanding_licence_decides(licences, expected):
    found, why = derive([Source(f"s{k}", licence) for k, licence in enumerate(licences)])
    assert found == expected
    assert why.endswith(".")


def test_sources_of_a_run():
    assert sources_of({"paths": "sample"}, {}) == [
        Source("the sample corpus of xswe", "CC0-1.0", by="the xswe maintainers")
    ]
    report = {
        "en-ja": {"checksums": {"kyoto-wiki.tsv.gz": "1", "/data/mine.tsv": "2", "/data/own.en": "4"}},
        "en-zh": {"checksums": {"tatoeba.tsv": "3"}},
    }
    found = {source.name: source.licence for source in sources_of({"paths": ["x"]}, report)}
    assert found["Japanese-English Bilingual Corpus of Wikipedia's Kyoto Articles"] == "CC BY-SA 3.0"
    assert found["mine"] is None
    assert found["own.en"] is None
    assert found["Tatoeba"] == "CC BY 2.0 FR"


@pytest.mark.parametrize(
    ("file", "known"),
    [
        ("tatoeba.tsv.gz", True),
        ("Tatoeba.en-de.tsv", True),
        ("tatoeba-v2023-04-12_de_en_10k.tsv", True),
        ("my-tatoeba-like-scraped.tsv", False),
        ("localised-ui.tsv", False),
        ("local.tsv", False),
        ("tatoebae.tsv", False),
        ("tatoeba-ccmatrix.tsv", False),
    ],
)
def test_a_licence_is_known_of_files_that_bear_the_corpus_name_and_no_other(file, known):
    (source,) = sources_of({"paths": ["x"]}, {"de-en": {"checksums": {file: "1"}}})
    assert (source.licence == "CC BY 2.0 FR") is known
    assert known or source.licence is None


def named(file, pair="en-ja", paths=("x",)):
    """The names of the sources of a run on a file."""
    return [source.name for source in sources_of({"paths": list(paths)}, {pair: {"checksums": {str(file): "1"}}})]


# These say nothing of their corpus on their own: OPUS names all its archives alike.
SHARED = {"txt.zip", "tar.gz", "txt.xz"}


def test_every_file_name_that_a_card_gives_is_known():
    """As it is given, and packed in one of the ways in turn."""
    seen = 0
    for name, one in cards().items():
        for release in one.versions:
            for languages in [pair.split("-") for pair in release.pairs] or [[code] for code in release.languages]:
                names = release.names(languages)
                for pattern in (*release.files, *release.urls, *release.members.values()):
                    file = pattern.format(**names).rpartition("/")[2]
                    if "*" in file or file.partition(".")[2] in SHARED:
                        continue
                    bare = file.removesuffix(".gz").removesuffix(".zip").removesuffix(".tar")
                    packing = ["", *PACKED][seen % (len(PACKED) + 1)]
                    assert named(f"/data/{bare}{packing}", "-".join(languages)) == [name], file
                    assert named(f"/data/{file}", "-".join(languages)) == [name], file
                    seen += 1
    assert seen > 20


@pytest.mark.parametrize("packing", ["", *PACKED])
@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("en-ja.bicleaner05.txt", "jparacrawl"),
        ("ja-en.bicleaner05.txt", "jparacrawl"),
        ("de-en.bicleaner05.txt", "de-en.bicleaner05"),  # another project's
        ("CCMatrix.en-ja.ja", "ccmatrix"),
        ("CCMatrix.v1.de-en.tsv", "ccmatrix"),
        ("en-zh.bitextf.tsv", "ccmatrix"),
        ("NLLB.en-ja.en", "nllb"),
        ("Tatoeba.cmn-en.cmn", "tatoeba"),
        ("Tatoeba.deu-eng.deu", "tatoeba"),
        ("WikiMatrix.en-zh.tsv", "wikimatrix"),
        ("WikiMatrix-like.en-zh.tsv", "WikiMatrix-like.en-zh"),
    ],
)
def test_files_that_were_unpacked_or_renamed_by_their_source(file, name, packing):
    assert named(file + packing) == [name]


def test_an_archive_is_known_by_its_members(tmp_path):
    for folder, member in (("a", "NLLB.en-ja"), ("b", "CCMatrix.en-ja"), ("c", "Other.en-ja")):
        (tmp_path / folder).mkdir()
        with zipfile.ZipFile(tmp_path / folder / "en-ja.txt.zip", "w") as archive:
            for ending in ("en", "ja", "scores"):
                archive.writestr(f"{member}.{ending}", "x\n")
            archive.writestr("README", "about\n")
    (tmp_path / "en-ja.bicleaner05.txt").write_text("x\n")
    with tarfile.open(tmp_path / "en-ja.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "en-ja.bicleaner05.txt", "en-ja/en-ja.bicleaner05.txt")
    assert named(tmp_path / "a" / "en-ja.txt.zip") == ["nllb"]
    assert named(tmp_path / "b" / "en-ja.txt.zip") == ["ccmatrix"]
    assert named(tmp_path / "c" / "en-ja.txt.zip") == ["en-ja"]
    assert named(tmp_path / "en-ja.tar.gz") == ["jparacrawl"]
    (tmp_path / "c" / "en-ja.txt.zip").write_bytes(b"damaged since")
    assert named(tmp_path / "c" / "en-ja.txt.zip") == ["en-ja"]


def test_all_sources_of_a_run_are_named_and_bind_the_model(model):
    paths = {
        "en-ja": [{"card": "tatoeba"}, {"card": "jparacrawl"}, {"hub": "someone/pairs"}, "kyoto-wiki.tsv"],
        "en-de": [{"card": "wikimatrix"}],
    }
    checksums = {"/c/downloads/jparacrawl/jparacrawl-3.en-ja.tar.gz": "1", "kyoto-wiki.tsv": "2"}
    sources = sources_of({"paths": paths}, {"en-ja": {"checksums": checksums}})
    found = {source.name: source for source in sources}
    assert set(found) == {
        "Japanese-English Bilingual Corpus of Wikipedia's Kyoto Articles",
        "jparacrawl",
        "someone/pairs",
        "tatoeba",
    }
    assert found["someone/pairs"].licence is None
    text = card(model, name="m", settings={}, sources=sources)
    assert "license: other" in text
    assert "NTT's terms of use for JParaCrawl (research only, no commercial use, holds for models trained on it)" in text
    assert derive(sources)[1].startswith("the terms of a source bind the models trained on it (jparacrawl: research only")


def test_one_language_has_the_sources_of_its_bitexts():
    paths = {"en": [{"card": "cc100"}], "en-ja": [{"card": "jparacrawl"}], "de-zh": [{"card": "nllb"}]}
    found = sources_of({"paths": paths}, {"en": {"checksums": {}}})
    assert [source.name for source in found] == ["cc100", "jparacrawl"]


def test_the_hubs_copy_of_a_corpus_has_its_terms():
    paths = [{"hub": "sentence-transformers/parallel-sentences-ccmatrix", "config": "en-ja"}]
    (source,) = sources_of({"paths": paths}, {"en-ja": {"checksums": {}}})
    assert source.name == "ccmatrix"


def paragraph(model):
    return card(model, name="m", settings={}).split("# m\n\n")[1].split("\n\n")[0].replace("\n", " ")


def test_a_card_says_what_the_model_is_in_numbers(model):
    def of(languages, matrix=model.matrix, **further):
        return StaticModel(SubwordUnits(model.units.tokenizer, "subwords", languages), matrix, **further)

    start = (
        "Static embeddings that encode sentences of {} in one space, on a CPU. A text's vector is the mean of the vectors "
        "of its units, scaled to norm 1: inner products are cosines. {} of {} dimensions ({}). The units are sub-word "
        "pieces of one Unigram vocabulary for all its languages."
    )
    large = np.ones((3, 50_000), np.float32)
    assert paragraph(of(("en",))) == start.format("English", "3 units", 4, "float32, 0.0 MB")
    assert paragraph(of(("en", "ja"), large)) == start.format("English and Japanese", "3 units", 50000, "float32, 0.6 MB")
    three = of(("en", "de", "ja"), large).quantize("float16")
    assert paragraph(three) == start.format("English, German and Japanese", "3 units", 50000, "float16, 0.3 MB")
    shared = of(("en",)).share_rows(3)
    told = "int8, 0.0 MB in memory; in the folder 256 rows for each 3 dimensions"
    assert paragraph(shared) == start.format("English", "3 units", 4, told)
    wide = of(("en",), np.ones((5, 4), np.float32), bigrams=Bigrams(np.array([[1, 1], [1, 2]], np.uint32), 3))
    assert paragraph(wide) == start.format("English", "3 units and 2 pairs of neighbouring units", 4, "float32, 0.0 MB")
    text = card(wide, name="m", settings={})
    assert "Of word order only frequent neighbours are seen. Negation weighs little more than any word." in text
    assert "Other libraries do not open the folder, as they know no rows for pairs of units" in text
    assert "Other languages than those named" not in text
    assert "Other languages than those named" in card(three, name="m", settings={})


def test_figures_that_were_measured_are_shown_and_those_of_the_hubs_names_in_front(model):
    rows = [
        {"task": "t", "subset": "s", "metric": metric, "value": value, "n": 1234, "note": note}
        for metric, value, note in (
            ("accuracy", 0.12345, "x"),
            ("margin_f1", 0.5, None),
            ("spearman", None, None),
            ("own", 1.0, None),
        )
    ]
    text = card(model, name="m", settings={}, rows=rows)
    assert text.split("## Figures\n\n")[1].split("\n\n")[0].splitlines() == [
        "| task | subset | metric | value | n | note |",
        "|---|---|---|---|---|---|",
        "| t | s | accuracy | 12.3 | 1,234 | x |",
        "| t | s | F1 by ratio margin | 50.0 | 1,234 |  |",
    ]
    front = yaml.safe_load(text.split("---")[1])
    assert front["metrics"] == ["accuracy"]
    assert front["model-index"] == [
        {
            "name": "m",
            "results": [
                {
                    "task": {"type": "translation-retrieval"},
                    "dataset": {"name": "t s", "type": "t"},
                    "metrics": [{"type": "accuracy", "value": 12.35}],
                }
            ],
        }
    ]


def test_what_a_card_takes_from_the_settings(model):
    def front(**settings):
        return yaml.safe_load(card(model, name="m", settings=settings).split("---")[1])

    assert front(teacher={"model": "user/name"})["base_model"] == "user/name"
    for name in ("mini", "/a/folder", "a/b/c", None):
        assert "base_model" not in front(teacher={"model": name})
    assert front(corpus={"hub": {"repo": "user/data"}})["datasets"] == ["user/data"]
    assert front(corpus={"hub": {"config": "x"}})["datasets"] == []
    assert "datasets" not in front(corpus={"hub": None})
    assert "base_model" not in front(teacher=None)


def test_a_source_is_a_row_with_what_is_known_of_it(model):
    sources = [Source("a", None), Source("b", "MIT", 1234, ("no sale", "credit"), "us")]
    text = card(model, name="m", settings={}, sources=sources).split("## Training data and licence\n\n")[1]
    assert text.split("\n\n")[0].splitlines()[2:] == [
        "| a | not stated | not stated | |",
        "| b | us | MIT (no sale, credit) | 1,234 |",
    ]


@pytest.mark.parametrize(
    ("sources", "why"),
    [
        ([("b", "MIT"), ("a", "MIT"), ("c", "CC0")], "the most demanding licence among the sources, that of a, b."),
        (
            [("b", None), ("a", "GPL"), ("c", "MIT")],
            "what a, b allows is not stated or not free: ask before you pass the weights on.",
        ),
        (
            [],
            "what the training text, which is not recorded allows is not stated or not free: "
            "ask before you pass the weights on.",
        ),
    ],
)
def test_the_reason_for_a_licence_names_the_sources(sources, why):
    assert derive([Source(*one) for one in sources])[1] == why


def test_a_file_that_was_fetched_is_known_by_its_folder():
    assert named("/c/downloads/tatoeba/any-name.tsv") == ["tatoeba"]
    assert named("/c/elsewhere/tatoeba/any-name.tsv") == named("/c/downloads/nothing/any-name.tsv") == ["any-name"]
