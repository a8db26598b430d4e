"""Indexes of corpora that are kept between starts."""

from __future__ import annotations

import os

import pytest

from xswe.serving import concordance
from xswe.serving.concordance import Concordance, Words
from xswe.serving.messages import PhrasesRequest, SearchRequest
from xswe.serving.passages import Corpus


@pytest.fixture
def starts(mini, tmp_path, monkeypatch):
    """Start with a small memory, and tell how many indexes were built until now."""
    monkeypatch.setenv("XSWE_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "news.en-de.tsv"
    path.write_text("The train is late.\tDer Zug hat Verspätung.\nIt snows.\tEs schneit.\n", "utf-8")
    built = []
    real = concordance.index
    monkeypatch.setattr(concordance, "index", lambda *given, **how: (built.append(1), real(*given, **how))[1])

    def start() -> tuple[Concordance, int]:
        return Concordance(mini, [Corpus.of(str(path))], 1, Words(mini), mini, True), len(built)

    return path, tmp_path / "cache" / "served", start


def answers(corpora: Concordance) -> tuple:
    lines = [
        [(line.passage.text, line.passage.spans, [(other.text, other.spans) for other in line.translations])]
        for variant in corpora.phrases(PhrasesRequest("the train")).variants
        for line in variant.lines
    ]
    return lines, [(hit.score, hit.passage.text) for hit in corpora.search(SearchRequest("Schnee")).hits]


def test_a_second_start_builds_nothing_and_answers_alike(starts):
    _, folder, start = starts
    first, built = start()
    assert built == 2
    assert len(list(folder.iterdir())) == 1
    again, built = start()
    assert built == 2
    assert answers(again) == answers(first)
    assert any("Der Zug" in text for rows in answers(first)[0] for _, _, others in rows for text, _ in others)


def test_a_file_that_changed_and_a_damaged_folder_are_made_anew(starts, caplog):
    path, folder, start = starts
    start()
    path.write_text(path.read_text("utf-8") + "A cat.\tEine Katze.\n", "utf-8")
    corpora, built = start()
    assert built == 4
    assert len(corpora) == 6
    assert len(list(folder.iterdir())) == 1  # the stale one is gone
    (kept_one,) = folder.iterdir()
    (kept_one / "en.units.npy").unlink()
    corpora, built = start()
    assert built == 6
    assert "is damaged" in caplog.text
    assert len(corpora) == 6


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the superuser may write everywhere")
def test_where_nothing_may_be_written_nothing_is_kept(starts, caplog):
    _, folder, start = starts
    folder.parent.mkdir(mode=0o500)
    assert len(start()[0]) == 4
    assert "nothing is kept" in caplog.text
