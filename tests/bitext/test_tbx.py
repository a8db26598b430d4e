"""TBX is valid: against the content models of TBX-Basic's core structure, and against what its constraints allow where."""

from __future__ import annotations

import io

import pytest

from xswe.bitext.termbases import Candidate, read_tbx, write_concepts, write_tbx
from xswe.errors import ConfigError

etree = pytest.importorskip("lxml.etree")

# What ISO 30042:2008's core structure says of each element that TBX-Basic has: its children, in order, and its attributes.
_AUXILIARY = "descrip | descripGrp | admin | adminGrp | transacGrp | note | ref | xref"
_MODELS = {
    "martif": "(martifHeader, text)",
    "martifHeader": "(fileDesc, encodingDesc?, revisionDesc?)",
    "fileDesc": "(titleStmt?, publicationStmt?, sourceDesc+)",
    "titleStmt": "(title, note*)",
    "publicationStmt": "(p+)",
    "sourceDesc": "(p+)",
    "encodingDesc": "(p+)",
    "revisionDesc": "(change+)",
    "change": "(p+)",
    "text": "(body, back?)",
    "body": "(termEntry+)",
    "back": "ANY",
    "termEntry": f"(({_AUXILIARY})*, langSet+)",
    "langSet": f"(({_AUXILIARY})*, tig+)",
    "tig": f"(term, termNote*, ({_AUXILIARY})*)",
    "descripGrp": "(descrip, admin*)",
    "adminGrp": "(admin, note*)",
    "transacGrp": "(transac, (transacNote | date)*)",
    **dict.fromkeys(
        ("title", "p", "term", "termNote", "descrip", "admin", "transac", "transacNote", "date", "note", "ref", "xref"),
        "(#PCDATA)",
    ),
}
_ATTRIBUTES = """
<!ATTLIST martif type CDATA #REQUIRED xml:lang CDATA #REQUIRED>
<!ATTLIST p type (XCSURI | XCSContent | DCSName) #IMPLIED>
<!ATTLIST termEntry id ID #IMPLIED>
<!ATTLIST langSet xml:lang CDATA #REQUIRED id ID #IMPLIED>
<!ATTLIST descrip type CDATA #REQUIRED>
<!ATTLIST termNote type CDATA #REQUIRED>
<!ATTLIST admin type CDATA #REQUIRED>
"""
SCHEMA = etree.DTD(io.StringIO("".join(f"<!ELEMENT {name} {model}>\n" for name, model in _MODELS.items()) + _ATTRIBUTES))
NASTY = 'Zug & <Bahn> "ICE"\x00\x1f\ufffe \ud83d ]]> \t\n end'


def checked(text: str):
    tree = etree.fromstring(text.encode("utf-8", "strict"))
    assert SCHEMA.validate(tree), SCHEMA.error_log
    assert tree.get("type") == "TBX-Basic"
    # TBX-Basic's constraints: a context is said of a term, and nothing else that we write is constrained.
    assert {(d.get("type"), d.getparent().tag) for d in tree.iter("descrip")} <= {("context", "tig")}
    languages = [[one.get("{http://www.w3.org/XML/1998/namespace}lang") for one in e] for e in tree.iter("termEntry")]
    assert all(len(set(codes)) == len(codes) for codes in languages)  # a language has one section an entry
    return tree


def test_terms_with_candidates_are_valid():
    found = [
        ("train", [Candidate("Zug", "Der Zug ist da.", "score 0.9", "noun"), Candidate("Bahn")]),
        ("nothing", []),
        (NASTY, [Candidate(NASTY, NASTY, NASTY)]),
    ]
    tree = checked("".join(write_tbx(found, ("en", "de"))))
    assert [entry.get("id") for entry in tree.iter("termEntry")] == ["c1", "c3"]
    assert [term.text for term in tree.iter("term")][:3] == ["train", "Zug", "Bahn"]


