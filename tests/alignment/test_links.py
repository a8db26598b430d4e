"""Word links, and the tables and terms that they make."""

from __future__ import annotations

import gzip
import json
import re
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from itertools import combinations

import numpy as np
import pytest

import xswe
from xswe.__main__ import main
from xswe.alignment import kernels, words
from xswe.alignment.phrase_table import phrase_spans, phrase_table, with_whole_words
from xswe.alignment.terms import _class_at, bilingual_terms
from xswe.alignment.words import LinkConfig, LinkedPair, WordLinks, link_vectors
from xswe.errors import ConfigError, ModelError

METHODS = ("transport", "intersection", "itermax", "forward", "backward", "union")


@pytest.fixture(scope="module")
def mini():
    return xswe.load("mini")


def linked(values, method, least=-2.0, turns=1):
    """The links that the compiled code chooses for similarities that are given: unit vectors are made that have them."""
    n, m = values.shape
    source = np.eye(n, n + 1, dtype=np.float32)
    target = np.concatenate([values.T, np.zeros((m, 1))], 1).astype(np.float32, order="C")
    square, room = (n, m), None
    room = (
        *(np.empty(square, np.float32) for _ in range(2)),
        *(np.empty(size, np.int64) for size in square),
        np.empty(square, np.bool_),
        *(np.empty(size) for size in square),
    )
    links, scores, ends = np.empty((n * m * 4, 2), np.int32), np.empty(n * m * 4, np.float32), np.zeros(2, np.int64)
    bounds = np.array([0, n]), np.array([0, m])
    kernels.link_words(source, target, bounds, (method, 0.0, least, turns, 0.9, 0.05, 0.3), room, links, scores, ends)
    return {tuple(link) for link in links[: ends[1]].tolist()}


@pytest.mark.parametrize("seed", range(5))
def test_choices_are_what_their_names_say(seed):
    rng = np.random.default_rng(seed)
    values = rng.uniform(0, 0.9, (int(rng.integers(1, 7)), int(rng.integers(1, 7))))
    forward = {(i, int(j)) for i, j in enumerate(values.argmax(1))}
    backward = {(int(i), j) for j, i in enumerate(values.argmax(0))}
    assert linked(values, kernels.FORWARD) == forward
    assert linked(values, kernels.BACKWARD) == backward
    assert linked(values, kernels.INTERSECTION) == forward & backward
    assert linked(values, kernels.UNION) == forward | backward
    assert linked(values, kernels.ITERMAX, turns=0) == forward & backward
    more = linked(values, kernels.ITERMAX, turns=2)
    assert more >= forward & backward
    assert linked(values, kernels.UNION, least=0.5) == {(i, j) for i, j in forward | backward if values[i, j] >= 0.5}


def test_itermax_goes_on_as_published():
    """Both words of the first link are worth less to others, and a pair of words that both have one is not chosen again."""
    values = np.array([[0.9, 0.5], [0.8, 0.1], [0.2, 0.6]])
    assert linked(values, kernels.INTERSECTION) == {(0, 0), (2, 1)}
    assert linked(values, kernels.ITERMAX) == {(0, 0), (2, 1), (1, 0)}


def test_transport_shares_words_out():
    values = np.array([[0.9, 0.1, 0.1], [0.1, 0.9, 0.1], [0.1, 0.1, 0.9]])
    assert linked(values, kernels.TRANSPORT) == {(0, 0), (1, 1), (2, 2)}
    assert linked(np.array([[0.8], [0.8]]), kernels.TRANSPORT) == {(0, 0), (1, 0)}


@pytest.mark.parametrize("method", METHODS)
def test_words_are_linked_across_languages(mini, method):
    source = ["The cat sleeps on the roof.", "", "Interest rates have fallen."]
    target = ["Auf dem Dach schläft die Katze.", "Nichts", "金利が下がった。"]
    links = xswe.align_words(mini, source, target, method=method)
    assert {("cat", "Katze"), ("sleeps", "schläft"), ("roof", "Dach")} <= set(links[0].linked)
    assert links[1].links == ()
    assert any("金" in b or "利" in b for _, b in links[2].linked)
    for pair in links:
        assert all(0 < a < b <= len(pair.source) or a == 0 for a, b in pair.source_words)
        assert len(set(pair.links)) == len(pair.links) == len(pair.scores)


