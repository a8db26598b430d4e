"""Words that begin and end no term: articles, prepositions, auxiliaries, particles.

Lists of a language hold what stands at the rim of a term's span in running text, nothing that itself is one.
"""

from __future__ import annotations

import re
from functools import lru_cache

# A rim word is one of these as a whole. Chinese and Japanese units may hold a particle and a part of the term (``の値``):
# ``FUSED`` has what is cut off such a unit, before and after it, where Han, Katakana or Latin letters remain.
RIM_WORDS: dict[str, str] = {
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
FUSED: dict[str, tuple[str, str]] = {
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


@lru_cache(maxsize=2)
def rim_words(japanese: bool) -> frozenset[str]:
    """Return the words of a text of Japanese, or of the other languages."""
    return frozenset(" ".join(words for code, words in RIM_WORDS.items() if code != ("zh" if japanese else "ja")).split())


@lru_cache(maxsize=2)
def fused_rims(japanese: bool) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what finds the particles at the beginning and the end of a run of Han and Kana, the longest first.

    In Japanese a particle is cut only where it stands beside other characters than Hiragana, to which it may belong.
    """
    before, after = (
        "|".join(sorted(words.split(), key=lambda word: (-len(word), word))) for words in FUSED["ja" if japanese else "zh"]
    )
    if japanese:
        return re.compile(rf"(?:{before})(?=[^ぁ-ゖ])"), re.compile(rf"(?<=[^ぁ-ゖ])(?:{after})$")
    return re.compile(f"(?:{before})(?=.)"), re.compile(f"(?<=.)(?:{after})$")
