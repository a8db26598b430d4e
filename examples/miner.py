"""A miner's day: two messy files of sentences become a clean translation memory."""

from pathlib import Path

import xswe

model = xswe.load("mini")

# Two crawls: half of the sentences of each have no translation in the other, and menus stand among them.
sample = Path(__file__).parents[1] / "corpora" / "sample" / "sentences.tsv"
rows = [line.split("\t") for line in sample.read_text(encoding="utf-8").splitlines()]
menu = ["Home | Contact | Imprint", "https://example.org/?p=1", "", "© 2026 Example Ltd."] * 20
english, german = [row[0] for row in rows[:800]] + menu, [row[1] for row in rows[1199:399:-1]] + menu
Path("crawl.en.txt").write_text("\r\n".join(english), encoding="utf-8")
Path("crawl.de.txt").write_text("\n".join(german), encoding="utf-8")

mined = xswe.mine(model, "crawl.en.txt", "crawl.de.txt", output="mined.tsv")
print(mined)
for pair in list(mined)[:2] + list(mined)[-2:]:
    print(f"  {pair.score:.2f}  {pair.source}  |  {pair.target}")

# What was mined, and a memory that somebody else has kept, with faults of its own.
faults = [
    "Is this a test?\tIs this a test?",
    "12 chairs\t21 Stühle",
    "No.\tDas ist ein viel zu langer Satz für ein kurzes Nein.",
]
pairs = [f"{pair.source}\t{pair.target}" for pair in mined] + faults
pairs += [f"{rows[k][0]}\t{rows[k + 1][1]}" for k in range(1300, 1400)]  # one line off
Path("memory.tsv").write_text("\n".join(pairs) + "\n", encoding="utf-8")

judged = xswe.filter(
    model, "memory.tsv", "clean.tmx", rejects="rejects.tsv", languages=["en", "de"], numbers=True, precision=0.95
)
print(judged.counts, judged.threshold.sentence(), sep="\n")
rejects = [line.split("\t") for line in Path("rejects.tsv").read_text(encoding="utf-8").splitlines()]
for reject in {reject[0]: reject for reject in rejects}.values():  # the last of each reason
    print(f"  {reject[0]:<14} {reject[1][:5]:>5}  {reject[2]}  |  {reject[3]}")
print(Path("clean.tmx").read_text(encoding="utf-8").count("<tu>"), "units in clean.tmx")
