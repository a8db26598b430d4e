"""Chinese: its codes and word lists."""

from __future__ import annotations

from xswe.text.languages.language import Language, word_set

CHINESE = Language(
    "zh",
    "Chinese",
    "han",
    "cmn",
    "zho-Hans",
    example="一只猫在睡觉。",
    boundary_stopwords=word_set("""
        的 了 和 与 或 及 以及 或者 并且 而 是 为 在 于 从 到 由 被 将 把 对 对于 以 其 此 该 这
        这个 这些 那 那个 您 你 我们 他们 它 它们 一个 一种 一些 某个 每个 各个 所有 任何 中的 上的 下的
        可以 能够 应该 需要 必须 也 还 都 就 则 若 若要 如果 请 让 向 通过 之间 等 用于 使用 进行 具有
        包含 包括 提供 有关 关于 根据 按照 例如 但 但是 因此 因为 由于 然后 同时 另外
    """),
    particles_before=word_set("""
        的 了 和 与 或 及 是 被 将 该 此 一个 每个 这个 这些 所有 任何 如果 若要 以及 或者
    """),
    particles_after=word_set("的 了 和 与 或 及 是 在 将 等 中的 上的"),
)
