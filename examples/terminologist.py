"""A terminologist's day: what does a bitext call the terms of a list, and where?"""

import csv
from collections import Counter
from pathlib import Path

import xswe

model = xswe.load("mini")
sample = Path(__file__).parents[1] / "corpora" / "sample" / "sentences.tsv"
bitext = [line.split("\t")[:2] for line in sample.read_text(encoding="utf-8").splitlines()]
terms = ["train", "station", "bread", "library", "weather", "winter"]

table = []
for term in terms:
    # Only the translations of sentences with the term are searched, so that what is found is what stands there.
    found = [(number, de) for number, (en, de) in enumerate(bitext, 1) if f" {term} " in f" {en.lower().strip('.')} "]
    (hits,) = xswe.find_phrases(model, [term], [german for _, german in found])
    close = [hit for hit in hits if hit.score > 0.6]
    names = Counter(hit.places[0].text for hit in close)
    best = max(close, key=lambda hit: (names[hit.places[0].text], hit.score))
    others = [name for name in names if name != best.places[0].text]
    where = found[best.places[0].passage]
    table.append([term, best.places[0].text, f"{best.score:.2f}", names[best.places[0].text], ", ".join(others), *where])

with open("terms.csv", "w", encoding="utf-8", newline="") as file:
    csv.writer(file).writerows([["term", "translation", "score", "times", "others", "line", "sentence"], *table])
for english, translation, score, times, variants, number, sentence in table:
    print(f"{english:<8} {translation:<12} {score} x{times}  (also: {variants or '-'})  line {number}: {sentence}")
