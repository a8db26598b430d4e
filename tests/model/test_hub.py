"""The hub, played by a folder: what is pushed, what comes back, and what is said when it does not."""

from __future__ import annotations

import shutil
from fnmatch import fnmatch
from pathlib import Path

import huggingface_hub
import numpy as np
import pytest
from huggingface_hub.errors import HFValidationError
from tokenizers import Tokenizer

import xswe
from xswe.errors import ModelError
from xswe.model.ensemble import locate, pretrained, push_to_hub
from xswe.model.static import StaticModel
from xswe.text.subwords import SubwordUnits
from xswe.text.words import WordSplitter, WordUnits


class FolderHub:
    """The three calls of huggingface_hub that are used, over ``root/user/name/<revision>``."""

    def __init__(self, root: Path) -> None:
        self.root, self.calls = root, []

    def create_repo(self, repo_id, *, private, token, exist_ok):
        if repo_id.count("/") != 1:
            raise HFValidationError(f"Repo id must be in the form 'namespace/repo_name': {repo_id!r}")
        self.calls.append(("create", repo_id, private, token))
        (self.root / repo_id).mkdir(parents=True, exist_ok=exist_ok)

    def upload_folder(self, *, repo_id, folder_path, revision, token, commit_message, allow_patterns):
        commit = f"c{len(list((self.root / repo_id).iterdir()))}"
        for name in (commit, revision or "main"):
            target = self.root / repo_id / name
            shutil.rmtree(target, ignore_errors=True)
            for file in Path(folder_path).rglob("*"):
                inside = file.relative_to(folder_path).as_posix()
                if file.is_file() and any(fnmatch(inside, pattern) for pattern in allow_patterns):
                    (target / inside).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(file, target / inside)
        return f"https://hub/{repo_id}/commit/{commit}"

    def snapshot_download(self, repo_id, *, revision, token, allow_patterns, library_name, library_version):
        folder = self.root / repo_id / (revision or "main")
        if not folder.is_dir():
            raise FileNotFoundError(f"404: {repo_id}@{revision}")
        assert (library_name, library_version) == ("xswe", xswe.__version__)
        assert all(any(fnmatch(p.name, q) for q in allow_patterns) for p in folder.iterdir() if p.is_file())
        return str(folder)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    fake = FolderHub(tmp_path / "hub")
    for call in ("create_repo", "upload_folder", "snapshot_download"):
        monkeypatch.setattr(huggingface_hub, call, getattr(fake, call))
    monkeypatch.chdir(tmp_path)
    return fake


@pytest.fixture
def model(tokenizer_json):
    units = SubwordUnits(Tokenizer.from_str(tokenizer_json), "subwords", ("en", "de", "zh", "ja"))
    return StaticModel(units, np.random.default_rng(0).normal(size=(len(units.tokens), 8)).astype(np.float32))


def test_what_is_pushed_comes_back_by_every_name(hub, model, sample):
    first = model.push_to_hub("me/tiny", private=True, token="secret")
    assert hub.calls == [("create", "me/tiny", True, "secret")]
    commit = first.rsplit("/", 1)[1]
    model.matrix[:] *= -1
    model.push_to_hub("me/tiny")
    for again in (xswe.load("me/tiny"), xswe.load("me/tiny", revision="main")):
        np.testing.assert_array_equal(again.encode(sample["ja"][:20]), model.encode(sample["ja"][:20]))
    np.testing.assert_array_equal(xswe.load("me/tiny", revision=commit).matrix, -model.matrix)


