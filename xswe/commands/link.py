"""``python -m xswe link``: links of the words of a bitext, and the tables that they make."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import xswe
from xswe.alignment.lexicon import bilingual_terms, phrase_table
from xswe.alignment.words import LinkConfig, LinkedPair, WordLinks, check_links, holds_all, link_pairs, write_links
from xswe.bitext.records import RecordFile
from xswe.commands.config import bitext_files, refuse_unused, settings
from xswe.errors import ConfigError
from xswe.io.files import check_output
from xswe.io.results import check_suffix


def run(values: dict[str, Any]) -> str:
    """Link, write what is asked for, and say how much there is."""
    paths = bitext_files(values, "link")
    output, what = str(values["output"]), values["what"]
    check_output(output, [path for path in paths if path != "-"])
    if what not in ("links", "lexicon", "terms"):
        raise ConfigError(f"what={what!r}: choose one of links, lexicon, terms")
    refuse_unused("link", values, {"with what=links": ["most", "min_count"] if what == "links" else ()})
    if what == "links":
        check_links(output)
    elif what == "lexicon" or not output.endswith(".tbx"):
        check_suffix(output)
    config = settings(LinkConfig, values, "link")
    model = xswe.load(values["model"])
    spoken = tuple(values["languages"]) or tuple(model.pair)
    file = RecordFile(tuple(paths), tuple(values["columns"]), spoken, values["on_error"])
    pairs, counts = (record.texts or ("", "") for record in file.read()), [0, 0]

    def linked() -> Iterator[LinkedPair]:
        for pair in link_pairs(model, pairs, config, values["tokens"]):
            counts[0], counts[1] = counts[0] + 1, counts[1] + len(pair.links)
            yield pair

    made = ""
    if what != "links":
        how = {"most": values["most"] or (4 if what == "terms" else 1), "min_count": values["min_count"]}
        found = bilingual_terms(linked(), file.languages, **how) if what == "terms" else phrase_table(linked(), **how)
        found.write(Path(output))
        made = f", {found}"
    elif holds_all(output):
        WordLinks(tuple(linked())).write(output)
    else:
        write_links(output, linked())
    return f"{counts[0]:,} pairs, {counts[1]:,} links{made}: {output}"
