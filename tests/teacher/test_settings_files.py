"""What a teacher's folder says of it, and what is said of a folder that cannot be used; no weights are loaded."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.conftest import Later
from xswe.errors import ModelError
from xswe.teacher.outline import load_outline
from xswe.teacher.protocol import TeacherConfig
from xswe.teacher.transformer import (
    TransformerTeacher,
    _find_dense,
    _has_bfloat16,
    _lacks_bfloat16,
    _pooling,
    _positions,
    explain,
    fitting,
    is_own_code,
    load_teacher,
    locate,
    mini_folder,
    native_settings,
    prompt_of,
)

torch = Later("torch")


def said(call, *arguments):
    with pytest.raises(ModelError) as found:
        call(*arguments)
    return str(found.value)


def write(folder, name, value):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("settings", "own"),
    [
        ({"model_type": "new", "architectures": ["Other", "NewModel"]}, True),
        ({"model_type": "new", "architectures": ["Other"]}, False),
        ({"model_type": "new", "architectures": None}, False),
        ({"model_type": "bert", "architectures": ["NewModel"]}, False),
        (["new"], False),
        (None, False),
    ],
)
def test_a_checkpoint_with_its_own_code_is_known_by_type_and_architecture(settings, own):
    assert is_own_code(settings) is own


def test_positions_of_a_checkpoint_are_translated_with_their_scaling():
    sizes = {"hidden_size": 48, "num_attention_heads": 4, "vocab_size": 9}
    assert native_settings({**sizes, "other": 1}, "x") == {
        **sizes,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0},
    }
    scaled = {**sizes, "rope_theta": 500, "rope_scaling": {"type": "ntk", "factor": 8}}
    made = native_settings(scaled, "x")["rope_parameters"]
    assert made == {"rope_type": "linear", "rope_theta": 4000.0, "factor": 8 ** (2 / 12)}
    renamed = {**scaled, "rope_scaling": {"rope_type": "ntk"}}  # without a factor nothing is scaled
    assert native_settings(renamed, "x")["rope_parameters"] == {"rope_type": "linear", "rope_theta": 500.0, "factor": 1.0}
    # The frequencies are those of the checkpoints' own code.
    places, k, theta = np.arange(0, 12, 2), 8.0, 500.0
    theirs = (k * theta) ** (-places / 12) / k ** (2 / 12)
    np.testing.assert_allclose(made["rope_theta"] ** (-places / 12) / made["factor"], theirs)


def test_what_a_translation_lacks_is_named():
    scaling = {"rope_scaling": {"type": "ntk", "factor": 8}}
    assert said(native_settings, scaling, "x") == "teacher x: its config.json has no hidden_size; fetch it again"
    for own in ({"type": "dynamic"}, {"type": "ntk", "mixed_b": 0.5}):
        message = f"teacher x: rope_scaling is {own} in its config.json; only type ntk is known"
        assert said(native_settings, {"rope_scaling": own}, "x") == message
    assert said(native_settings, {"pack_qkv": False}, "x") == (
        "teacher x: pack_qkv is False in its config.json, but transformers' gte only supports True"
    )


@pytest.mark.parametrize(("free", "tokens"), [(0, 1024), (9e6, 1024), (1e8, 7168), (1e9, 16_384)])
def test_a_batch_takes_a_quarter_of_the_free_memory(free, tokens):
    config = SimpleNamespace(hidden_size=32, num_attention_heads=2)
    assert fitting(config, free, 4, False) == tokens
    config.intermediate_size = 64
    numbers = 8 * 32 + 3 * 64 + 64 * 2
    for thousands in (2, 5):
        enough = thousands * 1024 * numbers * 2 / 0.25
        assert [fitting(config, enough + off, 2, False) for off in (-1e3, 0)] == [(thousands - 1) * 1024, thousands * 1024]
    assert [fitting(config, 1e15, 2, card) for card in (False, True)] == [16_384, 131_072]


def test_which_processors_compute_in_half_precision():
    for name in ("avx512_bf16", "amx_bf16", "arm_bf16", "bf16"):
        assert _has_bfloat16({name: True})
        assert not _has_bfloat16({name: False})
    assert not _has_bfloat16({})
    intel = {"architecture": "x86_64"}
    assert _lacks_bfloat16(intel)
    assert not _lacks_bfloat16({"architecture": "aarch64"})
    for name in ("avx512_bf16", "amx_bf16"):
        assert not _lacks_bfloat16({**intel, name: True})
    assert _lacks_bfloat16({**intel, "arm_bf16": True})


def test_a_name_is_a_folder_of_this_package_of_another_or_itself(monkeypatch):
    assert locate("mini") == str(mini_folder())
    assert locate("some/encoder") == "some/encoder"
    monkeypatch.setattr("xswe.teacher.transformer.package_folder", lambda name: {"there": Path("/lib/there")}.get(name))
    assert locate("package:there/a/b") == str(Path("/lib/there/a/b"))
    assert locate("package:there") == str(Path("/lib/there"))
    assert said(locate, "package:absent/a") == (
        "teacher package:absent/a: the Python package 'absent' is not installed; pip install it"
    )


def test_an_error_of_loading_is_one_line_with_its_cure():
    cure = "check the path or name; without a network use teacher=mini, or teacher.model=FOLDER"
    assert explain("x", OSError("lost")) == f"teacher x: cannot be loaded (lost); {cure}"
    assert explain("x", OSError("y" * 301)) == f"teacher x: cannot be loaded ({'y' * 300}); {cure}"
    never, choose = "it needs code from its folder, which xswe never runs", "choose a model that transformers knows"
    for told in ("pass trust_remote_code=True", "has custom code"):
        assert explain("x", ValueError(told)) == f"teacher x: {never}; {choose}"
    same = "teacher.model=alibaba-nlp-community/gte-multilingual-base is the same model without code"
    assert explain("a/gte-multilingual-b", ValueError("custom code")) == (
        f"teacher a/gte-multilingual-b: {never}; {same}; {choose}"
    )


def test_the_prompt_is_the_default_one(tmp_path):
    assert prompt_of(str(tmp_path), None) == ""
    name = "config_sentence_transformers.json"
    for settings, prompt in (
        ({}, ""),
        ({"prompts": {"query": "q: "}}, ""),
        ({"prompts": {"query": "q: "}, "default_prompt_name": "query"}, "q: "),
    ):
        write(tmp_path, name, settings)
        assert prompt_of(str(tmp_path), None) == prompt
    for prompts in ({"other": "q: "}, None, {"query": 7}):
        path = write(tmp_path, name, {"prompts": prompts, "default_prompt_name": "query"})
        assert said(prompt_of, str(tmp_path), None) == (
            f"{path}: there is no prompt 'query', its default; set teacher.prompt"
        )


def test_the_pooling_is_the_one_set_or_that_of_the_folder(tmp_path):
    folder = str(tmp_path)
    assert _pooling(TeacherConfig(folder), folder) == "cls"
    for settings, pooling in (
        ({"pooling_mode": "cls"}, "cls"),
        ({"pooling_mode": "mean"}, "mean"),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
        ({"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}, "mean"),
        ({"include_prompt": True, "pooling_mode_mean_tokens": True}, "mean"),
    ):
        path = write(tmp_path, "1_Pooling/config.json", settings)
        assert _pooling(TeacherConfig(folder), folder) == pooling
        assert _pooling(TeacherConfig(folder, pooling="mean"), folder) == "mean"
    for settings, mode in (({"pooling_mode_max_tokens": True}, "pooling_mode_max_tokens"), ({}, "")):
        write(tmp_path, "1_Pooling/config.json", settings)
        assert said(_pooling, TeacherConfig(folder), folder) == (
            f"{path}: pools by {mode!r}; set teacher.pooling to cls or mean"
        )


def dense(folder, *paths, activation=None, shape=(4, 4), bias=True):
    from safetensors.torch import save_file

    modules = [{"path": "", "type": "Transformer"}, *({"path": path, "type": "models.Dense"} for path in paths)]
    write(folder, "modules.json", modules)
    for path in paths:
        write(folder, f"{path}/config.json", {} if activation is None else {"activation_function": activation})
        tensors = {"linear.weight": torch.arange(16.0)[: shape[0] * shape[1]].reshape(shape) / 16}
        save_file(tensors | ({"linear.bias": torch.ones(shape[0])} if bias else {}), folder / path / "model.safetensors")


def test_a_layer_after_the_pooling_is_found_with_its_function(tmp_path):
    assert _find_dense(str(tmp_path), None, 4) is None
    dense(tmp_path)
    assert _find_dense(str(tmp_path), None, 4) is None
    pooled = torch.tensor([[1.0, -1.0, 0.5, 0.0]])
    weight = torch.arange(16.0).reshape(4, 4) / 16
    for name, function in (
        (None, torch.tanh),
        ("torch.nn.modules.activation.Tanh", torch.tanh),
        ("torch.nn.modules.linear.Identity", torch.positive),
    ):
        for bias in (True, False):
            dense(tmp_path, "2_Dense", activation=name, bias=bias)
            found = _find_dense(str(tmp_path), None, 4)
            torch.testing.assert_close(found(pooled), function(pooled @ weight.T + bias))


def test_other_layers_after_the_pooling_are_refused(tmp_path):
    cure = "; its states can be used, but not its vectors"
    after = "after its pooling is no single layer in safetensors with tanh or nothing after it"
    dense(tmp_path, "2_Dense", "3_Dense")
    assert said(_find_dense, str(tmp_path), None, 4) == f"teacher {tmp_path}: 2_Dense, 3_Dense {after}{cure}"
    dense(tmp_path, "2_Dense", activation="torch.nn.modules.activation.ReLU")
    assert said(_find_dense, str(tmp_path), None, 4) == f"teacher {tmp_path}: 2_Dense {after}{cure}"
    dense(tmp_path, "2_Dense", shape=(2, 4))
    assert said(_find_dense, str(tmp_path), None, 4) == (
        f"teacher {tmp_path}: 2_Dense makes 2 dimensions of 4; only as many are known"
    )


def test_positions_are_those_that_are_left_after_the_padding():
    def model(most, padding):
        table = SimpleNamespace(padding_idx=padding)
        return SimpleNamespace(
            embeddings=SimpleNamespace(position_embeddings=table), config=SimpleNamespace(max_position_embeddings=most)
        )

    assert [_positions(model(*one)) for one in ((514, 1), (512, None), (None, 1), (10, 0))] == [512, 512, None, 9]
    assert _positions(SimpleNamespace(config=SimpleNamespace(max_position_embeddings=7))) == 7
    assert _positions(SimpleNamespace(config=SimpleNamespace())) is None


def test_an_outline_has_the_sizes_of_its_config(tiny_teacher, tmp_path):
    import shutil

    folder = shutil.copytree(tiny_teacher, tmp_path / "t")
    settings = json.loads((folder / "config.json").read_text())

    def outline(most=512, **changes):
        own = {key: value for key, value in {**settings, **changes}.items() if value != "none"}
        write(folder, "config.json", own)
        return load_outline(TeacherConfig(str(folder), max_tokens=most))

    made = outline()
    assert (made.dim, made.layers, made.heads, made.inner, made.vocabulary) == (32, 2, 2, 64, settings["vocab_size"])
    assert (made.gated, made.prompt, made.name, made.max_tokens) == (True, "", str(folder), 128)
    assert [outline(most).max_tokens for most in (127, 128, 129)] == [127, 128, 128]
    assert outline(max_position_embeddings="none").max_tokens == 512
    assert outline(intermediate_size="none").inner == 4 * 32
    for changes in ({"num_hidden_layers": None}, {"vocab_size": "many"}):
        (name,) = changes
        told = said(lambda changes=changes: outline(**changes))
        assert told.startswith(f"teacher {folder}: cannot be loaded (Validation error for field '{name}'")
        assert said(load_teacher, TeacherConfig(str(folder))) == told
    assert said(lambda: outline(vocab_size="none")) == (
        f"teacher {folder}: its config.json does not say its sizes, and nothing can be estimated"
    )


def test_how_many_texts_are_cut_is_a_warning_once_and_then_for_those_who_look_closer(caplog):
    caplog.set_level("DEBUG", "xswe")
    teacher = TransformerTeacher(
        TeacherConfig("a/b", max_tokens=9), SimpleNamespace(config=SimpleNamespace()), SimpleNamespace(), "cls"
    )
    for cut, total, fate in ((0, 5, "x"), (1200, 5000, "x"), (1, 5, "x"), (2, 5, "y")):
        teacher._tell(cut, total, fate)
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.WARNING, "a/b: 1,200 of 5,000 texts are longer than 9 tokens; the rest of them x"),
        (logging.DEBUG, "a/b: 1 of 5 texts are longer than 9 tokens; the rest of them x"),
        (logging.WARNING, "a/b: 2 of 5 texts are longer than 9 tokens; the rest of them y"),
    ]
