"""Pairing of documents with their translations, by name, list or content, and alignment of all pairs."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Unpack

import numpy as np

from xswe.alignment.beads import AlignConfig, Lines, line_sums
from xswe.alignment.corrections import SUFFIXES
from xswe.alignment.formats import SUFFIX_OF, BeadFormat, Written, bead_format, write_beads
from xswe.alignment.sentences import AlignedTexts, align, manner_of, read_side
from xswe.corpus.near_duplicates import NearDuplicates, among_kept
from xswe.errors import ConfigError, InputError
from xswe.io.arguments import check_model, file_name, several, texts_of
from xswe.io.files import check_output, file_stamp, fingerprint
from xswe.io.lines import Skipped, left_out_of, read_lines
from xswe.io.parallel import available_threads
from xswe.io.results import Result
from xswe.io.settings import changed, check_choice, for_all
from xswe.io.sources import without_packing
from xswe.mining.margin import score_candidates, select
from xswe.mining.threshold import estimate_from_decoys, near_duplicate_note
from xswe.model.ensemble import AnyModel, open_model
from xswe.progress import bar
from xswe.search.lists import Neighbours, SearchConfig
from xswe.search.neighbours import find_neighbours
from xswe.text.languages import LANGUAGES, base_language
from xswe.version import __version__
from xswe.work.kept import keep

if TYPE_CHECKING:
    from xswe.settings import AlignSettings

Pairing = Literal["names", "content"]
_BY_NAMES = for_all(Pairing, {"names": True, "content": False})
_CANDIDATES = 16  # documents of the other side to compare sentence by sentence
_SENTENCES = 48  # maximum sentences sampled from a document for that
_NEIGHBOURHOOD = 4
_MIN_MARGIN = 0.4  # as a fraction of the upper quartile of margins
_STATE, _TABLE = ".xswe-align.jsonl", "documents.tsv"


class DocumentPair(NamedTuple):
    """Two documents that translate each other.

    Attributes:
        score: margin of their BiMax similarity.
        source: index of the document, from 0.
        target: likewise.
    """

    score: float
    source: int
    target: int


@dataclass(frozen=True)
class DocumentPairs(Result[DocumentPair], row=DocumentPair, entries="pairs"):
    """Documents that translate each other, the best pairs first; a sequence of :class:`DocumentPair`."""

    pairs: tuple[DocumentPair, ...]


def pair_documents(
    model: AnyModel, source: Sequence[Sequence[str]], target: Sequence[Sequence[str]], *, threads: int | None = None
) -> DocumentPairs:
    """Pair documents with their translations by content, each in at most one pair; some may have no partner.

    Documents with similar vectors are compared sentence by sentence: their similarity is the mean, in both directions, of
    each sentence's best match (BiMax). Its margin over other near documents is compared, as in mining, with that of decoys.

    Args:
        model: the model that encodes sentences.
        source: documents, as lists of sentences.
        target: likewise.
        threads: None for all processors.

    Returns:
        The pairs, the best first.

    Example:
        >>> import xswe
        >>> english = [["The train is late.", "We wait."], ["A cat sleeps.", "It dreams of fish."]]
        >>> german = [["Eine Katze schläft.", "Sie träumt von Fisch."], ["Der Zug hat Verspätung.", "Wir warten."]]
        >>> sorted((pair.source, pair.target) for pair in pair_documents(xswe.load("mini"), english, german))
        [(0, 1), (1, 0)]
    """
    check_model(model, "pair_documents(model, source, target)")
    source = [texts_of(texts, "a document of the source") for texts in several(source, "source", "documents")]
    target = [texts_of(texts, "a document of the target") for texts in several(target, "target", "documents")]
    if not source or not target:
        return DocumentPairs(())
    workers = available_threads(threads)
    sides = [_Collection.of(model, documents, workers) for documents in (source, target)]
    sides = [side.centred(sides[1 - k]) for k, side in enumerate(sides)]
    k = min(_CANDIDATES, len(source), len(target))
    near = find_neighbours(sides[0].vectors, sides[1].vectors, k, SearchConfig(threads=workers))
    lists = _compared(sides[0], sides[1], near)
    margin = min(_NEIGHBOURHOOD, max(1, k - 1))
    found = select(score_candidates(lists, "distance", margin), "max")
    if k > 2:
        decoys = select(score_candidates(lists, "distance", min(margin, k - 1), skip=1), "max")
        further = select(score_candidates(lists, "distance", min(margin, k - 2), skip=2), "max")
        expected = estimate_from_decoys(found.scores, decoys.scores, min(len(source), len(target)), further.scores, 1.0)
        # Few documents say little about what to expect, so also require a margin not far below that of most pairs.
        least = _MIN_MARGIN * float(np.quantile(found.scores, 0.75)) if len(found) else 0.0
        found = found.between(max(expected.choose(), least), None)
    rows = zip(found.scores.tolist(), found.source.tolist(), found.target.tolist(), strict=True)
    return DocumentPairs(tuple(DocumentPair(*row) for row in rows))


@dataclass(frozen=True, eq=False)
class _Collection:
    """Documents of one side.

    Attributes:
        vectors: float32 (documents, d), of norm 1.
        sentences: float32 (n, d), of norm 1, a sample from each document.
        bounds: int64 (documents + 1,), where each document's sentences begin.
    """

    vectors: np.ndarray
    sentences: np.ndarray
    bounds: np.ndarray

    @classmethod
    def of(cls, model: AnyModel, documents: Sequence[Sequence[str]], threads: int) -> _Collection:
        """Encode documents, and keep evenly spaced sentences of each."""
        vectors = np.zeros((len(documents), model.dim), np.float32)
        kept, bounds = [], [0]
        for row, texts in enumerate(documents):
            lines = line_sums(model, list(texts), threads)
            vectors[row] = lines.sums.sum(0)
            some = np.unique(np.linspace(0, len(texts) - 1, min(len(texts), _SENTENCES)).round().astype(int))
            kept.append(lines.sums[some])
            bounds.append(bounds[-1] + len(some))
        return cls(vectors, np.concatenate(kept), np.array(bounds, np.int64))

    def centred(self, other: _Collection) -> _Collection:
        """Return the collection with the mean subtracted from its vectors, rescaled to norm 1."""
        parts = [Lines(rows.copy(), np.zeros(len(rows), np.float32)) for rows in (self.vectors, self.sentences)]
        for part in parts:
            part.centre()
            part.sums[:] /= np.maximum(np.linalg.norm(part.sums, axis=1, keepdims=True), 1e-6)
        return _Collection(parts[0].sums, parts[1].sums, self.bounds)

    def of_document(self, row: int) -> np.ndarray:
        return self.sentences[self.bounds[row] : self.bounds[row + 1]]


def _compared(source: _Collection, target: _Collection, near: Neighbours) -> Neighbours:
    """Score candidates sentence by sentence, and sort the lists by score."""
    known: dict[tuple[int, int], float] = {}

    def score(a: int, b: int) -> float:
        if (a, b) not in known:
            cosines = source.of_document(a) @ target.of_document(b).T
            known[a, b] = float(cosines.max(1).mean() + cosines.max(0).mean()) / 2 if cosines.size else 0.0
        return known[a, b]

    lists = []
    with bar("compare", total=near.forward_ids.size + near.backward_ids.size, unit="pair") as progress:
        for ids, flip in ((near.forward_ids, False), (near.backward_ids, True)):
            cosines = np.full(ids.shape, -np.inf, np.float32)
            for row, column in np.argwhere(ids >= 0).tolist():
                other = int(ids[row, column])
                cosines[row, column] = score(other, row) if flip else score(row, other)
            progress.update(ids.size)
            order = np.argsort(-cosines, axis=1, kind="stable")
            lists += [np.take_along_axis(cosines, order, 1), np.take_along_axis(ids, order, 1)]
    return Neighbours(*lists)


# Folders of documents.


class AlignedPair(NamedTuple):
    """An aligned pair of documents.

    Attributes:
        source: name of the document within its folder.
        target: likewise.
        score: of the pair by content; None if paired by name.
        source_lines: number of lines, or sentences, of the source.
        target_lines: likewise.
        beads: number of beads, not counting gaps.
        coverage: share of the lines of both sides in these beads.
        output: the file with its beads; None if all are in one file.
    """

    source: str
    target: str
    score: float | None
    source_lines: int
    target_lines: int
    beads: int
    coverage: float
    output: str | None


@dataclass(frozen=True)
class AlignedDocuments(Result[AlignedPair], row=AlignedPair, entries="documents"):
    """Aligned pairs of documents; iterating gives :class:`AlignedPair` objects.

    Attributes:
        documents: the pairs.
        alone: names of documents without a partner, on either side.
        output: the folder, or file, with the beads.
        kept: number of pairs already aligned by an earlier, unfinished run.
        seconds: time taken.
        left_out: counts by reason of what is left out of all documents, as in
            :attr:`xswe.alignment.sentences.AlignedTexts.left_out`.
        near: the share of near-duplicates of earlier beads among the first twenty thousand of all documents.
    """

    documents: tuple[AlignedPair, ...]
    alone: tuple[tuple[str, ...], tuple[str, ...]]
    output: str
    kept: int
    seconds: float
    left_out: Mapping[str, int]
    near: float

    def __str__(self) -> str:
        beads, lines = sum(one.beads for one in self), sum(one.source_lines + one.target_lines for one in self)
        alone = " and ".join(f"{len(names):,}" for names in self.alone)
        kept = f", {self.kept:,} of them by an earlier run" if self.kept else ""
        return (
            f"{len(self):,} pairs of documents aligned{kept}, {alone} without a partner; {lines:,} lines, {beads:,} beads, "
            f"{self.seconds:.1f} s: {self.output}{left_out_of(self.left_out)}{near_duplicate_note(self.near, 'beads')}"
        )


def _align_folders(
    model: AnyModel,
    folders: tuple[Path, Path],
    output: str | Path,
    pairing: Pairing,
    manifest: str | Path | None,
    format: BeadFormat,
    config: AlignConfig,
) -> AlignedDocuments:
    """Align all documents of a folder with their translations in another."""
    config, begun = replace(config, languages=tuple(config.languages) or tuple(model.pair)), time.monotonic()
    into = Path(output)
    single = bool(without_packing(into).suffix) and not into.is_dir()
    kind = bead_format(format, str(output) if single else "beads", config.languages)
    check_choice("pairing", pairing, Pairing)
    pairs, names = _pairs(model, folders, pairing, manifest, config)
    if not pairs:
        source, target = folders
        raise ConfigError(f"no document of {source} has a partner in {target}: try pairing=content, or give manifest=")
    suffix = SUFFIX_OF[kind]
    outputs = _outputs(pairs, suffix)
    configs = _with_corrections(config, [name.removesuffix(suffix) for name in outputs], into)
    alone = tuple(tuple(sorted(set(names[k]) - {pair[1 + k] for pair in pairs})) for k in (0, 1))
    roots = [folder.resolve() for folder in (*folders, into)]
    documents = {root / name for _, *both in pairs for root, name in zip(roots, both, strict=False)}
    for path in [into] if single else sorted(documents & {roots[2] / name for name in outputs}):
        check_output(path, [*documents, *([] if manifest is None else [manifest])])
    done = _Done()
    if single:
        _into_file(model, folders, pairs, str(output), kind, configs, done)
    else:
        _into_folder(model, folders, list(zip(pairs, outputs, configs, strict=True)), into, kind, done)
    result = AlignedDocuments(
        tuple(done.pairs),
        alone,  # type: ignore[arg-type]
        str(output),
        done.kept,
        time.monotonic() - begun,
        done.left_out.counts,
        done.near.share,
    )
    if not single:
        result.write(into / _TABLE)
        (into / _STATE).unlink(missing_ok=True)
    return result


Named = tuple[float | None, str, str]  # score, and the names of two documents


def _pairs(
    model: AnyModel,
    folders: tuple[Path, Path],
    pairing: str,
    manifest: str | Path | None,
    config: AlignConfig,
) -> tuple[list[Named], list[list[str]]]:
    names = [_documents(folder) for folder in folders]
    if manifest is not None:
        return list(_listed(manifest, folders)), names
    if _BY_NAMES[pairing]:
        counts = [Counter(map(_key, one)) for one in names]
        several = {key for count in counts for key, times in count.items() if times > 1}
        keys = [{_key(name, _key(name) in several): name for name in reversed(one)} for one in names]
        return [(None, keys[0][key], keys[1][key]) for key in sorted(keys[0]) if key in keys[1]], names
    texts = []
    for k, (folder, own) in enumerate(zip(folders, names, strict=True)):
        language = base_language(config.languages[k]) if len(config.languages) == 2 else ""
        texts.append([read_side(folder / name, language, config.split)[0] for name in own])
    found = pair_documents(model, *texts)
    return sorted(((score, names[0][a], names[1][b]) for score, a, b in found), key=lambda pair: pair[1]), names


def _documents(folder: Path) -> list[str]:
    if not folder.is_dir():
        raise InputError(folder, "no folder", "give a folder of documents, or two files")
    found = [path for path in folder.rglob("*") if path.is_file()]
    names = [path.relative_to(folder) for path in found]
    return sorted(name.as_posix() for name in names if not any(part.startswith(".") for part in name.parts))


_OLD_CODES = ("chi", "ger")  # ISO 639-2/B, from the English names


def _key(name: str, fine: bool = False) -> str:
    """Return a name without languages and suffixes: ``a/news.en.txt`` and ``a/news_de.html`` become ``a/news``.

    ``fine`` removes only the last suffix: ``news.v1.en.txt`` becomes ``news.v1``.
    """
    bare = without_packing(name).as_posix() if fine else name
    bare = re.sub(r"\.[a-z]+\d?$" if fine else r"(?:\.[a-z]+\d?)+$", "", bare, flags=re.IGNORECASE)
    codes = "|".join([*(code for one in LANGUAGES.values() for code in one.codes), *_OLD_CODES])
    end = "(?=[._-]|$)" if fine else "$"
    return re.sub(rf"(?:[._-](?:{codes})){end}|^(?:{codes})[._-]", "", bare, flags=re.IGNORECASE).lower()


def _outputs(pairs: list[Named], suffix: str) -> list[str]:
    """Name a file for each pair, by the shortest unambiguous part of its source's name."""
    columns = [
        [f"{name}{suffix}" for name in column]
        for column in (
            [_key(source) for _, source, _ in pairs],
            [_key(source, True) for _, source, _ in pairs],
            [source for _, source, _ in pairs],
            [f"{source}-{target.replace('/', '-')}" for _, source, target in pairs],
        )
    ]
    counts, taken = [Counter(column) for column in columns], {_TABLE}
    names: list[str] = []
    for choices in zip(*columns, strict=True):
        free = (name for name, count in zip(choices, counts, strict=True) if count[name] == 1 and name not in taken)
        name = next(free, choices[-1])
        while name in taken:
            name = f"{name.removesuffix(suffix)}_{suffix}"
        taken.add(name)
        names.append(name)
    return names


