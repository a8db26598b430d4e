"""Word units, the papers' choice: words of spaced scripts, segments of Han and Kana, and a back-off for unknown ones."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from tokenizers import NormalizedString, PreTokenizedString, Tokenizer, models, normalizers, pre_tokenizers

from xswe.errors import ModelError
from xswe.io.files import fingerprint, read_json
from xswe.io.parallel import Lock
from xswe.io.ragged import Bags, LocatedBags, concatenate_bags
from xswe.text.folding import folding_step
from xswe.text.languages import LANGUAGES, check_languages
from xswe.text.scripts import cjk_runs, has_cjk, has_kana, is_punctuation
from xswe.text.segmenters import WHOLE_TEXTS, TextPieces, make_segmenter
from xswe.text.tokenizers import WORD_START, folds, load_tokenizer, parse_tokenizer, without_limits
from xswe.text.units import CompileHeuristic, UnitKind, flat_blocks, in_blocks, trim_span

if TYPE_CHECKING:
    from xswe.text.compiled.chunks import Table
    from xswe.text.compiled.word_lookup import Ids, OneLanguage, WholeTexts, WordLookup


_MAX_BACKED_OFF = 1 << 18  # forms whose back-off is cached

LOWER = normalizers.Lowercase()  # character by character, like the cleaning normalisers


def _clean(lowercase: bool) -> normalizers.Normalizer:
    """Return the normaliser of all texts to be cut into words."""
    controls = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=lowercase
    )
    return normalizers.Sequence([normalizers.NFKC(), controls])


class Word(NamedTuple):
    """One word of a text: its normalised form and its place (start, end) in the original text.

    ``piece`` marks a piece of a text cut as a whole by the teacher, which is known as it is or not at all.
    """

    form: str
    start: int
    end: int
    piece: bool = False


class WordSplitter:
    """Splitter of texts into words, without a vocabulary.

    A text is normalised (NFKC, no control characters; in Chinese also from traditional to simplified), cut at whitespace
    and punctuation, and its runs of Han and Kana are cut by the segmenter of their language. Punctuation is dropped. The
    segmenter ``teacher-text`` instead cuts texts with Han or Kana as a whole, like the teacher's tokenizer
    (:class:`xswe.text.segmenters.TextPieces`).

    ``segmenters`` names the segmenters for ``zh`` and ``ja``, see :func:`xswe.text.segmenters.make_segmenter`; ``pieces``
    is the teacher's tokenizer, for ``teacher`` and ``teacher-text``. ``folding`` says whether traditional Chinese is folded
    to simplified if the model knows Chinese (the authors' code folds nothing), or is the normaliser for that, by default
    made from OpenCC. ``lowercase`` is set by the paper's monolingual models.
    """

    def __init__(
        self,
        languages: Sequence[str],
        segmenters: Mapping[str, str],
        pieces: Tokenizer | None,
        folding: normalizers.Normalizer | bool = True,
        lowercase: bool = False,
    ) -> None:
        self.languages, self._pieces, self.lowercase = check_languages(languages), pieces, lowercase
        spaceless = [code for code in self.languages if not LANGUAGES[code].spaced]
        self.segmenters = {code: segmenters[code] for code in spaceless}
        self._segment = {code: make_segmenter(self.segmenters[code], code, pieces) for code in spaceless}
        if "zh" not in spaceless or folding is False:
            self.folding = None
        else:
            step = folding if folding is not True else folding_step()
            self.folding = normalizers.Sequence([step])  # can be pickled, unlike its step
        self._clean, self._cut = _clean(lowercase), pre_tokenizers.BertPreTokenizer()
        self._text_pieces: dict[bool, TextPieces] = {}  # with and without folding
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        # Segmenters are functions and library objects that cannot be copied: they are rebuilt.
        return WordSplitter, (self.languages, self.segmenters, self._pieces, self.folding or False, self.lowercase)

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The teacher's tokenizer, if there is one."""
        return self._pieces

    @property
    def han_languages(self) -> tuple[str, ...]:
        """The possible languages of a text's Han; none if the model knows neither zh nor ja."""
        return tuple(self._segment)

    def language_of_han(self, text: str) -> str | None:
        """Return the language of a text's Han runs among the model's languages: ja if the text has any kana, else zh."""
        if "ja" in self._segment and ("zh" not in self._segment or has_kana(text)):
            return "ja"
        return "zh" if "zh" in self._segment else None

    def normaliser(self, language: str | None) -> normalizers.Normalizer:
        """Return the normaliser of texts whose Han is in a language."""
        if language == "zh" and self.folding is not None:
            return normalizers.Sequence([self._clean, self.folding])
        return self._clean

    def text_pieces(self, language: str | None) -> TextPieces | None:
        """Return the splitter of texts with Han or Kana of a language into pieces; None if their runs have a segmenter."""
        if language is None or self.segmenters[language] != WHOLE_TEXTS or self._pieces is None:
            return None
        folding = self.folding if language == "zh" else None
        with self._lock:
            if (folding is not None) not in self._text_pieces:
                before: list[normalizers.Normalizer] = [LOWER] if self.lowercase else []
                # A tokenizer that lowercases by itself is left unchanged: the compiled look-up knows those of this library.
                own = self._pieces.normalizer
                before = [] if own is not None and own.normalize_str("A") == "a" else before
                before += [folding] if folding is not None and not folds(self._pieces) else []
                self._text_pieces[folding is not None] = TextPieces(self._pieces, self.languages, before)
            return self._text_pieces[folding is not None]

    def lookup(
        self, language: str | None, ids: Ids, known: Table, slow: Callable[[list[str]], Bags]
    ) -> OneLanguage | WholeTexts:
        """Return the compiled equivalent of this splitter, for texts whose Han is in a language."""
        from xswe.text.compiled.word_lookup import OneLanguage, WholeTexts

        segmenter = self._segment[language] if language is not None else None
        normalise, cut = self.normaliser(language).normalize_str, self._cut.pre_tokenize_str
        words = OneLanguage(normalise, cut, segmenter, ids, known, slow)
        pieces = self.text_pieces(language)
        return words if pieces is None else WholeTexts(pieces, ids.find, words)

    def __call__(self, text: str) -> list[Word]:
        """Split one text."""
        language = self.language_of_han(text)
        pieces = self.text_pieces(language)
        if pieces is not None and has_cjk(text):
            return [Word(*word, piece=True) for word in pieces(text)]
        whole = PreTokenizedString(text)
        whole.normalize(self.normaliser(language).normalize)
        self._cut.pre_tokenize(whole)
        if language is not None and not text.isascii():
            whole.split(lambda _, part: self._cut_cjk(part, language))
        return [
            Word(form, *trim_span(text, *place))
            for form, place, _ in whole.get_splits(offset_referential="original", offset_type="char")
            if not all(map(is_punctuation, form))
        ]

    def _cut_cjk(self, part: NormalizedString, language: str) -> list[NormalizedString]:
        """Cut one part without whitespace into stretches of spaced script and segments of its Han and Kana runs."""
        form = part.normalized
        spans, place = [], 0
        for start, end in cjk_runs(form):
            if place < start:
                spans.append((place, start))
            spans += [(start + a, start + b) for a, b in self._segment[language](form[start:end])]
            place = end
        if not spans:
            return [part]
        if place < len(form):
            spans.append((place, len(form)))
        return [piece for a, b in spans if (piece := part[a:b]) is not None]


class WordUnits:
    """A vocabulary of words as units; the index in the list is the id.

    A word is looked up as it is, then in lower case; an unknown word backs off to its longest known prefix along the
    teacher's sub-words (dropping the last until the rest is known, EN paper 3.1), again also in lower case. Texts are
    encoded this way; :attr:`exact` finds only words that occur. ``pieces`` is the tokenizer whose sub-words guide the
    back-off; None for no back-off.
    """

    kind: UnitKind = "words"

    def __init__(self, vocabulary: Sequence[str], splitter: WordSplitter, pieces: Tokenizer | None) -> None:
        self.tokens = list(vocabulary)
        self.languages = splitter.languages
        self.splitter, self.pieces = splitter, pieces
        self.index = {word: i for i, word in enumerate(self.tokens)}
        self._backed_off: dict[str, int] = {}
        self._exact: WordUnits | None = None
        self._fast: WordLookup | None = None
        self._worth = CompileHeuristic()
        self._lock = Lock()

    def __getstate__(self) -> dict[str, Any]:
        # The compiled look-up is rebuilt on demand, and the caches refill by themselves.
        return {**self.__dict__, "_backed_off": {}, "_exact": None, "_fast": None}

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def exact(self) -> WordUnits:
        """The same words without a back-off: a word is known as it is, in its own case, or not at all."""
        with self._lock:
            self._exact = self._exact or _ExactWords(self.tokens, self.splitter, None)
            return self._exact

    def prune(self, keep: int, counts: np.ndarray | None = None) -> tuple[WordUnits, np.ndarray]:
        """Return the most frequent words, and their old ids; without counts, the first words of the list."""
        order = np.arange(len(self)) if counts is None else np.argsort(-counts, kind="stable")
        kept = np.sort(order[:keep])
        return type(self)([self.tokens[i] for i in kept], self.splitter, self.pieces), kept

    @property
    def settings(self) -> dict[str, Any]:
        """Kind, languages, segmenters, whether there is a back-off, and settings that differ from their defaults."""
        kept = {"folding": False} if "zh" in self.languages and self.splitter.folding is None else {}
        kept |= {"lowercase": True} if self.splitter.lowercase else {}
        return {
            "kind": self.kind,
            "languages": list(self.languages),
            "segmenters": self.splitter.segmenters,
            "backoff": self.pieces is not None,
            **kept,
        }

    @property
    def identity(self) -> str:
        """A fingerprint of settings (with the segmenters' names), words in order, normaliser and back-off."""
        normaliser = json.loads(self._as_tokenizer([]).to_str())
        backoff = without_limits(json.loads(self.pieces.to_str())) if self.pieces is not None else None
        return fingerprint(self.settings, self.tokens, normaliser, backoff)

    def _as_tokenizer(self, words: Sequence[str]) -> Tokenizer:
        tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token=""))
        tokenizer.normalizer = self.splitter.normaliser("zh")
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        return tokenizer

    def find(self, form: str) -> int:
        """Return the id of a word as it is or in lower case, -1 for none."""
        found = self.index.get(form, -1)
        return found if found >= 0 else self.index.get(form.lower(), -1)

    def identify(self, form: str) -> int:
        """Return the id of a word or of its back-off, -1 for none."""
        found = self.find(form)
        if found < 0 and self.pieces is not None:
            found = self._backed_off.get(form, -2)
            if found == -2:
                if len(self._backed_off) >= _MAX_BACKED_OFF:
                    self._backed_off = {}
                found = self._backed_off[form] = self._back_off(form)
        return found

    def _identify(self, word: Word) -> int:
        return self.find(word.form) if word.piece else self.identify(word.form)

    def _back_off(self, form: str) -> int:
        encoding = self.pieces.encode(form, add_special_tokens=False)  # type: ignore[union-attr]
        # The lone mark of a word start reports the first character as its own: that is no boundary.
        ends = {end for piece, (_, end) in zip(encoding.tokens, encoding.offsets, strict=True) if piece != WORD_START}
        for end in sorted((end for end in ends if 0 < end < len(form)), reverse=True):
            prefix = form[:end]
            for candidate in (prefix, prefix.lower()):
                if candidate in self.index:
                    return self.index[candidate]
        return -1

    def bags(self, texts: Sequence[str]) -> Bags:
        """Look texts up; words without a known part are left out."""
        if (fast := self._fast_lookup(texts)) is None:
            return self._plainly(texts)
        return concatenate_bags([fast(block) for block in flat_blocks(texts)])

    def _fast_lookup(self, texts: Sequence[str]) -> WordLookup | None:
        """Return the compiled look-up; None if the plain one is as fast."""
        if not self._worth(texts):
            return None
        with self._lock:
            self._fast = self._fast or self._make_fast()
            return self._fast

    def _make_fast(self) -> WordLookup:
        from xswe.io.compiler import start_compiler
        from xswe.text.compiled.word_lookup import Ids, WordLookup, known_words

        start_compiler()
        rest = Ids(self.find, self.identify, self.pieces), known_words(self.tokens), self._plainly
        return WordLookup({code: self.splitter.lookup(code, *rest) for code in self.splitter.han_languages or (None,)})

    def _plainly(self, texts: Sequence[str]) -> Bags:
        """Look texts up word by word: the reference for the compiled look-up."""
        lists = []
        for block in in_blocks(texts):
            for text in block:
                found = (self._identify(word) for word in self.splitter(text))
                lists.append([i for i in found if i >= 0])
        return Bags.of(lists)

    def locate(self, texts: Sequence[str]) -> LocatedBags:
        """Look texts up with the place of each word."""
        if not len(texts) or (fast := self._fast_lookup(texts)) is None:
            return self._locate_plainly(texts)
        from xswe.text.compiled.locate import together

        return together([fast.locate(block, self._locate_plainly) for block in flat_blocks(texts)])

    def _locate_plainly(self, texts: Sequence[str]) -> LocatedBags:
        """Look texts up word by word with places: the reference for the compiled code."""
        lists, places = [], []
        for block in in_blocks(texts):
            for text in block:
                words = [(self._identify(word), word) for word in self.splitter(text)]
                lists.append([i for i, _ in words if i >= 0])
                places += [(word.start, word.end) for i, word in words if i >= 0]
        where = np.array(places, np.int32).reshape(-1, 2)
        return LocatedBags(Bags.of(lists), where[:, 0], where[:, 1])

    def save(self, folder: Path) -> None:
        """Write ``words.json`` (vocabulary, normaliser) and ``backoff.json`` (the sub-words of back-off and segmenters)."""
        text = self._as_tokenizer(self.tokens).to_str()
        (folder / "words.json").write_text(text, encoding="utf-8", newline="")
        if (pieces := self.pieces or self.splitter.tokenizer) is not None:
            text = pieces.to_str(pretty=True)
            (folder / "backoff.json").write_text(text, encoding="utf-8", newline="")

    @classmethod
    def load(cls, folder: Path) -> WordUnits:
        """Load from a model folder (``config.json`` names the languages and segmenters)."""
        units = read_json(folder / "config.json")["units"]
        vocabulary, folding = _read_words(folder / "words.json")
        path = folder / "backoff.json"
        pieces = load_tokenizer(path) if units["backoff"] or path.is_file() else None
        fold = units.get("folding", True) and (folding or True)
        lowercase = bool(units.get("lowercase"))
        splitter = WordSplitter(units["languages"], units["segmenters"], pieces, fold, lowercase)
        made = cls(vocabulary, splitter, pieces if units["backoff"] else None)
        return made.exact if units.get("exact") else made


