"""Terms as TBX-Basic (ISO 30042), the exchange format of terminology."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from xswe.phrases.terms import Term

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _xml(text: str) -> str:
    return escape(" ".join(_NOT_XML.sub(" ", text).split()))


def write_tbx(queries: Sequence[str], found: Sequence[Sequence[Term]], languages: Sequence[str]) -> Iterator[str]:
    """Yield a document: an entry a phrase with candidates, its candidates the best first, each with a sentence.

    Args:
        queries: the phrases.
        found: the candidates of each.
        languages: codes of the phrases' and the candidates' language.
    """
    source, target = languages
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE martif SYSTEM "TBXBasiccoreStructV02.dtd">\n'
    yield f'<martif type="TBX-Basic" xml:lang="{source}">\n<martifHeader><fileDesc><sourceDesc><p>Candidates found by '
    yield 'xswe</p></sourceDesc></fileDesc><encodingDesc><p type="XCSURI">TBXBasicXCSV02.xcs</p></encodingDesc>'
    yield "</martifHeader>\n<text><body>\n"
    for number, (query, terms) in enumerate(zip(queries, found, strict=True), 1):
        if not terms:
            continue
        yield f'<termEntry id="c{number}">\n<langSet xml:lang="{source}"><tig><term>{_xml(query)}</term></tig></langSet>\n'
        yield f'<langSet xml:lang="{target}">\n'
        for term in terms:
            note = f"score {term.score:.4f}, {term.times} times in {term.passages} passages"
            yield f'<tig><term>{_xml(term.text)}</term><descrip type="context">{_xml(term.places[0].context)}</descrip>'
            yield f"<note>{note}</note></tig>\n"
        yield "</langSet>\n</termEntry>\n"
    yield "</body></text>\n</martif>\n"
