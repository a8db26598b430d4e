"""What is said of licences, against what ships: the metadata, the model cards, the README and the pages."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import yaml

import xswe
from xswe.io.resources import resource
from xswe.model.card import _data
from xswe.model.licences import Source, derive

ROOT = Path(__file__).parents[1]
PACKAGE = Path(xswe.__file__).parent
SHIPPED = sorted(PACKAGE.rglob("README.md"))  # the cards of the models in the package
CARDS = [*SHIPPED, *sorted(ROOT.glob("models/*/README.md"))]
SPDX = {"cc-by-sa-4.0": "CC-BY-SA-4.0", "apache-2.0": "Apache-2.0"}


def sources() -> list[Source]:
    """What the models that ship were trained on, and whose it is."""
    known = yaml.safe_load((resource("corpora") / "licences" / "files.yaml").read_text("utf-8")).values()
    found = {one["source"]: Source(one["source"], one["licence"], by=one["by"]) for one in known}
    return [found[name] for name in sorted(found)]


def licence(card: Path) -> str:
    return yaml.safe_load(card.read_text("utf-8").split("---")[1])["license"]


@pytest.fixture
def project():
    if not (ROOT / "pyproject.toml").is_file():
        pytest.skip("pyproject.toml is not in this installation")
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_the_metadata_name_the_licence_of_everything_that_ships(project):
    licenses = pytest.importorskip("packaging.licenses")
    assert licenses.canonicalize_license_expression(project["license"]) == project["license"]
    assert {path.parent.name for path in SHIPPED} == {"mini"}
    assert len(SHIPPED) == 2
    assert set(project["license"].split(" AND ")) == {"Apache-2.0", *(SPDX[licence(card)] for card in SHIPPED)}
    texts = [path.name for pattern in project["license-files"] for path in ROOT.glob(pattern)]
    assert sorted(texts) == ["CC-BY-SA-4.0.txt", "LICENSE"]
    assert "Apache License" in (ROOT / "LICENSE").read_text("utf-8")
    text = (ROOT / "LICENSES" / "CC-BY-SA-4.0.txt").read_text("utf-8")
    assert text.startswith("Attribution-ShareAlike 4.0 International")


@pytest.mark.parametrize("card", CARDS, ids=lambda path: "/".join(path.parts[-3:-1]))
def test_cards_name_every_source_and_whose_it_is(card):
    text = card.read_text("utf-8")
    assert licence(card) == derive(sources())[0]
    for source in sources():
        assert f"| {source.name} | {source.by} | {source.licence} |" in text, source
    assert "All files of this folder" in text
    if "teacher" not in card.parts:  # whose card also counts pairs
        assert _data(sources(), *derive(sources())) in text


@pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="docs/ is not in this installation")
def test_the_pages_say_which_files_are_under_which_licence():
    page, readme = (ROOT / "docs" / "models.md").read_text("utf-8"), (ROOT / "README.md").read_text("utf-8")
    for card in CARDS:
        folder = card.parent.relative_to(ROOT).as_posix()
        assert f"`{folder}`" in page, folder
        assert f"`{folder}`" in readme, folder
    for source in sources():
        assert f"| {source.name} | {source.by} | {source.licence} |" in page, source
    assert "CC BY-SA 4.0" in readme
