"""Encoding side by side in one run: this library, model2vec, WordLlama and sentence-transformers.

    python -m eval.bench.encode output=eval/results/bench_encode.json [texts=20000] [rounds=5] [words=150000] [lines=20000]
        [languages=en,de,zh,ja] [lengths=8,20,100] [tokenizer=…/tokenizer.json] [model=…/model]

All encode the same Python strings: sentences of the development data (XSWE_DATA; else of the sample corpus), joined and cut
to 8, 20 and 100 words (2 characters a word in ja and zh). Matrices are random, 256 wide, float32 unless a name says so:

- ``xswe sub-words``: one Unigram vocabulary of 32,000 pieces (``tokenizer=``, else trained on the texts' corpora).
- ``xswe words``: words, case and prefix back-off, Han and Kana cut by that tokenizer; ids scattered over the matrix.
- ``model2vec words``, ``sentence-transformers words``: a WordLevel tokenizer of the same words, in the library's format.
- ``model2vec sub-words``, ``sentence-transformers sub-words``: the first model's folder, opened by the library.
- ``WordLlama``: the 32,000 x 256 model of its wheel.

Each thread count is a process of its own, which tells every library's pools about it. Rounds are interleaved and medians
quoted; a ratio is to the fastest peer of the same text and threads. The floor is the pooling of ready ids alone.
``model=`` adds the accuracy of a real model in each precision. Run it on an idle machine.
"""

from __future__ import annotations

import json
import operator
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from eval.report.encode_tables import fastest_peer, lay_out
from eval.settings import DATA, pairs_of, run_script
from xswe.corpus.cards import sample_sentences
from xswe.io.files import write_json
from xswe.io.parallel import available_threads

LANGUAGES = ("en", "de", "zh", "ja")
WIDTH = 256
DEFAULTS: dict[str, Any] = {"output": "", "texts": 20_000, "rounds": 5, "words": 150_000, "lines": 20_000}
DEFAULTS |= {"languages": ",".join(LANGUAGES), "lengths": "8,20,100", "tokenizer": "", "model": ""}


