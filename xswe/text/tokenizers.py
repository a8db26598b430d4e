"""Tokenizers: the library's own kind (normaliser, chunks, one Unigram vocabulary for all languages), and their files."""

from __future__ import annotations

import io
import json
import logging
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from xswe.errors import ConfigError, ModelError, brief, needs
from xswe.io.files import scratch
from xswe.text.folding import folding_step
from xswe.text.scripts import CJK_CHARACTERS

logger = logging.getLogger(__name__)
WORD_START = "▁"  # the mark of a word start


def text_normaliser(languages: Sequence[str], folding: bool = True) -> normalizers.Normalizer:
    """Return the normaliser of sub-word models: NFKC, no control characters, lower case, and folded Chinese.

    NFKC turns full-width forms into half-width ones. If the model knows Chinese, traditional characters are folded to
    simplified ones, even in Japanese text: a table inside a tokenizer does not know the language, and languages that share
    a character then share its vector. ``folding=False`` leaves them unchanged.
    """
    steps: list[normalizers.Normalizer] = [
        normalizers.NFKC(),
        normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=True),
    ]
    if "zh" in languages and folding:
        steps.append(folding_step())
    return normalizers.Sequence(steps)


def with_folding(tokenizer: Tokenizer, languages: Sequence[str]) -> Tokenizer:
    """Make a tokenizer fold traditional Chinese first, if the model knows Chinese and it does not fold yet; return it."""
    if "zh" in languages and not folds(tokenizer):
        put_first(tokenizer, folding_step())
    return tokenizer


def folds(tokenizer: Tokenizer) -> bool:
    """Return True if a tokenizer itself folds traditional Chinese characters to simplified ones."""
    return tokenizer.normalizer is not None and tokenizer.normalizer.normalize_str("語") == "语"


def put_first(tokenizer: Tokenizer, step: normalizers.Normalizer) -> None:
    """Make a tokenizer apply ``step`` before its own normaliser."""
    own = [tokenizer.normalizer] if tokenizer.normalizer is not None else []
    tokenizer.normalizer = normalizers.Sequence([step, *own])


def chunker(cjk_characters: str = CJK_CHARACTERS) -> pre_tokenizers.PreTokenizer:
    """Return the pre-tokeniser of sub-word models: from text to the chunks that are split into pieces.

    Whitespace ends a chunk and is dropped; every punctuation mark, and every run of Han and Kana, is a chunk of its own.
    All other chunks are words of spaced scripts and start with the mark U+2581, wherever they are: a word after a bracket
    or between two ideographs is the same word. The chunks are the same as those of word units, see :mod:`xswe.text.words`.
    """
    cjk = Regex(f"[{cjk_characters}]+")
    unmarked = Regex(f"{WORD_START}(?=[{cjk_characters}\\p{{P}}$+<=>^`|~])")
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Punctuation("isolated"),
            pre_tokenizers.Split(cjk, "isolated"),
            pre_tokenizers.Metaspace(replacement=WORD_START, prepend_scheme="always"),
            pre_tokenizers.Split(unmarked, "removed"),
        ]
    )


def is_trained_here(own: dict[str, Any]) -> bool:
    """Return True if a ``tokenizer.json`` is of the kind made by :func:`train_subwords`."""
    ours = Tokenizer(models.Unigram())
    # The tokenizer says which characters are Han and Kana: another version may have had others.
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


_TRAINER: dict[str, Any] = {  # fixed settings of the trainer
    **{"input_format": "tsv", "model_type": "unigram", "hard_vocab_limit": False, "character_coverage": 0.9998},
    # The chunks are already normalised and marked.
    **{"normalization_rule_name": "identity", "add_dummy_prefix": False, "remove_extra_whitespaces": False},
    **{"max_sentence_length": 16_384, "unk_id": 0, "bos_id": -1, "eos_id": -1, "pad_id": -1, "minloglevel": 2},
}


