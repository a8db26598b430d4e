"""Languages of bitext: what contradicts those that are given is said, and those that are not given are found."""

from __future__ import annotations

import json

import pytest

import xswe
from xswe.bitext.source import Source, find_pairs, read_pairs
from xswe.errors import ConfigError
from xswe.text.detection import likely_language

PAIRS = [(f"The train number {n} is late, and it rains.", f"列車{n}号は遅れています。雨が降っている。") for n in range(40)]
HALF = [*PAIRS[:20], *((a, a) for a, _ in PAIRS[:20])]  # whose second half nobody translated
GERMAN = [(a, f"Der Zug Nummer {n} hat Verspätung, und es regnet.") for n, (a, _) in enumerate(PAIRS)]


def write(path, pairs, codes=("en", "ja")):
    """Write pairs in the format of a name, under these languages."""
    if path.suffix == ".tmx":
        tuv = '<tuv xml:lang="{}"><seg>{}</seg></tuv>'
        units = "".join(f"<tu>{tuv.format(codes[0], a)}{tuv.format(codes[1], b)}</tu>" for a, b in pairs)
        path.write_text(f'<tmx version="1.4"><body>{units}</body></tmx>', "utf-8")
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(dict(zip(codes, pair, strict=True))) + "\n" for pair in pairs), "utf-8")
    else:
        path.write_text("".join("\t".join(pair) + "\n" for pair in pairs), "utf-8")
    return path


@pytest.mark.parametrize("suffix", [".tsv", ".jsonl", ".tmx"])
@pytest.mark.parametrize(
    ("pairs", "sides", "share", "swapped"),
    [
        ([(b, a) for a, b in PAIRS], ["English", "Japanese"], "40 of 40 lines looked at (100%)", True),
        (
            [*PAIRS[:20], *((a, a) for a, _ in PAIRS[:20])],
            ["Japanese"],
            "20 of 40 lines looked at (50%), mostly English",
            True,
        ),
        (GERMAN, ["Japanese"], "40 of 40 lines looked at (100%), mostly German", False),
    ],
)
def test_sides_in_other_languages_are_said_once_by_every_reader(tmp_path, caplog, suffix, pairs, sides, share, swapped):
    path = write(tmp_path / f"a{suffix}", pairs)
    for _ in range(2):
        assert len(list(read_pairs(find_pairs([path], ("en", "ja"))[0]))) == 40
        assert len(list(Source((str(path),), languages=("en", "ja")).read())) == 40
    said = [record.message for record in caplog.records if "is in another language" in record.message]
    assert len(said) == len(sides)
    for one, side in zip(said, sides, strict=True):
        assert one.startswith(f"{path}: its {side} side is in another language in {share}")
        assert ("languages=[ja,en]" in one) == swapped


@pytest.mark.parametrize(("lines", "looked_at"), [(250, 250), (251, 126), (500, 250), (501, 167)])
def test_of_many_lines_some_are_looked_at_however_the_file_is_read(tmp_path, caplog, lines, looked_at):
    path = write(tmp_path / "a.tsv", [(b, a) for a, b in PAIRS[:1]] * lines)
    list(read_pairs(find_pairs([path], ("en", "ja"))[0]))
    list(Source((str(path),), languages=("en", "ja")).read())
    share = f"in {looked_at} of {looked_at} lines looked at (100%)"
    assert [share in record.message for record in caplog.records] == [True, True]  # a side each, and once


def test_languages_are_detected_where_none_are_given_and_the_texts_can_be_read_again(tmp_path):
    path = str(write(tmp_path / "a.tsv", GERMAN))
    assert Source((path,)).with_detected_languages().languages == ("en", "de")
    for given in (Source((path,), languages=("en", "ja")), Source(("-",))):
        assert given.with_detected_languages() is given
    assert Source((str(write(tmp_path / "b.tsv", [("x", "y")])),)).with_detected_languages().languages == ()


def test_sides_in_their_languages_are_no_matter(tmp_path, caplog):
    rows = [*PAIRS, ("Windows 10", "Windows 10"), ("Tokyo", "東京"), ("1,000", "1,000"), ("The NHK", "NHK")]
    list(read_pairs(find_pairs([write(tmp_path / "a.tsv", rows)], ("en", "ja"))[0]))
    assert not caplog.records


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("The cat is on the roof.", "en"),
        ("Die Katze ist auf dem Dach.", "de"),
        ("猫が屋根の上にいる。", "ja"),
        ("猫在屋顶上。", "zh"),
        ("東京", ""),
        ("Windows 10", ""),
        ("Кошка на крыше.", "cyrillic"),
        ("", ""),
    ],
)
def test_a_text_tells_its_language_by_script_and_frequent_words(text, code):
    assert likely_language(text) == code


def test_languages_that_are_not_given_are_found_for_a_memory(tmp_path, caplog):
    caplog.set_level("INFO")
    model = xswe.load("mini")
    path = write(tmp_path / "a.tsv", GERMAN)
    xswe.filter(model, path, tmp_path / "a.tmx", threshold=-1, near_duplicates=False)
    assert '<tuv xml:lang="en"><seg>The train number 0' in (tmp_path / "a.tmx").read_text("utf-8")
    assert "languages=[en,de], detected in its texts" in caplog.text
    with pytest.raises(ConfigError, match="names the languages of its texts: set languages"):
        xswe.filter(model, write(tmp_path / "b.tsv", [("a", "b")] * 20), tmp_path / "b.tmx", threshold=-1)
