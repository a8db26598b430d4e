"""Folding traditional Chinese characters into simplified ones, as a table that a tokenizer can carry.

OpenCC's conversion is taken character by character, so that the very same table works inside ``tokenizer.json`` (as a
``Precompiled`` normaliser) in every library that reads it. Phrase rules, which a table cannot hold, are left out: of
two traditional characters that share a simplified one nothing is lost, and the few that depend on their neighbours
(乾 in 乾坤) are folded alike in training and at inference.
"""

from __future__ import annotations

import io
import tempfile
from functools import lru_cache
from pathlib import Path

from tokenizers import normalizers

from xswe.errors import DependencyError

_HAN_BLOCKS = ((0x3400, 0x4DC0), (0x4E00, 0xA000), (0xF900, 0xFB00), (0x20000, 0x30000))


@lru_cache(maxsize=1)
def simplified_characters() -> dict[str, str]:
    """Map each traditional character to its simplified one, for all that differ (about 5,000, from OpenCC)."""
    try:
        from opencc import OpenCC
    except ImportError:
        raise DependencyError("opencc", "train", "folding Chinese characters") from None
    convert = OpenCC("t2s").convert
    characters = (chr(code) for low, high in _HAN_BLOCKS for code in range(low, high))
    return {c: s for c in characters if (s := convert(c)) != c and len(s) == 1}


def folding_step() -> normalizers.Normalizer:
    """Return the normaliser that folds traditional characters into simplified ones."""
    return normalizers.Precompiled(compiled_charsmap(simplified_characters()))


def compiled_charsmap(table: dict[str, str]) -> bytes:
    """Compile a character table to sentencepiece's form, which ``tokenizers.normalizers.Precompiled`` reads.

    Args:
        table: what each character (or short text) becomes; an empty text removes it.

    Returns:
        The map as sentencepiece serialises it (a double-array trie and its strings).
    """
    try:
        import sentencepiece
        from sentencepiece import sentencepiece_model_pb2
    except ImportError:
        raise DependencyError("sentencepiece (with protobuf)", "train", "compiling a character table") from None
    model = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        rules = Path(folder) / "rules.tsv"
        # Only the normaliser of this throw-away model is wanted; the two lines it is trained on do not matter.
        rules.write_text("".join(f"{_codes(a)}\t{_codes(b)}\n" for a, b in sorted(table.items())), encoding="ascii")
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["a b c d e f g", "h i j k l m n"]),
            model_writer=model,
            vocab_size=24,
            hard_vocab_limit=False,
            normalization_rule_tsv=str(rules),
            minloglevel=2,
        )
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    return proto.normalizer_spec.precompiled_charsmap


def _codes(text: str) -> str:
    """Write a text as the rules' file wants it: hexadecimal code points with blanks between them."""
    return " ".join(f"{ord(character):X}" for character in text)
