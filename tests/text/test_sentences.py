"""Running text cut into sentences: known answers in four languages, and what holds of any text."""

from __future__ import annotations

import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xswe.errors import ConfigError, DependencyError
from xswe.text import boundaries
from xswe.text.boundaries import split_sentences

# Sentences are parted by "|".
KNOWN = {
    "en": [
        "Dr. Smith met Mr. Jones at 5 p.m. on Jan. 3.| They talked about the U.S. economy for an hour.| It cost $3.50.",
        '"Why are you late?" she asked.| He said nothing.| "I am sorry," he said at last.| "The train was late."',
        "See Fig. 3 and Sec. 2.1 of the paper (cf. Miller et al. 2020).| The results are clear, e.g. in Tab. 4.",
        "He works for Acme Inc. in Washington, D.C.| She does not.",
        "Version 3.11.7 was released.| Go to example.com for more!| Really?!| Yes...| Maybe.",
        "First item.| 2. Second item is here.| The No. 1 song was theirs.",
        "It was over (or so he thought. But it was not).| J. R. R. Tolkien wrote it.",
        "Nobody asked me.| I like modern art.| Do what you may.| OK.| We leave on May. 5.",
        "Ms. Smith and Mr. Brown came at 5 a.m. Eastern time.| At 6 p.m. Monday they left.| At 7 p.m.| They slept.",
        "He left in May.| It cost 5 dollars etc.| He was born in Peru.| 20 people came.| See approx. 5 of them, Sept. 5.",
        "Use System.Text.Json here.| See example.com.| It ends here.Then it goes on.".replace("here.Then", "here.|Then"),
        "Excellent read!!| I loved it.| Really?!| I did.",
        "It fell (to 32 percent.)| But it rose.| (He left.)| She stayed.| Yes!| 25 people wept.",
        "There is a gateway (AG): 1) It asks.| 2) It answers.| Then it rests.",
        "Sizes (n) may be <= 0.| See the text [1] for more.| They are read-only.| It is another sect.| In 1872 it began.",
        "He left the Academy of Art.| Tourism helps towns.| It is Art. 5 of the law.",
        "It is in math.h.| Create a value of size n.| Certain ones have it, as in 1.x.| Globs work.| See Roe v. Wade.",
        "He closed it (or not.| Then he went (as he had to) home.| She saw (see OS.)| This is « so ».| « We won. »| We do.",
        "It runs (on OS.) Windows machines too.| It runs (on OS.)| The others do not.",
    ],
    "de": [
        "Am 3. Oktober 1990 wurde Deutschland wiedervereinigt.| Das war z. B. in Berlin zu spüren.| Dr. Müller war da.",
        "Die Firma verkauft Autos, Lkw usw. an Händler.| Sie wurde am 12.03.1985 gegründet.",
        "„Wo bist du?“, fragte er.| „Ich bin hier.“| Sie lachte.",
        "Prof. Dr. Meier erhielt ca. 3,5 Mio. Euro.| Das ist lt. Bericht die Nr. 1 in Europa.",
        "Der 2. Weltkrieg endete 1945.| Ludwig XIV. war König.| Das geschah im 19. Jahrhundert.",
        "Siehe Abb. 3 bzw. Kap. 4.| Die Str. ist gesperrt, d.h. man muss umkehren.| Wirklich?| Ja!",
        "Er kam um 8.30 Uhr an.| »Guten Tag!«, sagte sie.| Dann ging er.",
        "Das ist nichts für mich.| Er hat, was er mag.| Sie kommt im 1. und 2. Stock an.",
        "Die Fa. Meier liefert inkl. Verpackung.| Das kostet 5 Mio.| Die Firma zahlt 3 Mio. Euro bzw. 15 Tsd. Kronen.",
        "Äpfel, Birnen usw.| Der Mann kam.| Er trank Vitamin C.| Das half J. R. Tolkien.| Das ist Alltag in Berlin.",
        "Er kam 1990 nach Berlin.| 2001 ging er fort, am 11. September.| Das ist „System.Text“.",
        "Das kommt.| jQuery hilft.| eShopOnContainers auch.| Das sind z. B. zwei.| Er nutzt (CI).| Wir nutzen (CD).",
        "Es gilt § 5 ff. BGB.| Er erhielt 100 Euro inkl. MwSt.| Die Frau zahlte.| Sie mag jede Art.| Es ist gut.",
    ],
    "zh": [
        "替她说话的是阿曼达?诺克斯。|他是米歇尔?普拉蒂尼吗?|达到了?|他是卡特。",
        "他说：“我明天来。”|然后他就走了。|你知道吗？|我不知道！",
        "“你好吗？”她问。|“我很好。”他回答。",
        "这本书（第一版出版于1990年。作者是王明。）很有名。|价格是3.5元。",
        "他大喊：「快跑！」|大家都跑了。|第一，要小心；第二，要快。",
        "Python 3.11 发布了。|请访问 example.com 了解详情。|2020年开始。",
        "“走吧！”|“好。”|他们走了。",
        "真的吗？！|是的。",
        "（他昨天来过。）|她问：「你好吗？」|（笑）他走了。|（“走！”）的确，（快。），就这样。",
        "他走了。|arg 是参数。| str 是字符串。|docs@example.org 可用。|.NET 是框架，.NET 很好。",
        "他写道：“哇。|你代表国家。|后来他说：“对不起。”|你好。|他说：“走吧。|快！”|我们走了。|“走吧。快！”他说。",
        "持续部署 (CD) 或持续集成 (CI) 很好。|“客人走了。”|对于我们来说，这很好。|旧事。）|写成 a . html 和 3 . 5。",
        "好吗?|2岁。|“我来。”|她说，女儿常常来。|“走吧。”他说，然后走了。|“走。”他说，“快。”",
        "“走吧。”|她补充道：“好。”|我用 .NET 和System.Text，增长３.６％。|完了。",
        "“要4个小时。”|“3D打印很好。”|大家同意。|《007》也好。|“2岁。”|“走！”|“iPhone。”",
    ],
    "ja": [
        "彼は「明日行きます。」と言った。|それから帰った。|本当ですか？|はい！",
        "「どこへ行くの？」と彼女は聞いた。|「学校だよ。」|彼は答えた。",
        "この本（1990年に出版された。著者は山田氏。）は有名だ。|値段は3.5ドルだ。",
        "えっ！？|まさか……。|信じられない。",
        "『吾輩は猫である。名前はまだ無い。』という書き出しは有名である。|作者は夏目漱石だ。",
        "Python 3.11がリリースされました。|詳しくはexample.comをご覧ください。|1990年に始まった。",
        "「そうだ。」|ところで、彼は？",
        "（昨日来た。）|本当？！|（笑。）と書いた。",
        "ご覧ください。|.NET Core は、.NET です。|string は型です。| null も型。|また、.xproj も。|アプリの.NET と「終」。",
        "（別項を参照のこと。)|早くから優れた。|争いがあった。）|開祖は師と仰ぐ。|何ですか?|1900年代です。",
        "モーニング娘。は人気だ。|モーニング娘。'16が好きだ。|次はモーニング娘。|今日は終わり。",
        "サンガF.C.が建設した。|1.の方式は古い。|System.Textを使う。|終わり。",
    ],
}
# A mark that closes is of the sentence before it, one that opens of the one behind it; of every kind of marks.
QUOTED = {
    "en": ['""', "''", "“”", "‘’", "«»", "‹›"],
    "de": ["„“", "‚‘", "»«", "›‹", "«»", '""', "''", "“”"],
    "zh": ["“”", "‘’", "「」", "『』", "（）"],
    "ja": ["「」", "『』", "“”", "‘’", "（）"],
}
SPOKEN = {
    "en": ["He left.", "‹We went home.", "We slept.›", "‹No.›", "She stayed."],
    "de": ["Er ging.", "‹Wir kamen an.", "Wir schliefen.›", "‹Nein.›", "Sie blieb."],
    "zh": ["他走了。", "‹我们来了。›", "‹不。›", "她留下了。"],
    "ja": ["彼は帰った。", "‹私たちは来た。›", "‹いいえ。›", "彼女は残った。"],
}
LANGUAGE = st.sampled_from(sorted(KNOWN))


