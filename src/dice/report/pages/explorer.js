// Filters, the comparison of rows, and the order of tokens. Without scripts the pages show everything.
"use strict";

const all = (selector, root = document) => [...root.querySelectorAll(selector)];

function takeHash(form) {
  for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
    if (form.elements[name]) form.elements[name].value = value;
  }
}

function filter(form) {
  const { text = "", ...wanted } = Object.fromEntries(new FormData(form));
  const rows = all(form.dataset.rows);
  for (const row of rows) {
    const fits = Object.entries(wanted).every(([name, value]) => !value || row.dataset[name] === value);
    row.hidden = !(fits && row.textContent.toLowerCase().includes(text.toLowerCase()));
  }
  form.querySelector("output").value = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
}

function compare(form) {
  const { one, other, show } = Object.fromEntries(new FormData(form));
  for (const cell of all("#matrix [data-unit]")) cell.hidden = ![one, other].includes(cell.dataset.unit);
  const rows = all("#matrix tbody tr");
  for (const row of rows) {
    const share = (unit) => Number(all("td[data-unit]", row).find((cell) => cell.dataset.unit === unit).dataset.share ?? NaN);
    const gain = share(one) - share(other);
    row.hidden = !{ all: true, differ: gain !== 0, better: gain > 0, worse: gain < 0 }[show];
  }
  form.querySelector("output").value = `${rows.filter((row) => !row.hidden).length} of ${rows.length} problems`;
  const body = document.querySelector("#differences tbody");
  body.replaceChildren();
  for (const line of JSON.parse(document.querySelector("#pairs").textContent)) {
    const turned = line.row === other && line.against === one;
    if (!turned && !(line.row === one && line.against === other)) continue;
    const minus = (text) => (-Number(text)).toFixed(1);
    const interval = turned ? [minus(line.high), minus(line.low)] : [line.low, line.high];
    const cells = turned
      ? [line.measured_against, line.measured, minus(line.difference), interval.join(" to "), line.worse_on, line.better_on]
      : [line.measured, line.measured_against, line.difference, interval.join(" to "), line.better_on, line.worse_on];
    const row = body.insertRow();
    for (const text of [line.level, line.problems, ...cells]) row.insertCell().textContent = text;
  }
}

function denoising(box) {
  const { text, order, ends } = JSON.parse(box.querySelector("script").textContent);
  const [slider, said, button] = ["input", "output", "button"].map((name) => box.querySelector(name));
  const characters = [...text]; // the places count characters, not the units of UTF-16
  const last = Number(slider.max);
  const tokens = order.map((step, k) => {
    const token = document.createElement("span");
    token.textContent = characters.slice(k ? ends[k - 1] : 0, ends[k]).join("");
    token.title = `forward ${step}`;
    token.style.backgroundColor = `hsl(205 60% ${95 - (45 * step) / last}%)`;
    return token;
  });
  box.querySelector(".tokens").replaceChildren(...tokens);
  const show = () => {
    const now = Number(slider.value);
    tokens.forEach((token, k) => {
      token.className = order[k] > now ? "masked" : order[k] === now ? "new" : "";
    });
    const fixed = order.filter((step) => step <= now).length;
    said.value = `after forward ${now} of ${last}: ${fixed} of ${order.length} tokens fixed`;
  };
  let timer = null;
  const stop = () => {
    clearInterval(timer);
    timer = null;
    button.textContent = "play";
  };
  button.addEventListener("click", () => {
    if (timer !== null) return stop();
    if (Number(slider.value) === last) slider.value = 0;
    button.textContent = "stop";
    timer = setInterval(() => {
      slider.value = Number(slider.value) + 1;
      show();
      if (Number(slider.value) === last) stop();
    }, 60);
  });
  slider.addEventListener("input", show);
  show();
}

for (const form of all("form.filter")) {
  const update = () => filter(form);
  form.addEventListener("input", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", () => {
    takeHash(form);
    update();
  });
  takeHash(form);
  update();
}
for (const form of all("form#compare")) {
  if (form.elements.other.options.length > 1) form.elements.other.selectedIndex = 1;
  takeHash(form);
  form.addEventListener("input", () => compare(form));
  compare(form);
}
for (const box of all(".denoising")) denoising(box);