def _listed(manifest: str | Path, folders: tuple[Path, Path]) -> Iterator[Named]:
    for number, line in read_lines(manifest):
        if not (line or "").strip():
            continue
        fields = (line or "").split("\t")
        if len(fields) < 2:
            raise InputError(manifest, "no two names with a tab between them", "write source<TAB>target", number)
        names = [Path(field) for field in fields[:2]]
        for folder, name in zip(folders, names, strict=True):
            if name.is_absolute() or ".." in name.parts or not (folder / name).is_file():
                raise InputError(manifest, f"there is no {name} in {folder}", "give names within the folders", number)
        yield None, names[0].as_posix(), names[1].as_posix()


@dataclass
class _Done:
    """Pairs of documents that are aligned, and what the summary says of all."""

    pairs: list[AlignedPair] = field(default_factory=list)
    kept: int = 0
    left_out: Skipped = field(default_factory=Skipped)
    near: NearDuplicates = field(default_factory=among_kept)

    def add(self, found: AlignedTexts, pair: Named, output: str | None) -> list[Any]:
        """Add a pair, and return what `add_earlier` takes in a later run, for a line of JSON."""
        sizes = len(found.source), len(found.target)
        covered = float(np.dot(found.coverage, sizes)) / max(1, sum(sizes))
        row = AlignedPair(pair[1], pair[2], pair[0], *sizes, int(found.is_pair.sum()), round(covered, 4), output)
        self.pairs.append(row)
        self.left_out.update(left_out := found.left_out)
        sketches = self.near.add_pairs(found.texts_at(np.flatnonzero(found.is_pair)[: self.near.room]))
        return [row._asdict(), left_out, sketches.tolist()]

    def add_earlier(self, row: dict[str, Any], left_out: dict[str, int], sketches: list[list[int]]) -> None:
        """Add a pair that an earlier run aligned."""
        self.pairs.append(AlignedPair(**row))
        self.kept += 1
        self.left_out.update(left_out)
        if sketches := sketches[: self.near.room]:
            self.near.add_sketches(np.array(sketches, np.uint64))