def test_tokens_are_what_stands_between_blanks(mini):
    (pair,) = xswe.align_words(mini, ["the cat , asleep ."], ["die Katze , schlafend 。"], tokens=True)
    assert len(pair.source_words) == 5
    assert {(1, 1), (2, 2), (4, 4)} <= set(pair.links)


def test_the_counterpart_of_a_span(mini):
    (pair,) = xswe.align_words(mini, ["We sat on the roof of the old house."], ["Wir saßen auf dem Dach des alten Hauses."])
    start = pair.source.index("old house")
    a, b = pair.counterpart(start, start + len("old house"))
    assert pair.target[a:b] == "alten Hauses"
    assert LinkedPair("a b", "c", ((0, 1), (2, 3)), ((0, 1),), ((0, 0),), (0.9,)).counterpart(2, 3) is None
    pair = pair_of("my driver", "私のドライバーは", ["my", "driver"], ["私の", "ド", "ライバー", "は"], [(0, 0), (1, 2)])
    assert pair.counterpart(3, 9) == (2, 7)  # ドライバー
    assert pair.counterpart(0, 2) == (0, 1)  # 私


LINKED = (
    LinkedPair("A <cat>!", "Die Katze", ((0, 1), (3, 6)), ((0, 3), (4, 9)), ((0, 0), (1, 1)), (0.5, 0.123456789)),
    LinkedPair("a b c", "x y z", *[((0, 1), (2, 3), (4, 5))] * 2, ((0, 0), (0, 1), (2, 1)), (1.0, 0.25, 0.75)),
    LinkedPair("", "x", (), ((0, 1),), (), ()),
)


