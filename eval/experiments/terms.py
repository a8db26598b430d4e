"""How often the right term stands first, or among the first five, in what ``phrases mode=terms`` lists.

    python -m eval.experiments.terms [model=mini] [terms=300] [lines=20000] [threads=1] [output=eval/results/terms.json]

The terms are made of the documentation of software in ``XSWE_DATA`` (``train/en-*/msdocs.tsv.gz``) at run time: English
nouns of one to three words far more frequent there than in Tatoeba, each with the run of words (zh: of jieba's; ja:
characters) of the other side that its lines share the most (Dice of at least 0.5; no function word at its rim). They come
from the first 40,000 pairs; the passages are the last ``lines`` lines of the other side, where at least three lines say the
term by its answer, as their English side shows. What else a MUSE dictionary (``lexicon``) has for the term is right, too,
if at least three lines and a fifth of those with the term say it (``further``: how many terms have such an answer).

``cosine``: candidates as they were ranked before, by cosine alone; ``evidence``: as they are; ``bitext``: with the
passages' other side. An answer may differ in case, inflection and spelling (``same_term``). Weights were chosen on half of
an earlier list of terms; ``tuned`` and ``held`` are the terms of odd and of even place in this one. ``silent``: the share
for which nothing is found; ``absent`` are nouns of Tatoeba that are not there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate, product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import xswe
from eval.settings import DATA, RESULTS, pairs_of, run_script
from xswe.io.files import write_json
from xswe.io.results import table
from xswe.model.static import StaticModel
from xswe.phrases.find import find_phrases
from xswe.phrases.search import SpanConfig
from xswe.phrases.terms import find_terms, same_term
from xswe.text.languages import LANGUAGES
from xswe.text.scripts import has_cjk
from xswe.text.segmenters import Segmenter, make_segmenter

DEFAULTS: dict[str, Any] = {
    "model": "mini",
    "terms": 300,
    "lines": 20_000,
    "threads": 1,
    "output": str(RESULTS / "terms.json"),
}
_LEARNT = 40_000  # pairs that the answers are made of
_LEAST, _SHARE = 3, 0.2  # lines that say a term by its answer; of those with the term, that say it by another
_RUNS = {"de": r"[^\W\d_]+(?:-[^\W\d_]+)*", "ja": r"[一-鿿々ァ-ヺー]+(?: [一-鿿々ァ-ヺー]+)*", "zh": r"[一-鿿]+"}
RIM = LANGUAGES["de"].boundary_stopwords
_SMALL = frozenset(
    re.findall(
        r"\w+",
        """a an the of to in on for from by with and or is are be as at it its you your this that these those can if not
        has have use used using when which will do does all any each more into one two about how see also following
        most many some other same no only than between whose so then must already whether been was were they we""",
    )
)


def english(text: str) -> Iterator[str]:
    """Yield the runs of one to three words, none of them a small one."""
    for part in re.findall(r"(?<![\w-])[a-z]+(?: [a-z]+)*(?![\w-])", text.lower()):
        words = part.split()
        for size in (1, 2, 3):
            for start in range(len(words) - size + 1):
                if not _SMALL & set(words[start : start + size]):
                    yield " ".join(words[start : start + size])


def with_article(text: str) -> Iterator[str]:
    """Yield the runs of one to three words that follow an article."""
    for part in re.findall(r"\b(?:the|a|an) ([a-z]+(?: [a-z]+){0,2})", text.lower()):
        words = part.split()
        yield from (" ".join(words[:size]) for size in range(1, len(words) + 1))


@cache
def _chinese() -> Segmenter:
    return make_segmenter("jieba", "zh", None)


def foreign(text: str, language: str) -> Iterator[str]:
    """Yield what may be a term: up to three words, or eight characters of Chinese ones, or a run of Han and Katakana."""
    if language == "ja":
        yield from (run for run in re.findall(_RUNS["ja"], text) if len(run) <= 16)
    elif language == "zh":
        for run in re.findall(_RUNS["zh"], text):
            words = _chinese().lines([run]).split()
            for i in range(len(words)):
                yield from (one for one in accumulate(words[i:]) if 1 < len(one) <= 8)
    else:
        words = [found.span() for found in re.finditer(_RUNS["de"], text)]
        for size in (1, 2, 3):
            for a, b in zip(words, words[size - 1 :], strict=False):
                if not re.search(r"[^\w\s-]", run := text[a[0] : b[1]]):
                    yield run


def function_word_at_rim(answer: str, language: str) -> bool:
    """Tell whether a run is no term but a piece of a sentence."""
    if language == "de":
        return not RIM.isdisjoint(word.casefold() for word in answer.split())
    return language == "zh" and (answer[0] in "的和与或及在是将以从由为" or answer[-1] in "的和与或及在是将了")


def frequencies(texts: Iterable[Iterable[str]]) -> Counter[str]:
    """Count in how many texts each run stands."""
    counts: Counter[str] = Counter()
    for runs in texts:
        counts.update(set(runs))
    return counts


def holding(terms: set[str], texts: Iterable[str]) -> dict[str, list[int]]:
    """Return which texts hold each term."""
    found: dict[str, list[int]] = {}
    for i, text in enumerate(texts):
        for term in set(english(text)) & terms:
            found.setdefault(term, []).append(i)
    return found


def make_terms(
    data: Path, language: str, searched: Sequence[tuple[str, str]], most: int
) -> tuple[list[str], list[list[str]]]:
    """Return English terms, and the answers of each: the first of other pairs, further ones of a dictionary.

    Args:
        data: the folder of the data.
        language: of the answers.
        searched: the passages with their English side.
        most: how many terms.
    """
    folder = data / "train" / f"en-{language}"
    pairs = list(pairs_of(folder / "msdocs.tsv.gz", _LEARNT))
    general = frequencies(english(a) for a, _ in pairs_of(folder / "tatoeba.tsv.gz", _LEARNT))
    here = frequencies(english(a) for a, _ in pairs)
    nouns = Counter(term for a, _ in pairs for term in set(with_article(a)))
    whole = Counter({t: n for t, n in here.items() if n >= 10})
    for longer, n in list(whole.items()):  # "studio code" is no term of its own where it is always "visual studio code"
        for part in {longer.partition(" ")[2], longer.rpartition(" ")[0]} - {""}:
            if n >= 0.6 * here[part]:
                del whole[part]
    usual = {t for t, n in whole.items() if t[-1] == "s" or nouns[t] >= 0.2 * n}
    chosen = {t for t in usual if whole[t] <= 400 and whole[t] >= 8 * (1 + general[t]) and len(t) > 3}
    lines = holding(chosen, (a for a, _ in pairs))
    runs = [set(foreign(b, language)) for _, b in pairs]
    there = frequencies(runs)
    found: list[tuple[float, str, str]] = []
    for term, rows in lines.items():
        together = frequencies(runs[i] for i in rows)
        scored = [(2 * n / (len(rows) + there[run]), run) for run, n in together.most_common(200)]
        top = max(scored)[0]
        dice, answer = max(((s, run) for s, run in scored if s >= 0.97 * top), key=lambda one: (len(one[1]), one))
        alone = language == "ja" and len(answer) < 2
        if dice >= 0.5 and not alone and answer.casefold() != term and not function_word_at_rim(answer, language):
            found.append((dice, term, answer))
    said = {term: [searched[i][1] for i in there] for term, there in holding(chosen, (a for a, _ in searched)).items()}
    occur = [(d, t, a) for d, t, a in found if sum(a in line for line in said.get(t, ())) >= _LEAST]
    best: dict[str, tuple[float, str, str]] = {}
    for one in sorted(occur, reverse=True):
        best.setdefault(one[2].casefold(), one)  # a term an answer
    kept = sorted(best.values(), reverse=True)[: 2 * most]
    kept.sort(key=lambda one: hash_of(one[1]))
    dictionary = list(pairs_of(data / "lexicon" / f"muse.en-{language}.tsv.gz"))
    return [term for _, term, _ in kept[:most]], [[a, *further(t, a, said[t], dictionary)] for _, t, a in kept[:most]]


def further(term: str, answer: str, said: Sequence[str], dictionary: Sequence[tuple[str, str]]) -> list[str]:
    """Return what a dictionary has for a term beside its answer, and enough of the lines that say it have, too."""
    forms, least = {term, term.removesuffix("s"), f"{term}s"}, max(_LEAST, _SHARE * len(said))
    words = dict.fromkeys(word for known, word in dictionary if known in forms and not same_term(word, answer))
    lines = [re.findall(r"\w+", line) for line in said]

    def held(word: str, tokens: list[str]) -> bool:
        return any(word in token if has_cjk(word) else same_term(word, token) for token in tokens)

    return [word for word in words if sum(held(word, tokens) for tokens in lines) >= least]


def foreign_to(data: Path, language: str, pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Return up to 100 nouns of everyday language that the documentation lacks."""
    here = frequencies(english(a) for a, _ in pairs)
    general = frequencies(
        with_article(a) for a, _ in pairs_of(data / "train" / f"en-{language}" / "tatoeba.tsv.gz", _LEARNT)
    )
    usual = [t for t, n in general.most_common() if n >= 8 and not here[t] and len(t) > 3 and not _SMALL & set(t.split())]
    return sorted(usual, key=hash_of)[:100]