@pytest.fixture(autouse=True)
def library():
    pytest.importorskip("sentencex")


@pytest.mark.parametrize(("language", "marked"), [(code, text) for code, texts in KNOWN.items() for text in texts])
def test_known_answers(language, marked):
    text = marked.replace("|", "")
    assert [text[a:b] for a, b in split_sentences(text, language)] == [part.strip() for part in marked.split("|")]


@pytest.mark.parametrize(("language", "marks"), [(code, marks) for code, kinds in QUOTED.items() for marks in kinds])
def test_quotation_marks_stay_with_their_sentences(language, marks):
    parts = [part.replace("‹", marks[0]).replace("›", marks[1]) for part in SPOKEN[language]]
    text = ("" if language in ("zh", "ja") else " ").join(parts)
    assert [text[a:b] for a, b in split_sentences(text, language)] == parts


@pytest.mark.parametrize(
    "marked",
    [
        'He said.| "We went home.| "No."',  # the first is never closed
        'It is late".| "We went home.| They slept.',
        '"That is so. "| "We went home. "| He left.',
        "It isn 't .| The boys' toys.| '90s music.| He said 'no'.| He left.",
        '"Is it true?" asked she.| "Yes!" Peter shouted.| “Why?” – he said.| "Go!"| He left.',
        'He said "no".| "Mr. Smith left.| Dr. Brown stayed."',
    ],
)
def test_quotation_marks_that_have_no_partner_or_stand_alone(marked):
    text = marked.replace("|", "")
    assert [text[a:b] for a, b in split_sentences(text, "en")] == [part.strip() for part in marked.split("|")]


