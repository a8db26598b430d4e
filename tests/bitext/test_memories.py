"""TMX and XLIFF as they are exchanged: valid, and what other tools read of them."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

import pytest

from xswe.bitext.catalogues import write_catalogue
from xswe.bitext.memories import (
    Unit,
    copy_xliff,
    named_codes,
    read_memory,
    unit_notes,
    unit_properties,
    write_tmx,
    write_xliff,
    write_xliff2,
)
from xswe.bitext.source import Source
from xswe.errors import ConfigError
from xswe.version import __version__

etree = pytest.importorskip("lxml.etree")

UNITS = [
    Unit(0.9, "Zug & <Bahn>\x00", "train\n& railway", "1 | 1"),
    Unit(1.0, "ja", "yes", "2 | 2", "right", "ask <the client>"),
    Unit(0.0, "allein", "", "3 | "),
]
# The content models of TMX 1.4b (tmx14.dtd), and of what XLIFF 1.2 has of the elements that are written.
TMX = """
<!ELEMENT tmx (header, body)> <!ATTLIST tmx version CDATA #FIXED "1.4">
<!ELEMENT header (note | prop | ude)*>
<!ATTLIST header creationtool CDATA #REQUIRED creationtoolversion CDATA #REQUIRED
  segtype (block | paragraph | sentence | phrase) #REQUIRED o-tmf CDATA #REQUIRED adminlang CDATA #REQUIRED
  srclang CDATA #REQUIRED datatype CDATA #REQUIRED o-encoding CDATA #IMPLIED creationdate CDATA #IMPLIED
  creationid CDATA #IMPLIED changedate CDATA #IMPLIED changeid CDATA #IMPLIED>
