"""Sub-word units: one ``tokenizer.json`` is the whole function from text to ids, here and in every other library."""

from __future__ import annotations

import io
import json
import logging
import re
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from xswe.errors import ConfigError, DependencyError, ModelError
from xswe.files import read_json
from xswe.language.bags import Bags, concatenate
from xswe.language.codes import check_languages
from xswe.language.folding import compiled_charsmap, simplified_characters
from xswe.language.scripts import CJK_CHARACTERS
from xswe.language.texts import Texts
from xswe.language.units import BLOCK, FEW, LocatedBags, UnitKind, characters, in_blocks, settle

if TYPE_CHECKING:
    from xswe.language.lookup import FastLookup

logger = logging.getLogger(__name__)
_MARK = "▁"


class SubwordUnits:
    """The pieces of a tokenizer as units.

    Args:
        tokenizer: any tokenizer of the ``tokenizers`` library; its special tokens are never units.
        kind: ``subwords`` for a vocabulary of the model's own, ``teacher`` for the teacher's.
        languages: codes of the model's languages.
        lone_mark: whether the mark of a word's start alone is a unit, as in the models of other libraries.
    """

    def __init__(self, tokenizer: Tokenizer, kind: UnitKind, languages: Sequence[str], *, lone_mark: bool = False) -> None:
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self.tokenizer, self.kind, self.languages = tokenizer, kind, check_languages(languages)
        self._is_unit = np.ones(tokenizer.get_vocab_size(with_added_tokens=True), bool)
        self._is_unit[[i for i, added in tokenizer.get_added_tokens_decoder().items() if added.special]] = False
        state = json.loads(tokenizer.to_str())
        if (unknown := _unknown_of(tokenizer, state)) is not None:
            self._is_unit[unknown] = False
        self._lone_mark = lone_mark
        # The mark of a word's start alone says nothing: it remains where the word itself is unknown.
        if not lone_mark and (lone := tokenizer.token_to_id(_MARK)) is not None:
            self._is_unit[lone] = False
        self._fast: FastLookup | None = None
        self._fast_possible = _is_trained_here(state)
        self._seen = 0  # characters looked up by the tokenizer so far
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._is_unit)

    @property
    def tokens(self) -> list[str]:
        """The pieces, by id; an empty string for an id that is no unit (unknown, special, the lone mark)."""
        out = [""] * len(self._is_unit)
        for piece, i in self.tokenizer.get_vocab(with_added_tokens=True).items():
            out[i] = piece if self._is_unit[i] else ""
        return out

    @property
    def settings(self) -> dict[str, Any]:
        """Kind, languages, and the lone mark where it is a unit."""
        return {"kind": self.kind, "languages": list(self.languages)} | ({"lone_mark": True} if self._lone_mark else {})

    def bags(self, texts: Sequence[str]) -> Bags:
        """Look the texts up; unknown and special pieces are left out."""
        fast = self._fast_lookup(texts)
        if fast is None:
            return concatenate([self._by_tokenizer(block) for block in in_blocks(texts)])
        blocks = (texts[start : start + BLOCK] for start in range(0, len(texts), BLOCK))
        return concatenate([fast(Texts.of(block)) for block in blocks])

    def _fast_lookup(self, texts: Sequence[str]) -> FastLookup | None:
        """Return the compiled look-up, made once there is enough to do for it; None for the tokenizer itself."""
        if self._fast is None and self._fast_possible:
            self._seen += characters(texts) if len(texts) < FEW else FEW
            if self._seen >= FEW:
                with self._lock:
                    if self._fast is None:
                        from xswe.language.lookup import FastLookup

                        self._fast = FastLookup(self.tokenizer, self._is_unit, self._by_tokenizer)
        return self._fast

    def _by_tokenizer(self, texts: list[str]) -> Bags:
        """Look well-formed texts up with the tokenizer itself."""
        encodings = self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return self._keep(Bags.of([e.ids for e in encodings]))[0]

    def locate(self, texts: Sequence[str]) -> LocatedBags:
        """Look the texts up and say where each piece stands; a piece that covers only blanks is left out."""
        parts, starts, ends = [], [], []
        for block in in_blocks(texts):
            encodings = self.tokenizer.encode_batch(block, add_special_tokens=False)
            bags = Bags.of([e.ids for e in encodings])
            spans = [
                settle(text, *span) for text, encoding in zip(block, encodings, strict=True) for span in encoding.offsets
            ]
            where = np.array(spans, np.int32).reshape(-1, 2)
            bags, kept = self._keep(bags, where[:, 0] < where[:, 1])
            parts.append(bags)
            starts.append(where[kept, 0])
            ends.append(where[kept, 1])
        empty = [np.zeros(0, np.int32)]
        return LocatedBags(concatenate(parts), np.concatenate(starts or empty), np.concatenate(ends or empty))

    def _keep(self, bags: Bags, also: np.ndarray | None = None) -> tuple[Bags, np.ndarray]:
        """Drop ids that are no units (and those where ``also`` is false); returns the mask of those kept too."""
        kept = self._is_unit[bags.ids] if also is None else self._is_unit[bags.ids] & also
        if kept.all():
            return bags, kept
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])
        return Bags(bags.ids[kept], before[bags.offsets]), kept

    def save(self, folder: Path) -> None:
        """Write ``tokenizer.json``."""
        self.tokenizer.save(str(folder / "tokenizer.json"))

    @classmethod
    def load(cls, folder: Path) -> SubwordUnits:
        """Load from a model folder (``config.json`` names the kind and the languages)."""
        units = read_json(folder / "config.json")["units"]
        return cls(
            load_tokenizer(folder / "tokenizer.json"),
            units["kind"],
            units["languages"],
            lone_mark=bool(units.get("lone_mark")),
        )


