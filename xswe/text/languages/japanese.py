"""Japanese: its codes and word lists."""

from __future__ import annotations

from xswe.text.languages.language import Language, word_set

JAPANESE = Language(
    "ja",
    "Japanese",
    "kana",
    "jpn",
    "jpn-Jpan",
    example="猫が寝ている。",
    boundary_stopwords=word_set("""
        の は を が に へ と で も や から まで より には では とは にも でも との への での からの
        までの として について による により によって に対して に対する に関する という といった など または
        および かつ この その あの これ それ こと もの ため 場合 とき です ます ました ません でした だ
        である であり する します した して され される されます された されて されている している しています
        できます できる いる います ある あります ない なる なります を使用 ください すべて すべての 各 さらに
        また ただし たとえば 例えば 次の 次に 以下の
    """),
    particles_before=word_set("""
        の は を が に へ と で も や から まで より には では との への での からの として この その
        これらの すべての 各 次の
    """),
    particles_after=word_set("""
        の は を が に へ と で も や から まで より には では とは との への での からの として
        について による により という など または および です ます する します した して され される されます
        された されて している しています しました できます を使用して である であり な
    """),
)
