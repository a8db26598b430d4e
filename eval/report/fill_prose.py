"""Puts the figures that prose.py names into the sentences of a page; finds what looks measured and is not named."""

from __future__ import annotations

import re
from collections.abc import Iterator

from eval.report.prose import OTHERS, SENTENCES
from eval.settings import Measured

_FIGURE = r"\d[\d,]*(?:\.\d+)?|\.\d+"
_UNIT = r"%|times|[mn]?s|seconds|minutes|hours|[kKMGT]i?B|points|(?:\w+\s+)?a\s+second"
# What looks measured: a number with a unit of measurement, and any with decimals. A unit may stand behind a later number.
_MEASURED = re.compile(
    rf"(?<![\w.\-])(?:(?:{_FIGURE})(?=(?:,?\s(?:(?:and|to|or)\s)?(?:{_FIGURE}))*\s?(?:{_UNIT})(?!\w))|[\d,]*\.\d+(?![\w.]\d))"
)
# What is no prose: blocks of code and of output, code in a line, addresses, comments, tables that scripts fill, and the
# versions of licences.
_NO_PROSE = re.compile(
    r"```.*?```|<!-- (?:table:[\w.-]+|formats) -->.*?<!-- end -->|<!--.*?-->|`[^`]*`|\]\([^)\s]*\)"
    r"|CC\sBY(?:-SA)?\s\d\.\d",
    re.DOTALL,
)


def _places(text: str, sentence: str) -> Iterator[re.Match[str]]:
    pattern = re.sub(r"(?:\\ )+", r"\\s+", re.escape(sentence)).replace(r"\#", f"({_FIGURE})")
    return re.finditer(pattern, text)


def _written(old: str, value: float) -> str:
    """Return a value as it is written where another stood: the old text, if it is the value rounded."""
    whole, _, decimals = old.replace(",", "").partition(".")
    rounded_off = len(whole) - len(whole.rstrip("0")) if len(whole) > 3 and not decimals else 0
    last = 10.0 ** (rounded_off - len(decimals))
    if abs(float(old.replace(",", "")) - value) <= 0.5 * last + 1e-9:
        return old
    new = f"{round(value, len(decimals) - rounded_off):,.{len(decimals)}f}"
    return new.removeprefix("0") if old.startswith(".") else new


def fill_figures(page: str, text: str, measured: Measured) -> str:
    """Put the figures into the sentences of a page.

    Args:
        page: its path in the checkout, as ``docs/faq.md``.
        text: of the page.
        measured: the results.

    Raises:
        ValueError: the page lacks a sentence, or has it twice.
    """
    for sentence, values in SENTENCES.get(page, []):
        found = list(_places(text, sentence))
        if len(found) != 1:
            raise ValueError(f"eval/report/prose.py: {page} has {len(found)} times: {sentence}")
        ends = [found[0].span(number) for number in range(1, len(found[0].groups()) + 1)]
        for (start, end), value in reversed(list(zip(ends, values(measured), strict=True))):
            text = text[:start] + _written(text[start:end], value) + text[end:]
    return text


def unnamed(page: str, text: str) -> list[str]:
    """Return what looks measured in the prose of a page and is in no sentence that is checked, with its line.

    Args:
        page: its path in the checkout.
        text: of the page.
    """

    def blank(found: re.Match[str]) -> str:
        return re.sub(r"[^\n]", "~", found[0])

    for sentence, _ in SENTENCES.get(page, []):
        for found in list(_places(text, sentence)):
            for number in range(1, len(found.groups()) + 1):
                start, end = found.span(number)
                text = text[:start] + "~" * (end - start) + text[end:]
    text = _NO_PROSE.sub(blank, text)
    for other in OTHERS.get(page, ()):
        text = re.sub(re.sub(r"(?:\\ )+", r"\\s+", re.escape(other)), blank, text)
    return [f"{text.count(chr(10), 0, found.start()) + 1}: {found[0]}" for found in _MEASURED.finditer(text)]
