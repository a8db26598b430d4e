// The page of pairs: marks give gold pairs and precisions.
(() => {
  const { data, say, download, oneLine, cell, number, interval } = xswe;
  if (!data) return;
  const byId = (id) => document.getElementById(id);
  const percent = (share) => `${(100 * share).toFixed(share > 0.995 || share < 0.005 ? 1 : 0)} %`;
  const pairs = [...document.querySelectorAll("li.pair")];

  const textsOf = (pair) => [...pair.querySelectorAll(".side")].map((side) => oneLine(side.textContent));

  function shown(marks) {
    const body = document.querySelector("#precision tbody");
    body.replaceChildren();
    let weighted = 0, variance = 0, weight = 0, judged = 0, found = 0, whole = true;
    document.querySelectorAll("details.group").forEach((fold) => {
      const group = data.groups[Number(fold.dataset.group)];
      const own = [...fold.querySelectorAll("li.pair")].map((pair) => marks[pair.dataset.row]).filter(Boolean);
      const right = own.filter((mark) => mark === "right").length;
      const all = right + own.filter((mark) => mark === "wrong").length;
      fold.querySelector(".told").textContent = own.length ? `${own.length} marked${all ? `, ${percent(right / all)} right` : ""}` : "";
      row(group.name, group.size, all, right, interval(right, all));
      if (group.kind === "band" && (data.value === null || group.low >= data.value)) {
        if (!all) whole = false;
        else {
          weighted += group.size * (right / all);
          const smooth = (right + 1) / (all + 2);
          variance += group.size ** 2 * smooth * (1 - smooth) / all;
        }
        weight += group.size; judged += all; found += right;
      }
    });
    if (judged && whole) {
      const share = weighted / weight, half = 1.96 * Math.sqrt(variance) / weight;
      row("All kept pairs, bands weighted", weight, judged, found, [Math.max(0, share - half), Math.min(1, share + half)], share);
    }
    function row(name, size, all, right, bounds, share) {
      const line = document.createElement("tr");
      const cells = [name, number(size), number(all), number(right), all ? percent(share ?? right / all) : "–",
        all ? `${percent(bounds[0])} to ${percent(bounds[1])}` : "–"];
      cells.forEach((text, k) => {
        const cell = document.createElement(k ? "td" : "th");
        if (k) cell.className = "n"; else cell.scope = "row";
        cell.textContent = text;
        line.append(cell);
      });
      body.append(line);
    }
  }
  const marks = xswe.marking(pairs, {
    key: `xswe-marks-${data.id}`,
    keys: { 1: "right", 2: "wrong", 3: "skip" },
    seen: () => pairs.filter((pair) => pair.closest("details").open),
    shown,
  });
  // Highlight linked words together.
  function light(event) {
    document.querySelectorAll(".lit").forEach((word) => word.classList.remove("lit"));
    const word = event.target.closest("[data-l]");
    if (word) word.closest("li.pair").querySelectorAll(`[data-l="${word.dataset.l}"]`).forEach((one) => one.classList.add("lit"));
  }
  document.addEventListener("pointerover", light);
  document.querySelectorAll("details.group").forEach((fold) => fold.addEventListener("toggle", marks.again));

  function marked() {
    const seen = new Set();
    return pairs.filter((pair) => marks.of(pair) && !seen.has(pair.dataset.row) && seen.add(pair.dataset.row));
  }
  byId("gold").addEventListener("click", () => {
    const right = marked().filter((pair) => marks.of(pair) === "right" && !pair.dataset.cut);
    if (!right.length) { say("Mark some pairs as right first"); return; }
    download("gold.tsv", right.map((pair) => `${textsOf(pair).join("\t")}\n`).join(""), "text/tab-separated-values");
  });
  byId("all-marks").addEventListener("click", () => {
    const rows = marked().map((pair) => [marks.of(pair), pair.dataset.score, ...textsOf(pair).map(cell)].join("\t"));
    if (!rows.length) { say("Nothing is marked"); return; }
    download("marks.tsv", ["mark\tscore\tsource\ttarget", ...rows, ""].join("\n"), "text/tab-separated-values");
  });
  byId("clear").addEventListener("click", () => { marks.forget(); say("Marks cleared"); });
  marks.begin();
})();
