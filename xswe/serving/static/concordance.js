"use strict";
// The concordance: forms that say a phrase, language by language, with passages, translations, and what was ticked.
(() => {
  const { by, el, marked, names } = app;
  const ticks = new Map(); // what was ticked: a unit of sayings for each
  let running = null, drawn = "";

  const chosen = (id) => [...by(id).querySelectorAll("input:checked")].map((box) => box.value);
  const all = (id) => by(id).querySelectorAll("input").length;

  function boxes(id, values, label) {
    by(id).append(...values.map((value) => el("label", { class: "chip" },
      el("input", { type: "checkbox", value, checked: true }), label(value))));
    by(id).addEventListener("change", () => { if (by("query").value.trim()) search(); });
  }

  function prepare() {
    if (by("languages").querySelector("input")) return;
    const { corpora, passages } = app.info;
    by("closed").hidden = corpora.length > 0;
    by("ask").hidden = corpora.length === 0;
    boxes("languages", Object.keys(passages), (code) => el("span", {}, `${names[code]} `, el("small", {}, xswe.number(passages[code]))));
    if (corpora.length > 1) boxes("corpora", corpora, (name) => el("bdi", {}, name));
  }

  function read() {
    const asked = new URLSearchParams(location.search);
    by("query").value = asked.get("q") || "";
    for (const [id, name] of [["languages", "lang"], ["corpora", "corpus"]]) {
      const wanted = asked.get(name);
      for (const box of by(id).querySelectorAll("input")) box.checked = !wanted || wanted.split("\n").includes(box.value);
    }
  }

  const wanted = (id) => (chosen(id).length === all(id) ? [] : chosen(id));
  const request = (more) => ({ query: by("query").value.trim(), languages: wanted("languages"), corpora: wanted("corpora"), ...more });

  function clear() {
    by("results").replaceChildren();
    by("sentences").replaceChildren();
    by("summary").textContent = "";
  }

  async function search() {
    const asked = request({});
    app.go({ q: asked.query, lang: asked.languages.join("\n"), corpus: asked.corpora.join("\n") });
    drawn = location.search;
    if (running) running.abort();
    clear();
    if (!asked.query) return;
    if (all("languages") && !chosen("languages").length) { by("summary").textContent = "Choose a language."; return; }
    running = new AbortController();
    by("results").setAttribute("aria-busy", "true");
    await app.trying(by("summary"), async () => {
      const found = await (await app.ask("/phrases", asked, running.signal)).json();
      draw(found);
      const near = await (await app.ask("/search", { ...asked, k: 5 }, running.signal)).json();
      drawSentences(near);
    });
    by("results").removeAttribute("aria-busy");
  }

  function draw({ query, variants, seconds }) {
    const codes = [...new Set(variants.map((one) => one.language))];
    by("summary").textContent = variants.length
      ? `${variants.length} forms in ${codes.map((code) => names[code]).join(", ")}, ${seconds.toFixed(2)} s`
      : "Nothing says this. Try another form, or more languages.";
    by("results").replaceChildren(...codes.map((code) => {
      const own = variants.filter((one) => one.language === code);
      return el("section", { class: "language" }, el("h2", {}, names[code]), ...own.map((one, place) => variant(query, one, place === 0)));
    }));
  }

  function variant(query, one, open) {
    const name = `${one.language} ${one.text}`;
    const count = `${xswe.number(one.count)}${one.more ? "+" : ""}`;
    const lines = el("ul", { class: "lines" }, ...one.lines.map((found) => line(found)));
    const term = { language: one.language, text: one.text, context: one.lines.length ? one.lines[0].passage.text : "", note: `score ${one.score}` };
    const fold = el("details", { open },
      el("summary", {},
        el("strong", { lang: one.language }, one.text),
        el("span", { class: "count", title: one.more ? "of the nearest passages" : "in all passages" }, `${count} ×`),
        el("span", { class: "score" }, one.score.toFixed(2)),
        one.forms.length ? el("span", { class: "variants", lang: one.language }, one.forms.slice(0, 6).join(" · ")) : null),
      lines);
    if (one.count > one.lines.length) {
      const more = el("button", { type: "button" }, "More passages");
      more.addEventListener("click", () => app.trying(by("summary"), async () => {
        const asked = { ...request({}), query: one.text, languages: [one.language], k: 1, lines: 200, min_score: 0.9 };
        const found = await (await app.ask("/phrases", asked)).json();
        if (found.variants.length) lines.replaceChildren(...found.variants[0].lines.map((each) => line(each)));
        more.remove();
      }));
      fold.append(more);
    }
    return el("div", { class: "variant" }, tick(name, [term], `Tick the term ${one.text}`, query), fold);
  }

  function tick(name, unit, label, query) {
    const box = el("input", { type: "checkbox", "aria-label": label });
    box.checked = ticks.has(name);
    box.addEventListener("change", () => {
      if (box.checked) ticks.set(name, { unit, query }); else ticks.delete(name);
      count();
    });
    return box;
  }

  function count() {
    by("ticks").textContent = ticks.size;
    by("ticked").hidden = ticks.size === 0;
  }

  const where = (one) => el("span", { class: "where" }, el("bdi", {}, one.corpus), ` ${xswe.number(one.line)}`);

  function line({ passage, translations }) {
    const unit = [passage, ...translations].map(({ language, text }) => ({ language, text, note: "" }));
    unit[0].note = `${passage.corpus} ${passage.line}`;
    return el("li", {},
      tick(`${passage.corpus} ${passage.line}`, unit, "Tick this passage"),
      el("p", { class: "side" }, marked(passage.text, passage.spans, passage.language), " ", where(passage)),
      el("div", { class: "others" }, ...translations.map((other) => el("p", { class: "side" },
        el("span", { class: "code", title: names[other.language] }, other.language), marked(other.text, other.spans, other.language)))));
  }

  function drawSentences({ hits }) {
    if (!hits.length) return;
    by("sentences").replaceChildren(el("section", {}, el("details", {},
      el("summary", {}, el("strong", {}, "Whole sentences nearest to it"), el("span", { class: "count" }, `${hits.length}`)),
      el("ul", { class: "lines" }, ...hits.map((hit) => line(hit))))));
  }

  // Terms of one question are one concept of a term base; in a memory and a table every tick is a unit of its own.
  function units(kind) {
    if (kind !== "tbx") return [...ticks.values()].map(({ unit }) => unit);
    const concepts = new Map();
    for (const { unit, query } of ticks.values()) {
      const name = query || unit[0].note;
      concepts.set(name, [...(concepts.get(name) || []), ...unit]);
    }
    return [...concepts.values()];
  }

  by("ask").addEventListener("submit", (event) => { event.preventDefault(); search(); });
  document.querySelectorAll("[data-export]").forEach((button) => button.addEventListener("click", () => {
    app.trying(by("summary"), () => app.save(button.dataset.export, units(button.dataset.export)));
  }));
  by("untick").addEventListener("click", () => {
    ticks.clear();
    document.querySelectorAll("#concordance .variant input, #concordance .lines input").forEach((box) => { box.checked = false; });
    count();
  });
  app.shown.concordance = () => {
    prepare();
    if (drawn === location.search) return;
    read();
    drawn = location.search;
    if (by("query").value) search(); else clear();
    if (app.info.corpora.length && matchMedia("(hover: hover)").matches) by("query").focus();
  };
})();