def test_every_form_of_links(mini, tmp_path):
    links = WordLinks(LINKED)
    assert repr(links) == "WordLinks(3 pairs, 5 links)"
    links.write(tmp_path / "a.pharaoh")
    assert (tmp_path / "a.pharaoh").read_text() == "0-0 1-1\n0-0 0-1 2-1\n\n"
    links.write(tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text("utf-8")
    assert page == links.html()
    red, green = '<span style="background:hsl(0 75% 82%)">', '<span style="background:hsl(138 75% 82%)">'
    assert page.startswith("<!doctype html><html><meta charset='utf-8'><title>Word links</title><style>body{")
    assert page.partition("</style>")[2] == (
        f"\n<table><tr><td>{red}A</span> &lt;{green}cat</span>&gt;!</td><td>{red}Die</span> {green}Katze</span></td></tr>\n"
        f"<tr><td>{red}a</span> b {red}c</span></td><td>{red}x</span> {red}y</span> z</td></tr>\n"
        "<tr><td></td><td>x</td></tr>\n</table></html>\n"
    )
    links.write(tmp_path / "a.jsonl")
    first = json.loads((tmp_path / "a.jsonl").read_text("utf-8").splitlines()[0])
    assert first == json.loads(json.dumps(LINKED[0]._asdict()))
    xswe.align_words(mini, ["A \ud800 cat."], ["Eine Katze."]).write(tmp_path / "b.jsonl")
    assert json.loads((tmp_path / "b.jsonl").read_text("utf-8"))["source"] == "A \ud800 cat."
    links.write(tmp_path / "a.tsv")
    assert (tmp_path / "a.tsv").read_text("utf-8").splitlines()[:4] == [
        "pair\tsource\ttarget\tscore\tsource_start\tsource_end\ttarget_start\ttarget_end",
        "0\tA\tDie\t0.5\t0\t1\t0\t3",
        "0\tcat\tKatze\t0.123457\t3\t6\t4\t9",
        "1\ta\tx\t1.0\t0\t1\t0\t1",
    ]
    for wrong in ("a.tmx", "a.docx"):
        with pytest.raises(
            ConfigError, match=rf"{wrong}: links are not written as \.\w+; use \.txt, \.html, \.jsonl, \.csv"
        ):
            links.write(tmp_path / wrong)


def test_words_that_are_linked_in_a_chain_have_one_colour():
    words = tuple((2 * k, 2 * k + 1) for k in range(3))

    def colours(*links):
        page = WordLinks((LinkedPair("a b c", "x y z", words, words, links, (1.0,) * len(links)),)).html()
        return re.findall(r"hsl\((\d+) ", page)

    assert colours((0, 0), (1, 1), (2, 2)) == ["0", "138", "275", "0", "138", "275"]
    assert colours((0, 0), (1, 1), (1, 0), (2, 2)) == ["0", "0", "138", "0", "0", "138"]
    assert colours((0, 1), (1, 0), (2, 2), (2, 1)) == ["0", "138", "0", "138", "0", "0"]


def test_numbers_of_another_method_are_refused():
    for name, value, method in (("turns", 2, "transport"), ("keep", 0.5, "union"), ("heat", 0.2, "itermax")):
        with pytest.raises(ConfigError, match=f"{name} does nothing without method="):
            LinkConfig(method, **{name: value})


def test_the_counterpart_is_the_run_of_words_with_the_highest_scores():
    """The plain definition, for each span of words: a gap of one word does not end a run."""
    for pair in random_pairs(np.random.default_rng(1), 60):
        for a, b in combinations(range(len(pair.source_words) + 1), 2):
            found = sorted((j, score) for (i, j), score in zip(pair.links, pair.scores, strict=True) if a <= i < b)
            runs = []
            for j, score in found:
                if not runs or j > runs[-1][1] + 2:
                    runs.append([j, j, 0.0])
                runs[-1][1:] = [j, runs[-1][2] + score]
            first, last, _ = max(runs, key=lambda run: run[2], default=(None, None, 0))
            expected = None if first is None else (pair.target_words[first][0], pair.target_words[last][1])
            assert pair.counterpart(2 * a, 2 * b - 1) == expected
    assert LINKED[0].counterpart(1, 3) is None  # between two words


def test_words_are_linked_by_vectors_of_any_length():
    source, target = np.array([[3.0, 0], [0, 0], [0, 0.5]]), np.array([[0, 2.0], [1, 0.1]])
    for method in ("intersection", "transport"):
        assert link_vectors(source, target, method=method, prior=0.0) == [(0, 1), (2, 0)]
    a, b = np.array([[1.0, 0]]), np.array([[0.7, 0.51**0.5]])
    assert [link_vectors(a, b, prior=0.0, min_score=least) for least in (0.7, 0.71)] == [[(0, 0)], []]
    assert link_vectors(source[:0], target) == link_vectors(source, target[:0]) == []
    with pytest.raises(ConfigError, match="method"):
        link_vectors(source, target, method="best")


def test_what_cannot_be_linked_is_refused(mini):
    with pytest.raises(ConfigError, match="the same number of both"):
        xswe.align_words(mini, ["a"], [])
    with pytest.raises(ConfigError, match="method='best'"):
        xswe.align_words(mini, ["a"], ["b"], method="best")
    with pytest.raises(ModelError, match="ensemble"):
        xswe.align_words(xswe.types.Ensemble.of([mini, mini]), ["a"], ["b"])
    assert len(xswe.align_words(mini, [], [])) == 0


def random_pairs(draws, count):
    """Pairs of up to five words of one letter, with any links."""
    for _ in range(count):
        sides = [draws.choice(list(letters), int(draws.integers(1, 6))).tolist() for letters in ("abc", "xyz")]
        every = [(i, j) for i in range(len(sides[0])) for j in range(len(sides[1]))]
        links = tuple(link for link in every if draws.random() < 0.3)
        places = [tuple((2 * k, 2 * k + 1) for k in range(len(side))) for side in sides]
        yield LinkedPair(*map(" ".join, sides), *places, links, tuple(draws.random(len(links)).tolist()))


@pytest.mark.parametrize("most", [1, 2, 4])
def test_phrases_are_runs_that_no_link_leaves(most):
    for pair in random_pairs(np.random.default_rng(most), 80):
        wanted = []
        for a, b in (ends for ends in combinations(range(len(pair.source_words) + 1), 2) if ends[1] - ends[0] <= most):
            here, there = [i for i, _ in pair.links if a <= i < b], [j for i, j in pair.links if a <= i < b]
            if not here or (min(here), max(here)) != (a, b - 1):
                continue
            c, d = min(there), max(there) + 1
            if d - c <= most and all(a <= i < b for i, j in pair.links if c <= j < d):
                wanted.append(((a, b), (c, d)))
        assert list(phrase_spans(pair, most)) == wanted


@pytest.mark.parametrize(("most", "least"), [(1, 1), (2, 1), (3, 2)])
def test_a_table_holds_counts_probabilities_and_lexical_weights(most, least):
    pairs = list(random_pairs(np.random.default_rng(most), 40))
    times, words, inside = Counter(), Counter(), defaultdict(set)
    for pair in pairs:
        words.update(pair.linked)
        a, b = pair.source.split(), pair.target.split()
        for (low, high), (first, last) in phrase_spans(pair, most):
            texts = " ".join(a[low:high]), " ".join(b[first:last])
            times[texts] += 1
            inside[texts].add(tuple((i - low, j - first) for i, j in pair.links if low <= i < high))

    def chance(of, given, side):
        both = (given, of) if side == 0 else (of, given)
        return words[both] / sum(count for pair, count in words.items() if pair[side] == given)

    def weight(texts, links, side):
        given, said = texts[side].split(), texts[1 - side].split()
        of = [[given[link[side]] for link in links if link[1 - side] == k] for k in range(len(said))]
        each = (
            np.mean([chance(word, one, side) for one in own]) if own else 1e-7 for word, own in zip(said, of, strict=True)
        )
        return np.prod(list(each))

    table = phrase_table(pairs, most=most, min_count=least)
    assert repr(table) == f"PhraseTable({len(table):,} pairs)"
    assert {row[:2]: row.times for row in table} == {texts: count for texts, count in times.items() if count >= least}
    assert [row[:2] for row in table] == [
        row[:2] for row in sorted(table, key=lambda row: (row.source, -row.times, row.target))
    ]
    for row in table:
        assert row.forward == row.times / sum(count for texts, count in times.items() if texts[0] == row.source)
        assert row.backward == row.times / sum(count for texts, count in times.items() if texts[1] == row.target)
        if len(inside[row[:2]]) == 1:
            (links,) = inside[row[:2]]
            assert row[5:] == pytest.approx([weight(row[:2], links, side) for side in (0, 1)])
    for wrong in ({"most": 0}, {"min_count": 0}):
        with pytest.raises(ConfigError, match=r"most=\d, min_count=\d: give at least 1"):
            phrase_table(pairs, **wrong)


@pytest.mark.parametrize(
    ("source", "target", "han", "became"),
    [
        (["a", "b"], ["x", "y"], True, (["a", "b"], ["x", "y"])),
        (["a"], ["ドラ", "イバー", "は"], False, (["a"], ["ドライバー", "は"])),
        (["a"], ["のドラ", "イバーを"], False, (["a"], ["のドライバーを"])),
        (["a"], ["治", "世", "の"], True, (["a"], ["治世", "の"])),
        (["a"], ["治", "世", "の"], False, (["a"], ["治", "世", "の"])),
        (["a"], ["推", "古", "朝", "の"], True, (["a"], ["推", "古", "朝", "の"])),
        (["a"], ["治", "世"], True, (["a"], ["治", "世"])),  # without kana it may be Chinese
        (["ア", "a"], ["ア"], True, (["ア", "a"], ["ア"])),  # one character is no word
    ],
)
def test_parts_of_one_word_become_one_with_the_links_of_all(source, target, han, became):
    pair = pair_of("".join(source), "".join(target), source, target, [(0, j) for j in range(len(target))])
    pair = pair._replace(scores=tuple(0.1 * (j + 1) for j in range(len(target))))
    found = with_whole_words(pair, han)
    cut = [
        [text[a:b] for a, b in places]
        for text, places in ((found.source, found.source_words), (found.target, found.target_words))
    ]
    assert tuple(cut) == became
    if became != (source, target):
        assert found.links == tuple((0, j) for j in range(len(became[1])))
        ends = [target.index(next(one for one in reversed(target) if one in word)) for word in became[1]]
        assert found.scores == tuple(pair.scores[end] for end in ends)  # the best score of all parts
    else:
        assert found is pair


def test_terms_come_out_of_a_bitext(mini, tmp_path):
    """Sentences that hold terms of several words, in German compounds."""
    frames = [
        ("Open the {} now.", "Öffnen Sie jetzt die {}."),
        ("We like the {}.", "Wir mögen die {}."),
        ("Is this a {}?", "Ist das eine {}?"),
    ]
    terms = [("interest rate", "Zinsrate"), ("library card", "Bibliothekskarte"), ("train station", "Bahnstation")]
    pairs = [(a.format(x), b.format(y)) for a, b in frames for x, y in terms] * 2
    links = xswe.align_words(mini, [a for a, _ in pairs], [b for _, b in pairs])
    found = bilingual_terms(links, ("en", "de"), min_count=3)
    sources = {term.source for term in found}
    assert {"interest rate", "library card", "train station"} & sources
    assert not {"the", "a", "is this"} & sources
    found.write(tmp_path / "t.tbx")
    root = ET.parse(tmp_path / "t.tbx").getroot()
    assert len(list(root.iter("termEntry"))) == len(sources)
    found.write(tmp_path / "t.csv")
    assert len((tmp_path / "t.csv").read_text("utf-8").splitlines()) == len(found) + 1


def pair_of(source, target, words, others, links):
    """A pair whose words are given as texts, and all links with the score 1."""
    places = []
    for text, own in ((source, words), (target, others)):
        places.append(tuple((text.index(word), text.index(word) + len(word)) for word in own))
    return LinkedPair(source, target, *places, tuple(links), (1.0,) * len(links))


def test_terms_are_written_as_the_bitext_writes_them():
    pairs = [
        pair_of("Open Kyoto Station now", "駅", ["Open", "Kyoto", "Station", "now"], ["駅"], [(2, 0)]),
        pair_of(
            "Maps of the station", "駅の地図", ["Maps", "of", "the", "station"], ["駅", "の", "地図"], [(3, 0), (0, 2)]
        ),
        pair_of("Station maps are here", "京都駅の地図", ["Station", "maps"], ["京都", "駅", "の地図"], [(0, 1), (1, 2)]),
        pair_of("See the station of Kyoto", "京都の駅", ["See", "station", "Kyoto"], ["京都の", "駅"], [(1, 1), (2, 0)]),
        pair_of("In Kyoto", "京都では", ["In", "Kyoto"], ["京都では"], [(1, 0)]),
        pair_of("MAPS", "地図を", ["MAPS"], ["地図を"], [(0, 0)]),
        pair_of("these maps", "この地図は", ["these", "maps"], ["この地図は"], [(1, 0)]),
    ]
    found = {(term.source, term.target): term.times for term in bilingual_terms(pairs, ("en", "ja"), min_count=2)}
    assert found["Kyoto", "京都"] == 2
    assert found["maps", "地図"] == 3  # but not MAPS, which might be an acronym
    table = {(row.source, row.target): row.times for row in phrase_table(pairs)}
    assert table["station", "駅"] == 4
    assert table["Kyoto", "京都の"] == 1


def test_words_of_katakana_are_whole(tmp_path):
    pairs = [
        pair_of("the driver", "ドライバーを", ["the", "driver"], ["ド", "ライバー", "を"], [(1, 1)]),
        pair_of(
            "driver update", "ドライバー更新", ["driver", "update"], ["ドラ", "イバー", "更新"], [(0, 0), (0, 1), (1, 2)]
        ),
        pair_of(
            "a printer driver",
            "プリンターのドライバー",
            ["printer", "driver"],
            ["リンター", "のドラ", "イバー"],
            [(0, 0), (1, 1)],
        ),
        pair_of("printer", "プリンター", ["printer"], ["プリ", "ンター"], [(0, 0), (0, 1)]),
        pair_of("printer", "ﾌﾟﾘﾝﾀｰ", ["printer"], ["ﾌﾟﾘﾝ", "ﾀｰ"], [(0, 1)]),
    ]
    found = {(term.source, term.target): term for term in bilingual_terms(pairs, ("en", "ja"), min_count=2)}
    assert found["driver", "ドライバー"].times == 3
    assert set(found) == {("driver", "ドライバー"), ("printer", "プリンター")}
    bilingual_terms(pairs, ("en", "ja"), min_count=2).write(tmp_path / "t.tbx")
    assert {term.text for term in ET.parse(tmp_path / "t.tbx").getroot().iter("term")} == {
        *("driver", "ドライバー"),
        *("printer", "プリンター"),
    }
    table = phrase_table(pairs)
    assert {(row.source, row.target): row.times for row in table}["driver", "ドライバー"] == 2
    assert not [row for row in table if row.target in ("ライバー", "リンター", "ﾀｰ")]


def test_particles_of_japanese_are_no_part_of_a_term():
    japanese = ["先生は来た", "この先生が書いた", "先生の本", "先生"]
    units = ["先生は", "この先生が", "先生の", "先生"]
    pairs = [pair_of("teacher", text, ["teacher"], [unit], [(0, 0)]) for text, unit in zip(japanese, units, strict=True)]
    (term,) = bilingual_terms(pairs, ("en", "ja"))
    assert term[:3] == ("teacher", "先生", 4)


def test_inflections_are_one_term_in_its_base_form(tmp_path):
    texts = [("the invoice", "die Rechnung"), ("An invoice", "Eine Rechnung"), ("all invoices", "alle Rechnungen")] * 2
    pairs = [pair_of(a, b, a.split(), b.split(), [(1, 1)]) for a, b in texts]
    found = bilingual_terms(pairs, ("en", "de"))
    (term,) = found
    assert term[:3] == ("invoice", "Rechnung", 6)
    assert (term.source_variants, term.target_variants, term.part_of_speech) == (("invoices",), ("Rechnungen",), "noun")
    assert term.lines == (1, 2, 3, 4, 5)
    found.write(tmp_path / "t.csv")
    assert "noun,invoices,Rechnungen,1 | 2 | 3 | 4 | 5,the invoice," in (tmp_path / "t.csv").read_text("utf-8")
    pytest.importorskip("xlsxwriter")
    openpyxl = pytest.importorskip("openpyxl")
    found.write(tmp_path / "t.xlsx")
    rows = list(openpyxl.load_workbook(tmp_path / "t.xlsx").active.iter_rows(values_only=True))
    assert rows[1][5:8] == ("invoices", "Rechnungen", "1 | 2 | 3 | 4 | 5")
    found.write(tmp_path / "t.tbx")
    terms = [[one.text for one in tig] for tig in ET.parse(tmp_path / "t.tbx").getroot().iter("tig")]
    assert terms == [
        ["invoice", "noun", "the invoice", "forms: invoices"],
        ["Rechnung", "noun", "die Rechnung", f"score {term.score:.4f}, 6 times, first in 1, 2, 3, 4, 5; forms: Rechnungen"],
    ]


def test_words_beside_a_term_are_part_of_it_unless_their_links_are_there_too():
    far = pair_of(
        "Prince Shotoku was",
        "聖徳太子は今日来た",
        ["Prince", "Shotoku", "was"],
        ["聖徳太子", "は", "今日", "来た"],
        [(1, 0), (0, 3)],
    )
    near = pair_of(
        "Emperor Meiji was",
        "明治天皇は来た",
        ["Emperor", "Meiji", "was"],
        ["明治", "天皇", "は", "来た"],
        [(0, 1), (1, 0)],
    )
    later = pair_of("the Restoration", "明治維新後", ["the", "Restoration"], ["明治維新後"], [(1, 0)])
    found = {term[:2] for term in bilingual_terms([far] * 3 + [near] * 3 + [later] * 3, ("en", "ja"))}
    assert ("Prince Shotoku", "聖徳太子") in found
    assert ("Emperor Meiji", "明治天皇") in found
    assert ("Emperor Meiji", "明治") not in found
    assert ("Restoration", "明治維新") in found


def test_a_wider_term_stands_beside_the_narrower_one_where_both_are_usual():
    both = pair_of("Fukui Prefecture", "福井県", ["Fukui", "Prefecture"], ["福井県"], [(0, 0)])
    alone = pair_of("in Fukui", "福井県", ["in", "Fukui"], ["福井県"], [(1, 0)])

    def found(wide, narrow, score=1.0):
        pairs = [pair._replace(scores=(score,)) for pair in [both] * wide + [alone] * narrow]
        terms = bilingual_terms(pairs, ("en", "ja"), min_count=1, min_score=0)
        return {term[:2]: (term.times, term.score) for term in terms}

    whole, part = ("Fukui Prefecture", "福井県"), ("Fukui", "福井県")
    # In 3 of 6 places, of 3 and 6 (of Fukui) and 6 (of 福井県) in all.
    assert found(3, 3, 0.25) == {whole: (3, round(6 / 9 * 0.5, 6)), part: (6, 0.5)}
    assert set(found(3, 4)) == {part}  # in less than half of the places
    assert set(found(2, 2)) == {part}  # in two alone
    assert found(7, 3) == {whole: (10, 1.0)}  # in seven of ten: nearly always
    assert set(found(6, 4)) == {whole, part}


def test_words_without_a_link_beside_a_term_are_part_of_it():
    arrow = pair_of("the right arrow", "右矢印を", ["the", "right", "arrow"], ["右", "矢", "印", "を"], [(1, 0), (2, 1)])
    gate = pair_of("Edo period ends", "江戸時代の末", ["Edo", "period", "ends"], ["江戸時代", "の末"], [(0, 0)])
    found = {term[:2] for term in bilingual_terms([arrow] * 3 + [gate] * 3, ("en", "ja"))}
    assert ("right arrow", "右矢印") in found
    assert not {target for _, target in found} & {"右矢", "矢"}
    assert ("Edo", "江戸時代") not in found


def test_a_character_of_han_is_a_term_where_it_is_a_word():
    rows = [("poem", "この歌は", "歌"), ("encrypt", "暗号化", "号"), ("permit", "許すと", "許"), ("floor", "10号の", "号")]
    for source, text, target in rows:
        place = text.index(target)
        pair = LinkedPair(source, text, ((0, len(source)),), ((place, place + 1),), ((0, 0),), (1.0,))
        found = [term[:2] for term in bilingual_terms([pair] * 3, ("en", "ja"))]
        assert found == ([("poem", "歌")] if source == "poem" else [])


def test_a_word_that_stands_twice_is_linked_to_the_nearer_one():
    words, others = ["The", "match", "expression", "does", "match"], ["match", "式", "と", "一致"]
    links = [(1, 0), (1, 3), (2, 1), (4, 0), (4, 3)]
    pair = pair_of("The match expression does match", "match 式と一致", words, others, links)
    found = {term[:2] for term in bilingual_terms([pair] * 3, ("en", "ja"))}
    assert ("match expression", "match 式") in found


def test_function_words_are_those_of_the_language():
    """``war`` is one of German, ``not`` of English."""
    war = pair_of("the Jinshin War", "壬申の乱", ["the", "Jinshin", "War"], ["壬申の乱"], [(1, 0)])
    so = pair_of("die Not war", "the need", ["die", "Not", "war"], ["the", "need"], [(1, 1)])
    assert [term[:2] for term in bilingual_terms([war] * 3, ("en", "ja"))] == [("Jinshin War", "壬申の乱")]
    assert [term[:2] for term in bilingual_terms([so] * 3, ("de", "en"))] == [("Not", "need")]


def test_two_characters_that_the_model_cuts_apart_are_one_word():
    """As it does with 治世, and with 推古, whose third character belongs to them, too."""
    words = ["the", "reign"]
    reign = pair_of("the reign", "その治世の", words, ["その", "治", "世", "の"], [(1, 2)])
    other = pair_of("the reign", "推古朝の", words, ["推", "古", "朝", "の"], [(1, 2)])
    assert [term[:2] for term in bilingual_terms([reign] * 3, ("en", "ja"))] == [("reign", "治世")]
    assert not list(bilingual_terms([other] * 3, ("en", "ja")))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("page appears", "ページが表示"),  # a clause
        ("step 4", "手順 4"),
        ("following table", "次の表"),
        ("encrypted", "号化し"),  # of 暗号化します
        ("three", "三つ"),
    ],
)
def test_clauses_numbers_and_parts_of_words_are_no_terms(source, target):
    text = "暗号化します" if target == "号化し" else target
    pair = LinkedPair(
        source, text, ((0, len(source)),), ((text.index(target), text.index(target) + len(target)),), ((0, 0),), (1.0,)
    )
    assert not list(bilingual_terms([pair] * 4, ("en", "ja")))