def unknown_id(tokenizer: Tokenizer) -> int | None:
    """Return the id that a tokenizer gives to what it does not know, None if it has none."""
    return _unknown_of(tokenizer, json.loads(tokenizer.to_str()))


def _unknown_of(tokenizer: Tokenizer, state: dict[str, Any]) -> int | None:
    model = state["model"]
    if model.get("unk_id") is not None:
        return int(model["unk_id"])
    return tokenizer.token_to_id(model["unk_token"]) if model.get("unk_token") else None


def load_tokenizer(path: Path) -> Tokenizer:
    """Load a ``tokenizer.json``.

    Raises:
        ModelError: the file is missing or no tokenizer.
    """
    if not path.is_file():
        raise ModelError(f"{path}: there is no such file; a sub-word model needs its tokenizer.json")
    return parse_tokenizer(path.read_bytes(), path)


def parse_tokenizer(state: str | bytes, path: Path) -> Tokenizer:
    """Make a tokenizer of what is in a ``tokenizer.json``; ``path`` is for the error.

    Raises:
        ModelError: it is no tokenizer.
    """
    try:
        return Tokenizer.from_buffer(state.encode("utf-8") if isinstance(state, str) else state)
    except BaseException as error:  # the library raises bare Exception for a malformed file, or panics
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise ModelError(
            f"{path}: not a tokenizer ({' '.join(str(error).split())[:300]}); fetch or train the model again"
        ) from None


def pieces_only(tokenizer: Tokenizer) -> Tokenizer:
    """Return a copy without the special tokens that an encoder adds to the pieces, and without their template.

    Units are what stands in a text: a padding token is no unit, and "<pad>" in a text is five characters. Special tokens
    among the pieces themselves (XLM-R's) stay, as they must keep their ids.
    """
    state = json.loads(tokenizer.to_str())
    vocabulary, unknown = tokenizer.get_vocab_size(with_added_tokens=False), unknown_id(tokenizer)
    state["added_tokens"] = [
        token
        for token in state["added_tokens"]
        if not token["special"] or (token["id"] < vocabulary and token["id"] != unknown)
    ]
    state["post_processor"] = state["padding"] = state["truncation"] = None
    return Tokenizer.from_str(json.dumps(state))


def text_normaliser(languages: Sequence[str]) -> normalizers.Normalizer:
    """Return the normaliser of sub-word models: NFKC, no control characters, lower case, and folded Chinese.

    NFKC turns full-width forms into half-width ones. Traditional characters are folded into simplified ones wherever
    the model knows Chinese, in Japanese text too: a table inside a tokenizer cannot ask for the language, and
    languages that share a character then share its vector.
    """
    steps: list[normalizers.Normalizer] = [
        normalizers.NFKC(),
        normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=True),
    ]
    if "zh" in languages:
        steps.append(normalizers.Precompiled(compiled_charsmap(simplified_characters())))
    return normalizers.Sequence(steps)


def with_folding(tokenizer: Tokenizer, languages: Sequence[str]) -> Tokenizer:
    """Return a tokenizer that folds traditional Chinese first, if the model knows Chinese and this one does not yet."""
    normaliser = tokenizer.normalizer
    if "zh" not in languages or (normaliser is not None and normaliser.normalize_str("語") == "语"):
        return tokenizer
    folding = normalizers.Precompiled(compiled_charsmap(simplified_characters()))
    tokenizer.normalizer = normalizers.Sequence([folding, *([normaliser] if normaliser is not None else [])])
    return tokenizer


