"""Bitext read record by record: what stays as it stands, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from xswe.bitext import rows
from xswe.bitext.records import Record, side_by_side
from xswe.bitext.source import Source, read_pairs
from xswe.errors import ConfigError, InputError
from xswe.io.lines import Skipped, read_lines
from xswe.io.ragged import Texts


def test_the_longest_line_is_read_and_a_longer_one_refused(tmp_path, monkeypatch):
    for module in ("xswe.bitext.lines", "xswe.io.lines"):
        monkeypatch.setattr(f"{module}.MAX_LINE_BYTES", 8)
    for last in ("", "\n"):
        (tmp_path / "a.tsv").write_text(f"abc\tdefg{last}", encoding="utf-8")
        (record,) = Source((str(tmp_path / "a.tsv"),)).read()
        assert record[:3] == (b"abc\tdefg", last.encode(), ("abc", "defg"))
    (tmp_path / "a.tsv").write_text("x\ty\nabc\tdefgh", encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.tsv:2: a line of over"):
        list(Source((str(tmp_path / "a.tsv"),)).read())


def test_a_block_has_as_many_records_as_are_asked_for(tmp_path):
    (tmp_path / "a.tsv").write_text("a\tb\n" * 5, encoding="utf-8")
    file = Source((str(tmp_path / "a.tsv"),))
    assert [len(block) for block in file.raw_blocks(2)] == [2, 2, 1]
    assert [len(block.damaged) for block in file.blocks(2)] == [2, 2, 1]
    assert [len(block.damaged) for block in file.blocks(2, window=4)] == [1] * 5  # a line is four bytes


@pytest.mark.parametrize("window", [0, 10, 25])
def test_blocks_are_read_again_at_their_places(tmp_path, window):
    path = tmp_path / "a.tsv"
    pairs = [(f"a{n}" * (n % 4), f"猫{n}") for n in range(12)]
    path.write_text("".join(f"{a}\t{b}\n" for a, b in pairs), "utf-8")
    file = Source((str(path),))
    found = list(file.blocks(5, window))
    places, spans = np.concatenate([block.places for block in found]), np.concatenate([block.spans for block in found])
    assert places[0].tolist()[0] == 0
    assert (places[1:, 0] == places[:-1, :2].sum(1)).all()
    again = list(file.blocks_at(places, spans))
    assert [len(block) for block in again] == [len(block) for block in found]
    assert [pair for block in again for pair in zip(block.rows.source, block.rows.target, strict=True)] == pairs
    assert not any(block.damaged.any() for block in again)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match=r"a\.tsv: became shorter while it was read; start again"):
        list(file.blocks_at(places, spans))


def test_a_byte_order_mark_belongs_to_no_text_but_to_the_line(tmp_path):
    for name, text in (("a.en", "\ufeffcat\ndog\n"), ("a.de", "\ufeffKatze\nHund\n"), ("a.tsv", "\ufeffcat\tKatze\n")):
        (tmp_path / name).write_text(text, "utf-8")
    (first, second) = Source((str(tmp_path / "a.en"), str(tmp_path / "a.de"))).read()
    assert (first.texts, second.texts) == (("cat", "Katze"), ("dog", "Hund"))
    assert first.raw.decode() == "\ufeffcat\t\ufeffKatze"
    (only,) = Source((str(tmp_path / "a.tsv"),)).read()
    assert (only.texts, only.raw.decode()) == (("cat", "Katze"), "\ufeffcat\tKatze")
    (other,) = Source((str(tmp_path / "a.tsv"),), (1, 0)).read()
    assert other.texts == ("Katze", "cat")
    (tmp_path / "a.tsv").write_text("\ufeff\tKatze\n", "utf-8")
    assert [record.texts for record in Source((str(tmp_path / "a.tsv"),)).read()] == [("", "Katze")]


def test_raw_lines_are_those_of_the_file_to_the_byte(tmp_path):
    raw = "\ufeffa\tb\r\n\nc\td".encode()
    for name in ("a.tsv", "a.jsonl"):
        (tmp_path / name).write_bytes(raw)
        file = Source((str(tmp_path / name),), languages=("en", "de"))
        assert b"".join(block.data.tobytes() for block in file.raw_blocks()) == raw
        read = list(file.read_raw())
        assert [(record.raw, record.end, record.texts) for record in read] == [
            *((raw[:6], b"\r\n", None), (b"", b"\n", None), (b"c\td", b"", None))
        ]


def test_objects_keep_their_line_and_its_end(tmp_path):
    lines = '{"en": "a", "de": "b"}\r\n', "\n", ' {"de": "d", "en": " c "}'
    (tmp_path / "a.jsonl").write_bytes("".join(lines).encode())
    file = Source((str(tmp_path / "a.jsonl"),), languages=("en", "de"))
    left_out = Skipped()
    assert [(record.raw.decode(), record.end, record.texts) for record in file.read(left_out)] == [
        (lines[0][:-2], b"\r\n", ("a", "b")),
        ("", b"\n", None),
        (lines[2], b"", ("c", "d")),
    ]
    assert left_out.counts == {"blank": 1}
    file.write(str(tmp_path / "b.jsonl"), ((record, 0.5) for record in file.read()))
    assert (tmp_path / "b.jsonl").read_bytes().decode() == "".join(lines) + "\n"


def test_lines_of_two_files_must_be_texts_too(tmp_path):
    for name, text in (("a.en", "a cat\n"), ("a.de", "7\n")):
        (tmp_path / name).write_text(text * 12, "utf-8")
    file = Source((str(tmp_path / "a.en"), str(tmp_path / "a.de")), languages=("en", "de"))
    with pytest.raises(InputError, match=r"a\.en and .*a\.de:1: its German side is a number in 12 of the first 12 lines"):
        list(file.blocks())


def test_only_plain_lines_are_read_by_spans():
    for paths, cut in (
        (("a.tsv",), True),
        (("a.en", "a.de"), True),
        (("a.tsv.gz",), False),
        (("a.en", "a.de.gz"), False),
        (("a.zip!a.tsv",), False),
        (("a.csv",), False),
    ):
        assert Source(paths).is_cut == cut


def test_only_the_first_pairs_of_a_table_must_be_texts(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "BLOCK_PAIRS", 20)
    numbers, texts = [(str(n), "eins") for n in range(20)], [("a cat", "eine Katze")] * 20

    def read(pairs):
        (tmp_path / "a.csv").write_text("".join(f"{a},{b}\n" for a, b in [("source", "target"), *pairs]), "utf-8")
        return list(read_pairs(Source((str(tmp_path / "a.csv"),))))

    assert read(texts + numbers) == texts + numbers
    with pytest.raises(InputError, match=r"a\.csv:1: its source side is a number in 20 of the first 20 lines; name the"):
        read(numbers + texts)


@pytest.mark.parametrize(
    ("mark", "end", "separator", "name"),
    [("", "\n", ",", "en"), ("\ufeff", "\r\n", ";", "en"), ("", "\n", "\t", '"en, of the author"')],
)
def test_a_spreadsheets_separator_and_line_end_stay_as_they_are(tmp_path, mark, end, separator, name):
    """Where the comma is written in numbers, spreadsheets put semicolons between columns."""
    row = ["1", f'"a{separator}b, ""c"""', "d", '"two\nlines"']
    raw = mark + end.join(separator.join(line) for line in (["n", name, "de", "note"], row, row)) + end
    (tmp_path / "a.csv").write_bytes(raw.encode())
    file = Source((str(tmp_path / "a.csv"),), (name.strip('"'), "de"))
    read, (before, after) = list(file.read()), file.frame()
    assert [record.texts for record in read] == [(f'a{separator}b, "c"', "d")] * 2
    assert before + b"".join(record.raw + record.end for record in read) + after == raw.encode()
    scored = tmp_path / "b.csv"
    scored.write_bytes(file.frame(scored=True)[0] + b"".join(file.scored(record, 0.5) + record.end for record in read))
    again = Source((str(scored),), ("score", 2))
    assert [record.texts for record in again.read()] == [("0.500000", "d")] * 2