def alone(source, target):
    """Two texts that are one word each, linked."""
    return LinkedPair(source, target, ((0, len(source)),), ((0, len(target)),), ((0, 0),), (1.0,))


@pytest.mark.parametrize(
    ("source", "target", "is_term"),
    [
        ("definitely", "definitiv", False),
        ("family", "Familie", True),
        ("read-only", "schreibgeschützt", True),
        ("provides details", "enthält Details", False),
        ("last changed file", "zuletzt geänderte Datei", False),
        ("recently changed file", "zuletzt geänderte Datei", True),
        ("six years", "sechs Jahre", False),
        ("named", "namens", False),
        ("New York", "New York", True),
        ("new users", "Neue Benutzer", False),
    ],
)
def test_what_is_a_term_of_english_and_german(source, target, is_term):
    assert bool(list(bilingual_terms([alone(source, target)] * 4, ("en", "de")))) == is_term
    assert bool(list(bilingual_terms([alone(target, source)] * 4, ("de", "en")))) == is_term


def test_a_compound_that_says_more_than_the_source_is_no_translation_of_it():
    """The rest of it stands for another word, to which it has no link."""
    pairs = [alone("insurance", "Versicherung")] * 6 + [alone("insurance", "Krankenversicherung")] * 4
    pairs += [alone("public", "öffentlich")] * 6 + [alone("public", "Öffentlichkeit")] * 4
    found = {term[:2] for term in bilingual_terms(pairs, ("en", "de"))}
    assert found == {("insurance", "Versicherung"), ("public", "öffentlich"), ("public", "Öffentlichkeit")}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tanaka", "kyoto-wiki", "msdocs"])