def hash_of(text: str) -> int:
    """Return a number that tells texts apart, the same in every run."""
    number = 0
    for byte in text.encode():
        number = (number * 131 + byte) % 1_000_003
    return number


def places(lists: Sequence[Sequence[Sequence[str]]], answers: Sequence[Sequence[str]]) -> list[int]:
    """Return where a right one stands in each list, from 0; 99 if nowhere. An entry's spellings are all one entry."""
    out = []
    for entries, right in zip(lists, answers, strict=True):
        same = (any(same_term(*both) for both in product(forms, right)) for forms in entries)
        out.append(next((i for i, one in enumerate(same) if one), 99))
    return out


def shares(found: list[int]) -> dict[str, float]:
    """Return the share that is right first, and among five."""
    count = max(1, len(found))
    return {"first": sum(p == 0 for p in found) / count, "five": sum(p < 5 for p in found) / count}


def measure(model: StaticModel, language: str, settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of one language."""
    every = list(pairs_of(DATA / "train" / f"en-{language}" / "msdocs.tsv.gz"))
    pairs = every[max(_LEARNT, len(every) - settings["lines"]) :]
    passages = [b for _, b in pairs]
    terms, answers = make_terms(DATA, language, pairs, settings["terms"])
    asked, how = [*terms, *foreign_to(DATA, language, every)], SpanConfig(k=5, threads=settings["threads"])
    with patch("xswe.phrases.terms.find_phrases", cache_of(find_phrases)) as search:
        found = {
            "evidence": find_terms(model, asked, passages, how),
            "bitext": find_terms(model, asked, passages, how, bitext=pairs),
        }
        hits = search()[: len(terms)]
    listed = {"cosine": [[[hit.places[0].text] for hit in few[: how.k]] for few in hits]}
    listed |= {order: [[(one.text, *one.variants) for one in few] for few in lists] for order, lists in found.items()}
    rows = []
    for order, lists in listed.items():
        where = places(lists[: len(terms)], answers)
        for part, some in (("all", where), ("tuned", where[1::2]), ("held", where[0::2])):
            row = {"language": language, "order": order, "terms": part, "n": len(some), **shares(some)}
            if part == "all":
                row |= {"further": sum(len(right) > 1 for right in answers)}
            if part == "all" and order in found:
                row |= {"silent": sum(not few for few in lists[: len(terms)]) / max(1, len(terms))}
            rows.append(row)
    for order, lists in found.items():
        absent = lists[len(terms) :]
        row = {"language": language, "order": order, "terms": "absent", "n": len(absent), "first": None, "five": None}
        rows.append({**row, "silent": sum(not few for few in absent) / max(1, len(absent))})
    return rows


def cache_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that is called once, and gives what it gave then."""
    results: list[Any] = []

    def call(*given: Any, **named: Any) -> Any:
        if not results:
            results.append(function(*given, **named))
        return results[0]

    return call


def main(settings: dict[str, Any]) -> None:
    """Measure and write."""
    model, rows = xswe.load(settings["model"]), []
    assert isinstance(model, StaticModel)
    for language in (code for code in ("de", "ja", "zh") if code in model.languages):
        rows += measure(model, language, settings)
    header = ("language", "order", "terms", "n", "first", "five", "silent", "further")
    print(table(header, [[row.get(name) for name in header] for row in rows]))
    write_json(Path(settings["output"]), rows)


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
