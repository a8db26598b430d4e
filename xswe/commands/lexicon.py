"""``python -m xswe lexicon``: a dictionary from the vectors of words."""

from __future__ import annotations

from typing import Any

import xswe
from xswe.alignment.lexicon import LexiconConfig, make_lexicon, precision, read_words, vocabularies
from xswe.commands.config import refuse_unused, settings
from xswe.errors import ConfigError
from xswe.io.files import check_output
from xswe.io.results import Rows, check_suffix, write_text
from xswe.io.sources import suffix_of
from xswe.mining.output import one_line
from xswe.model.ensemble import Ensemble


def run(values: dict[str, Any]) -> str:
    """Write the lexicon, and return its size and (with a gold lexicon) its precision."""
    if bool(values["source"]) != bool(values["target"]):
        raise ConfigError("give both source= and target= (a word a line), or neither, for the model's own words")
    refuse_unused("lexicon", values, {"with source= and target=": ["languages"] if values["source"] else ()})
    check_output(values["output"], [values[name] for name in ("source", "target", "gold") if values[name]])
    if not (plain := values["output"] == "-" or suffix_of(values["output"]) in ("", ".tsv", ".txt")):
        check_suffix(values["output"])
    config = settings(LexiconConfig, values, "lexicon")
    model = xswe.load(values["model"])
    if values["source"]:
        source, target = (read_words(values[side], values["limit"]) for side in ("source", "target"))
    else:
        known = ", ".join(model.languages)
        languages = values["languages"] or model.languages
        if len(languages) != 2:
            raise ConfigError(f"the model has the languages {known}: name two, as in languages=[en,ja]")
        if isinstance(model, Ensemble):
            raise ConfigError("an ensemble has no words of its own: give source= and target=, a word a line")
        both = vocabularies(model, languages)
        source, target = (words[: values["limit"] or None] for words in both)
    pairs = make_lexicon(model, source, target, config)
    columns = zip(pairs.source, pairs.target, pairs.scores, pairs.rank, strict=True)
    rows = [(one_line(source[a]), one_line(target[b]), float(score), int(rank)) for a, b, score, rank in columns]
    if plain:
        write_text(values["output"], (f"{a}\t{b}\t{score:.6f}\t{rank}\n" for a, b, score, rank in rows))
    else:
        Rows(("source", "target", "csls", "rank"), rows).write(values["output"])
    lines = [f"{len(source):,} and {len(target):,} words, {len(pairs):,} pairs: {values['output']}"]
    if values["gold"]:
        found = precision(model, source, target, values["gold"], config)
        figures = f"P@1 {100 * found.at_1:.1f}, P@5 {100 * found.at_5:.1f}"
        lines.append(f"{figures} on {found.words:,} of {found.gold:,} gold words (those in both vocabularies)")
    return "\n".join(lines)
