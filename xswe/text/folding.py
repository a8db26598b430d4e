"""Folding of traditional Chinese characters to simplified ones, as a table within a tokenizer.

OpenCC's conversion is applied character by character, so that the same table works inside ``tokenizer.json`` (as a
``Precompiled`` normaliser) in every library that reads it. Phrase rules, which a table cannot hold, are left out: nothing
is lost if two traditional characters share a simplified one, and the few characters that depend on their neighbours (乾 in
乾坤) are folded alike in training and at inference.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from tokenizers import normalizers

from xswe.errors import needs
from xswe.io.files import scratch
from xswe.text.scripts import HAN_CHARACTERS

_HAN_BLOCKS = ((0x3400, 0x4DC0), (0x4E00, 0xA000), (0xF900, 0xFB00), (0x20000, 0x30000))


@lru_cache(maxsize=1)
def simplified_characters() -> dict[str, str]:
    """Map traditional characters to simplified ones, where they differ (about 5,000, from OpenCC)."""
    with needs("opencc", "train", "folding Chinese characters"):
        from opencc import OpenCC
    convert = OpenCC("t2s").convert
    characters = (chr(code) for low, high in _HAN_BLOCKS for code in range(low, high))
    return {c: s for c in characters if (s := convert(c)) != c and len(s) == 1}


# The most frequent of Japanese characters that fold alike, if the standard does not list it first.
_COMMONEST = "鬱雲個蠣鉤葉機喫御凶卷幸合谷準昇鐘鎚折託淀檮濤邇汎檜並藪癒欲憐亘憑彙廣槨氣鹵燻瑤甕籤諡"


def japanese_characters(fold: Callable[[str], str]) -> dict[str, str]:
    """Map folded characters back to Japanese ones, one to one; ``fold`` is the normalisation of a look-up.

    Of several characters that fold alike (復 and 複 to 复), take the first in JIS X 0208, whose level 1 has the characters
    in daily use, then in JIS X 0213, unless another one is much more frequent. ``fold`` must keep spaces.
    """
    common = _decoded("euc_jp", b"", range(0xB0, 0xF5))
    further = _decoded("euc_jis_2004", b"", range(0xA1, 0xFF)) + _decoded("euc_jis_2004", b"\x8f", range(0xA1, 0xFF))
    characters = [*_COMMONEST, *dict.fromkeys(re.findall(f"[{HAN_CHARACTERS}]", common + further))]
    out: dict[str, str] = {}
    for character, folded in zip(characters, fold(" ".join(characters)).split(), strict=True):
        out.setdefault(folded, character)
    return out


def _decoded(encoding: str, lead: bytes, rows: range) -> str:
    """Return the characters of some rows of a character set, 94 a row at most."""
    return "".join((lead + bytes((row, cell))).decode(encoding, "ignore") for row in rows for cell in range(0xA1, 0xFF))


def folding_step() -> normalizers.Normalizer:
    """Return the normaliser that folds traditional characters into simplified ones."""
    return normalizers.Precompiled(compiled_charsmap(simplified_characters()))


def compiled_charsmap(table: dict[str, str]) -> bytes:
    """Compile a character table to sentencepiece's form, which ``tokenizers.normalizers.Precompiled`` reads.

    The table maps each character (or short text) to its replacement; an empty text removes it. The map has sentencepiece's
    serialisation: a double-array trie and its strings.
    """
    with needs("sentencepiece (with protobuf)", "train", "compiling a character table"):
        import sentencepiece
        from sentencepiece import sentencepiece_model_pb2
    model = io.BytesIO()
    with scratch() as folder:
        rules = Path(folder) / "rules.tsv"
        # Only the normaliser of this throw-away model is used; its two training lines do not matter.
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
    """Return a text in the format of the rules file: hexadecimal code points separated by spaces."""
    return " ".join(f"{ord(character):X}" for character in text)
