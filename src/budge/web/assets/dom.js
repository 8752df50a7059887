// Building the page: elements with text, never markup from data.

export const $ = (id) => document.getElementById(id);

/** An element with properties and children; strings become text. */
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [k, v] of Object.entries(props)) {
    if (v === null || v === undefined || v === false) continue;
    if (k === "on") for (const [event, f] of Object.entries(v)) node.addEventListener(event, f);
    else if (k === "data") Object.assign(node.dataset, v);
    else if (k === "class") node.className = v;
    else node.setAttribute(k, v === true ? "" : v);
  }
  node.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false).map((c) => (c instanceof Node ? c : String(c))));
  return node;
}

export const button = (text, click, props = {}) => el("button", { type: "button", on: { click }, ...props }, text);

export function svg(tag, props = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [k, v] of Object.entries(props)) node.setAttribute(k, v);
  node.append(...children);
  return node;
}

export const count = (n) => n.toLocaleString("en");

/** A responsiveness: three digits, but never a rounded 0 or 1 that is none. */
export function rho(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0 || value === 1) return String(value);
  const text = value.toFixed(3);
  return text === "0.000" ? "<0.001" : text === "1.000" ? ">0.999" : text;
}

/** A text whose control characters are seen and not obeyed. */
export function visible(text) {
  return String(text).replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

const SHAPES = {
  none: ["rect", { x: 3, y: 3, width: 10, height: 10 }], nohit: ["rect", { x: 3, y: 3, width: 10, height: 10 }], below: ["path", { d: "M8 2l6 11H2z" }],
  at: ["circle", { cx: 8, cy: 8, r: 4.8 }], open: ["path", { d: "M8 2l6 6-6 6-6-6z" }], above: ["circle", { cx: 8, cy: 8, r: 5.6 }],
};

/** The mark of a category: the report's shapes, so that nothing is told by colour alone. */
export function mark(category) {
  const [tag, props] = SHAPES[category] ?? ["circle", { cx: 8, cy: 8, r: 2 }];
  return svg("svg", { class: "mark", viewBox: "0 0 16 16", "aria-hidden": "true" }, svg(tag, { class: `m-${category in SHAPES ? category : "open"}`, ...props }));
}

/** What the categories are called. */
export function words(tau) {
  return {
    none: "no way", nohit: "no hit, not proved", below: "almost none", at: `exactly ${tau}`, open: "undecided", above: tau > 0 ? "more" : "a way", has: "has it now",
    out: "not asked about", odd: "not judged", wait: "not computed yet",
  };
}

export function problemLines(problems) {
  return problems.map((p) => el("li", {}, p.where ? el("code", {}, visible(p.where)) : null, p.where ? " " : "", visible(p.what), p.got ? el("span", { class: "muted" }, ` (got ${visible(p.got)})`) : null, p.remedy ? el("span", { class: "remedy" }, ` ${visible(p.remedy)}`) : null));
}

/** A figure of the library: parsed as XML, so that it is a picture or nothing; scripts in it would not run and are dropped. */
export function picture(text) {
  const root = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  if (root.nodeName !== "svg") return el("p", { class: "hint" }, "The figure cannot be drawn.");
  for (const node of root.querySelectorAll("script, foreignObject, style")) node.remove();
  return document.importNode(root, true);
}

/** A table that scrolls by itself where it is too wide. */
export function table(heads, rows, id = null) {
  const head = heads.map((t, i) => (t ? el("th", { scope: "col", class: i ? "num" : null }, t) : el("td", {})));
  return el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Table" }, el("table", { class: "pts", id }, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...rows)));
}

export const row = (head, ...cells) => el("tr", {}, el("th", { scope: "row" }, head), ...cells.map((c) => el("td", { class: "num" }, c)));

/** Moves the focus through some elements by arrows, Home and End; `choose` gets the new one. */
export function roving(event, items, choose) {
  const at = items.indexOf(document.activeElement);
  const next = { ArrowDown: at + 1, ArrowRight: at + 1, ArrowUp: at - 1, ArrowLeft: at - 1, Home: 0, End: items.length - 1 }[event.key];
  if (next === undefined || !items[Math.max(0, Math.min(next, items.length - 1))]) return;
  event.preventDefault();
  choose(items[Math.max(0, Math.min(next, items.length - 1))]);
}