@pytest.mark.parametrize("language", sorted(KNOWN))
def test_a_whole_page_is_cut_as_its_paragraphs_are(language):
    texts = [marked.replace("|", "") for marked in KNOWN[language]]
    expected = [text[a:b] for text in texts for a, b in split_sentences(text, language)]
    page = "\n\n".join(texts)
    assert [page[a:b] for a, b in split_sentences(page, language)] == expected


PIECES = st.sampled_from(
    [
        "A b. ",
        "Dr. X",
        "。",
        "！？",
        "「あ。",
        "」と",
        "（",
        "）",
        '"',
        "“他。",
        "”",
        "3. ",
        "\n",
        "\n\n",
        " ",
        "😀",
        "im 19. ",
    ]
)


@settings(max_examples=100)
@given(st.lists(st.one_of(PIECES, st.text(max_size=4)), max_size=30).map("".join), LANGUAGE)
def test_spans_are_in_order_and_hold_all_that_is_no_blank(text, language):
    spans = split_sentences(text, language)
    end, kept = 0, []
    for a, b in spans:
        assert end <= a < b <= len(text)
        assert text[a:b] == text[a:b].strip()
        kept.append(text[end:a])
        end = b
    assert not "".join([*kept, text[end:]]).strip()
    assert split_sentences(text, language) == spans


