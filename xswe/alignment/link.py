"""Word links of a bitext, written as they are or turned into a lexicon, terms, or a term check."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack

from xswe.alignment.phrase_table import PhraseTable, phrase_table
from xswe.alignment.term_check import AgreedTerm, TermCheck, TermCheckConfig, check_terms, read_terms
from xswe.alignment.terms import BilingualTerms, bilingual_terms
from xswe.alignment.words import BLOCK, LinkConfig, LinkedPair, WordLinks, check_links, holds_all, link_pairs, write_links
from xswe.bitext.source import Source
from xswe.corpus.near_duplicates import NearDuplicates
from xswe.io.arguments import pairs_or_names
from xswe.io.files import check_output
from xswe.io.lines import OnError, Skipped, left_out_of
from xswe.io.results import check_suffix
from xswe.io.settings import changed, check_choice, check_least, for_all, refuse_unused
from xswe.mining.threshold import near_duplicate_note
from xswe.model.ensemble import AnyModel, open_model

if TYPE_CHECKING:
    from xswe.settings import BitextLinkSettings

Made = Literal["links", "lexicon", "terms", "check"]
_PHRASE_WORDS = for_all(Made, {"links": 0, "lexicon": 1, "terms": 4, "check": 0})  # default of ``most``


@dataclass(frozen=True)
class BitextLinkConfig(LinkConfig):
    """Settings of word links and the output made from them.

    Attributes:
        what: ``links`` between words; ``lexicon``: a phrase table with counts, both probabilities and lexical weights;
            ``terms`` in both languages; ``check``: translations that do not use the agreed terms.
        terms: with ``check``: a file of agreed terms, ``.tbx`` or bitext with a term and its translation a row; null for
            the terms that ``what=terms`` finds in these pairs, with the most reliable translation of each.
        consistency: with ``check``: also list places where the rarer of several agreed translations is used.
        columns: source and target in separated text, counted from 0; or names of columns or JSON fields.
        languages: of source and target, for terms and ``.tmx``; known to a model, or ``.tmx``, of two languages.
        tokens: split words at whitespace; false for the model's words.
        on_error: what to do with a damaged record: ``raise``, or ``skip`` (it has no links).
        most: maximum words of a phrase; null for 1 in a ``lexicon`` and 4 in ``terms``.
        min_count: with ``lexicon`` and ``terms``: leave out pairs linked less often.
    """

    what: Made = "links"
    terms: str | None = None
    consistency: bool = True
    columns: tuple[int | str, ...] = (0, 1)
    languages: tuple[str, ...] = ()
    tokens: bool = False
    on_error: OnError = "raise"
    most: int | None = None
    min_count: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("what", self.what, Made)
        check_least(self, most=1, min_count=1)
        unused = {f"with what={self.what}": ["most", "min_count"] if self.what in ("links", "check") else ()}
        unused["without what=check"] = ["terms", "consistency"] if self.what != "check" else ()
        refuse_unused(self, unused)


@dataclass(frozen=True)
class LinkedBitext:
    """Counts of linked pairs, and what was made from the links.

    Attributes:
        pairs: number of sentence pairs.
        links: number of links.
        made: the lexicon, terms or check; None if the links themselves were written.
        left_out: pairs without texts, which have no links, counted by reason.
        near: the share of near-duplicates of earlier pairs among the first hundred thousand with texts.
    """

    pairs: int
    links: int
    made: PhraseTable | BilingualTerms | TermCheck | None
    left_out: Mapping[str, int] = field(default_factory=dict)
    near: float = 0.0

    def summary(self) -> str:
        """Describe the result in one line."""
        found = f"{self.links:,} links" if self.made is None else f"{self.links:,} links, {self.made}"
        if isinstance(self.made, TermCheck):
            found = self.made.summary()
        near = near_duplicate_note(self.near, "pairs") if self.pairs else ""
        return f"{self.pairs:,} pairs, {found}{left_out_of(self.left_out)}{near}"


def link(
    model: AnyModel | str | Path,
    input: str | Path | Sequence[str | Path] | Sequence[tuple[str, str]],
    output: str | Path,
    *,
    config: BitextLinkConfig | None = None,
    **settings: Unpack[BitextLinkSettings],
) -> LinkedBitext:
    r"""Link the words of a bitext, and write the links, or a lexicon, terms or a term check made from them.

    Args:
        model: the model that encodes words, or its name.
        input: a list of pairs; a file of any bitext, plain or packed, ``-`` for standard input; or two line-aligned files.
        output: file, its format given by its suffix: any table; for links also ``.txt`` (Pharaoh format, ``0-0 1-2``) and
            ``.html`` (coloured words), for terms also ``.tbx``; ``-`` for standard output.
        config: settings; see :class:`BitextLinkConfig`.
        settings: single fields of ``config``: ``what``, ``method``, ``columns``, ``languages``, …

    Raises:
        ConfigError: a setting is unknown or impossible.
        InputError: a file is missing or damaged.

    Example:
        >>> import pathlib, tempfile, xswe
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "a.tsv").write_text("a cat sleeps\teine Katze schläft\n", encoding="utf-8")
        >>> xswe.link(xswe.load("mini"), folder / "a.tsv", folder / "links.txt").pairs
        1
        >>> (folder / "links.txt").read_text(encoding="utf-8")
        '0-0 1-1 2-2\n'
    """
    config = changed(config or BitextLinkConfig(), settings, "link")
    pairs, paths = pairs_or_names(input)
    _check(str(output), [*paths, *([config.terms] if config.terms else [])], config.what)
    model = open_model(model, "link(model, input, output)")
    languages = tuple(config.languages) or tuple(model.pair)
    left_out, near, counts, texts = Skipped(), NearDuplicates(), [0, 0], iter(pairs)
    if paths:
        file = Source(tuple(paths), tuple(config.columns), languages, config.on_error)
        languages, texts = file.languages, (record.texts or ("", "") for record in file.read(left_out))

    def linked() -> Iterator[LinkedPair]:
        for pair in link_pairs(model, _counted(texts, near), config, config.tokens):
            counts[0], counts[1] = counts[0] + 1, counts[1] + len(pair.links)
            yield pair

    terms = read_terms(config.terms, languages) if config.terms else None
    made = _made(linked(), languages, config, terms, Path(paths[0]).name if paths else "")
    if made is not None:
        made.write(Path(output))
    elif holds_all(output):
        WordLinks(tuple(linked())).write(output)
    else:
        write_links(output, linked())
    return LinkedBitext(counts[0], counts[1], made, left_out.counts, near.share)


def _counted(pairs: Iterator[tuple[str, str]], near: NearDuplicates) -> Iterator[tuple[str, str]]:
    """Yield the pairs, and count the near-duplicates among those with texts."""
    while block := list(islice(pairs, BLOCK)):
        near.add_pairs([pair for pair in block if any(pair)])
        yield from block


def _check(output: str, inputs: Iterable[str], what: Made) -> None:
    """Refuse early a file that cannot be written or has the suffix of an unsupported format."""
    check_output(output, [path for path in inputs if path != "-"])
    if what == "links":
        check_links(output)
    elif what != "terms" or not output.endswith(".tbx"):
        check_suffix(output)


def _made(
    links: Iterator[LinkedPair],
    languages: tuple[str, ...],
    config: BitextLinkConfig,
    terms: Sequence[AgreedTerm] | None,
    name: str,
) -> PhraseTable | BilingualTerms | TermCheck | None:
    if config.what == "check":
        return check_terms(links, terms, languages, TermCheckConfig(config.consistency), name=name)
    most = config.most or _PHRASE_WORDS[config.what]
    if config.what == "terms":
        return bilingual_terms(links, languages, most=most, min_count=config.min_count)
    return phrase_table(links, most=most, min_count=config.min_count) if config.what == "lexicon" else None
