"use strict";
// Two lists of texts: a matrix of cosines, and for one pair the contribution of each word.
(() => {
  const { by, el } = app;
  const lines = (id) => by(id).value.split("\n").map((text) => text.trim()).filter(Boolean);
  let drawn = "";

  async function compare(pair) {
    const left = lines("left"), right = lines("right");
    app.go({ view: "compare", left: left.join("\n"), right: right.join("\n") });
    drawn = location.search;
    if (!left.length || !right.length) {
      by("matrix").textContent = "";
      by("explained").textContent = "Enter a text on both sides.";
      return;
    }
    await app.trying(by("explained"), async () => {
      const found = await (await app.ask("/compare", { left, right, pair })).json();
      matrix(found, left, right);
      explain(found);
    });
  }

  // The shade of a cell or word: none at zero, full at the largest; negative values have another colour.
  function shade(made, value, most) {
    made.classList.add("shade", value < 0 ? "less" : "adds");
    made.style.setProperty("--share", most ? Math.min(1, Math.abs(value) / most).toFixed(3) : "0");
    return made;
  }

  function matrix({ cosines, pair }, left, right) {
    if (left.length === 1 && right.length === 1) { by("matrix").replaceChildren(); return; }
    const head = el("tr", {}, el("td", {}), ...right.map((text) => el("th", { scope: "col" }, el("bdi", {}, text))));
    const rows = left.map((text, i) => el("tr", {}, el("th", { scope: "row" }, el("bdi", {}, text)), ...right.map((other, j) => {
      const button = el("button", { type: "button", "aria-pressed": String(i === pair[0] && j === pair[1]), title: "What adds to it" }, cosines[i][j].toFixed(2));
      button.addEventListener("click", () => compare([i, j]));
      return shade(el("td", {}, button), cosines[i][j], 1);
    })));
    by("matrix").replaceChildren(el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Cosines" },
      el("table", { class: "matrix" }, el("caption", {}, "Cosines; choose one to see what contributes to it"), el("thead", {}, head), el("tbody", {}, ...rows))));
  }

  function explain({ cosines, pair, left, right, shares, links }) {
    const cosine = cosines[pair[0]][pair[1]];
    const most = Math.max(0.001, ...left.map((word) => Math.abs(word.share)), ...right.map((word) => Math.abs(word.share)));
    const numbers = new Map(links.filter(([i, j]) => shares[i][j] > 0.01).sort((a, b) => shares[b[0]][b[1]] - shares[a[0]][a[1]])
      .map((link, place) => [link.join(), place + 1]));
    const side = (words, at) => el("p", { class: "words" }, ...words.flatMap((word, place) => {
      const own = [...numbers].filter(([link]) => Number(link.split(",")[at]) === place).map(([, number]) => number);
      const made = shade(el("span", { class: "word", title: `${(100 * word.share).toFixed(1)} % points` }, el("bdi", {}, word.text)), word.share, most);
      if (own.length) made.append(el("sub", {}, own.join()));
      return [made, " "];
    }));
    const pairs = shares.flatMap((row, i) => row.map((share, j) => ({ share, i, j }))).sort((a, b) => Math.abs(b.share) - Math.abs(a.share)).slice(0, 8);
    const rows = pairs.map(({ share, i, j }) => el("tr", {},
      el("td", {}, el("bdi", {}, left[i].text)), el("td", {}, el("bdi", {}, right[j].text)), el("td", { class: "n" }, share.toFixed(3))));
    by("explained").replaceChildren(el("section", {},
      el("h2", {}, `Cosine ${cosine.toFixed(3)}`),
      el("p", { class: "note" }, "The darker a word, the more it contributes; linked words have the same number."),
      side(left, 0), side(right, 1),
      el("div", { class: "scroll" }, el("table", {}, el("caption", {}, "The pairs of words that contribute most"),
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Word"), el("th", { scope: "col" }, "Word"), el("th", { scope: "col", class: "n" }, "Adds"))), el("tbody", {}, ...rows)))));
  }

  by("comparing").addEventListener("submit", (event) => { event.preventDefault(); compare([0, 0]); });
  app.shown.compare = () => {
    if (drawn === location.search) return;
    drawn = location.search;
    const asked = new URLSearchParams(location.search);
    if (!asked.get("left") && !asked.get("right")) return;
    by("left").value = asked.get("left") || "";
    by("right").value = asked.get("right") || "";
    compare([0, 0]);
  };
})();
