// Marks of pairs, by row: set by keys and buttons, and stored in the browser.
xswe.marking = (pairs, { key, keys, seen = () => pairs, allowed = () => true, shown }) => {
  const { store } = xswe;
  let marks = {}, current = 0;
  try { marks = JSON.parse(store.get(key) || "{}"); } catch { marks = {}; }

  function draw() {
    for (const pair of pairs) {
      const mark = marks[pair.dataset.row];
      pair.dataset.marked = mark || "";
      for (const button of pair.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.dataset.mark === mark));
    }
    shown(marks);
  }
  function mark(pair, what) {
    if (!allowed(pair, what)) return false;
    const row = pair.dataset.row;
    if (marks[row] === what) delete marks[row]; else marks[row] = what;
    store.set(key, JSON.stringify(marks));
    draw();
    return true;
  }
  function go(k, focus = true) {
    const there = seen();
    if (!there.length) return;
    for (const pair of pairs) pair.tabIndex = -1;
    current = Math.min(Math.max(k, 0), there.length - 1);
    there[current].tabIndex = 0;
    if (focus) there[current].focus();
  }
  document.addEventListener("keydown", (event) => {
    const pair = event.target.closest && event.target.closest("li.pair");
    if (!pair || event.ctrlKey || event.metaKey || event.altKey) return;
    const k = seen().indexOf(pair), what = keys[event.key];
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
  return {
    of: (pair) => marks[pair.dataset.row],
    again: () => go(current, false),
    begin() { go(0, false); draw(); },
    forget() { marks = {}; store.set(key, "{}"); draw(); },
  };
};