def test_terms_of_real_text_stand_in_it(mini, xswe_data, name):
    """Case, and whole words of Katakana: of these pairs 15 to 72 of some thousand terms were cut, and names lower-case."""
    text = gzip.decompress((xswe_data / "train" / "en-ja" / f"{name}.tsv.gz").read_bytes()).decode("utf-8")
    pairs = [line.split("\t")[:2] for line in text.splitlines()[::50][:1500]]
    links = xswe.align_words(mini, *map(list, zip(*pairs, strict=True)))
    found = bilingual_terms(links, ("en", "ja"), min_count=2)
    english, japanese = ("\n".join(" ".join(side.split()) for side in sides) for sides in zip(*pairs, strict=True))
    assert len(found) > 150
    assert all(term.source in english and term.target in japanese for term in found)
    runs = set(re.findall("[ァ-ヺー]+", japanese))
    assert all(run in runs for term in found for run in re.findall("[ァ-ヺー]+", term.target))
    assert not [term.target for term in found if re.search("[一-鿿][はがをにの]$|^[はがをにの][一-鿿]", term.target)]


def test_the_verb(mini, tmp_path, capsys):
    (tmp_path / "b.tsv").write_text(
        "A cat sleeps.\tEine Katze schläft.\nThe cat eats.\tDie Katze frisst.\n", encoding="utf-8"
    )
    given = ["model=mini", f"input={tmp_path / 'b.tsv'}"]
    assert main(["link", *given, f"output={tmp_path / 'l.txt'}", "method=intersection"]) == 0
    assert (tmp_path / "l.txt").read_text().splitlines()[0] == "0-0 1-1 2-2"
    assert main(["link", *given, "what=lexicon", "min_count=2", f"output={tmp_path / 'l.tsv'}"]) == 0
    assert "cat\tKatze\t2" in (tmp_path / "l.tsv").read_text("utf-8")
    assert "PhraseTable" in capsys.readouterr().out


