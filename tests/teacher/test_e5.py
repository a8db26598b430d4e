"""convert_e5.py of eval: an encoder read from a documented file is what the file says, and the real one is the
package's."""

from __future__ import annotations

import json
import struct
import unicodedata

import numpy as np
import pytest

from tests.conftest import Later, eval_script
from xswe.corpus.cards import sample_sentences
from xswe.errors import ConfigError, ModelError
from xswe.teacher.protocol import TeacherConfig
from xswe.teacher.transformer import load_teacher

Later("torch")
WIDTH, INNER, POSITIONS = 32, 64, 16
PIECES = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -3.0), ("▁a", -1.5), ("ガ", -2.0), ("b", -2.5)]
PIECES += [("<mask>", 0.0)]
MAP = {"Ａ": "a", "㌀": "アパート", "\x07": "", "\u3000": " ", "ｶ": "カ", "ﾞ": "\u3099"}


@pytest.fixture(scope="module")
def script():
    return eval_script("experiments.convert_e5")


def in_blocks(matrix):
    """Write a matrix as the file holds it, one block at a time."""
    out = b""
    for block in matrix.reshape(-1, 32):
        scale = np.float16(np.abs(block).max() / 7)
        nibbles = np.clip(np.rint(block / np.float32(scale)), -8, 7).astype(int) + 8
        out += scale.tobytes() + bytes(int(nibbles[j]) | int(nibbles[j + 16]) << 4 for j in range(16))
    return out


def tensors():
    """A one-layer encoder under the file's names; matrices are multiples of a scale, so that rounding changes nothing."""
    rng = np.random.default_rng(0)
    shapes = {"emb.word": (12, WIDTH), "emb.pos": (POSITIONS, WIDTH), "emb.type": (2, WIDTH)}
    shapes |= {f"l0.{part}.w": (WIDTH, WIDTH) for part in ("q", "k", "v", "ao")}
    shapes |= {"l0.fi.w": (INNER, WIDTH), "l0.fo.w": (WIDTH, INNER), "l0.fi.b": (INNER,)}
    vectors = ["emb.ln.w", "emb.ln.b", *(f"l0.{part}.b" for part in ("q", "k", "v", "ao", "fo", "aln", "oln"))]
    shapes |= dict.fromkeys([*vectors, "l0.aln.w", "l0.oln.w"], (WIDTH,))
    made = {}
    for name, shape in shapes.items():
        values = rng.integers(-7, 8, shape).astype(np.float32) / 8
        if len(shape) == 2:
            values[:, ::32] = 7 / 8  # so that every block has the scale 1/8
        made[name] = values
    return made


def packed_bytes():
    """A file of the layout, put together here from its description."""
    out = b"E5S1" + struct.pack("<I7ifi", 1, WIDTH, 1, 2, INNER, 12, POSITIONS, 2, 1e-12, 32)
    blob = "".join(piece for piece, _ in PIECES).encode()
    ends = np.cumsum([0, *(len(piece.encode()) for piece, _ in PIECES)])
    out += struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, len(blob)) + ends.astype("<u4").tobytes()
    out += np.array([score for _, score in PIECES], "<f4").tobytes() + blob
    rules = b"".join(struct.pack(f"<IB{len(to)}I", ord(a), len(to), *map(ord, to)) for a, to in sorted(MAP.items()))
    out += struct.pack("<iI", len(MAP), len(rules)) + rules
    data, directory, made = b"", b"", tensors()
    for name, values in made.items():
        four_bits = values.ndim == 2 and name not in ("emb.pos", "emb.type")
        content = in_blocks(values) if four_bits else values.tobytes()
        directory += struct.pack(f"<H{len(name)}sBI", len(name), name.encode(), four_bits, values.size)
        directory += struct.pack("<QQ", len(data), len(content))
        data += content
    start = len(out) + 4 + len(directory)
    shifted, at = b"", 0
    for name in made:  # the directory holds places in the file
        at += 2 + len(name) + 5
        place, size = struct.unpack_from("<QQ", directory, at)
        shifted += directory[len(shifted) : at] + struct.pack("<QQ", place + start, size)
        at += 16
    return out + struct.pack("<i", len(made)) + shifted + data


@pytest.fixture
def small(script, tmp_path):
    (tmp_path / "packed.bin").write_bytes(packed_bytes())
    return script.read_packed(tmp_path / "packed.bin")


def test_a_block_holds_weight_j_in_the_low_half_of_byte_j_and_j_plus_16_in_the_high_one(script):
    block = np.zeros(1, script._BLOCK)
    block["scale"], block["nibbles"] = 0.5, np.arange(16) | (np.arange(15, -1, -1) << 4)
    np.testing.assert_array_equal(script.unpack_blocks(block), (np.r_[np.arange(16), np.arange(15, -1, -1)] - 8) / 2)


def test_the_file_is_read_as_it_is_described(small):
    assert (small.width, small.layers, small.heads, small.inner) == (WIDTH, 1, 2, INNER)
    assert (small.rows, small.positions, small.types, small.epsilon) == (12, POSITIONS, 2, 1e-12)
    assert small.pieces == PIECES
    assert small.special == {"<s>": 0, "</s>": 2, "<pad>": 1, "<unk>": 3}
    assert small.characters == MAP
    made = tensors()
    for name, ours in (
        ("emb.word", "embeddings.word_embeddings.weight"),
        ("l0.q.w", "encoder.layer.0.attention.self.query.weight"),
        ("l0.aln.b", "encoder.layer.0.attention.output.LayerNorm.bias"),
        ("l0.fi.w", "encoder.layer.0.intermediate.dense.weight"),
        ("l0.fo.w", "encoder.layer.0.output.dense.weight"),
    ):
        np.testing.assert_array_equal(small.tensors[ours], made[name])
    assert len(small.tensors) == len(made)


