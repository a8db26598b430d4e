"""Running text and documents cut into sentences, with their places."""

from __future__ import annotations

import gzip
import re
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

import xswe
from xswe.__main__ import main
from xswe.bitext.texts import TextSource
from xswe.errors import ConfigError, InputError
from xswe.io.files import file_stamp
from xswe.io.lines import Skipped
from xswe.text.readers import html_paragraphs, paragraphs, paragraphs_of
from xswe.text.sentences import one_line

pytest.importorskip("sentencex")
BOOK = {"de": ["Der Zug kam um 8 Uhr.", "Er war leer."], "ja": ["電車が来た。", "空だった。"]}


def test_sentences_stand_where_they_say():
    text = "„Komm!“, rief er. Dr. Maier\nkam nicht.\n\nDas 19. Jahrhundert begann. Ende."
    found = xswe.split_text(text, "de")
    for sentence in found:
        assert " ".join(text[sentence.start : sentence.end].split()) == sentence.text
    assert [sentence.paragraph for sentence in found] == sorted(sentence.paragraph for sentence in found)
    covered = {place for sentence in found for place in range(sentence.start, sentence.end)}
    assert all(text[place].isspace() for place in set(range(len(text))) - covered)


def test_wrapped_lines_are_joined_and_others_are_paragraphs():
    wrapped = "\n".join(
        ["The quick brown fox jumps over the lazy dog and then it", "runs away from the house where nobody"] * 3
    )
    assert len(paragraphs(wrapped)) == 1
    assert len(paragraphs("Erste Zeile.\nZweite Zeile!\nDritte.")) == 3
    assert len(paragraphs("　吾輩は猫である。\n　名前はまだ無い。")) == 2
    lines = [
        "これは一行が四十字で折り返された文章であり行の終わりに句点がない",
        "ことが多いのでつなげて読まなければならないはずの文章なのであるから",
    ]
    wide = "\n".join(lines * 2)
    assert [s.text for s in xswe.split_text("A \ud800 cat. It sleeps.", "en")] == ["A \ud800 cat.", "It sleeps."]
    (sentence,) = xswe.split_text(wide + "。", "ja")
    assert not {" ", "\n"} & set(sentence.text)


def test_long_runs_of_blanks_take_no_time(tmp_path):
    blanks, start = " " * 40_000, time.process_time()
    found = xswe.split_text(f"{blanks}A cat{blanks}sleeps.\n{blanks}\n", "en")
    assert [word for sentence in found for word in sentence.text.split()] == ["A", "cat", "sleeps."]
    (tmp_path / "a.md").write_text("- |" * 20_000 + "x\n", "utf-8")
    assert "".join(sentence.text for sentence in xswe.split_text(tmp_path / "a.md", "en")).endswith("x")
    assert time.process_time() - start < 5  # squares of these lengths took 30 s


def test_a_quote_after_which_the_sentence_goes_on_stays_whole():
    assert [s.text for s in xswe.split_text("「行こう。早く。」と彼は言った。雨だ。", "ja")] == [
        "「行こう。早く。」と彼は言った。",
        "雨だ。",
    ]
    assert len(xswe.split_text("“走吧。快！”他说。我们走了。", "zh")) == 2


def test_markdown_loses_its_marks(tmp_path):
    text = "---\ntitle: x\n---\n# A *title*\n\nSome **bold** and `code` [link](http://a.b).\nGoes on.\n\n```\ncode()\n```\n"
    text += "* item one\n* item two\n  goes on\n\n> quoted\n\n| a | b |\n|---|---|\n| c_d_e | 2 * 3 * 4 |\n\nUnder\n=====\n"
    (tmp_path / "a.md").write_text(text, encoding="utf-8")
    assert paragraphs_of(tmp_path / "a.md") == [
        *("A title", "Some bold and code link.\nGoes on.", "item one", "item two\ngoes on", "quoted"),
        *("a", "b", "c_d_e", "2 * 3 * 4", "Under"),
    ]