def test_a_spreadsheets_columns_are_those_of_the_languages_and_no_numbers(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(",en,de\n" + "".join(f'{n},"A cat\n{n}.",Eine Katze {n}.\n' for n in range(20)), encoding="utf-8")
    assert next(Source((str(path),), languages=("de", "en")).read()).texts == ("Eine Katze 0.", "A cat\n0.")
    assert next(Source((str(path),)).read()).texts == ("A cat\n0.", "Eine Katze 0.")  # by the only two that are languages
    path.write_text(path.read_text(encoding="utf-8").replace(",en,de", ",one,two"), encoding="utf-8")
    complaint = r"a\.csv:2: its source side is a number in 20 of the first 20 lines; .* columns=\[one,two\]: , one, two"
    with pytest.raises(InputError, match=complaint):
        list(Source((str(path),)).read())
    assert next(Source((str(path),), (0, 0)).read()).texts == ("0", "0")  # of which dedup reads one


def test_what_json_and_xml_can_hold_and_little_else(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"en": "a\\ud800", "de": "b"}\n', encoding="utf-8")
    file = Source((str(tmp_path / "a.jsonl"),), ("en", "de"))
    assert file.scored(next(file.read()), 0.5) == b'{"en": "a\\ud800", "de": "b", "score": 0.5}'
    texts = "".join(f'<tuv xml:lang="{code}"><seg>x</seg></tuv>' for code in ("en", "de"))
    deep = "<prop>" * 5000 + "</prop>" * 5000
    (tmp_path / "a.tmx").write_text(f"<tmx><body><tu>{deep}{texts}</tu></body></tmx>", encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.tmx:1: not well-formed \(Excessive depth"):
        list(Source((str(tmp_path / "a.tmx"),), languages=("en", "de")).read())


def test_mined_pairs_are_not_read_by_their_scores(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("".join(f"1.{n}\tA cat {n}.\tEine Katze {n}.\n" for n in range(20)), encoding="utf-8")
    complaint = r"a\.tsv:1: column 0 .* source text, is a number in 20 of the first 20 lines; .* as in columns=\[1,2\]"
    with pytest.raises(InputError, match=complaint):
        list(Source((str(path),)).read())
    assert next(Source((str(path),), (1, 2)).read()).texts == ("A cat 0.", "Eine Katze 0.")
    assert next(Source((str(path),), (0, 0)).read()).texts == ("1.0", "1.0")  # of which dedup reads one


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ("source\ttarget", True),
        ("\ufeffde\ten", True),
        ("English\tGerman\tdomain", True),
        ("source_sentence\ttgt-text", True),
        ("The source.\tDie Quelle.", False),
        ("source\tQuelle", False),  # of a term list
        ("\nsource\ttarget", False),
    ],
)
def test_a_header_is_a_pair_and_warned_of_once(tmp_path, caplog, header, told):
    path = tmp_path / "a.tsv"
    path.write_text(f"{header}\r\nA cat.\tEine Katze.\r\n", encoding="utf-8")
    file = Source((str(path),), on_error="skip")
    first = header.removeprefix("\ufeff").split("\t")[:2]
    for read in (file.read, file.read, lambda: read_pairs(Source((path,)), on_error="skip")):
        found = [record.texts if isinstance(record, Record) else record for record in read()]
        assert found[-1] == ("A cat.", "Eine Katze.")
        assert found[0] == tuple(first) or not told
    warned = [f"{path}:1: {first[0]} and {first[1]} look like names of columns, and are read as a pair"] * told
    assert [record.message.partition(";")[0] for record in caplog.records] == warned


@pytest.mark.parametrize(
    ("header", "languages", "told"),
    [
        ("english,german,japanese", "", True),
        ("id,english,german", "en de", True),
        ("en,de,ja", "", True),  # which of the three?
        ("en,de,ja", "en de", False),
        ("english,german", "", False),
    ],
)
def test_columns_beside_the_first_two_are_warned_of_once_where_none_has_a_usual_name(
    tmp_path, caplog, header, languages, told
):
    path, row = tmp_path / "a.csv", ["a", "b", "c"][: header.count(",") + 1]
    path.write_text(f"{header}\n{','.join(row)}\n", encoding="utf-8")
    for _ in range(2):
        assert [record.texts for record in Source((str(path),), languages=tuple(languages.split())).read()] == [("a", "b")]
    names = header.split(",")
    said = f"{path}:1: the columns {names[0]} and {names[1]} are read; if the texts are in others, name its fields, as in "
    sides = languages.replace(" ", ", ") or "anchor, positive"
    assert [record.message for record in caplog.records] == [
        f"{said}{{path: ..., fields: [{sides}]}} (or columns=[{names[1]},{names[-1]}])"
    ] * told
    caplog.clear()
    last = Source((str(path),), (names[-1], names[0])).read()
    assert [record.texts for record in last] == [(row[-1], "a")]
    assert not caplog.records


@pytest.mark.parametrize(
    "header", ["A cat.,Eine Katze.", "cat,eine Katze schläft auf dem Dach", "猫が眠る。,b", "en,de (Deutsch)"]
)
def test_texts_in_place_of_a_header_are_warned_of_once(tmp_path, caplog, header):
    path = tmp_path / "a.csv"
    path.write_text(f"{header}\nb,c\n", encoding="utf-8")
    for _ in range(2):
        assert [record.texts for record in Source((str(path),)).read()] == [("b", "c")]
    assert len(caplog.records) == ("(Deutsch)" not in header)
    assert all(record.message.startswith(f"{path}:1: it looks like texts") for record in caplog.records)


@pytest.mark.parametrize("name", ["a.json", "a.xml"])
def test_markup_is_named_not_its_first_line(tmp_path, name):
    (tmp_path / name).write_text("[{}]\n")
    path = tmp_path / name
    for read in (Source((str(path),)).read, lambda: read_pairs(Source((path,))), lambda: read_lines(path)):
        with pytest.raises(InputError, match=rf"{name}: \.\w+ files are not read; call it \.jsonl if"):
            list(read())


def write_memory(path, *codes):
    variants = "".join(f'<tuv xml:lang="{code}"><seg>in {code}</seg></tuv>' for code in codes)
    path.write_text(f'<tmx version="1.4"><header srclang="de-DE"/><body><tu>{variants}</tu></body></tmx>', encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("encoding", ["utf-8", "UTF-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "shift_jis", ""])
def test_a_memory_in_any_encoding_is_passed_on_in_utf8(tmp_path, encoding):
    codec = encoding or "utf-8"
    said = f'<?xml version="1.0" encoding="{encoding.removesuffix("-sig")}"?>\r\n' if encoding else ""
    head = f'{said}<tmx version="1.4"><!-- {"犬" * 9000} --><header srclang="en"/><body x="y">'
    pair = '<tuv xml:lang="en"><seg>cat</seg></tuv><tuv xml:lang="ja"><seg>猫</seg></tuv>'
    (tmp_path / "a.tmx").write_bytes(f"{head}<tu>{pair}</tu></body></tmx>".encode(codec))
    file = Source((str(tmp_path / "a.tmx"),), languages=("en", "ja"))
    file.write(str(tmp_path / "b.tmx"), ((record, 0.5) for record in file.read()), True)
    written = (tmp_path / "b.tmx").read_bytes().decode()
    expected = head if encoding.lower().startswith("utf-8") else head.replace(f'"{encoding}"', '"UTF-8"')
    score = '<prop type="x-score">0.500000</prop>'
    assert written.removeprefix("\ufeff") == f"{expected}\n<tu>{score}{pair}</tu>\n</body>\n</tmx>\n"
    assert [record.texts for record in Source((str(tmp_path / "b.tmx"),)).read()] == [("cat", "猫")]


def test_a_memory_in_an_encoding_that_only_its_parser_knows_is_read_and_not_passed_on(tmp_path):
    path, pair = tmp_path / "a.tmx", '<tuv xml:lang="en"><seg>cat</seg></tuv><tuv xml:lang="de"><seg>Katze</seg></tuv>'
    path.write_text(f'<?xml version="1.0" encoding="LATIN-9"?><tmx><body><tu>{pair}</tu></body></tmx>')
    file = Source((str(path),), languages=("en", "de"))
    assert [record.texts for record in file.read()] == [("cat", "Katze")]
    with pytest.raises(InputError, match=r"a\.tmx:1: Python does not know its encoding, LATIN-9; save it in UTF-8"):
        file.write(str(tmp_path / "b.tmx"), ((record, 0.5) for record in file.read()))


def test_what_comes_before_the_damage_of_a_memory_is_passed_on(tmp_path):
    unit = '<tu><tuv xml:lang="en"><seg>cat</seg></tuv><tuv xml:lang="de"><seg>K%s</seg></tuv></tu>'
    text = f"<tmx><body>{unit % 'atze'}{unit % 'ä'}</body></tmx>"
    (tmp_path / "a.tmx").write_bytes(text.encode("latin-1"))  # and is read as UTF-8
    file = Source((str(tmp_path / "a.tmx"),), languages=("en", "de"), on_error="skip")
    file.write(str(tmp_path / "b.tmx"), ((record, 0.5) for record in file.read()))
    assert [record.texts for record in Source((str(tmp_path / "b.tmx"),)).read()] == [("cat", "Katze")]


def test_two_languages_are_those_of_the_file(tmp_path):
    file = Source((write_memory(tmp_path / "a.tmx", "en-US", "de-AT"),))
    assert file.languages == ("de", "en")
    assert [record.texts for record in file.read()] == [("in de-AT", "in en-US")]
    three = write_memory(tmp_path / "b.tmx", "en", "de", "fr")
    with pytest.raises(ConfigError, match=r"b\.tmx: which of its languages \(de, en, fr\) .* set languages"):
        Source((three,))
    with pytest.raises(InputError, match=r"b\.tmx: no unit has en and ja: its languages are de, en, fr; give a file of"):
        list(Source((three,), languages=("en", "ja")).read())
    assert [record.texts for record in Source((three,), languages=("en", "ja"), on_error="skip").read()] == [None]


def test_two_fields_are_those_of_the_first_object(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"score": 1.5, "source": "A", "target": "B"}\n{"translation": {"source": "C", "target": "D"}}\n')
    assert [record.texts for record in Source((str(path),)).read()] == [("A", "B"), ("C", "D")]
    path.write_text("x\n")
    with pytest.raises(InputError, match=r"a\.jsonl:1: not JSON \(.*\); give a JSON object a line"):
        Source((str(path),))
    path.write_text('{"id": "1", "en": "A", "x": "y", "de": "B"}\n')
    assert [record.texts for record in Source((str(path),), languages=("en", "de")).read()] == [("A", "B")]
    path.write_text('{"source": "A", "target": "B", "source_id": "1", "target_id": "2"}\n')
    assert [record.texts for record in Source((str(path),)).read()] == [("A", "B")]
    path.write_text('{"text": "A", "translation": "B"}\n')
    assert [record.texts for record in Source((str(path),)).read()] == [("A", "B")]
    path.write_text('{"id": "1", "text": "A", "translation": "B"}\n')
    with pytest.raises(ConfigError, match=r"its first object has id, text, translation: name two, as in columns="):
        Source((str(path),))
    assert [record.texts for record in Source((str(path),), ("text", "translation")).read()] == [("A", "B")]
    path.write_text("[" * 100_000 + "\n")
    with pytest.raises(InputError, match=r"a\.jsonl:1: not JSON"):
        list(Source((str(path),), ("text", "translation")).read())


def test_lines_of_two_files_stand_side_by_side_with_the_ends_of_the_first():
    left, right = Texts.packed([b"a\r\n", b"\n", b"b"]), Texts.packed([b"x\n", b"y z\r\n", b"w\n"])
    joined = side_by_side((left, right))
    assert joined.data.tobytes() == b"a\tx\r\n\ty z\nb\tw"
    assert joined.offsets.tolist() == [0, 5, 10, 13]
    assert side_by_side((left,)) is left
    with pytest.raises(ValueError):
        side_by_side((left, Texts.packed([b"x\n"])))
