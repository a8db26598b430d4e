"""Function words: those that no term begins or ends with."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from xswe.text.languages import LANGUAGES

# Words that begin and end no term: what stands at the rim of a term's span in running text, nothing that itself is one.
# A rim word is one of these as a whole. Chinese and Japanese units may hold a particle and a part of the term (``の値``):
# ``ATTACHED_PARTICLES`` has what is cut off such a unit, before and after it, where Han, Katakana or Latin letters remain.
BOUNDARY_STOPWORDS: dict[str, str] = {
    "en": """
        a about after all also an and another any are as at be because been before between both but by can could did
        do does during each either for from had has have how however if in into is it its may might more most must no
        nor not of on only or other our over per should so some such than that the their them then there these they
        this those through to under until up us use used using via was we were what when where whether which while who
        will with within without would you your""",
    "de": """
        ab aber alle allem allen aller alles als also am an andere anderen auch auf aus bei beim bis da damit dann das
        dass dem den denen der deren des dessen die dies diese diesem diesen dieser dieses doch durch ein eine einem
        einen einer eines er es für gegen haben hat hier ihr ihre ihrem ihren ihrer ihres im in indem ins ist jede
        jedem jeden jeder jedes kann keine keinen können man mehr mehrere mit müssen muss nach nicht noch nur ob oder
        ohne pro sein seine sich sie sind so sodass sollte sollten über um und unter vom von vor war was wenn werden
        wie wird wo wurde wurden zu zum zur zwischen""",
    "zh": """
        的 了 和 与 或 及 以及 或者 并且 而 是 为 在 于 从 到 由 被 将 把 对 对于 以 其 此 该 这 这个 这些 那 那个 您
        你 我们 他们 它 它们 一个 一种 一些 某个 每个 各个 所有 任何 中的 上的 下的 可以 能够 应该 需要 必须 也 还 都
        就 则 若 若要 如果 请 让 向 通过 之间 等 用于 使用 进行 具有 包含 包括 提供 有关 关于 根据 按照 例如 但 但是
        因此 因为 由于 然后 同时 另外""",
    "ja": """
        の は を が に へ と で も や から まで より には では とは にも でも との への での からの までの として
        について による により によって に対して に対する に関する という といった など または および かつ この その
        あの これ それ こと もの ため 場合 とき です ます ました ません でした だ である であり する します した して
        され される されます された されて されている している しています できます できる いる います ある あります
        ない なる なります を使用 ください すべて すべての 各 さらに また ただし たとえば 例えば 次の 次に 以下の""",
}
# What is cut off before, and after, the rest of a unit.
ATTACHED_PARTICLES: dict[str, tuple[str, str]] = {
    "zh": (
        """的 了 和 与 或 及 是 被 将 该 此 一个 每个 这个 这些 所有 任何 如果 若要 以及 或者""",
        """的 了 和 与 或 及 是 在 将 等 中的 上的""",
    ),
    "ja": (
        """の は を が に へ と で も や から まで より には では との への での からの として この その これらの
        すべての 各 次の""",
        """の は を が に へ と で も や から まで より には では とは との への での からの として について による
        により という など または および です ます する します した して され される されます された されて している
        しています しました できます を使用して である であり な""",
    ),
}

# Words of all texts that are no term by themselves: numbers, and what says when, how much, whether, how surely.
GENERAL_BY_LANGUAGE: dict[str, str] = {
    "en": """
        one two three four five six seven eight nine ten eleven twelve hundred thousand million billion first second third
        fourth fifth last next many much few several various another every everything everyone something someone anything
        anyone nothing nobody himself herself itself themselves myself yourself never always often sometimes usually already
        still again once twice soon later earlier now today yesterday tomorrow here away back together almost nearly just
        even quite rather very too enough less least yet ever else instead perhaps maybe although though unless since
        therefore thus hence moreover furthermore additionally alternatively otherwise meanwhile finally especially
        particularly generally currently recently previously well good better best new old long short big great little small
        large high low same different own whole able want like know think say said says make makes made take takes taken
        took get gets got go goes going went come comes came see seen saw give gives given gave put keep let seem seems
        become became means mean far near nearby further apart ahead aside forward backward inside outside around across
        along behind beyond below above beside besides toward towards upon none no-one bit called named don't doesn't can't
        won't isn't aren't wasn't didn't you're it's that's there's let's please yes okay according regarding including due
        lot lots kind thing things way ways""",
    "de": """
        ein eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf hundert tausend millionen milliarden erste ersten
        erster erstes zweite zweiten zweiter dritte dritten letzte letzten letzter letztes nächste nächsten nächster viele
        vielen vieler viel wenig wenige einige einigen einiger etwas nichts niemand jemand selbst nie niemals immer oft
        manchmal bereits schon wieder einmal bald später früher jetzt heute gestern morgen zurück zusammen fast sogar ganz
        sehr genug weniger jemals sonst stattdessen vielleicht obwohl daher deshalb somit außerdem zudem darüber alternativ
        andernfalls inzwischen schließlich insbesondere besonders allgemein derzeit kürzlich zuvor gut gute guten besser neu
        neue neuen neuer neues alt alte alten lang lange langen kurz groß große großen klein kleine kleinen hoch hohe hohen
        gleich gleiche gleichen verschiedene verschiedenen eigene eigenen möchten wollen weiß wissen denken sagen sagt sagte
        machen macht gemacht nehmen gehen geht ging kommen kommt kam sehen geben gibt gab bekommen scheint bedeutet gemäß
        einschließlich aufgrund bitte ja nein weit nahe meist meistens namens vorwärts rückwärts innerhalb außerhalb
        unterhalb oberhalb neben hinter kaum lediglich bisschen""",
}
# Adjectives that point to something in the text, numbers, and verbs of speech: no term of several words begins with one.
LEADING_BY_LANGUAGE: dict[str, str] = {
    "en": """
        two three four five six seven eight nine ten said says following same different next last several many much few
        various other others such certain respective above below previous current existing specific additional entire own
        new particular similar corresponding multiple""",
    "de": """
        zwei drei vier fünf sechs sieben acht neun zehn sagte sagt folgende folgenden folgender folgendes folgendem gleiche
        gleichen gleicher gleiches verschiedene verschiedenen verschiedener nächste nächsten nächster nächstes letzte
        letzten letzter letztes viele vielen vieler mehrere mehreren weitere weiteren weiterer weiteres bestimmte bestimmten
        bestimmter bestimmtes jeweilige jeweiligen jeweiliger obige obigen vorherige vorherigen aktuelle aktuellen
        vorhandene vorhandenen zusätzliche zusätzlichen gesamte gesamten eigene eigenen neue neuen neuer neues ähnliche
        ähnlichen entsprechende entsprechenden spezifische spezifischen""",
}


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text, a set."""
    return frozenset(text.split())


