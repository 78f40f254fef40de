"use strict";
// Draws a chosen row at a chosen radius from the data beside it. Text only: no markup from data.
const SVG = "http://www.w3.org/2000/svg";

function make(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function drawing(name, box, ...shapes) {
  const svg = document.createElementNS(SVG, "svg");
  const props = { class: name, viewBox: box, preserveAspectRatio: "none", "aria-hidden": "true" };
  for (const [key, value] of Object.entries(props)) svg.setAttribute(key, value);
  for (const [tag, given] of shapes) {
    const shape = document.createElementNS(SVG, tag);
    for (const [key, value] of Object.entries(given)) shape.setAttribute(key, value);
    svg.append(shape);
  }
  return svg;
}

function bar(value) {
  const size = { width: Math.abs(value), height: 10 };
  return drawing(value < 0 ? "bar minus" : "bar", "0 0 100 10", ["rect", size]);
}

function facts(pairs) {
  const cells = pairs.map(([label, value]) =>
    make("div", {}, make("dt", {}, label), make("dd", {}, value)));
  return make("dl", { class: "facts" }, ...cells);
}

function table(style, label, caption, heads, rows) {
  const found = make("table", { class: style, role: "table" });
  if (caption) found.append(make("caption", {}, caption));
  const line = heads.map((head) => make("th", { scope: "col", role: "columnheader" }, head));
  found.append(make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, ...line)),
    make("tbody", { role: "rowgroup" }, ...rows));
  const props = { class: "scroll", tabindex: "0", role: "region", "aria-label": label };
  return make("div", props, found);
}

function bars(row, step, k) {
  const rows = row.features.map(([name, rank, value], i) => {
    const [now, size, word] = step.after[i];
    const ranked = (place, length) => make("td", { role: "cell" },
      make("span", { class: "rank" }, String(place)), bar(length));
    return make("tr", { class: word || "out", role: "row" },
      make("th", { scope: "row", role: "rowheader" }, name),
      ranked(rank, value), ranked(now, size),
      make("td", { class: "word", role: "cell" }, word || "–"));
  });
  const heads = ["Feature", "Before", "After", `Top ${k}`];
  return table("bars", `Features of ${row.title} before and after`, "", heads, rows);
}

function changes(row, step) {
  if (!step.changes.length) return make("p", { class: "hint" }, step.more);
  const rows = step.changes.map(([name, ...values]) =>
    make("tr", { role: "row" }, make("th", { scope: "row", role: "rowheader" }, name),
      ...values.map((v) => make("td", { role: "cell" }, v))));
  const heads = ["Input", "Before", "After", "Change"];
  const caption = `The change of the input. ${step.more}`;
  return table("changes", `Change of the input of ${row.title}`, caption, heads, rows);
}

function picture(name, alt, src, box, marks = []) {
  const frame = make("div", { class: "frame" }, make("img", { src, alt }));
  const shapes = marks.flatMap((d) => ["halo", "mark"].map((c) => ["path", { class: c, d }]));
  if (marks.length) frame.append(drawing("", box, ...shapes));
  return make("figure", { class: "picture" }, frame, make("figcaption", {}, name));
}

function pictures(row, step, box) {
  const at = `${row.title} ${step.at}`;
  const fine = Math.max(...box.split(" ")) > 16;  // small pixels, thin marks
  return make("div", { class: fine ? "pictures fine" : "pictures" },
    picture("Input", `Input of ${row.title}`, row.input),
    picture("Change", `Change of the input of ${at}. ${step.more}`, step.change),
    picture("Reasons before", `Saliency map of ${row.title} before the change. ${step.say}`,
      row.before, box, [step.stay, step.left]),
    picture("Reasons after", `Saliency map of ${row.title} after the change. ${step.say}`,
      step.after, box, [step.stay, step.entered]));
}

function start(section) {
  const data = JSON.parse(document.getElementById(section.dataset.from).textContent);
  const [chooser, slider] = ["select", "input"].map((tag) => section.querySelector(tag));
  const [say, shown, states, output] = [".say", ".shown", ".states", "output"].map((name) =>
    section.querySelector(name));
  const glyphs = { proved: "=", unknown: "?", broken: "×" };

  function choose() {
    const row = data.rows[chooser.value];
    slider.max = row.steps.length - 1;
    slider.value = row.start;
    states.style.setProperty("--count", row.steps.length);
    slider.style.setProperty("--count", row.steps.length);
    states.replaceChildren(...row.steps.map((step) =>
      make("span", { class: step.state, title: step.radius }, glyphs[step.state])));
    draw();
  }

  function draw() {
    const row = data.rows[chooser.value], step = row.steps[slider.value];
    output.textContent = step.radius;
    slider.setAttribute("aria-valuetext", step.spoken);
    [...states.children].forEach((cell, i) => cell.classList.toggle("now", i === +slider.value));
    say.textContent = `${step.where} ${step.say}`;
    section.querySelector(".moved").textContent = step.moved;
    const body = data.pixels
      ? [pictures(row, step, data.box), make("p", { class: "hint" }, step.more)]
      : [make("div", { class: "two" }, bars(row, step, data.k), changes(row, step))];
    shown.replaceChildren(
      make("p", { class: "about" }, row.about), facts([...step.facts, ...row.bracket]), ...body);
  }

  chooser.addEventListener("change", choose);
  slider.addEventListener("input", draw);
  section.querySelector(".static").remove();
  section.querySelector(".explore").hidden = false;
  choose();
}

document.querySelectorAll(".explorer").forEach(start);
// On paper nothing can be unfolded.
addEventListener("beforeprint", () => {
  document.querySelectorAll("details:not(.screen)").forEach((part) => { part.open = true; });
});
