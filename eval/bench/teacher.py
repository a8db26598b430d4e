"""What the extraction adds to the encoder's own time: its seconds beside the bare forward pass on the same batches.

    python -m eval.bench.teacher tokenizer=FOLDER [model=FOLDER] [sentences=64] [rounds=2] [dtype=bfloat16]
        [batch_tokens=2048] [threads=1] [device=auto] [output=FILE.json]

Without ``model`` the encoder has mGTE's real size and random weights (12 layers of 768, 250,048 rows): no weight changes
how long a pass takes. ``tokenizer`` is a folder with XLM-R's tokenizer, such as eval/experiments/convert_e5.py makes. Both
sides take turns on English and Japanese sentences of the sample corpus; ``ratio`` is the median of the rounds by processor
time, which other work on the machine hardly moves, or by the clock on a graphics card. A round of the extraction tokenises,
encodes, finds the words and sums their states.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import torch
from transformers import AutoTokenizer, GteConfig, GteModel

from eval.counting import frequent_words
from eval.settings import run_script
from xswe.corpus.cards import sample_sentences
from xswe.corpus.contexts import ContextConfig, choose_contexts
from xswe.errors import ConfigError
from xswe.io.files import write_json
from xswe.io.ragged import Texts
from xswe.teacher.protocol import TeacherConfig
from xswe.teacher.transformer import TransformerTeacher, load_teacher, place_of
from xswe.text.tokenizers import pieces_only
from xswe.text.words import WordSplitter, WordUnits, most_frequent
from xswe.training.extract import ExtractConfig, LanguageSample, averaged, sums_by_shard

DEFAULTS: dict[str, Any] = {"tokenizer": "", "model": "", "sentences": 64, "rounds": 2, "dtype": "bfloat16"}
DEFAULTS |= {"batch_tokens": 2048, "threads": 1, "device": "auto", "output": ""}
LANGUAGES = ("en", "ja")


def random_mgte(tokenizer: str, config: TeacherConfig) -> TransformerTeacher:
    """Return an encoder of mGTE-base's size with random weights."""
    before = torch.get_default_dtype()
    torch.manual_seed(0)
    torch.set_default_dtype(getattr(torch, config.dtype))
    try:
        model = GteModel(GteConfig(vocab_size=250_048, pad_token_id=1)).eval().to(place_of(config))
    finally:
        torch.set_default_dtype(before)
    sizes = (model.config.hidden_size, model.config.num_hidden_layers, model.config.max_position_embeddings)
    if sizes[:2] != (768, 12):
        raise ConfigError(f"this version of transformers makes a GteModel of {sizes}: mGTE has 12 layers of 768")
    return TransformerTeacher(config, model, AutoTokenizer.from_pretrained(tokenizer), "cls")


def samples_of(teacher: TransformerTeacher, count: int) -> tuple[WordUnits, list[LanguageSample]]:
    """Return the words of the first sentences of the sample corpus, and what the extraction takes of them."""
    texts = {code: column for code, column in sample_sentences(count).items() if code in LANGUAGES}
    pieces = pieces_only(teacher.tokenizer)
    splitter = WordSplitter(LANGUAGES, {"ja": "teacher"}, pieces)
    counts = {code: frequent_words(column, splitter, 10_000) for code, column in texts.items()}
    units = WordUnits(most_frequent(counts, dict.fromkeys(LANGUAGES, 10_000)), splitter, pieces)
    samples = []
    for code, column in texts.items():
        exact = units.exact.bags(column)
        contexts = choose_contexts(units.bags(column), len(units), ContextConfig(), exact=exact)
        chosen = [column[row] for row in contexts.sentences]
        samples.append(LanguageSample(code, Texts.of(chosen), contexts, exact.counts(len(units))))
    return units, samples


def bare_pass(teacher: TransformerTeacher, tokenizer: Any, samples: list[LanguageSample]) -> Callable[[], None]:
    """Return the forward passes over the same batches, tokenised and put on the device beforehand."""
    batches = []
    for sample in samples:
        for rows in teacher.batches(sample.texts):
            texts = [(teacher.config.prompt or "") + sample.texts[row] for row in rows]
            packed = tokenizer(texts, padding=True, truncation=True, max_length=512, return_tensors="pt")
            batches.append(packed.to(teacher.model.device))

    def run() -> None:
        with torch.inference_mode():
            for packed in batches:
                teacher.model(**packed)
        if teacher.model.device.type == "cuda":
            torch.cuda.synchronize()

    return run


def seconds(run: Callable[[], Any]) -> tuple[float, float]:
    """Time one call: seconds of the clock, and of all processors."""
    start = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - start[0], time.process_time() - start[1]


def main(settings: dict[str, Any]) -> None:
    """Measure, tell, write."""
    if not (settings["model"] or settings["tokenizer"]):
        raise ConfigError(
            "tokenizer= is missing: give a folder with XLM-R's tokenizer, or model= for an encoder of your own"
        )
    config = TeacherConfig(
        settings["model"] or "random mGTE",
        prompt=None if settings["model"] else "",
        dtype=settings["dtype"],
        batch_tokens=settings["batch_tokens"],
        threads=settings["threads"],
        device=settings["device"],
    )
    teacher = load_teacher(config) if settings["model"] else random_mgte(settings["tokenizer"], config)
    torch.set_num_threads(settings["threads"])
    units, samples = samples_of(teacher, settings["sentences"])
    bare = bare_pass(teacher, AutoTokenizer.from_pretrained(settings["tokenizer"] or settings["model"]), samples)

    def extraction() -> None:
        with TemporaryDirectory() as folder:
            what = teacher, units, samples, ExtractConfig(isolated=False)
            averaged(*what, sums_by_shard(*what, Path(folder)))

    bare(), extraction()  # every shape of a batch is compiled once, on both sides
    rounds = [(seconds(bare), seconds(extraction)) for _ in range(settings["rounds"])]
    count = sum(len(sample.texts) for sample in samples)
    place = teacher.model.device.type
    by_clock, by_processor = ([round(a[at] / b[at], 3) for a, b in rounds] for at in range(2))
    found = {
        "model": Path(config.model).name,
        "dtype": config.dtype,
        "batch_tokens": config.batch_tokens,
        "threads": config.threads,
        "device": place,
        "parameters": sum(p.numel() for p in teacher.model.parameters()),
        "sentences": count,
        "rounds": len(rounds),
        "ratio": round(median(by_processor if place == "cpu" else by_clock), 3),
        "ratio_by_round": by_clock,
        "processor_ratio_by_round": by_processor,
        "sentences_per_second": round(count / median(b for _, (b, _) in rounds), 1),
    }
    print(json.dumps(found, indent=1))
    if settings["output"]:
        write_json(settings["output"], found)


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
