"""Static word embeddings that encode sentences, aligned across languages.

    import xswe
    model = xswe.load("mini")           # or a folder that train wrote, or user/repository on the hub
    vectors = model.encode(["A cat sleeps.", "猫が寝ている。"])   # float32 (2, d), rows of norm 1

``encode_file`` encodes files of any size, ``mine`` finds translations in two lists or files, or paraphrases in one,
``filter`` cleans bitext, ``dedup`` finds duplicates, ``score`` scores aligned texts, ``link`` links their words,
``lexicon`` makes a dictionary, ``find_phrases`` and ``find_terms`` find translations of phrases in running text
(``search_phrases`` in files), ``index`` makes sentences searchable (``load_index`` opens a saved index, ``search_file``
searches a file), ``train`` trains a model, ``ensemble`` combines several, ``export`` and ``import_vectors`` exchange
vectors with other libraries, ``evaluate``, ``compare`` and ``sweep`` measure models, ``write_report`` makes an HTML page of
any result. ``xswe.types`` has their result types and settings. Rarely needed classes stay in their modules:
``xswe.training.sentence_pca.SentencePCA`` is the papers' reduction and ``xswe.model.sentence_vectors.SentenceVectors`` a
model, both as scikit-learn transformers. Each function is loaded when it is first used: loading and encoding need numpy,
numba, tokenizers and safetensors; torch and transformers are imported by training only.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from xswe.face import checked
from xswe.io.numba_cache import find_room
from xswe.version import __version__

if TYPE_CHECKING:
    from xswe import errors, types
    from xswe.alignment.dictionary import lexicon
    from xswe.alignment.documents import align_files
    from xswe.alignment.link import link
    from xswe.alignment.phrases import search_phrases
    from xswe.alignment.sentences import align
    from xswe.alignment.words import align_words
    from xswe.corpus.prepare import prepare_corpus
    from xswe.evaluation.ensembles import make_ensemble as ensemble
    from xswe.evaluation.evaluate import compare, evaluate
    from xswe.mining.dedup import dedup
    from xswe.mining.filter import filter_bitext as filter
    from xswe.mining.mined import mine
    from xswe.mining.negatives import mine_negatives
    from xswe.mining.score import score_file
    from xswe.mining.score import score_pairs as score
    from xswe.model.encode_file import encode_file
    from xswe.model.ensemble import Ensemble
    from xswe.model.export import export_model as export
    from xswe.model.interchange import import_vectors
    from xswe.model.static import StaticModel
    from xswe.phrases.find import find_phrases
    from xswe.phrases.terms import find_terms
    from xswe.report.answers import search_file
    from xswe.report.write import report_of, write_report
    from xswe.search.building import index
    from xswe.search.index import load_index
    from xswe.serving.app import make_app, serve
    from xswe.text.sentences import split_text
    from xswe.training.sweep import sweep
    from xswe.training.train import train
    from xswe.work.status import work_status

# The public names of each module, as ``public:inside`` if the module uses another name.
_MODULES = {
    "alignment.dictionary": "lexicon",
    "alignment.documents": "align_files",
    "alignment.link": "link",
    "alignment.phrases": "search_phrases",
    "alignment.sentences": "align",
    "alignment.words": "align_words",
    "corpus.prepare": "prepare_corpus",
    "evaluation.evaluate": "compare evaluate",
    "evaluation.ensembles": "ensemble:make_ensemble",
    "mining.dedup": "dedup",
    "mining.filter": "filter:filter_bitext",
    "mining.mined": "mine",
    "mining.negatives": "mine_negatives",
    "mining.score": "score:score_pairs score_file",
    "model.encode_file": "encode_file",
    "model.export": "export:export_model",
    "model.interchange": "import_vectors",
    "phrases.find": "find_phrases",
    "phrases.terms": "find_terms",
    "report.answers": "search_file",
    "report.write": "report_of write_report",
    "search.building": "index",
    "search.index": "load_index",
    "serving.app": "make_app serve",
    "text.sentences": "split_text",
    "training.sweep": "sweep",
    "training.train": "train",
    "work.status": "work_status",
}
# Rarely needed names, not public here: the error for ``xswe.phrase_table`` says where it is.
_NOT_PUBLIC = {
    "alignment.documents": "align_documents:align_files pair_documents",
    "alignment.phrase_table": "phrase_table",
    "alignment.term_check": "check_terms read_terms",
    "alignment.terms": "bilingual_terms",
    "model.encode_file": "BatchEncoder",
    "model.ensemble": "Ensemble push_to_hub",
    "model.sentence_vectors": "SentenceVectors",
    "model.static": "StaticModel",
    "search.index": "Index",
    "training.sentence_pca": "SentencePCA",
}


def _places(modules: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return the module and the name within it of each public name."""
    pairs = ((module, name.partition(":")) for module, names in modules.items() for name in names.split())
    return {name: (f"xswe.{module}", inside or name) for module, (name, _, inside) in pairs}


_PUBLIC, _ELSEWHERE = _places(_MODULES), _places(_NOT_PUBLIC)
__all__ = [
    "__version__",
    "align",
    "align_files",
    "align_words",
    "compare",
    "dedup",
    "encode_file",
    "ensemble",
    "errors",
    "evaluate",
    "export",
    "filter",
    "find_phrases",
    "find_terms",
    "import_vectors",
    "index",
    "lexicon",
    "link",
    "load",
    "load_index",
    "make_app",
    "mine",
    "mine_negatives",
    "prepare_corpus",
    "report_of",
    "score",
    "score_file",
    "search_file",
    "search_phrases",
    "serve",
    "split_text",
    "sweep",
    "train",
    "types",
    "work_status",
    "write_report",
]

find_room()  # before anything imports numba


@overload
def load(model: Literal["mini"], *, revision: str | None = None, token: str | None = None) -> StaticModel: ...
@overload
def load(model: str | Path, *, revision: str | None = None, token: str | None = None) -> StaticModel | Ensemble: ...
def load(model: str | Path, *, revision: str | None = None, token: str | None = None) -> StaticModel | Ensemble:
    """Load a model, or an ensemble of models.

    Args:
        model: the folder that ``python -m xswe train`` (or ``ensemble``, or ``model.save``) wrote, ``mini`` (in this
            package), or ``user/repository`` on the Hugging Face hub. A local folder goes first.
        revision: branch, tag or commit of a repository on the hub; name a commit to always get the same bytes.
        token: an access token, if the repository needs one and none is stored.

    Raises:
        xswe.errors.ModelError: the model is missing, damaged, too new, or of another library.
    """
    from xswe.model.ensemble import load_any, locate

    return load_any(locate(model, revision, token=token))


if not TYPE_CHECKING:  # a type checker would take any name for an existing one

    def __getattr__(name: str) -> Any:
        if name in ("errors", "types"):
            return importlib.import_module(f"xswe.{name}")
        if name in _PUBLIC:
            return _opened(name)
        if not name.startswith("_") and name in dir(importlib.import_module("xswe.types")):
            raise AttributeError(f"xswe.{name} is xswe.types.{name}")
        if name in _ELSEWHERE:
            raise AttributeError("xswe.{} is now in its room: from {} import {}".format(name, *_ELSEWHERE[name]))
        raise AttributeError(f"module 'xswe' has no attribute {name!r}", name=name, obj=importlib.import_module("xswe"))


@cache
def _opened(name: str) -> Any:
    """Import a public function, wrapped to answer misspelt keywords."""
    module, inside = _PUBLIC[name]
    return checked(getattr(importlib.import_module(module), inside), name)


def __dir__() -> list[str]:
    return __all__
