"""GTE checkpoints with code of their own, against a plain version of what that code computes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

from tests.conftest import Later
from xswe.errors import ModelError
from xswe.teacher.protocol import TeacherConfig
from xswe.teacher.transformer import load_teacher, mini_folder

torch = Later("torch")
HIDDEN, HEADS, INNER, LAYERS = 32, 2, 48, 2
TEXTS = ["A cat sleeps on the warm roof.", "Das Haus ist groß.", "猫が寝ている。", "x"]


def weights(vocabulary: int, types: int) -> dict:
    """Random weights under the checkpoint's own names."""
    made = torch.Generator().manual_seed(0)

    def matrix(*shape):
        return 0.2 * torch.randn(*shape, generator=made)

    out = {"embeddings.word_embeddings.weight": matrix(vocabulary, HIDDEN)}
    if types:
        out["embeddings.token_type_embeddings.weight"] = matrix(types, HIDDEN)
    norms = ["embeddings.LayerNorm"]
    for layer in (f"encoder.layer.{n}." for n in range(LAYERS)):
        out |= {f"{layer}attention.qkv_proj.weight": matrix(3 * HIDDEN, HIDDEN)}
        out |= {f"{layer}attention.qkv_proj.bias": matrix(3 * HIDDEN), f"{layer}attention.o_proj.bias": matrix(HIDDEN)}
        out |= {f"{layer}attention.o_proj.weight": matrix(HIDDEN, HIDDEN)}
        out |= {f"{layer}mlp.up_gate_proj.weight": matrix(2 * INNER, HIDDEN)}
        out |= {f"{layer}mlp.down_proj.weight": matrix(HIDDEN, INNER), f"{layer}mlp.down_proj.bias": matrix(HIDDEN)}
        norms += [f"{layer}attn_ln", f"{layer}mlp_ln"]
    for name in norms:
        out |= {f"{name}.weight": 1 + matrix(HIDDEN), f"{name}.bias": matrix(HIDDEN)}
    return out