def test_html_gives_the_text_of_its_blocks():
    text = "<html><head><title>T</title><style>p{}</style></head><body><p>One &amp; <b>two</b>\n three<br>four</p>"
    text += "<script>var x;</script><ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp></ruby>字<p>open</body>"
    assert html_paragraphs(text) == ["T", "One & two three", "four", "漢字", "open"]


def epub(path, chapters, spine=("b", "a")):
    items = "".join(f'<item id="{key}" href="text/{key}.xhtml" media-type="application/xhtml+xml"/>' for key in chapters)
    order = "".join(f'<itemref idref="{key}"/>' for key in spine)
    package = f'<package xmlns="http://www.idpf.org/2007/opf"><manifest>{items}</manifest><spine>{order}</spine></package>'
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr("OEBPS/content.opf", package)
        for key, text in chapters.items():
            archive.writestr(f"OEBPS/text/{key}.xhtml", f"<html><body><p>{text}</p></body></html>")


def test_an_epub_is_read_in_the_order_of_its_spine(tmp_path):
    pytest.importorskip("lxml")
    epub(tmp_path / "a.epub", {"a": "Second. Third.", "b": "First."})
    found = xswe.split_text(tmp_path / "a.epub", "en")
    assert [sentence.text for sentence in found] == ["First.", "Second.", "Third."]
    assert all(found.text[sentence.start : sentence.end] == sentence.text for sentence in found)
    epub(tmp_path / "b.epub", {"a": "x"}, ("a",))
    with zipfile.ZipFile(tmp_path / "b.epub", "a") as archive:
        archive.writestr("other.txt", "x")
    (tmp_path / "c.epub").write_bytes(b"no zip")
    for wrong in ("c.epub", "absent.epub"):
        with pytest.raises(InputError, match=wrong):
            xswe.split_text(tmp_path / wrong, "en")


def clock(milliseconds):
    seconds, rest = divmod(milliseconds, 1000)
    return f"00:{seconds // 60:02}:{seconds % 60:02},{rest:03}"


def subtitles(path, *shown):
    """Write subtitles as SubRip or WebVTT: when each appears and how long it stays, in milliseconds, and its text."""
    cues = "".join(
        f"{number}\n{clock(start)} --> {clock(start + stays)}\n{text}\n\n"
        for number, (start, stays, text) in enumerate(shown, 1)
    )
    if path.suffix == ".vtt":
        cues = "WEBVTT\n\nNOTE by hand\n\n" + re.sub(r"(?<=\d),(?=\d{3})", ".", cues)
    path.write_text(cues, encoding="utf-8")
    return path


@pytest.mark.parametrize("suffix", [".srt", ".vtt"])
def test_a_sentence_goes_on_in_the_next_subtitle(tmp_path, suffix):
    film = subtitles(
        tmp_path / f"a{suffix}",
        (1000, 900, "<i>Der Zug kam um 8 Uhr,</i>"),
        (2000, 900, "weil Dr. Maier\nden Hund &amp; die Katze"),
        (3000, 900, "suchte. Es regnete."),
        (4000, 900, "- Warum?\n- Darum!"),
        (5000, 900, "Ohne Ende"),
        (9000, 900, "Nach einer Pause."),
        (9950, 900, "-1 ist kleiner."),
    )
    wanted = ["Der Zug kam um 8 Uhr, weil Dr. Maier den Hund & die Katze suchte.", "Es regnete.", "Warum?", "Darum!"]
    wanted += ["Ohne Ende", "Nach einer Pause.", "-1 ist kleiner."]
    found = xswe.split_text(film, "de")
    assert [sentence.text for sentence in found] == wanted
    assert all(one_line(found.text[sentence.start : sentence.end]) == sentence.text for sentence in found)


