"use strict";
// Shared by the views: elements made from plain text only, requests with error messages, and the open view.
const app = (() => {
  const inEnglish = new Intl.DisplayNames("en", { type: "language" });
  const name = (code) => inEnglish.of(code);
  const by = (id) => document.getElementById(id);

  // Everything shown is made here: texts become text nodes, never markup.
  function el(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "class") made.className = value;
      else if (value === true) made.setAttribute(name, "");
      else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  }

  // A text with spans of code points marked, in its own writing direction.
  function marked(text, spans, language) {
    const points = Array.from(text);
    const made = el("bdi", { lang: language || null });
    let done = 0;
    for (const [start, end] of [...spans].sort((a, b) => a[0] - b[0])) {
      if (start < done) continue;
      made.append(points.slice(done, start).join(""), el("mark", {}, points.slice(start, end).join("")));
      done = end;
    }
    made.append(points.slice(done).join(""));
    return made;
  }

  let key = sessionStorage.getItem("xswe-key") || "";
  let waiting = null;
  const form = by("key");
  if (form) form.addEventListener("submit", (event) => {
    event.preventDefault();
    key = by("key-value").value;
    sessionStorage.setItem("xswe-key", key);
    form.hidden = true;
    if (waiting) waiting();
  });
  function askForKey() {
    if (!form) return;
    form.hidden = false;
    by("key-value").focus();
  }

  // Send a request to the server; an error response becomes an error with its message.
  async function ask(path, body, signal) {
    const headers = key ? { authorization: `Bearer ${key}` } : {};
    const settings = body === undefined ? { headers, signal }
      : { method: "POST", body: JSON.stringify(body), headers: { ...headers, "content-type": "application/json" }, signal };
    let answer;
    try { answer = await fetch(path, settings); } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Error("The server does not answer. Is it still running?");
    }
    if (answer.ok) return answer;
    if (answer.status === 401) askForKey();
    const told = await answer.json().catch(() => null);
    throw new Error(told && told.error ? told.error.message : `The server answered ${answer.status}.`);
  }

  // Run something that may fail, and show the error in its place.
  async function trying(place, work) {
    place.removeAttribute("data-failed");
    try { await work(); } catch (error) {
      if (error.name === "AbortError") return;
      place.textContent = error.message;
      place.dataset.failed = "";
      place.hidden = false;
    }
  }

  async function save(kind, units) {
    const answer = await ask("/export", { format: kind, units });
    xswe.download(`xswe.${kind}`, await answer.text(), answer.headers.get("content-type").split(";")[0]);
  }

  const shown = {};
  const view = () => {
    const wanted = new URLSearchParams(location.search).get("view");
    return ["concordance", "compare", "mine"].includes(wanted) ? wanted : "concordance";
  };
  function show() {
    for (const one of document.querySelectorAll(".view")) one.hidden = one.id !== view();
    for (const link of document.querySelectorAll("[data-view]")) {
      if (link.dataset.view === view()) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
    }
    if (shown[view()]) shown[view()]();
  }
  document.querySelectorAll("[data-view]").forEach((link) => link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go({ view: link.dataset.view });
    show();
  }));
  addEventListener("popstate", show);

  // Put the query into the address, so that it can be shared, unless it is too long.
  function go(parameters) {
    const wanted = new URLSearchParams();
    for (const [name, value] of Object.entries(parameters)) if (value && value.length) wanted.set(name, value);
    const address = `/?${wanted}`;
    if (address.length < 4000 && address !== location.pathname + location.search) history.pushState(null, "", address);
  }

  let info = null;
  async function start() {
    waiting = start;
    if (!info) info = await (await ask("/info")).json();
    waiting = null;
    show();
  }
  return { name, by, el, marked, ask, trying, save, go, view, shown, start, get info() { return info; } };
})();
