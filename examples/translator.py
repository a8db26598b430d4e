"""A translator's evening: a story and its translation become a translation memory, corrected by hand, with its terms."""

from pathlib import Path

import xswe
from xswe.alignment.terms import bilingual_terms

model = xswe.load("mini")
books = Path(__file__).parents[1] / "corpora" / "sample"
story = books / "kiln.en.txt", books / "kiln.de.txt"
how = xswe.types.AlignConfig(languages=("en", "de"), split=True)

beads = xswe.align(model, *story, output="story.tmx", config=how)
print(beads)
for bead in beads:
    if (len(bead.source_lines), len(bead.target_lines)) != (1, 1):
        print(f"  {bead.score:.2f}  {bead.source}  |  {bead.target or '-'}")

# Somebody deletes a unit in a program of translation memories; what is left holds when the story is aligned again.
memory = Path("story.tmx").read_text(encoding="utf-8").splitlines(keepends=True)
Path("corrected.tmx").write_text("".join(line for line in memory if "Nothing helped." not in line), encoding="utf-8")
again = xswe.align(model, *story, fixed="corrected.tmx", config=how)
print(f"{int(again.fixed.sum())} beads held, {len(again.pairs)} in all")

links = xswe.align_words(model, [bead.source for bead in beads.pairs], [bead.target for bead in beads.pairs])
links.write("story.html")
where = next(pair for pair in links if "second chimney on" in pair.source)
start = where.source.index("second chimney")
span = where.counterpart(start, start + len("second chimney"))
print("second chimney =", where.target[slice(*span)] if span else "-")
terms = bilingual_terms(links, ("en", "de"), min_count=3)
terms.write("terms.tbx")
for term in terms:
    print(f"  {term.source} = {term.target} ({term.times})")
