"""Damaged model folders: one ModelError that names file and cure, whatever the damage, and nothing is ever executed."""

from __future__ import annotations

import json
import pickle
import shutil
import struct
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file
from tokenizers import Tokenizer

import xswe
from xswe.errors import ModelError, XsweError
from xswe.model.folder import FORMAT_VERSION
from xswe.model.static import StaticModel
from xswe.text.subwords import SubwordUnits
from xswe.text.words import WordSplitter, WordUnits

ALL = ("en", "de", "zh", "ja")
KINDS = ("float32", "float16", "int8", "shared", "words", "words-int8")
HELD = {  # the files of a kind
    "int8": ("config.json", "model.safetensors", "tokenizer.json"),
    "shared": ("config.json", "codes.safetensors", "tokenizer.json"),
    "words": ("config.json", "model.safetensors", "tokenizer.json", "words.json", "backoff.json"),
}
FILES = sorted({name for names in HELD.values() for name in names})


@pytest.fixture(scope="module")
def folders(tokenizer_json, tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    tokenizer = Tokenizer.from_str(tokenizer_json)
    pieces = Tokenizer.from_str(tokenizer_json)
    subwords = SubwordUnits(tokenizer, "subwords", ALL)
    words = WordUnits(["cat", "The", "猫", "で"], WordSplitter(("en", "ja"), {"ja": "teacher"}, pieces), pieces)
    rng = np.random.default_rng(0)
    for kind in KINDS:
        units = words if kind.startswith("words") else subwords
        model = StaticModel(units, rng.normal(size=(len(units.tokens), 8)).astype(np.float32))
        model = model.share_rows(3) if kind == "shared" else model
        model.save(root / kind, dtype="int8" if kind.endswith("int8") else kind if kind.startswith("float") else None)
    return root


def copy(folders, kind, tmp_path):
    shutil.rmtree(tmp_path / "m", ignore_errors=True)
    return shutil.copytree(folders / kind, tmp_path / "m")


def rewrite(folder, change):
    """Change the header of ``model.safetensors`` and leave its data as they are."""
    raw = (folder / "model.safetensors").read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8 : 8 + size])
    change(header)
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + raw[8 + size :])


def edit(folder, name, change):
    value = json.loads((folder / name).read_text(encoding="utf-8"))
    change(value)
    (folder / name).write_text(json.dumps(value), encoding="utf-8")


def tensors(folder, **named):
    save_file(named, folder / "model.safetensors")