def test_subtitles_without_marks_are_texts_of_their_own(tmp_path):
    film = subtitles(
        tmp_path / "a.srt",
        *((1000 * n, 900, text) for n, text in enumerate(("猫が寝ている", "雨が\n降っている", "えっ？", "行こう", "早く"))),
    )
    assert [sentence.text for sentence in xswe.split_text(film, "ja")] == [
        "猫が寝ている",
        "雨が降っている",
        "えっ？",
        "行こう",
        "早く",
    ]


def test_lines_that_scroll_are_read_once(tmp_path):
    film = subtitles(
        tmp_path / "a.vtt",
        (0, 1990, "we look at"),
        (1990, 10, "we look at"),
        (2000, 1990, "we look at\nthe second line."),
        (3990, 10, "the second line."),
        (4000, 1990, "the second line.\nNo."),
        (5990, 1000, "No."),
    )
    found = xswe.split_text(film, "en")
    assert [sentence.text for sentence in found] == ["we look at the second line.", "No.", "No."]
    assert found.left_out == {"lines shown again": 4}


def test_styles_and_comments_are_no_subtitles(tmp_path):
    lines = ["[Script Info]", "ScriptType: v4.00+", "", "[Events]"]
    lines += ["Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text"]
    lines += ["Comment: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,timing"]
    lines += [r"Dialogue: 0,0:00:01.00,0:00:02.00,Default,,0,0,0,,{\i1}Guten{\i0} Tag,\Nmein Herr."]
    lines += [lines[-1].replace("0,0:", "1,0:", 1)]  # once more, in another layer
    lines += [r"Dialogue: 0,0:00:02.00,0:00:03.00,Default,,0,0,0,,{\p1}m 0 0 l 1 0 1 1{\p0}"]
    lines += ["Dialogue: 0,0:00:00.50,0:00:00.90,Default,,0,0,0,,Zuerst."]  # whatever its place
    (tmp_path / "a.ass").write_text("\n".join(lines), encoding="utf-8")
    assert [sentence.text for sentence in xswe.split_text(tmp_path / "a.ass", "de")] == ["Zuerst.", "Guten Tag, mein Herr."]
    for suffix in (".ass", ".srt", ".vtt"):
        (tmp_path / f"b{suffix}").write_text("no subtitle in it\n", encoding="utf-8")
        with pytest.raises(InputError, match=rf"b\{suffix}: no subtitle in it"):
            xswe.split_text(tmp_path / f"b{suffix}", "de")


def test_docx_and_pdf(tmp_path):
    docx, pypdf = pytest.importorskip("docx"), pytest.importorskip("pypdf")
    document = docx.Document()
    document.add_heading("Reise")
    document.add_paragraph(" ".join(BOOK["de"]))
    document.add_table(1, 2).cell(0, 1).text = "Zelle."
    document.save(tmp_path / "a.docx")
    assert [sentence.text for sentence in xswe.split_text(tmp_path / "a.docx", "de")] == ["Reise", *BOOK["de"], "Zelle."]
    writer = pypdf.PdfWriter()
    writer.add_blank_page(100, 100)
    writer.write(tmp_path / "a.pdf")
    assert len(xswe.split_text(tmp_path / "a.pdf", "de")) == 0
    generic = pypdf.generic
    names = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
    font = generic.DictionaryObject({generic.NameObject(k): generic.NameObject(v) for k, v in names.items()})
    named = generic.DictionaryObject({generic.NameObject("/F"): font})
    for lines in (("Der Zug kam um 8", "Uhr. Es regnete", "in Strömen und"), ("hörte nicht auf.",)):
        page, content = writer.add_blank_page(300, 300), generic.DecodedStreamObject()
        shown = "".join(f"({line}) Tj 0 -14 Td " for line in lines)
        content.set_data(f"BT /F 12 Tf 20 200 Td {shown} ET".encode("latin-1"))
        page[generic.NameObject("/Contents")] = writer._add_object(content)
        page[generic.NameObject("/Resources")] = generic.DictionaryObject({generic.NameObject("/Font"): named})
    writer.write(tmp_path / "a.pdf")
    found = [sentence.text for sentence in xswe.split_text(tmp_path / "a.pdf", "de")]
    assert found == ["Der Zug kam um 8 Uhr.", "Es regnete in Strömen und hörte nicht auf."]
    for wrong in ("b.docx", "b.pdf"):
        (tmp_path / wrong).write_bytes(b"nothing of the kind")
        with pytest.raises(InputError, match=wrong):
            xswe.split_text(tmp_path / wrong, "de")


