"""Make a release: version, changelog, wheel and sdist, both installed and tried in clean environments of every Python here.

    make release VERSION=0.3.0        # or: python tools/release.py 0.3.0

All is done in a copy of the last commit; only when everything passed are ``xswe/version.py``, ``CHANGELOG.md``,
``CITATION.cff`` and ``tests/released.txt`` changed in the checkout and the two files put into ``dist/``. Nothing is
published, tagged or committed.
"""

from __future__ import annotations

import datetime
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tools.surface import surface  # noqa: E402

MOST_BYTES = 40e6  # of the wheel
LICENCES = "Apache-2.0 AND CC-BY-SA-4.0"  # of the code, and of the models in the package
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
# What a stranger does first, in an empty folder; nothing of it needs the network or an extra.
TRIAL = """
import pathlib, subprocess, sys
import xswe
assert xswe.__version__ == {version!r}, xswe.__version__
assert pathlib.Path(xswe.__file__).is_relative_to(sys.prefix), xswe.__file__
model = xswe.load("mini")
english, german = ["The train is late.", "A cat sleeps."], ["Eine Katze schläft.", "Der Zug hat Verspätung."]
pairs = {{(pair.source, pair.target) for pair in xswe.mine(model, english, german, threshold=None)}}
assert pairs == {{(english[0], german[1]), (english[1], german[0])}}, pairs
assert xswe.index(model, german).search("late trains", k=1)[0].text == german[1]
for name, lines in (("en", english), ("de", german)):
    pathlib.Path(name).write_text("\\n".join(lines), encoding="utf-8")
for words in (
    "--help", "train --help", "encode model=mini input=en output=a.npy", "corpus list",
    "mine model=mini source=en target=de threshold=null output=pairs.tsv",
):
    subprocess.run([sys.executable, "-m", "xswe", *words.split()], check=True, stdout=subprocess.DEVNULL)
"""


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Run a command without anything of the checkout in its environment; returns what it prints.

    Raises:
        SystemExit: it failed.
    """
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "XSWE_DATA")}
    env |= {"HF_HUB_OFFLINE": "1", "XSWE_PROGRESS": "0", **environment}
    done = subprocess.run([*map(str, command)], cwd=cwd, env=env, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"release: {' '.join(map(str, command))[:200]}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def number(version: str) -> tuple[int, ...]:
    """Return the parts of a version.

    Raises:
        SystemExit: it is none.
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise SystemExit(f"release: {version!r} is no version; give three numbers, as in 0.3.0")
    return tuple(map(int, version.split(".")))


def written(folder: Path, version: str, day: str) -> dict[str, str]:
    """Return the files that name the version, as they are to be.

    Raises:
        SystemExit: the version is not newer, or the changelog has nothing of it.
    """
    old = re.search(r'__version__ = "([^"]+)"', (folder / "xswe" / "version.py").read_text("utf-8"))
    changes, citation = ((folder / name).read_text("utf-8") for name in ("CHANGELOG.md", "CITATION.cff"))
    if old and number(version) <= number(old[1]):
        raise SystemExit(f"release: {version} is not newer than {old[1]}")
    if f"## {version} (not released)\n" not in changes:
        raise SystemExit(
            f"release: CHANGELOG.md has no heading '## {version} (not released)'; write what changed below one"
        )
    citation = re.sub(r"(?m)^(version|date-released): .*\n", "", citation)
    citation = citation.replace("type: software\n", f"type: software\nversion: {version}\ndate-released: {day}\n")
    return {
        "xswe/version.py": f'"""The version of the package."""\n\n__version__ = "{version}"\n',
        "CHANGELOG.md": changes.replace(f"## {version} (not released)", f"## {version} ({day})"),
        "CITATION.cff": citation,
        "tests/released.txt": "".join(f"{name}\n" for name in surface()),
    }