<!ELEMENT ude EMPTY> <!ELEMENT body (tu*)> <!ELEMENT tu ((note | prop)*, tuv+)>
<!ATTLIST tu tuid CDATA #IMPLIED creationdate CDATA #IMPLIED creationid CDATA #IMPLIED changedate CDATA #IMPLIED>
<!ELEMENT tuv ((note | prop)*, seg)> <!ATTLIST tuv xml:lang CDATA #REQUIRED>
<!ELEMENT seg (#PCDATA)> <!ELEMENT note (#PCDATA)> <!ELEMENT prop (#PCDATA)> <!ATTLIST prop type CDATA #REQUIRED>
"""
XLIFF = """
<!ELEMENT xliff (file+)> <!ATTLIST xliff version CDATA #FIXED "1.2" xmlns CDATA #IMPLIED>
<!ELEMENT file (header?, body)>
<!ATTLIST file original CDATA #REQUIRED source-language NMTOKEN #REQUIRED datatype (plaintext) #REQUIRED
  target-language NMTOKEN #IMPLIED date CDATA #IMPLIED tool-id CDATA #IMPLIED xml:space (default | preserve) "default">
<!ELEMENT header (tool*)>
<!ELEMENT tool EMPTY> <!ATTLIST tool tool-id CDATA #REQUIRED tool-name CDATA #REQUIRED tool-version CDATA #IMPLIED>
<!ELEMENT body (trans-unit*)> <!ELEMENT trans-unit (source, target?, note*)>
<!ATTLIST trans-unit id CDATA #REQUIRED approved (yes | no) #IMPLIED>
<!ELEMENT source (#PCDATA)> <!ELEMENT note (#PCDATA)>
<!ELEMENT target (#PCDATA)>
<!ATTLIST target state (final | needs-adaptation | needs-l10n | needs-review-adaptation | needs-review-l10n
  | needs-review-translation | needs-translation | new | signed-off | translated) #IMPLIED>
"""
CODES = ("en-GB", "zh-Hant")


def text_of(write, *, units=UNITS, **how):
    return "".join(write(units, CODES, **how))


def read(tmp_path, store, text):
    storage = pytest.importorskip(f"translate.storage.{store[0]}")  # translate-toolkit, where it is installed
    (tmp_path / "a.xml").write_text(text, encoding="utf-8")
    with (tmp_path / "a.xml").open("rb") as stream:
        return getattr(storage, store[1]).parsefile(stream)


@pytest.mark.parametrize(("write", "model"), [(write_tmx, TMX), (write_xliff, XLIFF)])
@pytest.mark.parametrize("date", [None, "2026-01-31T12:30:00+02:00", "now"])
def test_documents_are_valid(write, model, date):
    tree = etree.fromstring(text_of(write, date=date).replace('xmlns="urn:oasis:names:tc:xliff:document:1.2"', "").encode())
    schema = etree.DTD(io.StringIO(model))
    assert schema.validate(tree), schema.error_log
    other = text_of(write, date=date)
    assert date == "now" or other == text_of(write, date=date)
    assert ("2026-01-31T10:30:00Z" in other or "20260131T103000Z" in other) == (date is not None and date != "now")


@pytest.mark.parametrize(("write", "schema"), [(write_xliff, "1.2-strict"), (write_xliff2, "2.0")])
@pytest.mark.parametrize("date", [None, "2026-01-31T12:30:00+02:00"])
def test_xliff_is_valid_by_the_published_schema(write, schema, date):
    folder = Path(os.environ.get("XSWE_SCHEMAS", "/usr/share/php/Symfony/Component/Translation/Resources/schemas"))
    if not (folder / f"xliff-core-{schema}.xsd").is_file():
        pytest.skip("XSWE_SCHEMAS does not name the folder of the schemas in Debian's php-symfony-translation")

    class Own(etree.Resolver):
        """Finds the schema of XML's own attributes in the same folder."""

        def resolve(self, url, public, context):
            return self.resolve_filename(str(folder / "xml.xsd"), context) if url.endswith("xml.xsd") else None

    parser = etree.XMLParser()
    parser.resolvers.add(Own())
    published = etree.XMLSchema(etree.parse(folder / f"xliff-core-{schema}.xsd", parser))
    tree = etree.fromstring(text_of(write, date=date, original="a book.txt").encode())
    assert published.validate(tree), published.error_log
    next(tree.iter("{*}source")).tag = "sauce"
    assert not published.validate(tree)


def test_a_date_is_one():
    with pytest.raises(ConfigError, match="date=soon: write now, or a date as in 2026-01-31"):
        text_of(write_tmx, date="soon")


WRITTEN = [
    *UNITS[:1],
    Unit(1.0, "ja", "yes", "2\t| 2", "right", "ask <the client>", "a 1"),
    Unit(None, "ja", "yeah", "", "moved", "one\ntwo", "2"),
    Unit(-0.25, "allein", "", "3 | ", id="2"),
    Unit(None, 'C:\\ "x"\t\n', "y", "", id="u4"),
]
TMX_WRITTEN = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4">
<header creationtool="xswe" creationtoolversion="{version}" segtype="sentence" o-tmf="xswe" adminlang="en" srclang="en-GB" \
datatype="plaintext" creationdate="20260131T103000Z"/>
<body>
<tu creationdate="20260131T103000Z"><prop type="x-score">0.900000</prop><prop type="x-lines">1 | 1</prop>\
<tuv xml:lang="en-GB"><seg>Zug &amp; &lt;Bahn&gt; </seg></tuv><tuv xml:lang="zh-Hant"><seg>train
&amp; railway</seg></tuv></tu>
<tu tuid="a 1" creationdate="20260131T103000Z"><note>ask &lt;the client&gt;</note><prop type="x-score">1.000000</prop>\
<prop type="x-lines">2 | 2</prop><prop type="x-status">right</prop><tuv xml:lang="en-GB"><seg>ja</seg></tuv>\
<tuv xml:lang="zh-Hant"><seg>yes</seg></tuv></tu>
<tu tuid="2" creationdate="20260131T103000Z"><note>one
two</note><prop type="x-status">moved</prop><tuv xml:lang="en-GB"><seg>ja</seg></tuv>\
<tuv xml:lang="zh-Hant"><seg>yeah</seg></tuv></tu>
<tu tuid="2" creationdate="20260131T103000Z"><prop type="x-score">-0.250000</prop><prop type="x-lines">3 | </prop>\
<tuv xml:lang="en-GB"><seg>allein</seg></tuv><tuv xml:lang="zh-Hant"><seg></seg></tuv></tu>
<tu tuid="u4" creationdate="20260131T103000Z"><tuv xml:lang="en-GB"><seg>C:\\ "x"\t
</seg></tuv><tuv xml:lang="zh-Hant"><seg>y</seg></tuv></tu>
</body>
</tmx>
"""
XLIFF_WRITTEN = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file original="xswe" datatype="plaintext" tool-id="xswe" date="2026-01-31T10:30:00Z" xml:space="preserve" \
source-language="en-GB" target-language="zh-Hant">
<header><tool tool-id="xswe" tool-name="xswe" tool-version="{version}"/></header>
<body>
<trans-unit id="1" approved="yes"><source>Zug &amp; &lt;Bahn&gt; </source><target state="translated">train
&amp; railway</target><note>score 0.900000</note></trans-unit>
<trans-unit id="a 1" approved="yes"><source>ja</source><target state="signed-off">yes</target>\
<note>score 1.000000, right</note><note>ask &lt;the client&gt;</note></trans-unit>
<trans-unit id="2" approved="yes"><source>ja</source><target state="translated">yeah</target><note>one
two</note></trans-unit>
<trans-unit id="4" approved="no"><source>allein</source><note>score -0.250000</note></trans-unit>
<trans-unit id="u4" approved="yes"><source>C:\\ "x"\t
</source><target state="translated">y</target></trans-unit>
</body>
</file>
</xliff>
"""
XLIFF2_WRITTEN = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en-GB" trgLang="zh-Hant">
<file id="f1" original="xswe" xml:space="preserve">
<unit id="u1"><notes><note>score 0.900000</note></notes><segment state="translated">\
<source>Zug &amp; &lt;Bahn&gt; </source><target>train
&amp; railway</target></segment></unit>
<unit id="u2"><notes><note>score 1.000000, right</note><note>ask &lt;the client&gt;</note></notes><segment state="final">\
<source>ja</source><target>yes</target></segment></unit>
<unit id="2"><notes><note>one
two</note></notes><segment state="translated"><source>ja</source><target>yeah</target></segment></unit>
<unit id="u4"><notes><note>score -0.250000</note></notes><segment state="initial"><source>allein</source></segment></unit>
<unit id="u5"><segment state="translated"><source>C:\\ "x"\t
</source><target>y</target></segment></unit>
</file>
</xliff>
"""
PO_WRITTEN = r"""msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Language: zh-Hant\n"
"X-Source-Language: en-GB\n"
"PO-Revision-Date: 2026-01-31 10:30+0000\n"

#. score 0.900000
msgid "Zug & <Bahn> "
msgstr "train\n& railway"

#. score 1.000000, right
# ask <the client>
msgctxt "a 1"
msgid "ja"
msgstr "yes"

# one
# two
msgctxt "2"
msgid "ja"
msgstr "yeah"

#. score -0.250000
msgctxt "2"
msgid "allein"
msgstr ""

msgctxt "u4"
msgid "C:\\ \"x\"\t\n"
msgstr "y"
"""


@pytest.mark.parametrize(
    ("write", "text"),
    [
        (write_tmx, TMX_WRITTEN),
        (write_xliff, XLIFF_WRITTEN),
        (write_xliff2, XLIFF2_WRITTEN),
        (write_catalogue, PO_WRITTEN),
    ],
)
def test_each_format_is_written_to_the_byte(write, text):
    expected = text.replace("{version}", __version__)
    assert text_of(write, units=WRITTEN, date="2026-01-31T12:30:00+02:00") == expected


def test_a_repeated_message_has_a_context_of_its_own():
    units = [Unit(None, text, "x", "") for text in ("a", "b", "a", "", "a")]
    assert re.findall('msgctxt "(.*)"\nmsgid "(.*)"', text_of(write_catalogue, units=units)) == [
        ("3", "a"),
        ("4", ""),
        ("5", "a"),
    ]
    assert "Language" not in "".join(write_catalogue(units, ("en",)))


def test_translate_toolkit_reads_our_tmx(tmp_path):
    found = read(tmp_path, ("tmx", "tmxfile"), text_of(write_tmx))
    assert [(str(one.source), str(one.target)) for one in found.units][1] == ("ja", "yes")


@pytest.mark.parametrize(
    ("write", "suffix"), [(write_tmx, ".tmx"), (write_xliff, ".xlf"), (write_xliff2, ".xlf"), (write_catalogue, ".po")]
)
def test_every_character_of_a_text_comes_back(tmp_path, write, suffix):
    """A form feed, a next line and a line separator end a line for some readers, but none of a memory."""
    in_xml = [*"\t\n\r \x85\u2028\u2029\xa0\ufeff\ufffd\U0010ffff<&>\"'\\]]>#"]
    some = [*"\x01\x07\x0b\x0c\x1c\x1d\x1e\x1f\ufffe\uffff"] * (suffix == ".po") + in_xml
    pairs = [(f"a{one}b", f"c{one}{one}d") for one in some] + [("a\0b", "a b")]
    path = tmp_path / f"a{suffix}"
    path.write_bytes("".join(write([Unit(None, *pair, "") for pair in pairs], ("en", "de"))).encode())
    found = [record.texts for record in Source((str(path),), languages=("en", "de")).read()]
    assert found == [*pairs[:-1], ("a b", "a b")]


@pytest.mark.parametrize(
    ("write", "store"), [(write_xliff, ("xliff", "Xliff1File")), (write_xliff2, ("xliff2", "Xliff2File"))]
)
def test_xliff_is_translated(tmp_path, write, store):
    text = text_of(write, original="book.en.txt")
    assert 'original="book.en.txt"' in text
    found = read(tmp_path, store, text)
    assert (found.getsourcelanguage(), found.gettargetlanguage()) == CODES
    assert [bool(unit.istranslated()) for unit in found.units] == [True, True, False]
    assert "<note>ask &lt;the client&gt;</note>" in text
    assert str(found.units[0].source).strip() == "Zug & <Bahn>"


def test_notes_that_another_tool_adds_to_a_segment_are_read(tmp_path):
    found = read(tmp_path, ("xliff2", "Xliff2File"), text_of(write_xliff2))
    found.units[0].addnote("by another tool")  # within the segment
    segments = list(etree.fromstring(bytes(found)).iter("{*}segment"))
    assert unit_notes(segments[0]) == ("u1", ["score 0.900000", "by another tool"])
    assert unit_notes(segments[1])[1][-1] == "ask <the client>"


XLIFF_IN = """<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file original="a" \
source-language="en" target-language="de"><body><group id="g"><trans-unit id="1"><source>a</source><target>A</target>\
<note>n</note></trans-unit> x <trans-unit id="2"><source>b</source><target>B</target></trans-unit>
</group></body></file></xliff>"""
XLIFF2_IN = """<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" trgLang="de"><file id="f">\
<unit id="1"><notes><note>n</note></notes><segment><source>a</source><target>A</target></segment></unit>
<unit id="2"><segment><source>b</source><target>B</target></segment><segment><source>c</source><target>C</target></segment>\
</unit></file></xliff>"""


@pytest.mark.parametrize(
    ("given", "kept", "changes"),
    [
        (XLIFF_IN, {0: 0.5, 1: 0.25}, {"<note>n</note>": "<note>n</note><note>score 0.500000</note>",
          "<target>B</target>": "<target>B</target><note>score 0.250000</note>"}),
        (XLIFF_IN, {1: 0.25}, {'<trans-unit id="1"><source>a</source><target>A</target><note>n</note></trans-unit> x ': "",
          "<target>B</target>": "<target>B</target><note>score 0.250000</note>"}),
        (XLIFF_IN, {0: 0.5}, {"<note>n</note>": "<note>n</note><note>score 0.500000</note>",
          '<trans-unit id="2"><source>b</source><target>B</target></trans-unit>\n': ""}),
        (XLIFF2_IN, {0: 0.5, 2: 0.25}, {"<note>n</note>": "<note>n</note><note>score 0.500000</note>",
          '<unit id="2"><segment><source>b</source><target>B</target></segment>':
              '<unit id="2"><notes><note>score 0.250000</note></notes>'}),
        (XLIFF2_IN, {}, {XLIFF2_IN[XLIFF2_IN.index("<unit") : XLIFF2_IN.index("</file>")]: ""}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("scored", [True, False])
def test_a_copy_holds_the_segments_that_are_kept(tmp_path, given, kept, changes, scored):
    (tmp_path / "a.xlf").write_text(given, encoding="utf-8")
    expected = given
    for old, new in changes.items():
        assert old in expected
        expected = expected.replace(old, new)
    if not scored:
        expected = re.sub("<note>score [^<]*</note>", "", expected).replace("<notes></notes>", "")
    copy_xliff(str(tmp_path / "a.xlf"), tmp_path / "b.xlf", kept, scored)
    found = (tmp_path / "b.xlf").read_text("utf-8").partition("?>\n")[2]
    assert etree.tostring(etree.fromstring(found), method="c14n") == etree.tostring(
        etree.fromstring(expected), method="c14n"
    )


def test_comments_within_a_text_are_left_out(tmp_path):
    seg = "<seg> a<!-- x -->b<?y z?>c<ph>d</ph><hi>e<it>f</it></hi>g </seg>"
    (tmp_path / "a.tmx").write_text(
        f'<tmx><body><tu><!-- x --><tuv xml:lang="en">{seg}</tuv><tuv lang="DE-at">{seg}{seg}</tuv>'
        '<tuv xml:lang="de"><prop>x</prop><seg>second</seg></tuv></tu></body></tmx>',
        encoding="utf-8",
    )
    source = Source((str(tmp_path / "a.tmx"),), languages=("en", "de"))
    assert [record.texts for record in source.read()] == [("abceg", "abceg")]
    assert list(read_memory(tmp_path / "a.tmx")) == [{"en": "abceg", "de": "abceg"}]
    assert named_codes(tmp_path / "a.tmx") == ["en", "DE-at", "de"]


def test_a_unit_of_tmx_is_read_with_its_properties():
    unit = etree.fromstring(
        '<tu tuid="7"><note> one </note><prop type="x-a"> 1 </prop><prop>2</prop><prop type="b"/><note>two</note></tu>'
    )
    assert unit_properties(unit) == ("7", "one\ntwo", {"a": "1", "": "2", "b": ""})
    assert unit_properties(etree.fromstring("<tu/>")) == ("", "", {})


def test_what_is_lost_behind_damage_is_said_to_all_who_skip_it(tmp_path, caplog):
    """Nobody can count units that cannot be read: a filter passed over them in silence."""
    units = "".join(f"<tu>{variants(n)}</tu>" for n in range(40))
    (tmp_path / "a.tmx").write_text(f"<tmx><body>{units[:-300]}", encoding="utf-8")
    source = Source((str(tmp_path / "a.tmx"),), languages=("en", "de"), on_error="skip")
    for _ in range(2):
        assert 30 < len(list(source.read())) < 40
    assert sum("after the damage" in record.message for record in caplog.records) == 1


def variants(number):
    return "".join(
        f'<tuv xml:lang="{code}"><seg>{word} {number}.</seg></tuv>' for code, word in (("en", "Cat"), ("de", "Katze"))
    )