def test_docx_keeps_what_is_to_be_read(tmp_path):
    """Tracked insertions, notes, nested tables and text boxes, each once; deletions are left out, and counted."""

    def said(text, tag="r"):
        return f"<w:r><w:t xml:space='preserve'>{text}</w:t></w:r>" if tag == "r" else f"<w:p>{said(text)}</w:p>"

    def cell(content):
        return f"<w:tc><w:tcPr/>{content}</w:tc>"

    box = f"<w:txbxContent>{said('In a box.', 'p')}</w:txbxContent>"
    both = f"<mc:AlternateContent><mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback></mc:AlternateContent>"
    reference = '<w:r><w:footnoteReference w:id="2"/></w:r><w:r><w:endnoteReference w:id="1"/></w:r>'
    deleted = "<w:del><w:r><w:delText>old </w:delText></w:r></w:del>"
    inserted = f"<w:ins>{said('new ')}</w:ins>"
    inner = f"<w:tbl><w:tr>{cell(said('Inner.', 'p'))}</w:tr></w:tbl>"
    table = f"<w:tbl><w:tr>{cell(said('Outer.', 'p') + inner)}</w:tr>"
    table += f"<w:tr><w:trPr><w:del/></w:trPr>{cell(said('Gone.', 'p'))}</w:tr></w:tbl>"
    moved = f"<w:moveFrom>{said('There.')}</w:moveFrom>"
    body = f"<w:p>{said('It has a ')}{deleted}{inserted}{said('church.')}{reference}</w:p><w:p>{said('Box:')}{both}</w:p>"
    body += f"{table}<w:p>{moved}</w:p><w:p>{said('One')}<w:r><w:br/></w:r>{said('Two')}</w:p>"
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    space += 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'

    def notes(kind, number, text):
        separator = f'<w:{kind} w:type="separator" w:id="-1"><w:p><w:r><w:separator/></w:r></w:p></w:{kind}>'
        return f'<w:{kind}s {space}>{separator}<w:{kind} w:id="{number}">{said(text, "p")}</w:{kind}></w:{kind}s>'

    with zipfile.ZipFile(tmp_path / "a.docx", "w") as archive:
        archive.writestr("word/document.xml", f"<w:document {space}><w:body>{body}</w:body></w:document>")
        archive.writestr("word/footnotes.xml", notes("footnote", 2, "At the foot."))
        archive.writestr("word/endnotes.xml", notes("endnote", 1, "At the end."))
        archive.writestr("word/header1.xml", f"<w:hdr {space}>{said('Head', 'p')}</w:hdr>")
    found = paragraphs_of(tmp_path / "a.docx", left_out := Skipped())
    wanted = ["It has a new church.", "At the foot.", "Box:", "In a box.", "Outer.", "Inner.", "One", "Two", "At the end."]
    assert found == wanted
    assert left_out.counts == {"passages deleted by tracked changes": 3, "headers and footers": 1}
    with zipfile.ZipFile(tmp_path / "b.docx", "w") as archive:
        archive.writestr("word/other.xml", "")
    with pytest.raises(InputError, match=r"b\.docx: not a DOCX file"):
        paragraphs_of(tmp_path / "b.docx")


