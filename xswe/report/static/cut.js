// The threshold of a page of scores: a slider that says what stays, and the setting to paste.
(() => {
  const { data, copy, number } = xswe;
  if (!data || !data.steps) return;
  const byId = (id) => document.getElementById(id);
  const percent = (share) => `${(100 * share).toFixed(share > 0.995 || share < 0.005 ? 1 : 0)} %`;
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
    const within = data.within && data.within[k];
    const between = (bounds) => (bounds ? ` (${percent(bounds[0])} to ${percent(bounds[1])})` : "");
    byId("at-precision").textContent = data.right && kept ? percent(Math.min(1, data.right[k] / kept)) + between(within && within[0]) : "–";
    byId("at-recall").textContent = data.right && data.all ? percent(Math.min(1, data.right[k] / data.all)) + between(within && within[1]) : "–";
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
