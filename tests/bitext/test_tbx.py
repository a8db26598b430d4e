"""TBX is valid: against the content models of TBX-Basic's core structure, and against what its constraints allow where."""

from __future__ import annotations

import io

import pytest

from xswe.bitext.termbases import Candidate, write_concepts, write_tbx
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
