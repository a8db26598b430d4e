"""Formats other than lines: memories, catalogues, records, tables; each on a file in the exact format."""

from __future__ import annotations

import errno
import gzip
import json
import sys
from itertools import pairwise

import pytest

from xswe.bitext.source import Source, find_pairs, read_pairs
from xswe.bitext.tables import _texts, column_names, table_texts
from xswe.errors import ConfigError, InputError
from xswe.io.lines import Skipped
from xswe.io.results import write_table

EN_JA = ("en", "ja")
TMX = """<?xml version="1.0" encoding="{encoding}"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4">
<header creationtool="x" creationtoolversion="1" segtype="sentence" o-tmf="x" adminlang="en" srclang="en"
 datatype="plaintext"/>
<body>
<tu tuid="1"><prop type="x">y</prop>
 <tuv xml:lang="EN-US">
 <seg>Press <bpt i="1">&lt;b&gt;</bpt>any<ept i="1">&lt;/b&gt;</ept> <hi>key</hi> &amp; wait</seg></tuv>
 <tuv xml:lang="ja"><seg>何かキーを
押す</seg></tuv>
 <tuv xml:lang="ja-JP"><seg>second</seg></tuv>
</tu>
<tu><tuv xml:lang="en"><seg>alone</seg></tuv><tuv xml:lang="fr"><seg>seul</seg></tuv></tu>
<tu><tuv lang="ja"><seg>猫</seg></tuv><tuv lang="en"><seg>cat</seg></tuv></tu>
</body></tmx>
"""
TMX_PAIRS = [("Press any key & wait", "何かキーを 押す"), ("cat", "猫")]


def read(path, languages=EN_JA, skipped=None, on_error="raise", **entry):
    (file,) = find_pairs([{"path": path, **entry}], languages)
    return list(read_pairs(file, on_error=on_error, skipped=skipped))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "shift_jis"])
def test_tmx(tmp_path, encoding):
    path = tmp_path / "m.tmx"
    text = TMX.format(encoding=encoding)
    path.write_bytes(text.encode(encoding))
    skipped = Skipped()
    assert read(path, skipped=skipped) == TMX_PAIRS
    assert skipped.counts == {"other languages": 1}
    assert read(path, ("ja", "en")) == [(b, a) for a, b in TMX_PAIRS]


def test_packed_tmx(tmp_path):
    (tmp_path / "m.tmx.gz").write_bytes(gzip.compress(TMX.format(encoding="UTF-8").encode()))
    assert read(tmp_path / "m.tmx.gz") == TMX_PAIRS


@pytest.mark.parametrize(
    "declaration", ['<!ENTITY x "y">', '<!ENTITY x SYSTEM "file:///etc/passwd">', '<!ENTITY a "ha"><!ENTITY b "&a;&a;">']
)
def test_entities_are_refused(tmp_path, declaration):
    path = tmp_path / "m.tmx"
    path.write_text(TMX.format(encoding="utf-8").replace('"tmx14.dtd"', f'"tmx14.dtd" [{declaration}]'), encoding="utf-8")
    with pytest.raises(InputError, match="declares entities"):
        read(path)


def test_unbalanced_xml_names_the_line_or_ends_the_file(tmp_path):
    path = tmp_path / "m.tmx"
    path.write_text(TMX.format(encoding="utf-8").replace("</tuv></tu>\n<tu>", "</tuv>\n<tu>"), encoding="utf-8")
    with pytest.raises(InputError, match=r"m\.tmx:1\d: not well-formed \(Opening and ending tag mismatch"):
        read(path)
    skipped = Skipped()
    assert read(path, skipped=skipped, on_error="skip")[0] == TMX_PAIRS[0]
    assert skipped.counts["damaged XML"] == 1


def test_a_unit_without_end_is_refused(tmp_path, monkeypatch):
    from xswe.bitext import memories

    monkeypatch.setattr(memories, "_MAX_UNIT_BYTES", 1 << 18)
    many = "<tu><tuv xml:lang='en'><seg>a</seg></tuv><tuv xml:lang='ja'><seg>b</seg></tuv></tu>" * 20_000
    (tmp_path / "many.tmx").write_text(f"<tmx><body>{many}</body></tmx>")
    assert len(read(tmp_path / "many.tmx")) == 20_000
    (tmp_path / "one.tmx").write_text(f"<tmx><body><tu><note>{'x' * (1 << 19)}")
    with pytest.raises(InputError, match="without the end of a unit"):
        read(tmp_path / "one.tmx")