def test_what_is_no_text_is_named(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one\ntwo\nf\xfcr\n")
    with pytest.raises(InputError, match=r"a.txt:3: not UTF-8 \(byte 0xfc at column 2\)"):
        xswe.split_text(tmp_path / "a.txt", "de")
    for name in ("c.txt.gz", "c.md.gz"):
        (tmp_path / name).write_bytes(gzip.compress(b"one\n" * 999)[:-9])
        with pytest.raises(InputError, match=f"{name}: the archive is truncated or damaged .*; fetch it again"):
            xswe.split_text(tmp_path / name, "de")
    (tmp_path / "b.txt").write_bytes("one\n".encode("utf-16-le"))
    with pytest.raises(InputError, match="NUL byte"):
        xswe.split_text(tmp_path / "b.txt", "de")
    with pytest.raises(ConfigError, match="unknown language 'fr'"):
        xswe.split_text("Bonjour.", "fr")


def test_the_verb_writes_lines_and_places(tmp_path, capsysbinary):
    (tmp_path / "a.txt").write_bytes("\ufeffDer Zug kam. Er war leer.\r\nUnd dann?\r\n".encode())
    given = [f"input={tmp_path / 'a.txt'}", "language=de"]
    assert main(["split", *given, f"output={tmp_path / 's.txt'}"]) == 0
    assert (tmp_path / "s.txt").read_text("utf-8").splitlines() == ["Der Zug kam.", "Er war leer.", "Und dann?"]
    assert main(["split", *given, f"output={tmp_path / 's.tsv'}"]) == 0
    assert (tmp_path / "s.tsv").read_text("utf-8").splitlines()[1] == "Der Zug kam.\t0\t12\t0"
    capsysbinary.readouterr()
    assert main(["split", *given, "output=-"]) == 0
    assert capsysbinary.readouterr().out.decode() == (tmp_path / "s.txt").read_text("utf-8")
    with pytest.raises(SystemExit, match="2"):
        main(["split", *given, f"output={tmp_path / 's.doc'}"])
    assert b"the suffix says the format" in capsysbinary.readouterr().err


def test_the_verbs_that_read_lines_cut_running_text(tmp_path, capsys):
    """encode, mine, search and phrases: with ``split=true`` of any text, of HTML unasked."""
    page = "<h1>Trains</h1>\n<p>The train is late. A cat sleeps\non the roof.</p>\n"
    (tmp_path / "en.html").write_text(page, "utf-8")
    (tmp_path / "de.txt").write_text("Eine Katze schläft auf dem Dach. Der Zug hat Verspätung.\n", "utf-8")
    english, german = tmp_path / "en.html", tmp_path / "de.txt"
    assert main(["encode", "model=mini", f"input={english}", "language=en", f"output={tmp_path / 'a.npy'}"]) == 0
    expected = xswe.load("mini").encode(["Trains", "The train is late.", "A cat sleeps on the roof."])
    assert np.array_equal(np.load(tmp_path / "a.npy"), expected)
    made = ["model=mini", f"output={tmp_path / 'pairs.tsv'}", "threshold=null", "languages=[en,de]"]
    assert main(["mine", f"source={english}", f"target={german}", "split=true", *made]) == 0
    pairs = {tuple(line.split("\t")[1:]) for line in (tmp_path / "pairs.tsv").read_text("utf-8").splitlines()}
    assert ("A cat sleeps on the roof.", "Eine Katze schläft auf dem Dach.") in pairs
    given = ["search", "model=mini", f"input={german}", "split=true", "language=de", "queries=the late train", "k=1"]
    assert main([*given, f"output={tmp_path / 'hits.tsv'}"]) == 0
    assert "\tDer Zug hat Verspätung.\t1" in (tmp_path / "hits.tsv").read_text("utf-8")
    given = ["phrases", "model=mini", "queries=the roof", f"input={german}", "split=true", "languages=[en,de]"]
    assert main([*given, f"output={tmp_path / 'found.tsv'}"]) == 0
    assert "\tEine Katze schläft auf dem Dach.\n" in (tmp_path / "found.tsv").read_text("utf-8")
    assert not [path.name for path in tmp_path.iterdir() if "sentences" in path.name]
    capsys.readouterr()
    with pytest.raises(SystemExit, match="2"):
        main(["encode", "model=mini", f"input={english}", f"output={tmp_path / 'b.npy'}"])
    assert "en.html is cut into sentences by its language" in capsys.readouterr().err


def test_navigation_and_footers_of_html_are_left_out_and_counted(tmp_path, caplog):
    menu = "".join(f'<li><a href="{n}">Chapter {n}</a></li>' for n in range(4))
    page = f"""<nav><p>Skip to content</p></nav><ul>{menu}</ul><main><h1>Cats</h1><p>A <a href="x">cat</a> sleeps.</p>
        <ul><li><a href="a">One source</a></li><li><a href="b">Another source</a></li></ul>
        <p><a href="c">A whole sentence that is a link.</a></p></main><footer><p>© 2024 <b>Cats</b></p></footer>"""
    (tmp_path / "en.html").write_text(page, "utf-8")
    kept = ["Cats", "A cat sleeps.", "One source", "Another source", "A whole sentence that is a link."]
    assert paragraphs_of(tmp_path / "en.html") == kept
    caplog.set_level("INFO")
    found = xswe.split_text(tmp_path / "en.html", "en")
    assert found.summary() == "5 sentences in 5 paragraphs; left out: 6 paragraphs of navigation and footers"
    assert found.left_out == {"paragraphs of navigation and footers": 6}
    sides = tmp_path / "en.html", ["A cat sleeps."]
    xswe.encode_file(xswe.load("mini"), tmp_path / "en.html", tmp_path / "a.npy", language="en")
    xswe.align(xswe.load("mini"), *sides, languages=("en", "de"))
    assert caplog.text.count("en.html: 5 sentences in 5 paragraphs; left out: 6 paragraphs of navigation") == 3


def test_markdown_is_a_document_as_html_is(tmp_path):
    (tmp_path / "a.md").write_text("# Trains\n\nOne\nline. And another.\n", "utf-8")
    (tmp_path / "a.markdown").write_text("# Trains\n\nOne\nline. And another.\n", "utf-8")
    for name, split, rows in (("a.md", None, 3), ("a.markdown", None, 3), ("a.md", True, 3), ("a.md", False, 4)):
        language = None if split is False else "en"
        made = xswe.encode_file(xswe.load("mini"), tmp_path / name, tmp_path / "a.npy", split=split, language=language)
        assert made.rows == rows, (name, split)
    with pytest.raises(ConfigError, match=r"a\.md is cut into sentences by its language"):
        xswe.encode_file(xswe.load("mini"), tmp_path / "a.md", tmp_path / "a.npy")


def test_two_texts_in_markdown_are_mined_by_sentence(tmp_path):
    for code, sentences in BOOK.items():
        (tmp_path / f"{code}.md").write_text("".join(sentences) if code == "ja" else " ".join(sentences), "utf-8")
    sides = tmp_path / "de.md", tmp_path / "ja.md"
    mined = xswe.mine(xswe.load("mini"), *sides, threshold=None, languages=("de", "ja"), output=tmp_path / "pairs.tsv")
    assert {(pair.source, pair.target) for pair in mined} == set(zip(BOOK["de"], BOOK["ja"], strict=True))


def test_sentences_of_a_file_are_known_again(tmp_path):
    """What resumes knows a file by its name, size and time: those of the sentences are the same in each run."""
    (tmp_path / "a.txt").write_text("Es regnet. Es schneit.", "utf-8")
    stamps = []
    for _ in range(2):
        path = TextSource(str(tmp_path / "a.txt"), "de", True).lines(tmp_path, Skipped())
        assert Path(path).read_text("utf-8") == "Es regnet.\nEs schneit.\n"
        stamps.append(file_stamp(path))
    assert stamps[0] == stamps[1]
    assert TextSource(str(tmp_path / "a.txt")).lines(tmp_path, Skipped()) == str(tmp_path / "a.txt")
