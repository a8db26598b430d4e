// The page of aligned texts: marks of pairs, saved as a file of corrections.
(() => {
  const { data, say, download, copy } = xswe;
  const pairs = [...document.querySelectorAll("li.pair")];
  if (!data || !pairs.length) return;
  const byId = (id) => document.getElementById(id);
  const marks = xswe.marking(pairs, {
    key: `xswe-corrections-${data.id}`,
    keys: { 1: "right", 2: "wrong", 3: "merge", 4: "split" },
    allowed(pair, what) {
      const fits = Boolean(data.rungs[pair.dataset.place][what]);
      if (!fits) say(what === "split" ? "Only one line on each side: nothing to split" : "These cannot be merged");
      return fits;
    },
    shown(marked) {
      const count = Object.keys(marked).length;
      byId("marked").textContent = count ? `${count} of ${pairs.length} marked` : "";
    },
  });

  // A merge overrides the marks of the pairs within it; of two overlapping merges, the first counts.
  const lines = (begin, end) => `[${Array.from({ length: end - begin }, (_, k) => begin + k).join(",")}]`;
  const overlap = (a, b) => (a[0] < b[1] && b[0] < a[1]) || (a[2] < b[3] && b[2] < a[3]);
  function ladder() {
    const said = pairs.filter(marks.of)
      .map((pair) => [marks.of(pair), data.rungs[pair.dataset.place][marks.of(pair)]])
      .filter(([, rung]) => rung)
      .sort((a, b) => (b[0] === "merge") - (a[0] === "merge") || a[1][0][0] - b[1][0][0] || a[1][0][2] - b[1][0][2]);
    const merged = [], out = [];
    let left = 0;
    for (const [what, [span, status]] of said) {
      if (merged.some((other) => overlap(span, other))) { left += 1; continue; }
      if (what === "merge") merged.push(span);
      out.push([span, `${lines(span[0], span[1])}:${lines(span[2], span[3])}${status && ":"}${status}\n`]);
    }
    out.sort((a, b) => a[0][0] - b[0][0] || a[0][2] - b[0][2]);
    return [out.map((one) => one[1]).join(""), left];
  }
  byId("save").addEventListener("click", () => {
    const [text, left] = ladder();
    if (!text) { say("Mark some pairs first"); return; }
    download("corrections.ladder", text, "text/plain");
    if (left) say(`Saved without ${left} marks of merged pairs`);
  });
  byId("copy-fixed").addEventListener("click", () => copy(byId("fixed").textContent));
  byId("forget").addEventListener("click", () => { marks.forget(); say("Marks cleared"); });
  marks.begin();
})();