def read_corpora(lines: int) -> dict[str, list[str]]:
    """Sentences by language, equally many of each corpus."""
    out: dict[str, list[str]] = {code: [] for code in LANGUAGES}
    for other in LANGUAGES[1:]:
        files = sorted((DATA / "train" / f"en-{other}").glob("*.gz"))
        for path in files:
            for english, foreign in pairs_of(path, lines // len(files)):
                out["en"].append(english)
                out[other].append(foreign)
    if not out["de"]:
        return sample_sentences()
    return out


def cut_texts(sentences: list[str], code: str, length: int, count: int) -> list[str]:
    """Make texts of one length; where the corpus ends it starts again."""
    spaced = code in ("en", "de")
    stream: list[str] = [part for text in sentences for part in (text.split() if spaced else text)]
    size = length if spaced else 2 * length
    starts = [size * k % max(1, len(stream) - size) for k in range(count)]
    return [(" " if spaced else "").join(stream[start : start + size]) for start in starts]


def build(folder: Path, corpora: dict[str, list[str]], settings: dict[str, Any]) -> None:
    """Write the models of all libraries."""
    import model2vec
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    from eval.counting import frequent_words
    from xswe.model.static import StaticModel as Model
    from xswe.text.subwords import SubwordUnits
    from xswe.text.tokenizers import load_tokenizer, train_subwords
    from xswe.text.words import WordSplitter, WordUnits, most_frequent

    generator = np.random.default_rng(0)

    def matrix(rows: int) -> np.ndarray:
        return generator.normal(0, 0.05, (rows, WIDTH)).astype(np.float32)

    everything = [text for texts in corpora.values() for text in texts]
    trained = settings["tokenizer"]
    pieces = load_tokenizer(Path(trained)) if trained else train_subwords(everything, LANGUAGES, 32_000)
    units = SubwordUnits(pieces, "subwords", LANGUAGES)
    Model(units, matrix(len(units))).save(folder / "sub-words")
    for name, segmenters in (("words", {"zh": "teacher", "ja": "teacher"}), ("bare", {"zh": "jieba", "ja": "fugashi"})):
        splitter = WordSplitter(LANGUAGES, segmenters, pieces)
        counts = {code: frequent_words(texts, splitter, settings["words"]) for code, texts in corpora.items()}
        found = most_frequent(counts, dict.fromkeys(counts, settings["words"]))[: settings["words"]]
        words = found + [f"neverseen{i}" for i in range(settings["words"] - len(found))]
        words = [words[i] for i in generator.permutation(len(words))]
        model = Model(WordUnits(words, splitter, pieces), matrix(len(words)))
        model.save(folder / name)
        for dtype in ("float16", "int8"):
            if name == "words":
                model.save(folder / f"words {dtype}", dtype=dtype)
        if name == "bare":
            continue
        level = Tokenizer(models.WordLevel({word: i for i, word in enumerate([*words, "[UNK]"])}, unk_token="[UNK]"))
        level.normalizer = normalizers.BertNormalizer(lowercase=False)
        level.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        vectors = matrix(len(words) + 1)
        model2vec.StaticModel(vectors, level, normalize=True).save_pretrained(folder / "model2vec words")
        static = StaticEmbedding(level, embedding_weights=torch.from_numpy(vectors))
        SentenceTransformer(modules=[static, Normalize()], device="cpu").save(str(folder / "sentence-transformers words"))


# Each system as the code that a user would write: what loads it, and what encodes the list ``texts``.
def systems(folder: Path, threads: int) -> dict[str, tuple[str, str]]:
    """Loading and encoding code by name."""
    ours = ("import xswe; model = xswe.load({!r})", f"model.encode(texts, threads={threads})")
    theirs = (
        "from model2vec import StaticModel; model = StaticModel.from_pretrained({!r})",
        f"model.encode(texts, max_length=None, use_multiprocessing={threads > 1})",
    )
    sentence = (
        f"import torch; torch.set_num_threads({threads}); from sentence_transformers import SentenceTransformer; "
        "model = SentenceTransformer({!r}, device='cpu')",
        "model.encode(texts, batch_size=BATCH, show_progress_bar=False)",
    )
    llama = (
        "import wordllama, os; from wordllama import WordLlama; "
        "model = WordLlama.load(cache_dir=os.path.dirname(wordllama.__file__), disable_download=True)",
        "model.embed(texts, norm=True, batch_size=BATCH)",
    )
    made = {
        "xswe sub-words": (ours, "sub-words"),
        "xswe words": (ours, "words"),
        "xswe words float16": (ours, "words float16"),
        "xswe words int8": (ours, "words int8"),
        "model2vec words": (theirs, "model2vec words"),
        "model2vec sub-words": (theirs, "sub-words"),
        "sentence-transformers words": (sentence, "sentence-transformers words"),
        "sentence-transformers sub-words": (sentence, "sub-words"),
        "WordLlama": (llama, ""),
    }
    return {name: (code[0].format(str(folder / where)), code[1]) for name, (code, where) in made.items()}


def timed(function: Callable[[], Any], at_least: float = 0.2) -> float:
    """Seconds a call, over as many calls as take ``at_least`` seconds."""
    begun, calls = time.perf_counter(), 0
    while not calls or time.perf_counter() - begun < at_least:
        function()
        calls += 1
    return (time.perf_counter() - begun) / calls


def rounds_of(functions: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Median seconds a call of each, rounds interleaved, after one call to warm up."""
    for function in functions.values():
        function()
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            times[name].append(timed(function))
    return {name: statistics.median(found) for name, found in times.items()}


def best_batch(code: str, scope: dict[str, Any]) -> str:
    """Settle ``BATCH`` in a line of code: the fastest of a few on some of the texts."""
    if "BATCH" not in code:
        return code
    choices = [code.replace("BATCH", str(size)) for size in (32, 256, 2048)]
    some = {**scope, "texts": scope["texts"][:2048]}
    return min(choices, key=lambda choice: timed(lambda: eval(choice, some)))


def worker(folder: Path, threads: int, settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Measure all systems with so many threads; one row a language and length."""
    corpora = json.loads((folder / "corpora.json").read_text())
    scopes: dict[str, dict[str, Any]] = {}
    for name, (load, _) in systems(folder, threads).items():
        scopes[name] = {}
        exec(load, scopes[name])
        if name.startswith("xswe"):
            scopes[name]["model"].encode(["warm up"] * 50_000)  # enough for the compiled code to be loaded
    rows = []
    for code in settings["languages"].split(","):
        for length in map(int, settings["lengths"].split(",")):
            count = max(64, settings["texts"] * 20 // max(20, length))
            texts = cut_texts(corpora[code], code, length, count)
            functions = {}
            for name, (_, encode) in systems(folder, threads).items():
                scopes[name]["texts"] = texts
                line = compile(best_batch(encode, scopes[name]), name, "eval")
                functions[name] = lambda line=line, scope=scopes[name]: eval(line, scope)
            seconds = rounds_of(functions, settings["rounds"])
            row = {"language": code, "words": length, "threads": threads, "texts": count}
            row["rates"] = {name: count / found for name, found in seconds.items()}
            row["profile"] = profile({n: s["model"] for n, s in scopes.items() if n.startswith("xswe")}, texts, threads)
            rows.append(row)
            print(f"{code} {length} words, {threads} threads: " + show(row), file=sys.stderr)
    return rows


def profile(models: dict[str, Any], texts: list[str], threads: int) -> dict[str, dict[str, float]]:
    """Microseconds a text of each part of our encoding: packing, look-up, gathering; on one thread, except the floor."""
    from xswe.io.ragged import Texts
    from xswe.model.static import pool

    out = {}
    for name, model in models.items():
        packed, bags, room = Texts.of(texts), model.units.bags(texts), np.empty((len(texts), model.dim), np.float32)
        gather = {"normalise": True, "out": room, "scales": model.scales}
        parts = {
            "packing": lambda: Texts.of(texts),
            "look-up": lambda model=model, packed=packed: model.units.bags(packed),
            "gather": lambda model=model, bags=bags, gather=gather: pool(model.matrix, bags, **gather),
            "floor": lambda model=model, bags=bags, gather=gather: pool(model.matrix, bags, threads=threads, **gather),
        }
        out[name] = {part: 1e6 * seconds / len(texts) for part, seconds in rounds_of(parts, 3).items()}
        out[name]["units"] = float(bags.lengths.mean())
    return out


def segmentation(folder: Path, settings: dict[str, Any]) -> dict[str, float]:
    """Our look-up with fugashi and jieba against the bare libraries, seconds a call on texts not seen before."""
    import fugashi
    import jieba
    import unidic_lite

    import xswe
    from xswe.io.ragged import Texts
    from xswe.text.scripts import has_kana

    corpora = json.loads((folder / "corpora.json").read_text())
    model = xswe.load(folder / "bare")
    jieba.setLogLevel("WARNING")
    chinese = jieba.Tokenizer()
    chinese.initialize()
    tagger = fugashi.GenericTagger(f'-Owakati -r "{unidic_lite.DICDIR}/mecabrc" -d "{unidic_lite.DICDIR}"')
    ratios: dict[str, float] = {}
    for code, bare in (("ja", lambda text: tagger.parse(text).split()), ("zh", chinese.lcut)):
        texts = corpora[code]
        if code == "ja":  # without Kana a text of this model's languages is Chinese, and goes to jieba
            texts = list(filter(has_kana, texts))
        half = len(texts) // 2
        model.units._fast = None
        ways = {
            "bare": lambda part, bare=bare: list(map(bare, part)),
            "ours": lambda part: model.units.bags(Texts.of(part)),
        }
        ways["bare"](texts[half:])
        for _ in range(3):  # compile, and warm up
            ways["ours"](texts[half:] * (1 + 300_000 // max(1, sum(map(len, texts[half:])))))
        found: dict[str, list[float]] = {"ours": [], "bare": []}
        step = max(1, half // (4 * settings["rounds"]))
        for n, k in enumerate(range(0, half - step + 1, step)):  # each text once: no cache that a stream would not fill
            part = texts[k : k + step]
            for name in ("bare", "ours") if n % 2 else ("ours", "bare"):  # the second one finds the dictionary warm
                found[name].append(timed(lambda way=ways[name], part=part: way(part), 0))
        ratios[f"{code}: ours / bare"] = statistics.median(map(operator.truediv, found["ours"], found["bare"]))
        ratios[f"{code}: bare, sentences/s"] = step / statistics.median(found["bare"])
    return ratios


def in_processes(folder: Path, settings: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Cold start (process start to first vector, seconds) and peak memory (MB, with all texts) of each system."""
    texts = folder / "texts.json"
    corpora = json.loads((folder / "corpora.json").read_text())
    texts.write_text(json.dumps(cut_texts(corpora["en"], "en", 20, settings["texts"])))
    once = "{load}\ntexts = ['A cat sleeps.']\n{encode}"
    many = (
        "import json, re\n{load}\ntexts = json.load(open({texts!r}))\n{encode}\n"
        "print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])"  # getrusage would count the parent's
    )
    out: dict[str, dict[str, list[float]]] = {}
    for _ in range(1 + settings["rounds"]):  # the first compiles, and fills the disk's cache
        for name, (load, encode) in systems(folder, 1).items():
            code = {"load": load, "encode": encode.replace("BATCH", "256"), "texts": str(texts)}
            begun = time.perf_counter()
            subprocess.run([sys.executable, "-c", once.format(**code)], check=True, env=environment(1), capture_output=True)
            seconds = time.perf_counter() - begun
            done = subprocess.run(
                [sys.executable, "-c", many.format(**code)], check=True, env=environment(1), capture_output=True, text=True
            )
            found = out.setdefault(name, {"cold start": [], "peak": []})
            found["cold start"].append(seconds)
            found["peak"].append(int(done.stdout.split()[-1]) / 1024)
    return {name: {what: statistics.median(v[1:]) for what, v in found.items()} for name, found in out.items()}


def precisions(path: str) -> list[dict[str, Any]]:
    """Accuracy on Tatoeba of a model in each precision, and its size on the disk."""
    import xswe
    from xswe.evaluation.encoders import StaticEncoder
    from xswe.evaluation.mteb_bridge import run_task
    from xswe.model.precision import PRECISIONS

    root = DATA / "mteb-local"
    rows = []
    for dtype in PRECISIONS:
        with tempfile.TemporaryDirectory() as folder:
            xswe.load(path).save(Path(folder) / "model", dtype=dtype)  # type: ignore[arg-type]
            size = (Path(folder) / "model" / "model.safetensors").stat().st_size
            encoder = StaticEncoder(xswe.load(Path(folder) / "model"), f"{dtype}")
            found = run_task(encoder, "tatoeba", root, Path(folder) / "mteb")
        scores = {f"{row.subset} {row.metric}": row.value for row in found if row.metric in ("accuracy", "margin_accuracy")}
        rows.append({"dtype": dtype, "MB": size / 1e6, **scores})
    return rows


def environment(threads: int) -> dict[str, str]:
    """The environment that keeps every library to so many threads."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS", "LOKY_MAX_CPU_COUNT")
    switches = {"TOKENIZERS_PARALLELISM": "true" if threads > 1 else "false", "HF_HUB_OFFLINE": "1", "XSWE_PROGRESS": "0"}
    return {**os.environ, **dict.fromkeys(names, str(threads)), **switches}


def show(row: dict[str, Any]) -> str:
    """One line of a row."""
    peer = fastest_peer(row)
    return ", ".join(f"{name} {rate:,.0f} (x{rate / peer:.1f})" for name, rate in row["rates"].items())


def main(settings: dict[str, Any]) -> None:
    """Measure, print and write."""
    corpora = read_corpora(settings["lines"])
    machine = f"{platform.machine()}, {available_threads()} processors, Python {platform.python_version()}"
    kept = {name: value for name, value in settings.items() if name != "output"}
    report: dict[str, Any] = {"machine": machine, "settings": kept, "rows": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "corpora.json").write_text(json.dumps(corpora))
        build(folder, corpora, settings)
        for threads in sorted({1, available_threads()}):
            command = [sys.executable, "-m", "eval.bench.encode", f"worker={folder}", f"threads={threads}"]
            command.append(f"settings={json.dumps(settings)}")
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment(threads))
            report["rows"] += json.loads(re.findall(r"^\[.*\]$", done.stdout, re.M)[-1])
        report["segmentation"] = segmentation(folder, settings)
        report["processes"] = in_processes(folder, settings)
    report["precisions"] = precisions(settings["model"]) if settings["model"] else []
    print(lay_out(report))
    if settings["output"]:
        write_json(Path(settings["output"]), report)


if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1].startswith("worker="):
        folder, threads, given = (word.split("=", 1)[1] for word in sys.argv[1:])
        print(json.dumps(worker(Path(folder), int(threads), json.loads(given))))
    else:
        run_script(main, DEFAULTS, __doc__)
