"""The wheel as a stranger installs it: built, installed apart from the checkout, run from an empty folder, no network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import time
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.slow


def call(*command, cwd):
    """Run a command without anything of the checkout in its environment."""
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "XSWE_DATA")}
    env |= {"XSWE_PROGRESS": "0", "HF_HUB_OFFLINE": "1", "NUMBA_CACHE_DIR": str(Path(cwd) / "numba")}
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=cwd, env=env)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("build")
    folder = tmp_path_factory.mktemp("wheel")
    call(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    (built,) = folder.glob("xswe-*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """The interpreter of a fresh environment with the wheel, which borrows the dependencies installed here."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    packages = Path(call(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip())
    call(
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        packages,
        wheel,
        cwd=folder,
    )
    # The wheel's own folder comes first on the path; an editable install's hook is not run from a .pth of another one.
    (packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    found = call(python, "-c", "import xswe; print(xswe.__file__)", cwd=folder).strip()
    assert Path(found).is_relative_to(packages), found
    return python


def test_what_the_wheel_holds(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {f"xswe/conf/{path.relative_to(ROOT / 'conf').as_posix()}" for path in (ROOT / "conf").rglob("*.yaml")} <= names
    assert {"xswe/py.typed", "xswe/conf/recipe/alone/static.yaml", "xswe/corpora/sample/sentences.tsv"} <= names
    assert {f"xswe/corpora/sample/kiln.{code}.txt" for code in ("en", "de")} <= names
    assert {"xswe/model/portable.py", "xswe/pretrained/__init__.py", "xswe/corpora/licences/files.yaml"} <= names
    assert not [name for name in names if name.startswith(("tests/", "eval/", "conf/")) or name.endswith((".log", ".pyc"))]
    assert wheel.stat().st_size < 40e6


def test_the_metadata_name_the_licences_and_bring_their_texts(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (place,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(place).decode("utf-8"))
        cards = [name for name in names if name.startswith("xswe/") and name.endswith("/README.md")]
        stated = {re.search(r"^license: (\S+)$", archive.read(name).decode("utf-8"), re.MULTILINE)[1] for name in cards}
    assert metadata["License-Expression"] == "Apache-2.0 AND CC-BY-SA-4.0"
    assert stated == {"cc-by-sa-4.0"}
    assert sorted(metadata.get_all("License-File")) == ["LICENSE", "LICENSES/CC-BY-SA-4.0.txt"]
    folder = place.removesuffix("METADATA") + "licenses/"
    assert {folder + "LICENSE", folder + "LICENSES/CC-BY-SA-4.0.txt"} <= set(names)
    assert "CC BY-SA 4.0" in metadata.get_payload()  # the README


def test_it_runs_from_an_empty_folder(python, tmp_path):
    help_text = call(python, "-m", "xswe", "--help", cwd=tmp_path)
    for verb in ("train", "encode", "export", "import"):
        assert verb in help_text
        assert "output" in call(python, "-m", "xswe", verb, "--cfg", "job", cwd=tmp_path)
    code = (
        "from xswe.io.resources import resource; print((resource('corpora') / 'sample' / 'sentences.tsv').stat().st_size)"
    )
    assert int(call(python, "-c", code, cwd=tmp_path)) > 100_000
    where = call(python, "-c", "import xswe; print(xswe.__path__[0])", cwd=tmp_path).strip()
    script = Path(where).parent / "bin" / "xswe"
    by_module = call(python, "-m", "xswe", "train", "--cfg", "job", cwd=tmp_path)
    assert call(python, script, "train", "--cfg", "job", cwd=tmp_path) == by_module
    assert {path.name for path in tmp_path.iterdir()} <= {"numba"}


def test_it_trains_encodes_and_exports_without_a_network(python, tmp_path):
    sample = (ROOT / "corpora" / "sample" / "sentences.tsv").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("\t") for line in sample]
    (tmp_path / "own.tsv").write_text("".join(f"{row[0]}\t{row[1]}\n" for row in pairs), encoding="utf-8")
    settings = [
        "teacher=none",
        "units.vocabulary=corpus",
        "units.size=2000",
        "pca.dim=32",
        "refine.max_steps=60",
        "threads=1",
    ]
    corpus = ["corpus=local", "corpus.paths=[own.tsv]"]
    said = call(python, "-m", "xswe", "train", "pair=en-de", *settings, *corpus, "output=run", cwd=tmp_path)
    assert "refinement" in said
    assert "license: other" in (tmp_path / "run" / "model" / "README.md").read_text(encoding="utf-8")
    call(python, "-m", "xswe", "encode", "model=run/model", "input=own.tsv", "output=own.npy", cwd=tmp_path)
    call(python, "-m", "xswe", "export", "model=run/model", "format=word2vec", "output=v.txt", cwd=tmp_path)
    assert (tmp_path / "v.txt").read_text(encoding="utf-8").split("\n")[0].endswith(" 32")


def test_the_model_in_the_package_works_at_once(python, tmp_path):
    where = call(python, "-c", "import xswe; print(xswe.__path__[0])", cwd=tmp_path).strip()
    if not (Path(where) / "pretrained" / "mini" / "config.json").is_file():
        pytest.skip("the model 'mini' is not in this checkout")
    (tmp_path / "a.txt").write_text("A cat sleeps.\nThe train is late.\n", encoding="utf-8")
    start = time.monotonic()
    call(python, "-m", "xswe", "encode", "model=mini", "input=a.txt", "output=a.npy", cwd=tmp_path)
    assert time.monotonic() - start < 60
    # The example of mining, as it stands on its page, the very first time: nothing is compiled yet.
    text = (ROOT / "docs" / "how-to" / "mine.md").read_text(encoding="utf-8")
    block = next(code for code in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) if "xswe mine model=mini" in code)
    (tmp_path / "runs").mkdir()
    start = time.monotonic()
    call("bash", "-euc", block.replace("python -m xswe", f"{python} -m xswe"), cwd=tmp_path)
    assert time.monotonic() - start < 60  # ten seconds on an idle machine; tests may share theirs
    pairs = [line.split("\t")[1:] for line in (tmp_path / "runs" / "pairs.tsv").read_text(encoding="utf-8").splitlines()]
    assert ["A cat sleeps.", "猫が眠っている。"] in pairs
