"use strict";
// Two texts in, pairs out: a threshold to move, and the pairs above it as a file.
(() => {
  const { by, el, name } = app;
  const SHOWN = 200;
  let pairs = [];

  const lines = (id) => by(id).value.split(/\r?\n/).map((text) => text.trim()).filter(Boolean);
  const kept = () => { const least = Number(by("threshold").value); return pairs.filter((pair) => pair.score >= least); };

  async function mine() {
    const source = lines("source"), target = lines("target");
    by("mined").hidden = false;
    by("found").textContent = "Searching …";
    by("pairs").replaceChildren();
    await app.trying(by("found"), async () => {
      const answer = await (await app.ask("/mine", { source, target })).json();
      pairs = answer.pairs;
      by("found").textContent = `${xswe.number(pairs.length)} pairs of ${xswe.number(source.length)} and ${xswe.number(target.length)} lines in ${answer.seconds.toFixed(2)} s; ${answer.note}`;
      const slider = by("threshold");
      const scores = pairs.map((pair) => pair.score);
      slider.min = pairs.length ? (Math.floor(1000 * scores.at(-1)) / 1000).toFixed(3) : 0;
      slider.max = pairs.length ? (Math.ceil(1000 * scores[0]) / 1000).toFixed(3) : 1;
      slider.value = answer.threshold === null ? slider.min : answer.threshold;
      choose("source-language", answer.languages[0]);
      choose("target-language", answer.languages[1]);
      draw();
    });
  }

  function choose(id, code) {
    if (code && ![...by(id).options].some((option) => option.value === code)) by(id).append(el("option", { value: code }, name(code)));
    if (code) by(id).value = code;
  }

  function draw() {
    const own = kept();
    by("value").textContent = Number(by("threshold").value).toFixed(3);
    by("kept").textContent = xswe.number(own.length);
    by("of").textContent = `of ${xswe.number(pairs.length)} pairs are kept`;
    // Show the pairs around the cut: the last ones kept, and the first ones dropped.
    const from = Math.max(0, Math.min(own.length - SHOWN / 2, pairs.length - SHOWN));
    const some = pairs.slice(from, from + SHOWN);
    by("pairs").replaceChildren(...some.map((pair, place) => el("li", { class: from + place < own.length ? "pair" : "pair out" },
      el("span", { class: "score" }, pair.score.toFixed(3)),
      el("p", { class: "side" }, el("bdi", { lang: by("source-language").value }, pair.source)),
      el("p", { class: "side" }, el("bdi", { lang: by("target-language").value }, pair.target)))));
    by("rest").textContent = pairs.length > SHOWN ? `Pairs ${xswe.number(from + 1)} to ${xswe.number(from + some.length)} are shown, those around the threshold; saved files have all that are kept.` : "";
  }

  async function load(id, file) {
    if (!file) return;
    if (file.size > app.info.limits.max_bytes / 2) { xswe.say("The file is too large for this page: use python -m xswe mine"); return; }
    by(id).value = await file.text();
    xswe.say(`${file.name}: ${xswe.number(lines(id).length)} lines`);
  }

  app.shown.mine = () => {
    for (const id of ["source-language", "target-language"]) if (!by(id).options.length) {
      by(id).append(...app.info.languages.map((code) => el("option", { value: code }, name(code))));
    }
  };
  by("mining").addEventListener("submit", (event) => { event.preventDefault(); mine(); });
  by("threshold").addEventListener("input", draw);
  for (const id of ["source", "target"]) {
    by(`${id}-language`).addEventListener("change", draw);
    by(id).addEventListener("dragover", (event) => event.preventDefault());
    by(id).addEventListener("drop", (event) => {
      if (!event.dataTransfer.files.length) return;
      event.preventDefault();
      load(id, event.dataTransfer.files[0]);
    });
  }
  document.querySelectorAll("input[type=file]").forEach((input) => input.addEventListener("change", () => load(input.dataset.for, input.files[0])));
  document.querySelectorAll("[data-save]").forEach((button) => button.addEventListener("click", () => {
    const [a, b] = [by("source-language").value, by("target-language").value];
    const units = kept().map((pair) => [
      { language: a, text: pair.source, note: `score ${pair.score}` },
      { language: b, text: pair.target },
    ]);
    app.trying(by("found"), () => app.save(button.dataset.save, units));
  }));
})();
app.trying(app.by("summary"), app.start);
