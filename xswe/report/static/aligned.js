// The page of aligned texts: marks of pairs, which become a file of corrections.
(() => {
  const { data, store, say, download, copy } = xswe;
  const pairs = [...document.querySelectorAll("li.pair")];
  if (!data || !pairs.length) return;
  const byId = (id) => document.getElementById(id);
  const key = `xswe-corrections-${data.id}`;
  let marks = {};
  try { marks = JSON.parse(store.get(key) || "{}"); } catch { marks = {}; }

  function draw() {
    for (const pair of pairs) {
      const mark = marks[pair.dataset.row] || "";
      pair.dataset.marked = mark;
      for (const button of pair.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.dataset.mark === mark));
    }
    const count = Object.keys(marks).length;
    byId("marked").textContent = count ? `${count} of ${pairs.length} marked` : "";
  }
  function mark(pair, what) {
    if (!data.rungs[pair.dataset.place][what]) { say(what === "split" ? "One line on either side: nothing to split" : "These cannot be merged"); return false; }
    const row = pair.dataset.row;
    if (marks[row] === what) delete marks[row]; else marks[row] = what;
    store.set(key, JSON.stringify(marks));
    draw();
    return true;
  }
  let current = 0;
  function go(k, focus = true) {
    for (const pair of pairs) pair.tabIndex = -1;
    current = Math.min(Math.max(k, 0), pairs.length - 1);
    pairs[current].tabIndex = 0;
    if (focus) pairs[current].focus();
  }
  document.addEventListener("keydown", (event) => {
    const pair = event.target.closest && event.target.closest("li.pair");
    if (!pair || event.ctrlKey || event.metaKey || event.altKey) return;
    const k = pairs.indexOf(pair), what = { 1: "right", 2: "wrong", 3: "merge", 4: "split" }[event.key];
    if (what) { if (mark(pair, what) && marks[pair.dataset.row]) go(k + 1); }
    else if (event.key === "ArrowDown" || event.key === "j") go(k + 1);
    else if (event.key === "ArrowUp" || event.key === "k") go(k - 1);
    else return;
    event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("li.pair button");
    if (button) mark(button.closest("li.pair"), button.dataset.mark);
  });

  // A pair that is merged speaks for the pairs within it; of two merges that overlap, the first counts.
  const lines = (begin, end) => `[${Array.from({ length: end - begin }, (_, k) => begin + k).join(",")}]`;
  const overlap = (a, b) => (a[0] < b[1] && b[0] < a[1]) || (a[2] < b[3] && b[2] < a[3]);
  function ladder() {
    const said = pairs.filter((pair) => marks[pair.dataset.row])
      .map((pair) => [marks[pair.dataset.row], data.rungs[pair.dataset.place][marks[pair.dataset.row]]])
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
    if (left) say(`Saved; ${left} marks are within pairs that are merged`);
  });
  byId("copy-fixed").addEventListener("click", () => copy(byId("fixed").textContent));
  byId("forget").addEventListener("click", () => { marks = {}; store.set(key, "{}"); draw(); say("The marks are forgotten"); });
  go(0, false);
  draw();
})();
