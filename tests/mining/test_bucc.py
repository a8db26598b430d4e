"""The shared task's protocol on files in its exact format."""

from __future__ import annotations

import gzip
import random
from dataclasses import replace

import numpy as np
import pytest

from tests.conftest import eval_script
from xswe.errors import ConfigError, InputError
from xswe.mining.pipeline import MineConfig
from xswe.search.lists import SearchConfig

bucc, settings = eval_script("experiments.bucc"), eval_script("settings")
ONE = SearchConfig(threads=1)


def write_bucc(folder, name, pairs, source_noise, target_noise, seed):
    """Write a data set in the shared task's format: shuffled corpora of id<TAB>sentence, gold of id<TAB>id."""
    draw = random.Random(seed)
    sides = []
    for k, (language, noise) in enumerate((("ja", source_noise), ("en", target_noise))):
        lines = [(pair[k], n) for n, pair in enumerate(pairs)] + [(text, None) for text in noise]
        draw.shuffle(lines)
        ids = [f"{language}-{i:09d}" for i in range(1, len(lines) + 1)]
        text = "".join(f"{i}\t{line}\n" for i, (line, _) in zip(ids, lines, strict=True))
        (folder / f"{name}.{language}").write_text(text, encoding="utf-8")
        sides.append({n: i for i, (_, n) in zip(ids, lines, strict=True) if n is not None})
    gold = "".join(f"{sides[0][n]}\t{sides[1][n]}\n" for n in range(len(pairs)))
    (folder / f"{name}.gold").write_text(gold, encoding="utf-8")
    return str(folder / name)


@pytest.mark.slow
def test_the_protocol_of_the_shared_task(model, sample, tmp_path):
    ja, en = sample["ja"], sample["en"]
    config = MineConfig(threshold=None, neighbours=ONE)
    prefixes = [
        write_bucc(
            tmp_path, name, list(zip(ja[a : a + 60], en[a : a + 60], strict=True)), ja[b : b + 200], en[c : c + 200], 1
        )
        for name, a, b, c in (("training", 0, 100, 300), ("test", 500, 600, 800))
    ]
    training, test = (bucc.BuccFiles.find(prefix, ("ja", "en")) for prefix in prefixes)
    gold = bucc.read_gold_ids(training.gold)
    assert len(gold) == 60
    found = bucc.extract(model, training, config)
    assert all(a.startswith("ja-") and b.startswith("en-") for a, b in found.pairs)
    threshold = bucc.tune(found, gold)
    tuned = bucc.score(found, gold, threshold)
    for other in np.linspace(0.5, 2, 40):
        assert bucc.score(found, gold, float(other)).f1 <= tuned.f1
    measured = bucc.score(bucc.extract(model, test, config), bucc.read_gold_ids(test.gold), threshold)
    assert measured.f1 > 0.7
    kinds = ("cosine", "distance")
    for kind, together in zip(kinds, bucc.extract_by(model, test, config, kinds), strict=True):
        alone = bucc.extract(model, test, replace(config, score=kind))
        assert together.pairs == alone.pairs
        np.testing.assert_array_equal(together.scores, alone.scores)
    kept = set(found.above(threshold))
    assert tuned.precision == pytest.approx(len(kept & gold) / len(kept))
    assert tuned.recall == pytest.approx(len(kept & gold) / 60)


def test_the_script(model_folder, sample, tmp_path, capsys):
    prefixes = [
        write_bucc(tmp_path, name, list(zip(sample["ja"][a : a + 50], sample["en"][a : a + 50], strict=True)), [], [], 1)
        for name, a in (("training", 0), ("test", 60))
    ]
    words = [
        f"model={model_folder}",
        *map("=".join, zip(("training", "test"), prefixes, strict=True)),
        "languages=ja,en",
    ]
    with pytest.raises(ConfigError, match=r"test\.gold: is also read"):
        bucc.main(settings.read_settings([*words, f"output={prefixes[1]}.gold"], bucc.DEFAULTS))
    bucc.main(settings.read_settings([*words, f"output={tmp_path / 'found.tsv'}"], bucc.DEFAULTS))
    assert "training (tuned on)" in capsys.readouterr().out
    assert all(line.startswith("ja-") for line in (tmp_path / "found.tsv").read_text().splitlines())


def test_bucc_files_that_are_wrong(tmp_path):
    with pytest.raises(InputError, match=r"x\.de"):
        bucc.BuccFiles.find(str(tmp_path / "x"), ("de", "en"))
    (tmp_path / "gold").write_text("de-1\ten-1\nde-2 en-2\n")
    with pytest.raises(InputError, match="gold:2"):
        bucc.read_gold_ids(tmp_path / "gold")


def test_a_bucc_shaped_set_of_real_sentences(model, xswe_data, tmp_path):
    """WMT23 pairs hidden among unaligned sentences; the tests' tiny model finds few, which the protocol must say."""

    def rows(path, limit):
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="utf-8") as stream:
            return [line.rstrip("\n").split("\t")[:2] for line, _ in zip(stream, range(limit), strict=False)]

    hidden = [(b, a) for a, b in rows(xswe_data / "dev" / "wmt23.en-ja.tsv", 150)]
    noise = rows(xswe_data / "train" / "en-ja" / "kyoto-wiki.tsv.gz", 900)
    prefix = write_bucc(tmp_path, "wmt", hidden, [b for _, b in noise[:450]], [a for a, _ in noise[450:]], 2)
    files = bucc.BuccFiles.find(prefix, ("ja", "en"))
    found = bucc.extract(model, files, MineConfig(threshold=None, neighbours=ONE))
    gold = bucc.read_gold_ids(files.gold)
    measured = bucc.score(found, gold, bucc.tune(found, gold))
    assert measured.gold == 150
    assert 0 < measured.f1 < 1
    assert measured.recall <= len(set(found.pairs) & gold) / 150