def test_the_verb_links_as_pairs_come(mini, tmp_path, monkeypatch, capsys):
    """No more pairs are held than a block, whatever is made of them; and the bytes are those of all at once."""
    pairs = [(f"A cat sleeps {k}.", f"Eine Katze schläft {k}.") for k in range(200)]
    (tmp_path / "b.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
    links = xswe.align_words(mini, *map(list, zip(*pairs, strict=True)))
    for module in ("words", "link"):
        monkeypatch.setattr(f"xswe.alignment.{module}.BLOCK", 16)
    held, made = [0, 0], words.LinkedPair

    class Counted(made):
        def __new__(cls, *given):
            held[:] = held[0] + 1, max(held[1], held[0] + 1)
            return super().__new__(cls, *given)

        def __del__(self):
            held[0] -= 1

    monkeypatch.setattr(words, "LinkedPair", Counted)
    for name in ("l.txt", "l.jsonl", "l.html"):
        assert main(["link", "model=mini", f"input={tmp_path / 'b.tsv'}", f"output={tmp_path / name}"]) == 0
        links.write(tmp_path / f"all.{name}")
        assert (tmp_path / name).read_bytes() == (tmp_path / f"all.{name}").read_bytes()
    assert main(["link", "model=mini", f"input={tmp_path / 'b.tsv'}", "what=lexicon", f"output={tmp_path / 'l.tsv'}"]) == 0
    assert 1 <= held[1] <= 32
    assert "200 pairs, 8" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "form", "language", "expected"),
    [
        ("Did you really solder it?", "really", "en", ""),
        ("You apply it twice.", "apply", "en", "verb"),
        ("Er sitzt neben der Bar.", "neben", "de", ""),
        ("Sie wollen es verkaufen.", "verkaufen", "de", "verb"),
    ],
)
def test_what_only_ends_as_a_verb_does_is_none(text, form, language, expected):
    start = text.index(form)
    assert _class_at(text, start, start + len(form), language) == expected