def plain(ids: list[int], w: dict, theta: float, factor: float | None) -> np.ndarray:
    """The last layer's states of one text, written out from the definition: post-norm, GLU, rotary positions."""
    functional, size = torch.nn.functional, HIDDEN // HEADS

    def norm(x, name):
        return functional.layer_norm(x, (HIDDEN,), w[f"{name}.weight"], w[f"{name}.bias"], 1e-12)

    def linear(x, name):
        return functional.linear(x, w[f"{name}.weight"], w.get(f"{name}.bias"))

    powers = torch.arange(0, size, 2).float() / size
    frequencies = theta**-powers if factor is None else (theta * factor) ** -powers / factor ** (2 / size)
    angles = torch.outer(torch.arange(len(ids)).float(), frequencies).repeat(1, 2)

    def turn(x):
        half = torch.cat([-x[..., size // 2 :], x[..., : size // 2]], -1)
        return x * angles.cos() + half * angles.sin()

    x = w["embeddings.word_embeddings.weight"][ids]
    if "embeddings.token_type_embeddings.weight" in w:
        x = x + w["embeddings.token_type_embeddings.weight"][0]
    x = norm(x, "embeddings.LayerNorm")
    for layer in (f"encoder.layer.{n}." for n in range(LAYERS)):
        q, k, v = (
            part.view(len(ids), HEADS, size).transpose(0, 1)
            for part in linear(x, f"{layer}attention.qkv_proj").chunk(3, -1)
        )
        attention = (turn(q) @ turn(k).transpose(1, 2) / size**0.5).softmax(-1) @ v
        x = norm(
            x + linear(attention.transpose(0, 1).reshape(len(ids), HIDDEN), f"{layer}attention.o_proj"), f"{layer}attn_ln"
        )
        up, gate = linear(x, f"{layer}mlp.up_gate_proj").chunk(2, -1)
        x = norm(x + linear(functional.gelu(gate) * up, f"{layer}mlp.down_proj"), f"{layer}mlp_ln")
    return x.numpy()


@pytest.fixture
def checkpoint(tiny_teacher, tmp_path):
    """A folder as such checkpoints are published: names, settings, and code that must not run."""
    from safetensors.torch import save_file
    from transformers import AutoTokenizer

    def make(prefix="", types=0, **changed):
        folder = tmp_path / "gte"
        shutil.copytree(tiny_teacher, folder, ignore=shutil.ignore_patterns("*.safetensors", "config.json"))
        tokenizer = AutoTokenizer.from_pretrained(tiny_teacher)
        made = weights(len(tokenizer), types)
        save_file(
            {f"{prefix}{name}": tensor for name, tensor in made.items()}, folder / "model.safetensors", {"format": "pt"}
        )
        settings = {
            "architectures": ["NewModel"],
            "auto_map": {"AutoConfig": "configuration.NewConfig", "AutoModel": "modeling.NewModel"},
            "model_type": "new",
            "vocab_size": len(tokenizer),
            "hidden_size": HIDDEN,
            "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS,
            "intermediate_size": INNER,
            "hidden_act": "gelu",
            "hidden_dropout_prob": 0.1,
            "attention_probs_dropout_prob": 0.0,
            "max_position_embeddings": 128,
            "type_vocab_size": types,
            "layer_norm_type": "layer_norm",
            "layer_norm_eps": 1e-12,
            "pad_token_id": tokenizer.pad_token_id,
            "position_embedding_type": "rope",
            "rope_theta": 500000,
            "rope_scaling": {"factor": 2.0, "type": "ntk"},
            "logn_attention_scale": False,
            "pack_qkv": True,
            "unpad_inputs": False,
            "use_memory_efficient_attention": False,
        }
        (folder / "config.json").write_text(json.dumps({**settings, **changed}))
        for name in ("configuration", "modeling"):
            (folder / f"{name}.py").write_text("raise SystemExit('code of a folder was run')\n")
        return folder, made, tokenizer

    return make


@pytest.mark.parametrize(
    ("prefix", "types", "changed", "rope"),
    [
        ("", 0, {}, (500_000, 2.0)),  # gte-base-en-v1.5
        ("new.", 1, {"rope_theta": 20_000, "rope_scaling": {"factor": 8.0, "type": "ntk"}}, (20_000, 8.0)),  # mGTE
        ("", 2, {"rope_theta": 10_000, "rope_scaling": None, "architectures": ["NewForMaskedLM"]}, (10_000, None)),
    ],
)
def test_states_are_those_of_the_checkpoints_own_code(checkpoint, prefix, types, changed, rope):
    folder, made, tokenizer = checkpoint(prefix, types, **changed)
    teacher = load_teacher(TeacherConfig(model=str(folder), pooling="cls"))
    expected = [plain(tokenizer(text)["input_ids"], made, *rope) for text in TEXTS]
    found = teacher.vectors(TEXTS)
    for row, states in zip(found, expected, strict=True):
        np.testing.assert_allclose(row, states[0] / np.linalg.norm(states[0]), atol=2e-5)
    for states in teacher.states(TEXTS, teacher.batches(TEXTS)):
        for k, row in enumerate(states.rows):
            hidden = states.hidden[states.offsets[k] : states.offsets[k + 1]]
            encoded = tokenizer(TEXTS[row], return_offsets_mapping=True)
            places, ids = np.array(encoded["offset_mapping"]), np.array(encoded["input_ids"])
            kept = (places[:, 0] < places[:, 1]) & (ids != tokenizer.convert_tokens_to_ids("▁"))
            np.testing.assert_allclose(hidden, expected[row][kept], atol=1e-4)


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"position_embedding_type": "absolute"}, "position_embedding_type is 'absolute'"),
        ({"logn_attention_scale": True}, "logn_attention_scale is True"),
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "only type ntk is known"),
        ({"num_hidden_layers": 3}, "weights missing or of another shape"),
    ],
)
def test_what_cannot_be_the_same_is_refused(checkpoint, changed, found):
    folder, _, _ = checkpoint(**changed)
    with pytest.raises(ModelError, match=found):
        load_teacher(TeacherConfig(model=str(folder)))


@pytest.mark.parametrize("dtype", ["float32", pytest.param("bfloat16", marks=pytest.mark.slow)])
def test_the_encoder_of_this_package_is_what_transformers_makes_of_its_folder(dtype):
    texts = [*TEXTS, "", "Ａ \x07a\u3000ｶﾞ <pad>", "x " * 600]
    how = {"prompt": "", "dtype": dtype, "device": "cpu"}
    ours, theirs = (load_teacher(TeacherConfig(model, **how)) for model in ("mini", str(mini_folder())))
    assert type(ours.model) is not type(theirs.model)
    assert ours.checksum() == theirs.checksum()
    assert (ours.dim, ours.pooling, ours._max_tokens) == (theirs.dim, theirs.pooling, theirs._max_tokens)
    assert ours.vectors(texts).tobytes() == theirs.vectors(texts).tobytes()
    for one, other in zip(*(teacher.states(texts, teacher.batches(texts)) for teacher in (ours, theirs)), strict=True):
        for part in ("rows", "hidden", "offsets", "starts", "ends"):
            np.testing.assert_array_equal(getattr(one, part), getattr(other, part))
    assert sum(part.numel() for part in ours.model.parameters()) == sum(p.numel() for p in theirs.model.parameters())


def test_the_encoder_of_this_package_does_without_transformers():
    program = "import sys; sys.modules['transformers'] = None\n"
    program += "from xswe.teacher.transformer import load_teacher as load, TeacherConfig as of\nprint(load(of()).dim)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "320\n"