def check(wheel: Path, sdist: Path, version: str) -> None:
    """Look into both files.

    Raises:
        SystemExit: something is missing, or the wheel is too large.
    """
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = Parser().parsestr(
            archive.read(next(n for n in names if n.endswith(".dist-info/METADATA"))).decode("utf-8")
        )
    with tarfile.open(sdist) as archive:
        sources = {name.partition("/")[2] for name in archive.getnames()}
    wrong = [f"the wheel has {wheel.stat().st_size / 1e6:.1f} MB"] if wheel.stat().st_size > MOST_BYTES else []
    wrong += [
        f"the wheel holds {n}" for n in names if n.startswith(("tests/", "eval/", "tools/", "docs/")) or n.endswith(".pyc")
    ]
    needed = {
        "xswe/py.typed",
        "xswe/conf/common.yaml",
        "xswe/corpora/sample/sentences.tsv",
        "xswe/pretrained/mini/config.json",
    }
    wrong += [f"the wheel lacks {name}" for name in needed - set(names)]
    needed = {"README.md", "CHANGELOG.md", "mkdocs.yml", "docs/faq.md", "tests/conftest.py", "tools/release.py", "Makefile"}
    needed |= {"LICENSE", "LICENSES/CC-BY-SA-4.0.txt"}
    wrong += [f"the sdist lacks {name}" for name in needed - sources]
    if metadata["Version"] != version or metadata["License-Expression"] != LICENCES:
        wrong.append(f"the metadata say {metadata['Version']}, {metadata['License-Expression']}")
    if not str(metadata.get_payload()).startswith("# xswe"):
        wrong.append("the metadata have no README")
    if links := re.findall(r"\]\((?!\w+:|#)([^)\s]+)\)", str(metadata.get_payload())):
        wrong.append(f"the README in the metadata links to {links[0]}, which is not beside it on an index")
    if wrong:
        raise SystemExit(f"release: {'; '.join(wrong)}")
    urls = {link.partition(",")[0].lower() for link in metadata.get_all("Project-URL") or ()}
    if not urls & {"homepage", "source", "repository"}:
        print("  note: the metadata name no home of the project; add it below [project.urls] in pyproject.toml")


def tried(python: str, package: Path, version: str) -> None:
    """Install a package into a fresh environment and do what a stranger does first."""
    with tempfile.TemporaryDirectory(prefix="xswe-release-") as folder:
        place = Path(folder)
        run(python, "-m", "venv", place / "env", cwd=place)
        inside = place / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
        run(inside, "-m", "pip", "install", "--quiet", package, cwd=place)
        (place / "empty").mkdir()
        run(inside, "-c", TRIAL.format(version=version), cwd=place / "empty", NUMBA_CACHE_DIR=str(place / "numba"))


def interpreter(python: str) -> str | None:
    """Return where a Python is that runs, None if there is none."""
    home = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    for place in (shutil.which(f"python{python}"), *sorted(home.glob(f"{python}*/bin/python"))):
        if place and not subprocess.run([place, "-c", "import venv"], capture_output=True, check=False).returncode:
            return str(place)
    return None


def main() -> None:
    """Build, try, and only then write."""
    if len(sys.argv) != 2:
        raise SystemExit("release: say which version, as in  make release VERSION=0.3.0")
    version, day = sys.argv[1], datetime.datetime.now(datetime.UTC).date().isoformat()
    number(version)
    if changed := run("git", "status", "--porcelain", "--untracked-files=no", cwd=ROOT):
        raise SystemExit(f"release: commit these first:\n{changed}")
    with tempfile.TemporaryDirectory(prefix="xswe-release-") as folder:
        copy = Path(folder) / "xswe"
        run("git", "worktree", "add", "--detach", copy, "HEAD", cwd=ROOT)
        try:
            texts = written(copy, version, day)
            for name, text in texts.items():
                (copy / name).write_text(text, encoding="utf-8")
            run(sys.executable, "-m", "build", "--outdir", copy / "dist", copy, cwd=copy)
            (wheel,), (sdist,) = ((copy / "dist").glob(end) for end in ("*.whl", "*.tar.gz"))
            print(f"  {wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB; {sdist.name}: {sdist.stat().st_size / 1e6:.1f} MB")
            check(wheel, sdist, version)
            for python in PYTHONS:
                if found := interpreter(python):
                    for package in (wheel, sdist):
                        tried(found, package, version)
                        print(f"  Python {python}: {package.name} works")
                else:
                    print(f"  Python {python}: not here, not tried")
            (ROOT / "dist").mkdir(exist_ok=True)
            for package in (wheel, sdist):
                shutil.copy(package, ROOT / "dist")
        finally:
            run("git", "worktree", "remove", "--force", copy, cwd=ROOT)
    for name, text in texts.items():
        (ROOT / name).write_text(text, encoding="utf-8")
    print(
        f"dist/ has {version}. What is left: git commit -am 'Release {version}' && git tag v{version}, and to publish it."
    )


if __name__ == "__main__":
    main()