class _ExactWords(WordUnits):
    """See :attr:`WordUnits.exact`."""

    @property
    def exact(self) -> WordUnits:
        return self

    @property
    def settings(self) -> dict[str, Any]:
        return {**super().settings, "exact": True}

    def find(self, form: str) -> int:
        return self.index.get(form, -1)


def _read_words(path: Path) -> tuple[list[str], normalizers.Normalizer | None]:
    """Read a vocabulary and the normaliser that folds Chinese; a tokenizer with all words would cost four times as much."""
    if not path.is_file():
        raise ModelError(f"{path}: there is no such file; a model of words needs it: fetch or train the model again")
    try:
        state = read_json(path)
        index = state["model"]["vocab"]
        state["model"]["vocab"] = {}
        vocabulary = sorted(index, key=index.__getitem__)
        steps = (state["normalizer"] or {}).get("normalizers", [])
        state["normalizer"] = next((step for step in steps if step["type"] == "Precompiled"), None)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"{path}: not a vocabulary of words ({error}); fetch or train the model again") from None
    if [index[word] for word in vocabulary] != list(range(len(vocabulary))):
        raise ModelError(f"{path}: its ids have gaps; fetch or train the model again")
    return vocabulary, parse_tokenizer(json.dumps(state).encode(), path).normalizer


def own_words(counts: Mapping[str, Counter[str]], sizes: Mapping[str, int]) -> dict[str, list[str]]:
    """Return each language's own list: its ``sizes[language]`` most frequent words, ties in alphabetical order."""
    ranked = {code: sorted(counter.items(), key=lambda item: (-item[1], item[0])) for code, counter in counts.items()}
    return {code: [word for word, _ in items[: sizes[code]]] for code, items in ranked.items()}


def most_frequent(counts: Mapping[str, Counter[str]], sizes: Mapping[str, int]) -> list[str]:
    """Choose the vocabulary: the words of all languages' own lists, shared words once.

    Ties are broken alphabetically, so the same counts always give the same list (most frequent first).
    """
    total: Counter[str] = Counter()
    for language, words in own_words(counts, sizes).items():
        for word in words:
            total[word] += counts[language][word]
    return [word for word, _ in sorted(total.items(), key=lambda item: (-item[1], item[0]))]