def _with_corrections(config: AlignConfig, names: list[str], output: Path) -> list[AlignConfig]:
    """Return the settings of each pair, with the corrections that have the name of its output file."""
    fixed = _corrections("fixed", config.fixed, names, output)
    before = _corrections("uncorrected", config.uncorrected, names, output)
    if before and not fixed:
        raise ConfigError(f"uncorrected={config.uncorrected}: this is what fixed= was made from; give fixed= too")
    before = {name: path for name, path in before.items() if name in fixed}
    return [replace(config, fixed=fixed.get(name), uncorrected=before.get(name)) for name in names]


def _corrections(setting: str, given: Any, names: list[str], output: Path) -> dict[str, Path]:
    """Map names of output files, without suffixes, to the files of a folder of corrections."""
    if given is None:
        return {}
    where = f"{setting}={given}"
    if not isinstance(given, (str, Path)) or not Path(given).is_dir():
        raise ConfigError(f"{where}: for folders of documents, give a folder with a file a pair, like the one of output=")
    if output.is_dir() and output.samefile(given):
        raise ConfigError(f"{where}: this is also output=, and would be overwritten; give another name")
    files: dict[str, Path] = {}
    for name in _documents(Path(given)):
        bare = without_packing(name)
        stem = bare.with_suffix("").as_posix()
        if bare.suffix.lower() not in SUFFIXES or name == _TABLE:
            continue
        if stem not in names:
            hint = f"name files as in output=, for example {names[0]}{SUFFIXES[0]}"
            raise ConfigError(f"{where}: {name} belongs to no pair of documents; {hint}")
        if stem in files:
            raise ConfigError(f"{where}: {name} and {files[stem].name} belong to the same pair; remove one of them")
        files[stem] = Path(given) / name
    if not files:
        raise ConfigError(f"{where}: no file in it with a suffix of {', '.join(SUFFIXES)}; give a folder with corrections")
    return files