def train_subwords(
    texts: Iterable[str], languages: Sequence[str], size: int = 32_000, threads: int = 1, folding: bool = True
) -> Tokenizer:
    """Train one Unigram vocabulary on texts of all the model's languages, about the same number of each, read once.

    The ``size`` pieces include the unknown piece (id 0); there are fewer if the texts have no more. ConfigError: there is
    too little text. The normaliser, which folds traditional Chinese unless ``folding`` is False, and the chunks are those
    of this module.
    """
    with needs("sentencepiece (with protobuf)", "train", "training sub-word units"):
        import sentencepiece
        from sentencepiece import sentencepiece_model_pb2
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer, tokenizer.pre_tokenizer = text_normaliser(languages, folding), chunker()
    counts: Counter[str] = Counter()
    for text in texts:
        chunks = tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str(text))
        counts.update(chunk for chunk, _ in chunks)
    with scratch() as folder:
        # The trainer reads each distinct chunk once, with its count: faster than from the text, with the same result.
        table = Path(folder) / "chunks.tsv"
        table.write_text("".join(f"{chunk}\t{count}\n" for chunk, count in sorted(counts.items())), encoding="utf-8")
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                input=str(table), model_writer=model, vocab_size=size, num_threads=threads, **_TRAINER
            )
        except RuntimeError as error:
            raise ConfigError(f"cannot train sub-word units ({error}): give more text or a smaller units.size") from None
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    # The scores are float32: their shortest decimal form is exact and keeps the file small.
    pieces = [(piece.piece, float(str(np.float32(piece.score)))) for piece in proto.pieces]
    tokenizer.model = models.Unigram(pieces, unk_id=0)
    logger.info("trained %d sub-word units", len(pieces))
    return tokenizer


# Files of the ``tokenizers`` library: read, checked, and stripped of what units do not need.


def load_tokenizer(path: Path) -> Tokenizer:
    """Load a ``tokenizer.json``; raise ModelError if it is missing or invalid."""
    if not path.is_file():
        raise ModelError(f"{path}: there is no such file; a sub-word model needs its tokenizer.json")
    return parse_tokenizer(path.read_bytes(), path)


def parse_tokenizer(content: bytes, path: Path) -> Tokenizer:
    """Parse the bytes of a ``tokenizer.json``; a ModelError names ``path`` if they are invalid."""
    try:
        return Tokenizer.from_buffer(content)
    except BaseException as error:
        if not _is_of_the_library(error):
            raise
        raise ModelError(f"{path}: not a tokenizer ({brief(error, 300)}); fetch or train the model again") from None


def state_for_later(path: Path) -> tuple[bytes, dict[str, Any]] | None:
    """Return the bytes and the state of a ``tokenizer.json`` that is certain to load later, else None."""
    try:
        content = path.read_bytes()
        state = json.loads(content.decode("utf-8"), parse_float=_exact)
        if not is_trained_here(state):
            return None
        without_pieces(state)
        pieces, unknown = state["model"]["vocab"], state["model"]["unk_id"]
        "".join(piece for piece, _ in pieces).encode("utf-8")
        sound = all(type(score) is float and math.isfinite(score) for _, score in pieces)
        return (content, state) if sound and type(unknown) is int and 0 <= unknown < len(pieces) else None
    except BaseException as error:
        if not _is_of_the_library(error):
            raise
        return None  # let the library report the problem


def _is_of_the_library(error: BaseException) -> bool:
    """Return True for an error about a malformed file, not an interruption: the library raises bare errors, or panics."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def _exact(number: str) -> float:
    """Parse a decimal number short enough that every parser gives the same float; the library may round longer ones."""
    if len(number) > 16 or "e" in number.lower():
        raise ValueError(number)
    return float(number)


def unknown_id(tokenizer: Tokenizer, state: dict[str, Any] | None = None) -> int | None:
    """Return a tokenizer's id for unknown pieces, None if it has none; ``state`` is its state if already known."""
    model = (state or json.loads(tokenizer.to_str()))["model"]
    if model.get("unk_id") is not None:
        return int(model["unk_id"])
    return tokenizer.token_to_id(model["unk_token"]) if model.get("unk_token") else None


def without_limits(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tokenizer's state without truncation and padding, which units never use."""
    return {**state, "padding": None, "truncation": None}


def without_pieces(state: dict[str, Any]) -> Tokenizer:
    """Return a Unigram tokenizer without pieces: only its normaliser and chunks, in next to no memory."""
    return Tokenizer.from_str(json.dumps({**state, "model": {**state["model"], "vocab": [], "unk_id": None}}))


def pieces_only(tokenizer: Tokenizer) -> Tokenizer:
    """Return a copy without an encoder's special tokens and their template.

    Units occur in the text: a padding token is not a unit, and "<pad>" in a text is five characters. Special tokens within
    the vocabulary itself (as in XLM-R) stay, because pieces must keep their ids.
    """
    state = json.loads(tokenizer.to_str())
    vocabulary, unknown = tokenizer.get_vocab_size(with_added_tokens=False), unknown_id(tokenizer, state)
    state["added_tokens"] = [
        token
        for token in state["added_tokens"]
        if not token["special"] or (token["id"] < vocabulary and token["id"] != unknown)
    ]
    state["post_processor"] = state["padding"] = state["truncation"] = None
    return Tokenizer.from_str(json.dumps(state))