def chunker(cjk_characters: str = CJK_CHARACTERS) -> pre_tokenizers.PreTokenizer:
    """Return the pre-tokeniser of sub-word models: text to the chunks within which pieces are sought.

    Blanks end a chunk and are dropped; every punctuation mark, and every run of Han and Kana, is a chunk of its own. All
    other chunks are words of spaced scripts and start with the mark U+2581, wherever they stand: a word after a bracket
    or between two ideographs is the same word. The chunks are those of word units, see :mod:`xswe.language.scripts`.
    """
    cjk = Regex(f"[{cjk_characters}]+")
    unmarked = Regex(f"{_MARK}(?=[{cjk_characters}\\p{{P}}$+<=>^`|~])")
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Punctuation("isolated"),
            pre_tokenizers.Split(cjk, "isolated"),
            pre_tokenizers.Metaspace(replacement=_MARK, prepend_scheme="always"),
            pre_tokenizers.Split(unmarked, "removed"),
        ]
    )


def is_trained_here(tokenizer: Tokenizer) -> bool:
    """Tell whether a tokenizer is of the kind that :func:`train_subwords` makes, whatever its pieces."""
    return _is_trained_here(json.loads(tokenizer.to_str()))


def _is_trained_here(own: dict[str, Any]) -> bool:
    ours = Tokenizer(models.Unigram())
    # Which characters count as Han and Kana is for the tokenizer to say: another version may have known others.
    parts = (own["pre_tokenizer"] or {}).get("pretokenizers", [])
    classes = [re.fullmatch(r"\[([^][\\]+)\]\+", part["pattern"].get("Regex", "")) for part in parts if "pattern" in part]
    if not classes or classes[0] is None:
        return False
    ours.pre_tokenizer = chunker(classes[0].group(1))
    steps = [step["type"] for step in (own["normalizer"] or {}).get("normalizers", [])]
    return (
        own["model"]["type"] == "Unigram"
        and own["model"].get("unk_id") is not None
        and not own["model"].get("byte_fallback")
        and not own["added_tokens"]
        and own["pre_tokenizer"] == json.loads(ours.to_str())["pre_tokenizer"]
        and steps in (["NFKC", "BertNormalizer"], ["NFKC", "BertNormalizer", "Precompiled"])
    )


def train_subwords(texts: Iterable[str], languages: Sequence[str], size: int = 32_000, threads: int = 1) -> Tokenizer:
    """Train one Unigram vocabulary over texts of all the model's languages.

    Args:
        texts: sentences, streamed once; take about as many of each language.
        languages: codes of the model's languages.
        size: pieces, the unknown one (id 0) included; fewer if the texts hold no more.
        threads: threads of the trainer.

    Returns:
        A tokenizer: the normaliser and the chunks above, Unigram.

    Raises:
        ConfigError: the texts are too few for any vocabulary.
    """
    try:
        import sentencepiece
        from sentencepiece import sentencepiece_model_pb2
    except ImportError:
        raise DependencyError("sentencepiece (with protobuf)", "train", "training sub-word units") from None
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer, tokenizer.pre_tokenizer = text_normaliser(languages), chunker()
    counts: Counter[str] = Counter()
    for text in texts:
        chunks = tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str(text))
        counts.update(chunk for chunk, _ in chunks)
    model = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        # The trainer reads each distinct chunk once, with its count: the same result as from the text, sooner.
        table = Path(folder) / "chunks.tsv"
        table.write_text("".join(f"{chunk}\t{count}\n" for chunk, count in sorted(counts.items())), encoding="utf-8")
        try:
            sentencepiece.SentencePieceTrainer.train(
                input=str(table),
                input_format="tsv",
                model_writer=model,
                model_type="unigram",
                vocab_size=size,
                hard_vocab_limit=False,
                character_coverage=0.9998,
                normalization_rule_name="identity",  # the chunks are normalised and marked already
                add_dummy_prefix=False,
                remove_extra_whitespaces=False,
                max_sentence_length=16_384,
                num_threads=threads,
                unk_id=0,
                bos_id=-1,
                eos_id=-1,
                pad_id=-1,
                minloglevel=2,
            )
        except RuntimeError as error:
            raise ConfigError(f"cannot train sub-word units ({error}): give more text or a smaller units.size") from None
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    # The trainer's scores are float32: their shortest decimal form is exact and keeps the file small.
    pieces = [(piece.piece, float(str(np.float32(piece.score)))) for piece in proto.pieces]
    tokenizer.model = models.Unigram(pieces, unk_id=0)
    logger.info("trained %d sub-word units", len(pieces))
    return tokenizer