def _into_file(
    model: AnyModel,
    folders: tuple[Path, Path],
    pairs: list[Named],
    output: str,
    kind: BeadFormat,
    configs: list[AlignConfig],
    done: _Done,
) -> None:
    if kind in ("docx", "html", "ladder", "jsonl"):
        raise ConfigError(f"format={kind} numbers the lines of one pair of texts: give output=FOLDER")

    def rows(pair: Named, config: AlignConfig) -> Iterator[Written]:
        found = align(model, folders[0] / pair[1], folders[1] / pair[2], config=config)
        done.add(found, pair, None)
        return (bead._replace(before=(f"{pair[1]}:", f"{pair[2]}:")) for bead in found.written())

    with bar("documents", total=len(pairs), unit="pair") as progress:

        def counted() -> Iterator[Iterator[Written]]:
            for pair, config in zip(pairs, configs, strict=True):
                yield rows(pair, config)
                progress.update(1)

        manner = manner_of(configs[0], configs[0].languages, folders[0])
        write_beads(output, kind, chain.from_iterable(counted()), manner)


def _into_folder(
    model: AnyModel,
    folders: tuple[Path, Path],
    plan: list[tuple[Named, str, AlignConfig]],
    into: Path,
    kind: BeadFormat,
    done: _Done,
) -> None:
    """Align each pair into its own file; keep pairs aligned with the same settings by an earlier run."""
    into.mkdir(parents=True, exist_ok=True)
    state, known = into / _STATE, dict[str, list[Any]]()
    for line in state.read_bytes().split(b"\n") if state.is_file() else ():
        with suppress(ValueError):  # a line that a killed run did not end, perhaps within a character
            key, *earlier = json.loads(line)
            known[key] = earlier
    with (
        bar("documents", total=len(plan), unit="pair") as progress,
        state.open("a", encoding="utf-8", errors="backslashreplace") as log,
    ):
        for pair, name, config in plan:
            signature = __version__, model.identity, kind, asdict(replace(config, threads=None))
            read = folders[0] / pair[1], folders[1] / pair[2], config.fixed, config.uncorrected
            key = fingerprint(signature, [file_stamp(path) for path in read if isinstance(path, (str, Path))])
            if key in known and (into / name).is_file():
                done.add_earlier(*known[key])
            else:
                found = align(
                    model, folders[0] / pair[1], folders[1] / pair[2], output=into / name, format=kind, config=config
                )
                log.write("\n" + json.dumps([key, *done.add(found, pair, name)], ensure_ascii=False))
                log.flush()
            keep(state, f"after {len(done.pairs):,} of {len(plan):,} pairs of documents")
            progress.update(1)