XLIFF_12 = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file original="a.c" source-language="{a}" target-language="{b}" datatype="plaintext"><body><group>
<trans-unit id="1"><source>Save <g id="1">file</g><x id="2"/></source><target state="final">ファイルを保存</target>
 <alt-trans><source>old</source><target>古い</target></alt-trans></trans-unit>
<trans-unit id="2"><source>Open</source></trans-unit></group></body></file></xliff>"""
XLIFF_20 = """<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="{a}" trgLang="{b}"><file id="f">
<unit id="1"><originalData><data id="d">%s</data></originalData>
<segment><source>Save <pc id="1">file</pc><ph id="2" dataRef="d"/></source><target>ファイルを保存</target></segment>
<segment><source>Open</source></segment></unit></file></xliff>"""

TRADOS = """\ufeff<?xml version="1.0" encoding="utf-8"?>
<xliff xmlns:sdl="http://sdl.com/FileTypes/SdlXliff/1.0" xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2">
<doc-info xmlns="http://sdl.com/FileTypes/SdlXliff/1.0"><cmt-defs/></doc-info>
<file original="a.docx" datatype="x-sdlfilterframework2" source-language="{a}" target-language="{b}"><header>
<reference><internal-file form="base64">UEsDBA==</internal-file></reference><tag-defs
xmlns="http://sdl.com/FileTypes/SdlXliff/1.0"><tag id="1"><bpt name="cf">cf</bpt></tag></tag-defs></header><body><group>
<trans-unit id="1"><source>Save <g id="1">file</g></source>
<seg-source><mrk mtype="seg" mid="1">Save <g id="1">file</g></mrk></seg-source>
<target><mrk mtype="seg" mid="1">ファイルを<g id="1">保存</g></mrk></target>
<sdl:seg-defs><sdl:seg id="1" conf="Translated"><sdl:value key="x">y</sdl:value></sdl:seg></sdl:seg-defs></trans-unit>
<trans-unit id="2"><source>Open</source><seg-source><mrk mtype="seg" mid="2">Open</mrk></seg-source>
<target><mrk mtype="seg" mid="2"/></target></trans-unit></group></body></file></xliff>"""


@pytest.mark.parametrize(
    ("form", "suffix"),
    [(XLIFF_12, "xlf"), (XLIFF_12, "mqxliff"), (XLIFF_12, "mxliff"), (XLIFF_20, "xlf"), (TRADOS, "sdlxliff")],
)
def test_xliff(tmp_path, form, suffix):
    path, skipped = tmp_path / f"a.{suffix}", Skipped()
    path.write_text(form.format(a="en-US", b="ja"), encoding="utf-8")
    assert read(path, skipped=skipped) == [("Save file", "ファイルを保存")]
    assert skipped.counts == {"not translated": 1}
    assert read(path, ("ja", "en")) == [("ファイルを保存", "Save file")]
    with pytest.raises(InputError, match="translates en-US to ja"):
        read(path, ("en", "de"))


PO = """msgid ""
msgstr ""
"Language: ja\\n"
"Content-Type: text/plain; charset=UTF-8\\n"

#: a.c:1
msgid "Open "
"file"
msgstr "ファイルを開く"

#, fuzzy
msgid "Close"
msgstr "開く"

msgid "Quit"
msgstr ""

msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d 個のファイル"

