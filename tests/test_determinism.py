"""The same bytes whatever Python's hash seed: nothing may depend on the order of a set."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import hashlib
from collections import Counter
from pathlib import Path
from xswe.text.tokenizers import train_subwords
from xswe.text.words import WordSplitter, most_frequent
from xswe.io.resources import resource

sample = resource("corpora") / "sample" / "sentences.tsv"
rows = [line.split("\\t") for line in sample.read_text(encoding="utf-8").splitlines()]
texts = [row[k] for row in rows[:400] for k in range(4)]
tokenizer = train_subwords(texts, ("en", "de", "zh", "ja"), 2500)
splitter = WordSplitter(("en", "ja"), {"ja": "teacher"}, tokenizer)
words = most_frequent({"en": Counter(word.form for row in rows[:400] for word in splitter(row[0]))}, {"en": 300})
print(hashlib.sha256((tokenizer.to_str() + "|".join(words)).encode()).hexdigest())
"""


def test_vocabularies_do_not_depend_on_the_hash_seed():
    made = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed, "XSWE_PROGRESS": "0"},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(made) == 1
    assert len(made.pop().strip()) == 64