def test_a_word_model_in_a_folder_is_pushed_whole_and_nothing_beside_it(hub, tokenizer, tmp_path, sample):
    units = WordUnits(["cat", "猫"], WordSplitter(("en", "ja"), {"ja": "teacher"}, tokenizer), tokenizer)
    model = StaticModel(units, np.eye(2, 4, dtype=np.float32))
    model.save(tmp_path / "m")
    (tmp_path / "m" / "notes.txt").write_text("not for the world")
    (tmp_path / "m" / "evil.py").write_text("raise SystemExit")
    push_to_hub(tmp_path / "m", "me/words")
    np.testing.assert_array_equal(xswe.load("me/words").encode(sample["en"]), model.encode(sample["en"]))
    assert {p.name for p in (hub.root / "me/words/main").iterdir()} >= {"words.json", "backoff.json", "tokenizer.json"}
    assert not list(hub.root.rglob("notes.txt")) + list(hub.root.rglob("evil.py"))


def test_mistakes_are_one_line_with_a_cure(hub, model, tmp_path):
    with pytest.raises(ModelError, match=r"me/none: cannot be fetched .* no folder of that name .* check the name"):
        xswe.load("me/none")
    model.push_to_hub("me/tiny")
    with pytest.raises(ModelError, match="404"):
        xswe.load("me/tiny", revision="v9")
    with pytest.raises(ModelError, match=r"cannot be pushed .* hf auth login"):
        model.push_to_hub("tiny")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match=r"config\.json: missing"):
        push_to_hub(tmp_path / "empty", "me/empty")
    assert not (hub.root / "me/empty").exists()
    for name in ("nowhere", "/nowhere/at/all", "./a/b", "a/b/c"):
        with pytest.raises(ModelError, match="no such folder"):
            xswe.load(name)


def test_a_repository_that_is_no_model_is_refused(hub):
    (hub.root / "me/other/main").mkdir(parents=True)
    (hub.root / "me/other/main/config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(ModelError, match=r"config\.json"):
        xswe.load("me/other")


def test_a_folder_on_the_disk_goes_first(hub, model, tmp_path):
    model.save(tmp_path / "me" / "tiny")
    assert locate("me/tiny") == Path("me/tiny")
    assert xswe.load("me/tiny").dim == 8
    model.save(tmp_path / "mini")
    assert locate("mini") == Path("mini")


def test_a_folder_without_a_model_does_not_hide_that_of_the_package(hub, model, tmp_path, monkeypatch):
    (tmp_path / "mini").mkdir()
    (tmp_path / "package").mkdir()
    monkeypatch.setattr("xswe.model.ensemble.pretrained", lambda name: tmp_path / "package" / name)
    model.save(tmp_path / "package" / "mini")
    assert xswe.load("mini").dim == 8
    assert not hub.calls
    assert locate(Path("mini")) == Path("mini")  # a path is a path


def test_mini_is_in_the_package_or_the_error_says_so():
    try:
        folder = pretrained("mini")
    except ModelError as error:
        assert "not in this installation" in str(error)  # noqa: PT017
        with pytest.raises(ModelError, match="not in this installation"):
            xswe.load("mini")
    else:
        model = xswe.load("mini")
        assert locate("mini") == folder
        assert set(model.languages) == {"en", "de", "zh", "ja"}
        a, b, other = model.encode(["A cat sleeps on the roof.", "猫が屋根の上で寝ている。", "Die Bank senkt die Zinsen."])
        assert a @ b > a @ other


@pytest.mark.slow
def test_base_lies_in_the_checkout_and_opens_elsewhere():
    folder = Path(__file__).parents[2] / "models" / "base"
    if not folder.is_dir():
        pytest.skip("only in the checkout")
    model = xswe.load(folder)
    assert (model.languages, len(model.matrix), model.dim) == (("en", "de", "zh", "ja"), 120_000, 256)
    assert sum(path.stat().st_size for path in folder.iterdir()) < 40e6
    texts = ["A cat sleeps on the roof.", "猫が屋根の上で寝ている。", "Die Bank senkt die Zinsen."]
    vectors = model.encode(texts)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]
    transformers = pytest.importorskip("sentence_transformers")
    np.testing.assert_allclose(transformers.SentenceTransformer(str(folder)).encode(texts), vectors, atol=1e-5)
