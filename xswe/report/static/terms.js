// The page of terms: ticks, a filter, the order of contexts, and export to three formats.
(() => {
  const { say, download, cell, xml } = xswe;
  const byId = (id) => document.getElementById(id);
  const terms = [...document.querySelectorAll("article.term")];
  if (!terms.length) return;
  const candidates = [...document.querySelectorAll("li.candidate")];
  const box = (candidate) => candidate.querySelector("input");

  function count() { byId("ticked").textContent = `${candidates.filter((one) => box(one).checked).length} ticked`; }
  document.addEventListener("change", (event) => { if (event.target.type === "checkbox") count(); });
  byId("none").addEventListener("click", () => { candidates.forEach((one) => { box(one).checked = false; }); count(); });
  byId("first").addEventListener("click", () => {
    for (const term of terms) if (!term.hidden) term.querySelector("li.candidate input").checked = true;
    count();
  });
  byId("only").addEventListener("input", () => {
    const wanted = byId("only").value.trim().toLocaleLowerCase();
    for (const term of terms) term.hidden = Boolean(wanted) && !term.textContent.toLocaleLowerCase().includes(wanted);
  });
  byId("order").addEventListener("change", () => {
    const how = byId("order").value;
    const of = (line) => {
      if (how === "found") return Number(line.dataset.k);
      const text = line.querySelector(`.${how}`).textContent;
      return how === "left" ? [...text].reverse().join("") : text;
    };
    for (const list of document.querySelectorAll("ol.kwic")) {
      const lines = [...list.children].map((line) => [of(line), line]);
      lines.sort(([a], [b]) => (how === "found" ? a - b : a.localeCompare(b)));
      list.append(...lines.map(([, line]) => line));
    }
  });

  // [phrase, [candidate, …]] for the ticked candidates.
  function ticked() {
    const out = terms.map((term) => [term.dataset.phrase, [...term.querySelectorAll("li.candidate")].filter((one) => box(one).checked)]);
    const some = out.filter(([, own]) => own.length);
    if (!some.length) say("Tick some candidates first");
    return some;
  }
  function sentence(candidate) {
    const line = candidate.querySelector("ol.kwic li[data-k='0']");
    return line ? ["left", "hit", "right"].map((part) => line.querySelector(part === "hit" ? "mark" : `.${part}`).textContent).join("") : "";
  }
  const other = (candidate) => candidate.querySelector("ol.kwic li[data-k='0'] .other")?.textContent || "";
  const note = ({ dataset }) => `score ${Number(dataset.score).toFixed(4)}${dataset.times ? `, ${dataset.times} times in ${dataset.passages} passages` : ""}`;
  const tongues = () => [byId("from").value, byId("to").value];
  const flat = (text) => cell(text.replace(/"/g, "'"));

  byId("tsv").addEventListener("click", () => {
    const rows = ticked().flatMap(([phrase, own]) => own.map((one) => [phrase, one.dataset.text, note(one), sentence(one), other(one)].map(flat).join("\t")));
    if (rows.length) download("terms.tsv", ["phrase\tcandidate\tnote\tsentence\tother_side", ...rows, ""].join("\n"), "text/tab-separated-values");
  });
  byId("tbx").addEventListener("click", () => {
    const [source, target] = tongues(), found = ticked();
    if (!found.length) return;
    const entries = found.map(([phrase, own], k) => `<termEntry id="c${k + 1}">\n<langSet xml:lang="${source}"><tig><term>${xml(phrase)}</term></tig></langSet>\n<langSet xml:lang="${target}">\n`
      + own.map((one) => `<tig><term>${xml(one.dataset.text)}</term><descrip type="context">${xml(sentence(one))}</descrip><note>${note(one)}</note></tig>\n`).join("")
      + "</langSet>\n</termEntry>\n");
    const head = `<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE martif SYSTEM "TBXBasiccoreStructV02.dtd">\n<martif type="TBX-Basic" xml:lang="${source}">\n`
      + "<martifHeader><fileDesc><sourceDesc><p>Terms chosen on a page of xswe</p></sourceDesc></fileDesc>"
      + '<encodingDesc><p type="XCSURI">TBXBasicXCSV02.xcs</p></encodingDesc></martifHeader>\n<text><body>\n';
    download("terms.tbx", `${head}${entries.join("")}</body></text>\n</martif>\n`, "application/xml");
  });
  byId("tmx").addEventListener("click", () => {
    const [source, target] = tongues(), found = ticked();
    if (!found.length) return;
    const units = found.flatMap(([phrase, own]) => own.map((one) => `<tu><note>${note(one)}</note><tuv xml:lang="${source}"><seg>${xml(phrase)}</seg></tuv><tuv xml:lang="${target}"><seg>${xml(one.dataset.text)}</seg></tuv></tu>\n`));
    const head = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4">\n'
      + `<header creationtool="xswe" creationtoolversion="1" segtype="phrase" o-tmf="xswe" adminlang="en" srclang="${source}" datatype="plaintext"/>\n<body>\n`;
    download("terms.tmx", `${head}${units.join("")}</body>\n</tmx>\n`, "application/xml");
  });
  count();
})();