def test_another_layout_is_refused(script, tmp_path):
    for name, content in (("magic", b"E5S2" + packed_bytes()[4:]), ("version", b"E5S1\2\0\0\0" + packed_bytes()[8:])):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ModelError, match=f"{name}: not in the layout E5S1"):
            script.read_packed(tmp_path / name)


def test_the_folder_is_an_encoder_with_pooling_and_prompt(script, small, tmp_path):
    (tmp_path / "e5").mkdir()
    script.write(small, tmp_path / "e5")
    teacher = load_teacher(TeacherConfig(str(tmp_path / "e5")))
    assert type(teacher.model).__name__ == "BertModel"
    assert (teacher.pooling, teacher.config.prompt, teacher.dim) == ("mean", "query: ", WIDTH)
    again = load_teacher(TeacherConfig(str(tmp_path / "e5")))
    assert again.checksum() == teacher.checksum()  # nothing is drawn at random
    weights = dict(teacher.model.named_parameters())
    for name, values in small.tensors.items():
        np.testing.assert_array_equal(weights[name].detach().cpu().numpy(), values)
    encoded = teacher._pretrained("Ａ \x07a\u3000ｶﾞ")
    assert encoded.tokens() == ["<s>", "▁a", "▁a", "▁", "ガ", "</s>"]
    assert teacher._pretrained.mask_token_id == len(PIECES) - 1
    own = load_teacher(TeacherConfig(str(tmp_path / "e5"), prompt=""))
    assert own.config.prompt == ""
    settings = tmp_path / "e5" / "config_sentence_transformers.json"
    settings.write_text(json.dumps({"prompts": {}, "default_prompt_name": "query"}))
    with pytest.raises(ModelError, match=r"no prompt 'query', its default; set teacher\.prompt"):
        load_teacher(TeacherConfig(str(tmp_path / "e5")))


def test_settings_that_cannot_work_are_refused(script):
    defaults = dict(script.DEFAULTS) | {"output": "x"}
    with pytest.raises(ConfigError, match="dtype=int8: use float16 or float32"):
        script.main(defaults | {"dtype": "int8"})


@pytest.mark.slow
def test_the_real_encoder_is_what_the_packages_engine_computes(script, e5_small):
    found = script.check(e5_small, sample_sentences(8))
    assert found["texts"] == 32
    assert found["equal_counts"] == 1.0
    assert found["cosine"] > 0.999
    assert found["translations"] > found["others"] + 0.05


@pytest.mark.slow
def test_a_folder_that_differs_from_the_engine_is_refused(script, e5_small, tmp_path):
    for file in e5_small.rglob("*"):
        if file.is_file() and file.name != "tokenizer.json":
            target = tmp_path / file.relative_to(e5_small)
            target.parent.mkdir(exist_ok=True)
            target.symlink_to(file)
    state = json.loads((e5_small / "tokenizer.json").read_text(encoding="utf-8"))
    state["normalizer"] = {"type": "Lowercase"}
    (tmp_path / "tokenizer.json").write_text(json.dumps(state), encoding="utf-8")
    with pytest.raises(ModelError, match="not what the package's engine computes"):
        script.check(tmp_path, sample_sentences(2))


@pytest.mark.slow
def test_the_normalisation_is_the_packages_map_and_composes(script, e5_teacher, monkeypatch):
    normalise = e5_teacher.tokenizer.normalizer.normalize_str
    monkeypatch.setattr(script, "_read_tensors", lambda *_: {})  # hundreds of megabytes
    packed = script.read_packed(script.package_file())
    for character, to in packed.characters.items():
        assert normalise(character) == unicodedata.normalize("NFC", to)
    assert [normalise(text) for text in ("ｶﾞ", "e\u0301", "①ﬁ", "㌔")] == ["ガ", "é", "1fi", "キロ"]


@pytest.mark.slow
def test_bfloat16_is_harmless_to_the_real_encoder(e5_teacher, e5_small, sample):
    texts = [text for code in ("en", "ja") for text in sample[code][:6]]
    exact, rough = e5_teacher, load_teacher(TeacherConfig(str(e5_small), dtype="bfloat16"))
    pairs = [(exact.vectors(texts), rough.vectors(texts))]
    batches = exact.batches(texts)
    pairs.append(tuple(np.concatenate([s.hidden for s in t.states(texts, batches)]) for t in (exact, rough)))
    for a, b in pairs:
        a, b = a - a.mean(0), b - b.mean(0)  # what all texts share would hide what differs
        cosines = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
        assert cosines.mean() > 0.999
        assert cosines.min() > 0.98


@pytest.mark.slow
def test_the_prompts_tokens_are_left_out_with_pieces_that_hold_a_blank(e5_teacher):
    teacher = e5_teacher
    assert teacher.config.prompt == "query: "
    for text in ("clocks", "彼女は学校へ行った。", "query: x"):
        (made,) = teacher.states([text], teacher.batches([text]))
        tokens = teacher._pretrained(text, return_offsets_mapping=True)
        pieces = [
            place
            for token, place in zip(tokens.tokens(), tokens["offset_mapping"], strict=True)
            if token not in ("<s>", "</s>", "▁")
        ]
        assert list(zip(made.starts, made.ends, strict=True)) == pieces
