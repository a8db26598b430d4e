"""The types of arguments and results of the public functions, loaded when first used.

A function that takes mined pairs says so by ``def best(pairs: xswe.types.MinedPairs) -> xswe.types.Pair``.
"""

from __future__ import annotations

import importlib
from typing import Any

# The names of each module; tools/stubs.py writes types.pyi from them, for type checkers.
_MODULES = {
    "alignment.beads": "AlignConfig",
    "alignment.dictionary": "Dictionary DictionaryConfig Entry",
    "alignment.documents": "AlignedDocuments AlignedPair DocumentPair DocumentPairs",
    "alignment.link": "BitextLinkConfig LinkedBitext",
    "alignment.phrase_table": "Phrase PhraseTable",
    "alignment.phrases": "FoundInFiles PhraseSearchConfig",
    "alignment.sentences": "AlignedTexts Bead",
    "alignment.term_check": "AgreedTerm TermCheck TermCheckConfig TermFinding",
    "alignment.terms": "BilingualTerm BilingualTerms",
    "alignment.words": "LinkConfig LinkedPair WordLinks",
    "bitext.convert": "Rewritten",
    "corpus.bitext": "CorpusConfig",
    "corpus.convert": "ConvertedCorpus",
    "evaluation.ensembles": "FittedEnsemble",
    "evaluation.evaluate": "Comparison Measured PairedTest Scores",
    "evaluation.metrics": "Bootstrap Row",
    "mining.dedup": "DedupConfig Deduplicated Line",
    "mining.filter": "Filtered FilteredRecord",
    "mining.hard_rules": "FilterConfig",
    "mining.mined": "MinedPairs Pair",
    "mining.pipeline": "MineConfig MineReport",
    "mining.negatives": "HardNegatives Negatives NegativesConfig",
    "mining.score": "ScoreFileConfig ScoredBitext",
    "mining.threshold": "Threshold",
    "mining.verdicts": "BitextFilter",
    "model.encode_file": "EncodedFile",
    "model.ensemble": "AnyModel Ensemble",
    "model.export": "ExportConfig Exported",
    "model.interchange": "ImportConfig",
    "model.encoding": "Neighbour Neighbours",
    "model.static": "StaticModel",
    "phrases.find": "FoundPhrases",
    "phrases.search": "SpanConfig",
    "phrases.terms": "FoundTerms Term",
    "report.answers": "Answers FileSearchConfig",
    "search.hits": "Hit Hits",
    "search.index": "Index",
    "search.lists": "SearchConfig",
    "serving.config": "ServeConfig",
    "teacher.protocol": "TeacherConfig",
    "text.sentences": "Sentence SplitText",
    "training.config": "TrainConfig",
    "training.sweep": "Sweep SweepPoint",
    "training.train": "TrainResult",
    "work.config": "ExecutionConfig",
    "work.status": "StageStatus WorkStatus",
}
_PLACES = {name: f"xswe.{module}" for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'xswe.types' has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted(_PLACES)