def align_files(
    model: AnyModel | str | Path,
    source: str | Path,
    target: str | Path,
    output: str | Path,
    *,
    manifest: str | Path | None = None,
    pairing: Pairing = "names",
    format: BeadFormat = "auto",
    config: AlignConfig | None = None,
    **settings: Unpack[AlignSettings],
) -> AlignedTexts | AlignedDocuments:
    """Align a text with its translation, or the documents of one folder with those of another, and write the beads.

    Args:
        model: the model that encodes sentences, or its name.
        source: text file, a sentence a line, plain or packed, ``-`` for standard input; any document, which is
            split into sentences; or a folder of such files.
        target: its translation, likewise.
        output: file, its format given by its suffix: any pairs, ``.html``, ``.docx`` or ``.ladder``; ``-`` for
            standard output. For folders: a folder, with a file for each pair and ``documents.tsv``, in which a killed run
            resumes; or a single file, with document names before the line numbers.
        manifest: for folders: a file of ``source<TAB>target``, the names of the documents of each pair.
        pairing: for folders: ``names`` (equal except for language codes and suffixes), or ``content`` (any names).
        format: of the output; ``auto`` to go by its name.
        config: settings; see :class:`xswe.alignment.beads.AlignConfig`. For folders, ``fixed`` and ``uncorrected`` are
            folders, with files named as in an output folder, for any of the pairs.
        settings: single fields of ``config``: ``languages``, ``split``, ``fixed``, ``gap``, ``most``, ``min_score``, …

    Raises:
        ConfigError: a setting is unknown or impossible, languages are needed, no documents form a pair, or corrections
            belong to no pair.
        InputError: a file is missing or damaged.
    """
    config = changed(config or AlignConfig(), settings, "align")
    for name, given in (("source", source), ("target", target)):
        file_name(given, name, "texts are aligned by xswe.align(model, source, target)")
    if str(source) == str(target) == "-":
        raise ConfigError("source=- target=-: only one of them can be read from standard input")
    call = "align_files(model, source, target, output)"
    if Path(source).is_dir() or manifest is not None:
        if config.evidence:
            raise ConfigError("evidence= and report= do nothing for folders: leave them out, or align two files")
        folders = Path(source), Path(target)
        return _align_folders(open_model(model, call), folders, output, pairing, manifest, format, config)
    if pairing != "names":
        raise ConfigError("pairing is only for folders and has no effect on two files: leave it out")
    read = (name for name in (source, target, config.fixed, config.uncorrected) if isinstance(name, (str, Path)))
    check_output(output, [str(path) for path in read if str(path) != "-"])
    return align(open_model(model, call), source, target, output=output, format=format, config=config)
