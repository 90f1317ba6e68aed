"use strict";

// Figures: drawn when they come near the window, the others when the browser has nothing else to do.

const figures = new Map();  // element -> what it draws

const NARROW = 480;  // pixels

// Titles of axes would not fit on a phone.
function shrink(layout) {
  layout.font = { ...layout.font, size: 11 };
  for (const [name, axis] of Object.entries(layout)) {
    if (/^[xy]axis\d*$/.test(name) && axis.title) axis.title.font = { ...axis.title.font, size: 11 };
  }
}

function draw(element) {
  if (!figures.has(element)) return;
  const { data, layout, steps } = figures.get(element);
  figures.delete(element);
  if (element.clientWidth < NARROW) shrink(layout);
  Plotly.newPlot(element, data, layout, { displayModeBar: false, responsive: true });
  const slider = element.parentElement.querySelector("input[type=range]");
  if (slider) move(element, slider, steps);
}

// One control a figure: an ordinary slider in the place of plotly's, for keyboards and screen readers.
function move(element, slider, steps) {
  const output = slider.parentElement.querySelector("output");
  const labels = JSON.parse(slider.dataset.labels);
  slider.addEventListener("input", () => {
    const place = Number(slider.value);
    output.value = labels[place];
    slider.setAttribute("aria-valuetext", labels[place]);
    Plotly.update(element, ...structuredClone(steps[place]));
  });
}

function drawAll() {
  for (const element of [...figures.keys()]) draw(element);
}

function drawNext() {
  const [element] = figures.keys();
  if (!element) return;
  draw(element);
  later(drawNext);
}

const later = window.requestIdleCallback ?? ((work) => setTimeout(work, 50));

for (const element of document.querySelectorAll(".plot")) {
  figures.set(element, JSON.parse(element.nextElementSibling.textContent));
}
const near = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) draw(entry.target);
}, { rootMargin: "300px" });
for (const element of figures.keys()) near.observe(element);
window.addEventListener("load", () => later(drawNext));

// Tables: a heading sorts its column upwards, then downwards, then gives the first order back.

const NEXT = { none: "ascending", ascending: "descending", descending: "none" };

function valueOf(row, column) {
  const cell = row.cells[column];
  const text = cell.dataset.value ?? cell.firstChild?.textContent.trim() ?? "";
  const number = text === "" ? NaN : Number(text.replaceAll(",", ""));
  return Number.isNaN(number) ? text : number;
}

// Figures before words, and what is missing (a dash) last in both directions.
function compare(a, b, sign) {
  const rank = (value) => (value === "" || value === "\u2013" ? 2 : typeof value === "number" ? 0 : 1);
  if (rank(a) !== rank(b)) return rank(a) - rank(b);
  return sign * (typeof a === "number" ? a - b : a.localeCompare(b, undefined, { numeric: true }));
}

function sort(table, column, order) {
  const body = table.tBodies[0];
  // A row goes with the lines of text below it.
  table.firstOrder ??= [...body.rows].reduce((groups, row) => {
    if (row.className === "more") groups.at(-1).push(row);
    else groups.push([row]);
    return groups;
  }, []);
  const groups = [...table.firstOrder];
  if (order !== "none") {
    const values = new Map(groups.map((group) => [group, valueOf(group[0], column)]));
    groups.sort((a, b) => compare(values.get(a), values.get(b), order === "ascending" ? 1 : -1));
  }
  body.append(...groups.flat());
}

for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    heading.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const order = NEXT[heading.getAttribute("aria-sort")];
      for (const other of headings) other.setAttribute("aria-sort", "none");
      heading.setAttribute("aria-sort", order);
      sort(table, column, order);
    });
  });
}

// On a narrow window the list of contents is folded: the decision comes first.
if (matchMedia("(max-width: 980px)").matches) document.querySelector(".contents").open = false;

// A link into something folded unfolds it.
function unfold() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  target?.scrollIntoView();
}
window.addEventListener("hashchange", unfold);
if (location.hash) unfold();

// Paper: everything is drawn, unfolded but for the longest tables, and as wide as the sheet.

const SHEET = 680;  // pixels between the margins of A4 and of letter
const folded = [];

window.addEventListener("beforeprint", () => {
  drawAll();
  for (const details of document.querySelectorAll("details:not([open], .long)")) {
    details.open = true;
    folded.push(details);
  }
  for (const plot of document.querySelectorAll(".plot")) {
    plot.style.zoom = Math.min(1, SHEET / (plot.querySelector("svg")?.clientWidth || SHEET));
  }
});
window.addEventListener("afterprint", () => {
  for (const details of folded.splice(0)) details.open = false;
  for (const plot of document.querySelectorAll(".plot")) plot.style.zoom = "";
});
