"""The verbs: their public functions, examples, and summaries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from xswe.io.signatures import MISSING

ALL_ROWS = "{0}\nall rows: {output}"


@dataclass(frozen=True)
class Verb:
    """A verb of the command line.

    Attributes:
        what: what it does, in a line.
        calls: its function, as ``module:name``; by mode if there are several.
        examples: arguments that may follow the verb.
        says: the summary printed at the end, by mode, if it is not that of the result, and the output: ``{0}`` is the
            function's result, ``{took}`` its duration and rate.
        usual: defaults on the command line for arguments that the function requires.
        groups: Hydra groups, each of which chooses several settings at once.
        bitext: modes (``""`` for any) whose ``input`` may also be given as two line-aligned files.
        many: arguments that may be lists.
        unit: the items of the result, for the rate.
    """

    what: str
    calls: Mapping[str, str]
    examples: tuple[str, ...]
    says: Mapping[str, str] = field(default_factory=dict)
    usual: Mapping[str, object] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    bitext: tuple[str, ...] = ()
    many: tuple[str, ...] = ()
    unit: str = ""


VERBS = {
    "train": Verb(
        "from bitext to a static model",
        {"": "training.run:train_run"},
        ("pair=en-ja corpus.paths=[bitext.tsv.gz] output=runs/en-ja", "recipe=static pair=en-de corpus=ccmatrix"),
        says={"": "{0}\n\nmodel: {0.folder}/model\nfigures: {0.folder}/results.json"},
        usual={"output": None, "threads": None},
        groups=("pair", "recipe", "teacher", "distilled", "units", "objective", "corpus", "corpus/clean"),
    ),
    "encode": Verb(
        "one vector per line of text",
        {"": "model.encode_file:encode_file"},
        (
            "model=mini input=texts.txt output=vectors.npy",
            "model=runs/en-ja/model input=- output=v.parquet dtype=int8",
            "model=mini input=s3://bucket/*.txt.gz output=vectors/*.npy execution=ray",
        ),
        many=("input",),
    ),
    "search": Verb(
        "the sentences nearest to a phrase, in a file or an index",
        {"search": "report.answers:search_file", "verify": "search.verification:verify_index"},
        (
            "model=mini input=texts.txt queries='late train'",
            "index=runs/index input=texts.txt model=mini",
            "mode=verify index=runs/index",
        ),
    ),
    "phrases": Verb(
        "the spans of running text that mean the same as a phrase",
        {"": "alignment.phrases:search_phrases"},
        (
            "model=mini queries=phrases.txt input=texts.txt output=hits.tsv",
            "model=mini queries=terms.txt input=texts.txt output=terms.tsv mode=terms",
        ),
    ),
    "mine": Verb(
        "translations from two text files, paraphrases from one, or scores of a bitext",
        {"mine": "mining.mined:mine", "score": "mining.score:score_file", "negatives": "mining.negatives:mine_negatives"},
        (
            "model=mini source=en.txt target=ja.txt output=pairs.tsv",
            "model=mini source=en.txt select=forward output=paraphrases.tsv",
            "mode=score model=mini input=bitext.tsv output=scored.tsv",
            "mode=negatives model=mini input=bitext.tsv output=triples.jsonl negatives=4",
        ),
        says={"mine": "{0.report}\npairs: {output}", "score": "{0}\npairs: {output}"},
        bitext=("score", "negatives"),
    ),
    "align": Verb(
        "texts and their translations, sentence by sentence",
        {"": "alignment.documents:align_files"},
        examples=(
            "model=mini source=novel.en.txt target=novel.de.txt output=beads.tmx languages=[en,de] split=true",
            "model=mini source=english/ target=german/ output=beads/ pairing=content",
        ),
    ),
    "link": Verb(
        "links of words, phrase tables and terms from a bitext",
        {"": "alignment.link:link"},
        examples=(
            "model=mini input=bitext.tsv output=links.html",
            "model=mini source=en.txt target=de.txt what=terms languages=[en,de] output=terms.tbx",
            "model=mini input=memory.tmx what=check terms=agreed.tbx languages=[en,de] output=findings.xlsx",
        ),
        bitext=("",),
    ),
    "split": Verb(
        "running text cut into sentences",
        {"": "text.sentences:split_text"},
        examples=(
            "input=novel.md language=de output=sentences.txt",
            "input=report.docx language=ja output=sentences.jsonl",
        ),
    ),
    "filter": Verb(
        "noisy bitext in, clean bitext out",
        {"": "mining.filter:filter_bitext"},
        says={"": "{0}\n{took}: {output}"},
        examples=(
            "model=mini input=noisy.tsv output=clean.tsv languages=[en,de] rejects=rejects.tsv",
            "model=mini input=memory.tmx output=clean.tmx languages=[en,ja] numbers=true",
        ),
        bitext=("",),
        unit="pairs",
    ),
    "dedup": Verb(
        "a file without its exact, near and semantic duplicates",
        {"": "mining.dedup:dedup"},
        says={"": "{0}\n{took}: {output}"},
        examples=(
            "model=mini input=texts.txt output=unique.txt rejects=duplicates.tsv",
            "model=mini input=texts.csv column=text output=unique.csv threshold=0.85",
        ),
        usual={"model": "mini"},
        unit="lines",
    ),
    "lexicon": Verb(
        "a dictionary from the vectors of words",
        {"": "alignment.dictionary:lexicon"},
        examples=(
            "model=mini languages=[en,de] output=lexicon.tsv",
            "model=mini source=en.txt target=de.txt output=lexicon.tsv",
        ),
    ),
    "evaluate": Verb(
        "figures on benchmarks and on files of your own",
        {"": "evaluation.evaluate:evaluate"},
        says={"": ALL_ROWS},
        examples=("model=mini tasks=[tatoeba] output=eval.json", "model=mini tasks=[pairs.tsv,scores.tsv]"),
        usual={"tasks": ["tatoeba"], "output": "eval.json"},
        many=("tasks",),
    ),
    "corpus": Verb(
        "fetch, check and convert bitext; corpus list shows what there is",
        {"": "corpus.prepare:prepare_corpus"},
        ("list", "corpus.paths=[memory.tmx] pair=en-de output=runs/my-corpus"),
        usual={"output": None},
        groups=("pair", "corpus", "corpus/clean"),
    ),
    "report": Verb(
        "an HTML page of the results of a run",
        {"": "report.write:report_of"},
        ("mined=pairs.tsv output=report.html", "run=runs/en-ja output=report.html"),
        says={"": "report: {0} ({size:.1f} MB)"},
        usual={"output": "report.html"},
    ),
    "compare": Verb(
        "several models, and baselines, on the same tasks",
        {"": "evaluation.evaluate:compare"},
        says={"": "{0}\nall rows and tests: {output}"},
        examples=("models=[mini,wordllama] tasks=[pairs.tsv]", "models=[mini,teacher:mini] tasks=[tatoeba]"),
        usual={"tasks": ["tatoeba"], "output": "compare.json"},
        many=("models", "tasks"),
    ),
    "ensemble": Verb(
        "several static models as one",
        {"": "evaluation.ensembles:make_ensemble"},
        says={"": "{0}\n\nensemble ({0.languages}): {output}"},
        examples=(
            "models=[runs/a/model,runs/b/model] output=runs/ensemble",
            "models=[runs/a/model,wordllama] fit=[dev.tsv] output=runs/ensemble",
        ),
        many=("models", "weights", "fit"),
    ),
    "export": Verb(
        "a model in another form: smaller, word2vec, ONNX",
        {"": "model.export:export_model"},
        ("model=mini output=small dim=128 dtype=int8", "model=mini output=vectors.txt format=word2vec"),
    ),
    "import": Verb(
        "vectors from another project as a model",
        {"": "model.interchange:import_vectors"},
        says={"": "{0.matrix.shape[0]:,} units, {0.dim} dimensions: {output}"},
        examples=("pair=en-de input=[wiki.en.vec,wiki.de.vec] output=muse", "pair=en-ja input=vec.txt output=swe"),
        groups=("pair",),
        many=("input",),
    ),
    "status": Verb(
        "progress of sharded work",
        {"": "work.status:work_status"},
        ("output=vectors.npy", "output='vectors/*.npy'"),
        says={"": "{0}"},
    ),
    "serve": Verb(
        "a local application: concordance, comparison, mining, and OpenAI's embeddings API",
        {"": "serving.app:serve"},
        (
            "model=mini corpora=[memory.tmx,news.en-de.tsv,manual.ja.txt]",
            "model=runs/en-ja/model port=8080 api_key=secret",
        ),
        says={"": ""},
        usual={"model": "mini"},
        many=("corpora",),
    ),
}
# Settings that only the command line has, in addition to the arguments of a function and the fields of its dataclass.
OWN = {
    "mode": "which of the verb's functions: ",
    "report": "an HTML page to write, as in report=report.html",
    "source": "or two line-aligned files: the source side",
    "target": "and the target side",
    "threads": "null for all processors",
}
# Groups whose choices Hydra puts into another package than that of their folder in conf/.
PACKAGES = {"recipe": "recipe@_global_", "distilled": "teacher@distilled"}


def merged(first: object, second: object) -> object:
    """Return the common default of a setting of two modes: null if one requires it, auto if their defaults differ."""
    if first == second:
        return first
    return None if MISSING in (first, second) else "auto"