@pytest.mark.parametrize(
    ("language", "unit"),
    [
        ("ja", "「行く。"),
        ("ja", "。"),
        ("ja", "。』"),
        ("zh", "他说：“好。"),
        ("zh", "（好。）"),
        ("en", '"A b. '),
        ("en", 'A. " '),
        ("en", "'. "),
        ("de", "im 3. "),
        ("de", "(A.) "),
    ],
)
def test_text_that_means_harm_takes_time_by_its_length(language, unit):
    split_sentences(unit * 100, language)
    start = time.perf_counter()
    split_sentences(unit * (60_000 // len(unit)), language)
    assert time.perf_counter() - start < 60  # quadratic, it would be hours


@pytest.mark.parametrize(("language", "text"), [("ja", "例えば、Table.(Id) の構文です。"), ("zh", "使用Table.(Id)语法。")])
def test_a_name_goes_on_with_a_bracket(language, text):
    assert split_sentences(text, language) == [(0, len(text))]


def test_a_long_text_is_cut_as_a_short_one():
    text = "This is a sentence of Dr. Smith. " * 3000
    spans = split_sentences(text, "en")
    assert len(spans) == 3000
    assert {text[a:b] for a, b in spans} == {"This is a sentence of Dr. Smith."}


def test_parts_of_a_long_text_begin_where_a_sentence_does(monkeypatch):
    """However long the parts are: what is cut off of a sentence is looked at again with what follows it."""

    for language, marked in ((code, text) for code, texts in KNOWN.items() for text in texts):
        joint = "" if language in ("zh", "ja") else " "
        text = joint.join([marked.replace("|", "")] * 4)
        expected = split_sentences(text, language)
        monkeypatch.setattr(boundaries, "_LONGEST_TEXT", max(map(len, marked.split("|"))) + 40)
        assert split_sentences(text, language) == expected
        monkeypatch.undo()
    monkeypatch.setattr(boundaries, "_LONGEST_TEXT", 40)
    text = "x" * 14 + ". " + "y" * 60 + ". " + "z" * 30
    assert split_sentences(text, "en")[0] == (0, 15)


def test_mistakes(monkeypatch):
    assert split_sentences("", "en") == split_sentences(" \n\n ", "ja") == []
    with pytest.raises(ConfigError, match="unknown language 'fr'"):
        split_sentences("A.", "fr")

    boundaries._library.cache_clear()
    monkeypatch.setitem(sys.modules, "sentencex", None)
    with pytest.raises(DependencyError, match=r"xswe\[sentences\]"):
        split_sentences("A.", "en")


@pytest.mark.parametrize(
    ("text", "spans", "longest"),
    [
        ("「ああ。いい」", [(0, 4), (4, 7)], 7),
        ("「ああ。いい」と。", [(0, 4), (4, 9)], 9),
        ("「ああ。い。う」", [(0, 4), (4, 6), (6, 8)], 8),
        ("（ああ。い）う。", [(0, 4), (4, 8)], 8),
    ],
)
def test_a_quote_is_one_sentence_up_to_a_length(monkeypatch, text, spans, longest):
    assert len(text) == longest
    for most, joined in ((longest + 1, True), (longest, True), (longest - 1, False)):
        monkeypatch.setattr(boundaries, "_LONGEST_QUOTE", most)
        found = boundaries._quotes_closed(text, spans)
        assert (found == [(0, longest)]) == joined
        assert [text[start:end] for start, end in found][-1].endswith(text[-1])


def test_what_is_never_closed_stays_cut():
    assert boundaries._quotes_closed("「ああ。いい。", [(0, 4), (4, 7)]) == [(0, 4), (4, 7)]
    assert boundaries._quotes_closed("ああ。「い」", [(0, 3), (3, 6)]) == [(0, 3), (3, 6)]
    assert boundaries._quotes_closed("", []) == []


@pytest.mark.parametrize(
    ("language", "text", "masked"),
    [
        ("en", "a (ABCD) b (ABCDE) c", "a ~ABCD~ b (ABCDE) c"),  # short names
        ("en", "a (A B) c (a{b}c d)", "a (A B) c (a~b~c d)"),
        ("en", "x (a {b c", "x ~a ~b c"),  # never closed
        ("en", "(a\n\n b) c] d", "~a\n\n b~ c~ d"),
        ("en", "a < b <i>c</i> d", "a ~ b <i>c</i> d"),
        ("en", "(a (b c d) e f) g", "(a (b c d) e f) g"),
        ("en", "“a (b” c d)", "“a ~b” c d~"),
        ("en", "(" + "[" * 7 + "a b)", "(" + "~" * 7 + "a b)"),
        ("en", "(" + "[" * 8 + "a b)", "~" * 9 + "a b~"),
        ("en", f"({'a ' * 99}a) b", f"({'a ' * 99}a) b"),
        ("en", f"({'a ' * 99}aa) b", f"~{'a ' * 99}aa~ b"),  # long ones
        ("ja", "「ああ。いい」と", "「ああ。いい」と"),
        ("ja", "「ああ。いい」。", "~ああ。いい~。"),  # the sentence does not go on after two of them
        ("ja", "「ああ。」。「ああ」。", "「ああ。」。「ああ」。"),
        ("ja", "（ああ。いい）。", "（ああ。いい）。"),
        ("en", "“A. B” c", "“A. B” c"),
    ],
)
def test_brackets_that_would_hide_the_end_of_a_sentence_are_masked(language, text, masked):
    assert boundaries._without_asides(text, language) == masked


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ('He said "no".', "He said  no~."),
        ("'Yes,' he said. 'No.'", " Yes,~ he said.  No. "),
        ("isn't 'tis isn 't", "isn't  tis isn 't"),
        ("„A“ b", " A~ b"),
        ('"a" b ("c")', " a~ b ( c~)"),
        ("a", "a"),
        ("", ""),
    ],
)
def test_quotation_marks_are_masked(text, masked):
    assert boundaries._without_quotes(text) == masked
