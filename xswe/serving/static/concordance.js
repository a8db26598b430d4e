"use strict";
// The concordance: the forms of a phrase by language, with passages, translations, and ticks.
(() => {
  const { by, el, marked, name } = app;
  const ticks = new Map(); // for each tick, the texts of its unit
  let running = null, drawn = "", last = null;
  const CONTEXT = 80; // characters on each side of a keyword
  const CHOICES = ["match", "from", "lines", "sort"]; // menus whose values are in the address
  const PASSAGES = { "": 5, exact: 40, fuzzy: 10 }; // requested per form at first; translations are counted in these

  const chosen = (id) => [...by(id).querySelectorAll("input:checked")].map((box) => box.value);
  const percent = (part, all) => `${Math.round((100 * part) / all)}\u00a0%`;
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
    boxes("languages", Object.keys(passages), (code) => el("span", {}, `${name(code)} `, el("small", {}, xswe.number(passages[code]))));
    by("from").append(...Object.keys(passages).map((code) => el("option", { value: code }, name(code))));
    if (corpora.length > 1) boxes("corpora", corpora, (name) => el("bdi", {}, name));
  }

  function read() {
    const asked = new URLSearchParams(location.search);
    by("query").value = asked.get("q") || "";
    for (const id of CHOICES) {
      const value = asked.get(id) || "";
      by(id).value = [...by(id).options].some((one) => one.value === value) ? value : "";
    }
    for (const [id, name] of [["languages", "lang"], ["corpora", "corpus"]]) {
      const wanted = asked.get(name);
      for (const box of by(id).querySelectorAll("input")) box.checked = !wanted || wanted.split("\n").includes(box.value);
    }
  }

  const wanted = (id) => (chosen(id).length === all(id) ? [] : chosen(id));
  // With a language in "From", search the others; but a string is searched in its own language.
  function targets() {
    const from = by("from").value;
    if (!from) return wanted("languages");
    return by("match").value ? [from] : chosen("languages").filter((code) => code !== from);
  }
  function request(more) {
    const match = by("match").value;
    const asked = { query: by("query").value.trim(), languages: targets(), corpora: wanted("corpora"), lines: PASSAGES[match] };
    return { ...asked, match: match || "meaning", ...more };
  }

  function remember() {
    const asked = Object.fromEntries(CHOICES.map((id) => [id, by(id).value]));
    app.go({ q: by("query").value.trim(), lang: wanted("languages").join("\n"), corpus: wanted("corpora").join("\n"), ...asked });
    drawn = location.search;
  }

  function clear() {
    last = null;
    by("results").replaceChildren();
    by("sentences").replaceChildren();
    by("summary").textContent = "";
  }

  async function search() {
    const asked = request({});
    remember();
    if (running) running.abort();
    clear();
    if (!asked.query) return;
    if (all("languages") && (!chosen("languages").length || (by("from").value && !asked.languages.length))) { by("summary").textContent = "Choose a language."; return; }
    running = new AbortController();
    by("results").setAttribute("aria-busy", "true");
    await app.trying(by("summary"), async () => {
      const found = await (await app.ask("/phrases", asked, running.signal)).json();
      last = [found];
      draw(found);
      const { query, languages, corpora } = asked;
      const near = await (await app.ask("/search", { query, languages, corpora, k: 5 }, running.signal)).json();
      last.push(near);
      drawSentences(near, !found.variants.length);
    });
    by("results").removeAttribute("aria-busy");
  }

  function draw({ query, variants, seconds }) {
    const codes = [...new Set(variants.map((one) => one.language))];
    by("summary").textContent = variants.length
      ? `${variants.length} ${variants.length === 1 ? "form" : "forms"} in ${codes.map((code) => name(code)).join(", ")}, ${seconds.toFixed(2)} s`
      : by("match").value ? "No passage contains this. Find it by meaning, or use * for the rest of a word." : "Nothing found. Try another form, or more languages.";
    by("results").replaceChildren(...codes.map((code) => {
      const own = variants.filter((one) => one.language === code);
      const total = own.reduce((sum, one) => sum + one.count, 0);
      return el("section", { class: "language" }, el("h2", {}, name(code)), ...own.map((one, place) => variant(query, one, total, place === 0)));
    }));
  }

  function variant(query, one, total, open) {
    const name = `${one.language} ${one.text}`;
    const count = `${xswe.number(one.count)}${one.more ? "+" : ""}`;
    const lines = el("ul", { class: "lines" }, ...shown(one.lines));
    const from = by("from").value, said = renderings(one.lines);
    const asked = from && from !== one.language ? [{ language: from, text: query, note: "" }] : [];
    const term = { language: one.language, text: one.text, context: one.lines.length ? one.lines[0].passage.text : "", note: `query ${query}, score ${one.score}` };
    const others = by("match").value ? said.map(({ language, forms: [[text]] }) => ({ language, text, note: "" })) : [];
    const fold = el("details", { open },
      el("summary", {},
        el("strong", { lang: one.language }, one.text),
        el("span", { class: "count", title: !one.more ? "in all passages" : by("match").value ? "at least" : "of the nearest passages" }, `${count}\u00a0×`),
        el("span", { class: "count share", title: "of all forms shown for this language" }, percent(one.count, total)),
        by("match").value === "exact" ? null : el("span", { class: "score" }, one.score.toFixed(2)),
        one.forms.length ? el("span", { class: "variants", lang: one.language }, one.forms.slice(0, 6).join(" · ")) : null),
      by("match").value ? counted(said) : null,
      lines);
    if (one.count > one.lines.length) {
      const more = el("button", { type: "button" }, "More passages");
      more.addEventListener("click", () => app.trying(by("summary"), async () => {
        const asked = request({ query: one.text, languages: [one.language], k: 1, lines: 200, min_score: 0.9 });
        if (asked.match === "fuzzy") asked.match = "exact";
        const found = await (await app.ask("/phrases", asked)).json();
        if (found.variants.length) lines.replaceChildren(...shown(found.variants[0].lines));
        more.remove();
      }));
      fold.append(more);
    }
    return el("div", { class: "variant" }, tick(name, [...asked, term, ...others], `Tick the term ${one.text}`, query), fold);
  }

  // The texts marked in the translations of passages, by language, with their counts, the most frequent first.
  function renderings(lines) {
    const found = new Map();
    for (const { language, text, spans } of lines.flatMap((one) => one.translations)) {
      const own = found.get(language) || { language, total: 0, counts: new Map() };
      found.set(language, own);
      if (!spans.length) continue;
      const [start, end] = spans[0], form = Array.from(text).slice(start, end).join(""), name = form.toLowerCase();
      const known = own.counts.get(name) || [form, 0];
      known[1] += 1;
      own.total += 1;
      own.counts.set(name, known);
    }
    return [...found.values()].filter(({ total }) => total)
      .map(({ language, total, counts }) => ({ language, total, forms: [...counts.values()].sort((a, b) => b[1] - a[1]) }));
  }

  function counted(said) {
    if (!said.length) return null;
    return el("dl", { class: "said-as" }, ...said.flatMap(({ language, total, forms }) => [
      el("dt", { class: "code", title: name(language) }, language),
      el("dd", {}, ...forms.slice(0, 6).map(([text, times]) => el("span", {}, el("bdi", { lang: language }, text),
        el("span", { class: "count" }, ` ${times}\u00a0× ${percent(times, total)}`))),
      el("span", { class: "count" }, total === 1 ? "in 1 passage" : `in ${total} passages`))]));
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

  // The list items of passages, in the chosen order; passages that are the same in all languages are shown once.
  function shown(lines) {
    const folded = new Map();
    for (const found of lines) {
      const name = JSON.stringify([found.passage, ...found.translations].map(({ language, text }) => [language, text.trim()]));
      if (folded.has(name)) folded.get(name).times.push(found.passage); else folded.set(name, { found, times: [found.passage] });
    }
    const rows = [...folded.values()], order = by("sort").value;
    if (order) {
      const keys = new Map(rows.map((row) => [row, context(row.found.passage)[order]]));
      rows.sort((a, b) => keys.get(a).localeCompare(keys.get(b), a.found.passage.language));
    }
    return rows.map(({ found, times }) => (by("lines").value === "kwic" && found.passage.spans.length ? keyword(found, times) : line(found, times)));
  }

  // The text before the first marked span, the nearest word first, and the text after it.
  function context({ text, spans }) {
    const points = Array.from(text), [start, end] = spans.length ? spans[0] : [0, 0];
    const before = points.slice(0, start).join("").trim();
    const words = /\s/.test(before) ? before.split(/\s+/) : Array.from(before);
    return { left: words.reverse().join(" "), right: points.slice(end).join("").trim() };
  }

  function again(times) {
    if (times.length < 2) return null;
    const places = times.map((one) => `${one.corpus} ${xswe.number(one.line)}`).join("\n");
    return el("span", { class: "folded", title: places }, `${times.length} ×`);
  }

  function unitOf({ passage, translations }) {
    const unit = [passage, ...translations].map(({ language, text }) => ({ language, text, note: "" }));
    unit[0].note = `${passage.corpus} ${passage.line}`;
    return unit;
  }

  const tickOf = (found) => tick(`${found.passage.corpus} ${found.passage.line}`, unitOf(found), "Tick this passage");

  function keyword(found, times) {
    const { passage } = found, points = Array.from(passage.text.replace(/\s/g, " ")), [start, end] = passage.spans[0];
    const part = (a, b) => el("bdi", { lang: passage.language }, points.slice(Math.max(0, a), b).join(""));
    return el("li", { class: "kwic", title: found.translations.map((other) => other.text).join("\n") },
      tickOf(found), part(start - CONTEXT, start), el("mark", { lang: passage.language }, points.slice(start, end).join("")),
      part(end, end + CONTEXT), el("span", {}, where(passage), again(times)));
  }

  function line(found, times = []) {
    const { passage } = found, from = by("from").value;
    const others = [...found.translations].sort((a, b) => (b.language === from) - (a.language === from));
    return el("li", {},
      tickOf(found),
      el("p", { class: "side" }, marked(passage.text, passage.spans, passage.language), " ", where(passage), again(times)),
      el("div", { class: "others" }, ...others.map((other) => el("p", { class: "side" },
        el("span", { class: "code", title: name(other.language) }, other.language), marked(other.text, other.spans, other.language)))));
  }

  function drawSentences({ hits }, open) {
    if (!hits.length) return;
    by("sentences").replaceChildren(el("section", {}, el("details", { open },
      el("summary", {}, el("strong", {}, "Nearest whole sentences"), el("span", { class: "count" }, `${hits.length}`)),
      el("ul", { class: "lines" }, ...shown(hits)))));
  }

  // The terms of one query are one concept of a term base; in a memory or table every tick is a separate unit.
  function units(kind) {
    if (kind !== "tbx") return [...ticks.values()].map(({ unit }) => unit);
    const concepts = new Map();
    for (const { unit, query } of ticks.values()) {
      const name = query || unit[0].note;
      const known = concepts.get(name) || [];
      const fresh = unit.filter((one) => !known.some((other) => other.language === one.language && other.text === one.text));
      concepts.set(name, [...known, ...fresh]);
    }
    return [...concepts.values()];
  }

  for (const id of ["match", "from"]) by(id).addEventListener("change", () => { if (by("query").value.trim()) search(); });
  for (const id of ["lines", "sort"]) by(id).addEventListener("change", () => {
    remember();
    if (!last) return;
    draw(last[0]);
    if (last[1]) drawSentences(last[1], !last[0].variants.length);
  });
  addEventListener("keydown", (event) => {
    if (app.view() !== "concordance" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("textarea, select, input:not([type=checkbox])")) return;
    const forms = [...document.querySelectorAll(".variant summary")];
    const at = forms.findIndex((one) => one.closest(".variant").contains(document.activeElement));
    if (event.key === "/") by("query").select();
    else if (event.key === "j" && forms.length) forms[Math.min(at + 1, forms.length - 1)].focus();
    else if (event.key === "k" && forms.length) forms[Math.max(at - 1, 0)].focus();
    else if (event.key === "x" && at >= 0) forms[at].closest(".variant").querySelector("input").click();
    else return;
    event.preventDefault();
  });
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