class Trap:
    """Unpickled, it would leave a file behind."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


DAMAGE = {
    "header longer than the file": lambda f: (f / "model.safetensors").write_bytes(struct.pack("<Q", 2**40) + b"{}"),
    "header of 2**63": lambda f: (f / "model.safetensors").write_bytes(struct.pack("<Q", 2**63) + b"{}"),
    "header no JSON": lambda f: (f / "model.safetensors").write_bytes(struct.pack("<Q", 4) + b"nope"),
    "nested header": lambda f: (f / "model.safetensors").write_bytes(struct.pack("<Q", 200_000) + b"[" * 200_000),
    "empty": lambda f: (f / "model.safetensors").write_bytes(b""),
    "cut short": lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:-100]),
    "too long": lambda f: (f / "model.safetensors").open("ab").write(b"x" * 100),
    "a shape that overflows": lambda f: rewrite(f, lambda h: h["embeddings"].update(shape=[2**62, 8])),
    "a negative shape": lambda f: rewrite(f, lambda h: h["embeddings"].update(shape=[-1, 8])),
    "offsets beyond the end": lambda f: rewrite(f, lambda h: h["embeddings"].update(data_offsets=[0, 2**50])),
    "an unknown type": lambda f: rewrite(f, lambda h: h["embeddings"].update(dtype="F4")),
    "a type that is not ours": lambda f: tensors(f, embeddings=np.ones((3, 8), np.float64)),
    "no matrix": lambda f: tensors(f, weights=np.ones(3, np.float32)),
    "a vector": lambda f: tensors(f, embeddings=np.ones(8, np.float32)),
    "three axes": lambda f: tensors(f, embeddings=np.ones((2, 2, 8), np.float32)),
    "too few rows": lambda f: tensors(f, embeddings=np.ones((2, 8), np.float32)),
    "other dimensions": lambda f: tensors(f, embeddings=np.ones((3000, 9), np.float32)),
    "not a number": lambda f: tensors(f, embeddings=np.full((3000, 8), np.nan, np.float32)),
    "infinite": lambda f: tensors(f, embeddings=np.full((3000, 8), np.inf, np.float32)),
    "a directory": lambda f: ((f / "model.safetensors").unlink(), (f / "model.safetensors").mkdir()),
    "a newer format": lambda f: edit(f, "config.json", lambda c: c.update(format_version=FORMAT_VERSION + 1)),
    "a version that is no number": lambda f: edit(f, "config.json", lambda c: c.update(format_version="1; rm")),
    "a version below one": lambda f: edit(f, "config.json", lambda c: c.update(format_version=-1)),
    "another library": lambda f: edit(f, "config.json", lambda c: c.update(model_type="bert")),
    "dimensions no number": lambda f: edit(f, "config.json", lambda c: c.update(hidden_dim="many")),
    "another precision": lambda f: edit(f, "config.json", lambda c: c.update(embedding_dtype="int4")),
    "a precision that is no string": lambda f: edit(f, "config.json", lambda c: c.update(embedding_dtype=["int8"])),
    "units no object": lambda f: edit(f, "config.json", lambda c: c.update(units="subwords")),
    "languages no list": lambda f: edit(f, "config.json", lambda c: c["units"].update(languages=7)),
    "unknown languages": lambda f: edit(f, "config.json", lambda c: c["units"].update(languages=["xx"])),
    "languages of another type": lambda f: edit(f, "config.json", lambda c: c["units"].update(languages=[["en"]])),
    "no languages": lambda f: edit(f, "config.json", lambda c: c["units"].update(languages=[])),
    "a kind of another type": lambda f: edit(f, "config.json", lambda c: c["units"].update(kind=["words"])),
    "not UTF-8": lambda f: (f / "config.json").write_bytes(b"\xff\xfe{}"),
    "nested JSON": lambda f: (f / "config.json").write_text("[" * 100_000),
    "a list": lambda f: (f / "config.json").write_text("[1, 2]"),
    "null": lambda f: (f / "config.json").write_text("null"),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
@pytest.mark.parametrize("kind", ["float32", "words-int8"])
def test_every_damage_is_one_error_that_names_a_file(damage, kind, folders, tmp_path):
    folder = copy(folders, kind, tmp_path)
    damage(folder)
    with pytest.raises(ModelError) as caught:
        xswe.load(folder)
    message = str(caught.value)
    assert any(f"m/{name}" in message for name in FILES), message
    assert "\n" not in message
    assert any(cure in message for cure in ("again", "upgrade", "another library", "known ones")), message


@pytest.mark.parametrize("kind", KINDS)
def test_whole_folders_load(kind, folders):
    assert xswe.load(folders / kind).encode("The cat, 猫で.").any()


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in HELD.items() for name in names])
def test_a_missing_file(kind, name, folders, tmp_path):
    folder = copy(folders, kind, tmp_path)
    assert {path.name for path in folder.iterdir()} & set(FILES) == set(HELD[kind])
    (folder / name).unlink()
    if kind == "words" and name == "tokenizer.json":  # it is there for other libraries
        assert xswe.load(folder).dim == 8
        return
    with pytest.raises(ModelError, match=name.replace(".", r"\.")):
        xswe.load(folder)


@pytest.mark.parametrize(
    ("kind", "factors", "change"),
    [
        ("int8", "weights", lambda t: t.pop("weights")),
        ("int8", "weights", lambda t: t.update(weights=t["weights"][:-1].copy())),
        ("int8", "weights", lambda t: t.update(weights=np.full_like(t["weights"], np.nan))),
        ("int8", "weights", lambda t: t.update(weights=t["weights"].astype(np.float16))),
        ("words-int8", "scales", lambda t: t.pop("scales")),
        ("words-int8", "scales", lambda t: t.update(scales=t["scales"][:, None].copy())),
    ],
)
def test_damaged_factors_of_int8(kind, factors, change, folders, tmp_path):
    from safetensors.numpy import load_file

    folder = copy(folders, kind, tmp_path)
    found = load_file(folder / "model.safetensors")
    change(found)
    save_file(found, folder / "model.safetensors")
    with pytest.raises(ModelError, match=r"model\.safetensors"):
        xswe.load(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.pop("scale"),
        lambda t: t.update(scale=np.full(1, np.inf, np.float32)),
        lambda t: t.update(codes=t["codes"][:, :2].copy()),
        lambda t: t.update(codes=t["codes"].astype(np.uint16)),
        lambda t: t.update(rows=t["rows"][:, :255].copy()),
        lambda t: t.update(rows=t["rows"][..., :2].copy()),
    ],
)
def test_damaged_codes(change, folders, tmp_path):
    from safetensors.numpy import load_file

    folder = copy(folders, "shared", tmp_path)
    found = load_file(folder / "codes.safetensors")
    change(found)
    save_file(found, folder / "codes.safetensors")
    with pytest.raises(ModelError, match=r"codes\.safetensors: damaged .*again"):
        xswe.load(folder)


def test_a_tokenizer_of_another_size(folders, tmp_path):
    folder = copy(folders, "float32", tmp_path)
    edit(folder, "tokenizer.json", lambda t: t["model"]["vocab"].append(["newpiece", -9.0]))
    with pytest.raises(ModelError, match=r"tokenizer\.json: 3001 units for 3000"):
        xswe.load(folder)


def test_words_with_gaps(folders, tmp_path):
    folder = copy(folders, "words", tmp_path)
    edit(folder, "words.json", lambda t: t["model"]["vocab"].pop("The"))
    with pytest.raises(ModelError, match=r"words\.json"):
        xswe.load(folder)


def test_pickles_and_code_are_never_run(folders, tmp_path):
    trace = tmp_path / "executed"
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        folder = copy(folders, "float32", tmp_path)
        (folder / name).write_bytes(pickle.dumps(Trap(trace)))
        with pytest.raises(ModelError, match=name.replace(".", r"\.")):
            xswe.load(folder)
    folder = copy(folders, "float32", tmp_path)
    with zipfile.ZipFile(folder / "model.safetensors", "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Trap(trace)))
    with pytest.raises(ModelError):
        xswe.load(folder)
    folder = copy(folders, "float32", tmp_path)
    code = f"open({str(trace)!r}, 'w')"
    for name in ("__init__.py", "modeling_xswe.py", "setup.py", "conftest.py"):
        (folder / name).write_text(code)
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Trap(trace)))
    edit(folder, "config.json", lambda c: c.update(auto_map={"AutoModel": "modeling_xswe.Model"}, trust_remote_code=True))
    assert xswe.load(folder).encode("a cat").any()
    assert not trace.exists()


@settings(max_examples=75, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_random_damage_loads_or_raises_one_error(folders, tmp_path, data):
    """Bytes changed, cut out or put in, anywhere: a model, or one typed error of one line."""
    kind = data.draw(st.sampled_from(sorted(HELD)))
    folder = copy(folders, kind, tmp_path)
    name = data.draw(st.sampled_from(HELD[kind]))
    raw = (folder / name).read_bytes()
    # Headers and the beginnings of files are where structure is; most damage goes there.
    place = data.draw(st.integers(0, min(len(raw), 400)) | st.integers(0, len(raw)))
    length = data.draw(st.integers(0, 40))
    (folder / name).write_bytes(raw[:place] + data.draw(st.binary(max_size=40)) + raw[place + length :])
    message, model = "", None
    try:
        model = xswe.load(folder)
    except XsweError as error:
        message = str(error)
    if model is None:
        assert str(folder) in message
        assert "\n" not in message
    else:
        assert np.isfinite(model.encode(["The cat sleeps.", "猫で。", ""])).all()
