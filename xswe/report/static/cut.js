// The threshold of a page of scores: a slider with the number of pairs kept, and the setting to paste.
(() => {
  const { data, copy, number } = xswe;
  if (!data || !data.steps) return;
  const byId = (id) => document.getElementById(id);
  const slider = byId("cut"), line = document.querySelector("#scores svg.plot .cut");
  const { low, high } = data;
  const pairs = [...document.querySelectorAll("li.pair")];
  slider.max = data.steps.length - 1;

  function show(k) {
    const value = data.steps[k], kept = data.above[k], place = `${Math.min(100, Math.max(0, (100 * (value - low)) / (high - low || 1)))}%`;
    slider.value = k;
    slider.setAttribute("aria-valuetext", value.toFixed(4));
    for (const end of ["x1", "x2"]) line.setAttribute(end, place);
    byId("at-value").textContent = value.toFixed(4);
    byId("at-pairs").textContent = number(kept);
    for (const name of ["precision", "recall"]) byId(`at-${name}`).textContent = data[name][k] || "–";
    byId("setting").textContent = `${data.setting || "threshold"}=${value.toFixed(4)}`;
    for (const pair of pairs) pair.classList.toggle("out", Number(pair.dataset.score) < value);
  }
  slider.addEventListener("input", () => show(Number(slider.value)));
  byId("reset").addEventListener("click", () => show(data.at));
  byId("copy").addEventListener("click", () => copy(byId("setting").textContent));
  if (data.unsure) {
    byId("unsure").textContent = `Precision cannot be estimated: ${data.unsure}.`;
    byId("unsure").hidden = false;
  }
  show(data.at);
})();
