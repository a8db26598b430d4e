"use strict";
// Shared by all pages: data, theme, downloads, messages, labels that do not overlap, and details that open for printing.
const xswe = (() => {
  const root = document.documentElement;
  const block = document.getElementById("data");
  const data = block ? JSON.parse(block.textContent) : null;

  // localStorage may be forbidden (as in a mail reader): then nothing is stored, and nothing fails.
  const store = {
    get(key) { try { return localStorage.getItem(key); } catch { return null; } },
    set(key, value) { try { localStorage.setItem(key, value); } catch { /* nothing is stored */ } },
  };

  const theme = document.getElementById("theme");
  const themes = ["auto", "light", "dark"];
  function setTheme(name) {
    if (name === "auto") delete root.dataset.theme; else root.dataset.theme = name;
    if (theme) theme.title = `Theme: ${name}`;
  }
  setTheme(themes.includes(store.get("xswe-theme")) ? store.get("xswe-theme") : "auto");
  if (theme) theme.addEventListener("click", () => {
    const next = themes[(themes.indexOf(root.dataset.theme || "auto") + 1) % themes.length];
    setTheme(next);
    store.set("xswe-theme", next);
    say(`Theme: ${next}`);
  });

  let quiet = 0;
  function say(text) {
    const said = document.getElementById("said");
    said.textContent = text;
    clearTimeout(quiet);
    quiet = setTimeout(() => { said.textContent = ""; }, 4000);
  }

  function download(name, text, type) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
    link.download = name;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    say(`Saved ${name}`);
  }

  async function copy(text) {
    try { await navigator.clipboard.writeText(text); say("Copied"); } catch { say("Select the text to copy it"); }
  }

  const oneLine = (text) => text.replace(/[\t\n\r\v\f\u001c-\u001e\u0085\u2028\u2029]/g, " ");
  // A table cell, after an apostrophe if a spreadsheet would run it as a formula.
  const cell = (text) => oneLine(text).replace(/^(?=[\s"]*[=+\-@＝＋－＠])/, "'");
  const xml = (text) => text.replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, " ")
    .replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
  const number = (value) => Math.round(value).toLocaleString("en-US");

  // The 95 % Wilson interval of a proportion.
  function interval(right, all) {
    if (!all) return [0, 1];
    const z = 1.959964, share = right / all, wide = z * z / all;
    const middle = (share + wide / 2) / (1 + wide);
    const half = z * Math.sqrt(share * (1 - share) / all + wide / (4 * all)) / (1 + wide);
    return [Math.max(0, middle - half), Math.min(1, middle + half)];
  }

  // Put each label of a plot at the first place around its dot where it covers no label or dot; hide it if there is none.
  function placeLabels(plot) {
    const frame = plot.getBoundingClientRect();
    const dots = [...plot.querySelectorAll("circle")].map((dot) => dot.getBoundingClientRect());
    const taken = [];
    const free = (box) => box.left >= frame.left - 50 && box.right <= frame.right + 10 && box.top >= frame.top - 8
      && box.bottom <= frame.bottom
      && ![...taken, ...dots].some((b) => box.left < b.right && box.right > b.left && box.top < b.bottom && box.bottom > b.top);
    for (const label of plot.querySelectorAll("text.name")) {
      label.removeAttribute("visibility");
      const places = [["start", 8, 4], ["end", -8, 4], ["middle", 0, -9], ["middle", 0, 18],
        ["start", 8, 18], ["end", -8, 18], ["start", 8, -9], ["end", -8, -9]];
      const found = places.some(([anchor, dx, dy]) => {
        label.setAttribute("text-anchor", anchor);
        label.setAttribute("dx", dx);
        label.setAttribute("dy", dy);
        return free(label.getBoundingClientRect());
      });
      if (found) taken.push(label.getBoundingClientRect()); else label.setAttribute("visibility", "hidden");
    }
  }
  function placeAll() { document.querySelectorAll("svg.plot").forEach(placeLabels); }
  addEventListener("resize", placeAll);
  addEventListener("load", placeAll);
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((fold) => {
    fold.dataset.was = fold.open ? "1" : "";
    fold.open = true;
  }));
  addEventListener("afterprint", () => document.querySelectorAll("details").forEach((fold) => { fold.open = !!fold.dataset.was; }));

  return { data, store, say, download, copy, oneLine, cell, xml, number, interval, placeAll };
})();