#~ msgid "Old"
#~ msgstr "古い"
"""
PO_PAIRS = [("Open file", "ファイルを開く"), ("%d file", "%d 個のファイル")]


def test_gettext_source_and_compiled(tmp_path):
    import polib

    (tmp_path / "a.po").write_text(PO, encoding="utf-8")
    skipped = Skipped()
    assert read(tmp_path / "a.po", skipped=skipped) == PO_PAIRS
    assert skipped.counts == {"fuzzy or obsolete": 2, "not translated": 1}
    polib.pofile(str(tmp_path / "a.po")).save_as_mofile(str(tmp_path / "a.mo"))
    assert sorted(read(tmp_path / "a.mo")) == sorted(PO_PAIRS)
    assert read(tmp_path / "a.po", ("ja", "en")) == [(b, a) for a, b in PO_PAIRS]


@pytest.mark.parametrize("line", ['msgid "a', 'msgstr "a\\\\\\"', '"a', "msgid a", 'msgstr[0] "a'])
def test_a_string_without_its_quotes_is_not_taken_for_an_empty_one(tmp_path, line):
    pytest.importorskip("polib")
    (tmp_path / "a.po").write_text(f'# "a\nmsgid ""\nmsgstr ""\n{line}\nmsgid "b"\nmsgstr "c"\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.po:4: not a gettext catalogue \(no text in quotes\)"):
        read(tmp_path / "a.po")
    skipped = Skipped()
    assert read(tmp_path / "a.po", on_error="skip", skipped=skipped) == []
    assert skipped.counts == {"damaged catalogue": 1}


def test_a_catalogue_with_a_nul_byte_is_damaged(tmp_path):
    pytest.importorskip("polib")
    (tmp_path / "a.po").write_bytes(b'msgid "cat"\nmsgstr "Kat\0ze"\n')
    with pytest.raises(InputError, match=r"a\.po:2: a NUL byte"):
        read(tmp_path / "a.po")
    skipped = Skipped()
    assert read(tmp_path / "a.po", on_error="skip", skipped=skipped) == []
    assert skipped.counts == {"damaged catalogue": 1}


def test_a_full_disk_is_no_damage_of_a_catalogue(tmp_path, monkeypatch):
    pytest.importorskip("polib")
    (tmp_path / "a.po").write_text(PO, encoding="utf-8")

    def full(path, data):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(type(tmp_path), "write_bytes", full)
    for on_error in ("raise", "skip"):
        with pytest.raises(OSError, match="No space left"):
            read(tmp_path / "a.po", on_error=on_error)


@pytest.mark.parametrize("name", ["a.po", "a.mo"])
def test_damaged_catalogues(tmp_path, name):
    (tmp_path / name).write_bytes(b'msgid "a\nmsgstr\xff')
    with pytest.raises(InputError, match="not a gettext catalogue"):
        read(tmp_path / name)
    skipped = Skipped()
    assert read(tmp_path / name, skipped=skipped, on_error="skip") == []
    assert skipped.counts == {"damaged catalogue": 1}


def test_comma_separated_values(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes('\ufeffsource,target,note\r\n"a, b",あ,x\r\n"c\nd", い ,\r\n\r\n'.encode())
    assert read(path) == [("a, b", "あ"), ("c d", "い")]
    assert read(path, columns=[2, 0])[0] == ("x", "a, b")
    assert read(path, fields=["target", "source"])[0] == ("あ", "a, b")
    assert read(path, ("en", "en"), fields=["source", "note", "target"])[0] == ("a, b", "x")
    assert load(path, fields=["source", "note", "target"])[0] == ("a, b", "x", ["あ"])
    path.write_text("id;ja;en\n1;あ;1,5 a\n", encoding="utf-8")
    assert read(path) == [("1,5 a", "あ")]
    path.write_text("en,ja\nb,い\na\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.csv:3: 1 values under 2 columns; mend the line"):
        read(path)
    skipped = Skipped()
    assert read(path, on_error="skip", skipped=skipped) == [("b", "い")]
    assert skipped.counts == {"another number of columns": 1}
    with pytest.raises(InputError, match=r"a\.csv:1: it has the columns en, ja; name its fields"):
        read(path, fields=["english", "ja"])
    for raw, complaint in (
        (b"", "1: no names of columns; begin the file with a line of them"),
        (b"en,ja\ra,b\rc,d\r", " its lines end in CR alone; convert them with"),
        (b"en,ja\na,b\nc\0,d\n", "3: a NUL byte"),
        (b'en,ja\na,b\n"c,d\ne,f\n', "3: 1 values under 2 columns"),  # where the quote is that nothing closes
    ):
        path.write_bytes(raw)
        with pytest.raises(InputError, match=rf"a\.csv:{complaint}"):
            read(path)
    path.write_bytes(b"en,ja\na,b\nc,\xff\n")
    with pytest.raises(InputError, match=r"a\.csv:3: not UTF-8 \(byte 0xff at column 3\); convert"):
        read(path)


@pytest.mark.parametrize(
    ("names", "languages", "columns", "said"),
    [
        (["id", "text"], ("en", "ja"), ("english", "ja"), "[english, ja]} (or columns=[id,text])"),
        (["id", "text"], ("en", "ja"), (0, 5), "[en, ja]} (or columns=[id,text])"),
        (["id", "text"], ("en", "en"), (0, 5), "[anchor, positive]} (or columns=[id,text])"),
        (["id", "text"], (), (0, 5), "[anchor, positive]} (or columns=[id,text])"),
        (["x", "id", "text"], ("en", "ja"), ("english", 1), "[en, ja]} (or columns=[id,text])"),
        (["text"], ("en", "ja"), (0, 1), "[en, ja]}"),
        (["id", "text"], ("en", "ja"), ("english", "ja", "other"), "[english, ja]} (or columns=[id,text])"),
    ],
)
def test_which_columns_a_table_has_and_lacks_is_said(tmp_path, names, languages, columns, said):
    (tmp_path / "a.csv").write_text(f"{','.join(names)}\n", "utf-8")
    with pytest.raises(InputError) as caught:
        list(Source((str(tmp_path / "a.csv"),), columns, languages).units(Skipped()))
    fields = f"name its fields, as in {{path: ..., fields: {said}"
    assert str(caught.value) == f"{tmp_path / 'a.csv'}:1: it has the columns {', '.join(names)}; {fields}"


def load(path, **entry):
    """Return pairs of one language with their negatives."""
    (file,) = find_pairs([{"path": path, **entry}], ("en", "en"))
    (rows,) = (job() for job in file.jobs())
    bounds = rows.negatives.bounds.tolist()
    own = [list(rows.negatives.texts)[a:b] for a, b in pairwise(bounds)]
    return list(zip(rows.source, rows.target, own, strict=True))


def test_json_lines(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"translation": {"en": "a", "ja": "あ"}}\n\n{"en": "b", "ja": "い", "score": 1}\n', encoding="utf-8")
    assert read(path) == [("a", "あ"), ("b", "い")]
    path.write_text('{"english": "a", "x": "あ"}\n{"english": "b"}\n[1]\n{"eng\n' + "[" * 100_000, encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.jsonl:1: no text under 'en' and 'ja'; name its fields"):
        read(path)
    with pytest.raises(InputError, match=r"a\.jsonl:2: no text under 'english' and 'x'"):
        read(path, fields=["english", "x"])
    skipped = Skipped()
    assert read(path, fields=["english", "x"], on_error="skip", skipped=skipped) == [("a", "あ")]
    assert skipped.counts == {"no text under 'english' and 'x'": 2, "not JSON": 2}


def test_objects_with_and_without_negatives(tmp_path):
    path = tmp_path / "a.jsonl"
    records = [
        {"anchor": "a", "positive": "b"},
        {"anchor": " c ", "positive": "d", "negative": ["e", " f"]},
        {"anchor": "g", "positive": "h", "negative": None},
    ]
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), "utf-8")
    expected = [("a", "b", []), ("c", "d", ["e", "f"]), ("g", "h", [])]
    assert load(path) == expected
    assert load(path, columns=[2, 1, 0]) == expected  # objects have no first field
    assert read(path, ("en", "ja"), fields=["positive", "anchor"]) == [("b", "a"), ("d", "c"), ("h", "g")]
    for wrong in (3, ["e", 3], {"e": "f"}):
        path.write_text(json.dumps({"anchor": "a", "positive": "b", "negative": wrong}), "utf-8")
        with pytest.raises(InputError, match=r"a\.jsonl:1: no text, nor list of texts, under 'negative'; name its fields"):
            load(path)
    path.write_text('{"x": "a", "y": "b", "z": "c"}\n', "utf-8")
    assert [one.texts for one in Source((str(path),), ("z", 0), ("en", "de")).read()] == [("c", "a")]  # as of any table
    path.write_text('{"x": "a"}\n', "utf-8")
    for languages, sides in ((("en", "en"), "'anchor' and 'positive'"), (("en", "de"), "'en' and 'de'")):
        with pytest.raises(InputError, match=rf"a\.jsonl:1: no text under {sides}; name its fields"):
            read(path, languages)


def test_fields_are_those_of_the_first_object_with_texts(tmp_path):
    path = tmp_path / "a.jsonl"
    pairs = "".join(f'{{"n": {n}, "x": "{n}", "y": "a cat", "z": ""}}\n' for n in range(20))
    for first in ("", "\n", "x\n", '{"n": 1}\n'):
        path.write_text(first + pairs, "utf-8")
        source = Source((str(path),), ("x", "y"), on_error="skip")
        assert column_names(source) == ["n", "x", "y", "z"]
        with pytest.raises(InputError, match=r"its source side is a number in .* as in columns=\[y,z\]: n, x, y, z$"):
            list(source.read())
    for nothing in ("", "\n", "x\n"):
        path.write_text(nothing, "utf-8")
        assert column_names(Source((str(path),), ("x", "y"), on_error="skip")) == []


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("large", [False, True])
def test_parquet(tmp_path, nested, large):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    kind = pa.large_string() if large else pa.string()
    en, ja = pa.array(["a", " b\nc ", None] * 9000, kind), pa.array(["あ", "い", "う"] * 9000, kind)
    if nested:
        columns = {"translation": pa.StructArray.from_arrays([ja, en], ["ja", "en"]), "score": pa.array([1.0] * 27_000)}
    else:
        columns = {"ja": ja, "en": en}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet", row_group_size=5000)
    assert read(tmp_path / "a.parquet") == [("a", "あ"), ("b c", "い"), ("", "う")] * 9000
    with pytest.raises(InputError):
        read(tmp_path / "a.parquet", fields=["english", "japanese"])


def test_negatives_in_parquet_are_texts_or_lists(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    path = tmp_path / "a.parquet"
    columns = {"anchor": ["a", "c"], "positive": ["b", "d"], "negative_1": [["e", " f"], []], "negative_2": ["g", None]}
    pq.write_table(pa.table(columns), path)
    assert load(path) == [("a", "b", ["e", "f", "g"]), ("c", "d", [])]
    (job,) = find_pairs([{"path": path}], ("en", "en"))[0].jobs()
    pq.write_table(pa.table({"anchor": ["a"], "positive": ["b"]}), path)
    (job,) = find_pairs([{"path": path}], ("en", "en"))[0].jobs()
    assert job().negatives is None
    pq.write_table(pa.table({"anchor": ["a"], "positive": ["b"], "negative": [3]}), path)
    with pytest.raises(InputError, match=r"a\.parquet: a negative is neither a text nor a list of texts; name its fields"):
        load(path)


def test_a_part_of_an_arrow_column_is_read_from_its_beginning():
    pa = pytest.importorskip("pyarrow")
    whole = pa.array(["a", "猫", None, "", "bc", "d"], pa.large_string())
    for start in range(7):
        for size in range(7 - start):
            expected = [text or "" for text in whole[start : start + size].to_pylist()]
            assert list(_texts(whole.slice(start, size))) == expected


@pytest.mark.parametrize("kind", ["csv", "parquet", "xlsx"])
def test_the_rows_of_a_table_are_numbered_with_its_header(tmp_path, kind):
    write_table(tmp_path / f"a.{kind}", f".{kind}", ["n", "text"], [(1, " a"), (2.5, ""), (3.0, "c")], {})
    assert list(table_texts(tmp_path / f"a.{kind}", kind)) == [
        *((1, ["n", "text"]), (2, ["1", "a"]), (3, ["2.5", ""]), (4, ["3" if kind != "csv" else "3.0", "c"]))
    ]


def test_parquet_whose_texts_are_no_unicode(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    raw = pa.array([b"a", b"\xf0\x9f"], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 2, raw.buffers())  # as writers do that look at nothing
    pq.write_table(pa.table({"en": text, "ja": text}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"not a Parquet file of texts .*UTF"):
        read(tmp_path / "a.parquet")


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + bytes(500) + b"PAR1", b"no table at all" * 50])
def test_damaged_parquet(tmp_path, content):
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(InputError, match="not a Parquet file"):
        read(tmp_path / "a.parquet")


class FakeHub:
    """Stands for ``datasets``: a data set of records, in batches."""

    def __init__(self, records):
        self.records, self.asked = records, []

    def load_dataset(self, *names, **how):
        if self.records is None:
            raise FileNotFoundError("not  there\n")
        self.asked.append((names, how))
        return self

    def iter(self, batch_size):
        for start in range(0, len(self.records), 2):
            batch = self.records[start : start + 2]
            yield {name: [record[name] for record in batch] for name in batch[0]}


@pytest.mark.parametrize(
    ("records", "languages", "found"),
    [
        (
            [{"id": n, "de": f"d{n}", "en": f" e\n{n}"} for n in range(3)],
            ("en", "de"),
            [(f"e {n}", f"d{n}") for n in range(3)],
        ),
        ([{"translation": {"en": "a", "de": None}}, {"translation": {"en": "b"}}], ("en", "de"), [("a", ""), ("b", "")]),
        ([{"x": "a", "y": "b"}], ("en", "de"), "owner/set/train: it has the fields x, y; name its fields, as in"),
        ([{"translation": {"fr": "a"}}], ("en", "de"), "owner/set/train: it has the fields translation; name its fields"),
        ([{"en": "a", "de": 3}], ("en", "de"), "owner/set/train: no text under 'en' and 'de'; name its fields, as in"),
        (None, ("en", "de"), "owner/set/train: cannot be read (FileNotFoundError: not there); see that the network"),
    ],
)
def test_a_data_set_is_read_in_batches(monkeypatch, records, languages, found):
    hub = FakeHub(records)
    monkeypatch.setitem(sys.modules, "datasets", hub)
    (file,) = find_pairs([{"hub": "owner/set"}], languages)
    if isinstance(found, str):
        with pytest.raises(InputError) as caught:
            list(read_pairs(file))
        assert str(caught.value).startswith(found)
        return
    assert list(read_pairs(file)) == found
    assert hub.asked == [(("owner/set", None), {"split": "train", "revision": None, "streaming": True})]


@pytest.mark.slow
@pytest.mark.parametrize("streaming", [True, False])
def test_a_data_set_of_the_hub(tmp_path, streaming, monkeypatch):
    """A local folder stands for the hub: ``datasets`` reads both by the same call."""
    pytest.importorskip("datasets")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    (tmp_path / "set").mkdir()
    rows = [{"english": f"text {i}", "non_english": f"文{i}"} for i in range(50)]
    (tmp_path / "set" / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    entry = {"hub": str(tmp_path / "set"), "streaming": streaming, "fields": ["english", "non_english"]}
    (file,) = find_pairs([entry], EN_JA)
    assert list(read_pairs(file)) == [(row["english"], row["non_english"]) for row in rows]
    (file,) = find_pairs([{**entry, "fields": ["english", "japanese"]}], EN_JA)
    with pytest.raises(InputError, match="it has the fields english, non_english"):
        list(read_pairs(file))
    (tmp_path / "set" / "train.jsonl").write_text('{"english": "a", "non_english": 3}\n')
    (file,) = find_pairs([entry], EN_JA)
    with pytest.raises(InputError, match="no text under 'english' and 'non_english'"):
        list(read_pairs(file))
    (file,) = find_pairs([{"hub": str(tmp_path / "nothing")}], EN_JA)
    with pytest.raises(InputError, match="cannot be read"):
        list(read_pairs(file))


@pytest.mark.parametrize("entry", [{"fields": ["a"]}, {"fields": "ab"}, {"colums": [1, 2]}])
def test_mistaken_entries(tmp_path, entry):
    (tmp_path / "a.jsonl").write_text("")
    with pytest.raises(ConfigError, match=r"corpus\.paths"):
        find_pairs([{"path": tmp_path / "a.jsonl", **entry}], EN_JA)
    with pytest.raises(ConfigError, match=r"corpus\.paths"):
        find_pairs([{"hub": "a/b", "confg": "x"}], EN_JA)