GENERAL_WORDS = word_set(" ".join(GENERAL_BY_LANGUAGE.values()))
LEADING_WORDS = word_set(" ".join(LEADING_BY_LANGUAGE.values()))


@lru_cache(maxsize=16)
def boundary_stopwords(japanese: bool, spaced: str = "") -> frozenset[str]:
    """Return the boundary stopwords of Japanese, or of Chinese, and of the languages with blanks, or of the one named."""
    codes = ("ja" if japanese else "zh", *([spaced] if spaced else _spaced()))
    return word_set(" ".join(BOUNDARY_STOPWORDS[code] for code in codes))


def spaced_language(text: str) -> str:
    """Return the language with blanks that has most of a text's stopwords, of those of one language; empty if two have."""
    words = text.casefold().split()
    counts = {code: sum(word in own for word in words) for code, own in _own().items()}
    most = max(counts.values())
    first, *others = (code for code, count in counts.items() if count == most)
    return "" if others else first


# Stopwords of one language that are words of another as well say nothing.
_HOMOGRAPHS = frozenset(("den", "hat", "man", "not", "war", "was", "will"))


def _spaced() -> list[str]:
    return [code for code in BOUNDARY_STOPWORDS if LANGUAGES[code].spaced]


@cache
def _own() -> dict[str, frozenset[str]]:
    """Return the stopwords of each language with blanks that no other has."""
    sets = {code: word_set(BOUNDARY_STOPWORDS[code]) for code in _spaced()}
    others = {code: _HOMOGRAPHS.union(*(words for other, words in sets.items() if other != code)) for code in sets}
    return {code: words - others[code] for code, words in sets.items()}


@lru_cache(maxsize=2)
def attached_particles(japanese: bool) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns of the particles at the beginning and the end of a run of Han and Kana, the longest first.

    In Japanese a particle matches only beside other characters than Hiragana, to which it may belong.
    """
    before, after = (
        "|".join(sorted(words.split(), key=lambda word: (-len(word), word)))
        for words in ATTACHED_PARTICLES["ja" if japanese else "zh"]
    )
    if japanese:
        return re.compile(rf"(?:{before})(?=[^ぁ-ゖ])"), re.compile(rf"(?<=[^ぁ-ゖ])(?:{after})$")
    return re.compile(f"(?:{before})(?=.)"), re.compile(f"(?<=.)(?:{after})$")


# Words that only look as if a particle stood before or after them.
_WHOLE = {
    *(
        "特に",
        "最も",
        "既に",
        "主に",
        "更に",
        "単に",
        "遂に",
        "常に",
        "次に",
        "共に",
        "実に",
        "誠に",
        "故に",
        "主な",
        "大した",
    ),
    *(
        "決して",
        "概して",
        "この頃",
        "各地",
        "各国",
        "各種",
        "各自",
        "各位",
        "対する",
        "関する",
        "称する",
        "達する",
        "愛する",
        "我が",
    ),
}


def has_particle(text: str) -> bool:
    """Return True if a run of Japanese is a word with particles before or after it."""
    before, after = attached_particles(True)
    return text not in _WHOLE and (before.match(text) or after.search(text)) is not None