def test_terms_are_written_to_the_byte():
    terms = [("a", []), ("b", [Candidate("B", note="n"), Candidate("B2", "x\ny", "", "noun")]), ("c<", [Candidate("C")])]
    assert (
        "".join(write_tbx(terms, ("en", "de")))
        == """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE martif SYSTEM "TBXBasiccoreStructV02.dtd">
<martif type="TBX-Basic" xml:lang="en">
<martifHeader><fileDesc><sourceDesc><p>Candidates found by xswe</p></sourceDesc></fileDesc><encodingDesc>\
<p type="XCSURI">TBXBasicXCSV02.xcs</p></encodingDesc></martifHeader>
<text><body>
<termEntry id="c2">
<langSet xml:lang="en"><tig><term>b</term></tig></langSet>
<langSet xml:lang="de">
<tig><term>B</term><note>n</note></tig>
<tig><term>B2</term><termNote type="partOfSpeech">noun</termNote><descrip type="context">x y</descrip></tig>
</langSet>
</termEntry>
<termEntry id="c3">
<langSet xml:lang="en"><tig><term>c&lt;</term></tig></langSet>
<langSet xml:lang="de"><tig><term>C</term></tig></langSet>
</termEntry>
</body></text>
</martif>
"""
    )


def test_terms_are_read_with_whether_they_may_be_used(tmp_path):
    def tig(term, status=""):
        return (
            f'<tig><term>{term}</term>{status and f"""<termNote type="administrativeStatus">{status}</termNote>"""}</tig>'
        )

    english = tig("a <b>cat</b>\n ") + tig("tom-cat", "deprecatedTerm-admn-sts") + tig("")
    german = tig("Katze", "preferredTerm-admn-sts") + tig("Kater", "deprecatedTerm-admn-sts")
    entries = (
        f'<termEntry><langSet xml:lang="en-US">{english}</langSet><langSet xml:lang="fr">{tig("chat")}</langSet>'
        f'<langSet xml:lang="de">{german}</langSet>'
        f'</termEntry><termEntry><langSet xml:lang="en">{tig("alone")}</langSet></termEntry>'
    )
    (tmp_path / "a.tbx").write_text(f"<martif><text><body>{entries}</body></text></martif>", "utf-8")
    assert list(read_tbx(tmp_path / "a.tbx", "en", "de")) == [
        (a, b, allowed) for a in ("a cat", "tom-cat") for b, allowed in (("Katze", True), ("Kater", False))
    ]
    new = "<conceptEntry>{}{}</conceptEntry>".format(
        *(
            f'<langSec xml:lang="{code}"><termSec><term>{term}</term>{more}</termSec></langSec>'
            for code, term, more in (
                ("de", "Hund", ""),
                ("en", "dog", "<min:administrativeStatus>deprecatedTerm-admn-sts</min:administrativeStatus>"),
            )
        )
    )
    (tmp_path / "b.tbx").write_text(f'<tbx xmlns:min="urn:min"><text><body>{new}</body></text></tbx>', "utf-8")
    assert list(read_tbx(tmp_path / "b.tbx", "de", "en")) == [("Hund", "dog", False)]
    assert list(read_tbx(tmp_path / "b.tbx", "en", "de")) == [("dog", "Hund", True)]


def test_concepts_of_four_languages_are_valid():
    concepts = [{code: [Candidate(f"{code}{k}", "", "") for k in range(3)] for code in ("en", "de", "zh", "ja")}, {}]
    tree = checked("".join(write_concepts(concepts)))
    assert len(list(tree.iter("langSet"))) == 4


def test_the_schema_refuses_what_is_not_tbx():
    good = "".join(write_tbx([("train", [Candidate("Zug", "", "")])], ("en", "de")))
    for wrong in (
        good.replace("<tig>", "").replace("</tig>", ""),
        good.replace(' xml:lang="de"', ""),
        good.replace("<term>Zug</term>", ""),
        good.replace("<martifHeader>", "<x/><martifHeader>"),
    ):
        assert wrong != good
        assert not SCHEMA.validate(etree.fromstring(wrong.encode()))


def test_without_a_term_nothing_is_written():
    """The schema asks for an entry: there is no document of none."""
    for concepts in ([], [{}, {}]):
        with pytest.raises(ConfigError, match="no term was found"):
            list(write_concepts(concepts))
