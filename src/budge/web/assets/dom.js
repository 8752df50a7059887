// Building the page: elements with text, never markup from data.

export const $ = (id) => document.getElementById(id);

/** A text whose control characters are seen and not obeyed. */
const visible = (text) => String(text).replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

const nodes = (children) => children.flat(2).filter((c) => c !== null && c !== undefined && c !== "").map((c) => (c instanceof Node ? c : visible(c)));

/** An element with properties and children; strings become text. */
export function el(tag, props = {}, ...children) {
  const node = tag === "svg" || tag === "path" ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [k, v] of Object.entries(props)) {
    if (v === null || v === undefined || v === false) continue;
    if (k === "on") for (const [event, f] of Object.entries(v)) node.addEventListener(event, f);
    else if (k === "data") Object.assign(node.dataset, v);
    else node.setAttribute(k, v === true ? "" : k.startsWith("aria-") ? visible(v) : v);
  }
  node.append(...nodes(children));
  return node;
}

/** Puts children in the place of what an element (or the one of an id) holds. */
export const fill = (place, ...children) => (place instanceof Node ? place : $(place)).replaceChildren(...nodes(children));

export const button = (text, click, props = {}) => el("button", { type: "button", on: { click }, ...props }, text);

/** A choice among pairs of a value and a text. */
export function choice(pairs, chosen, change, props = {}) {
  const made = el("select", { on: { change: () => change(made.value) }, ...props }, pairs.map(([value, text]) => el("option", { value }, text)));
  made.value = chosen;
  return made;
}

export const count = (n) => n.toLocaleString("en");

/** A responsiveness to three figures, as the sentences have it, but never a rounded 1 that is none. */
export function rho(value) {
  if (value === null || value === undefined) return "–";
  const text = String(Number(value.toPrecision(3)));
  return text === "1" && value < 1 ? ">0.999" : text;
}

/** The same for a column: three decimals, but 0 and 1 as they are, and whatever would read as these in full. */
export function decimals(value) {
  const text = value === null || value === undefined ? "" : value.toFixed(3);
  return ["", "0.000", "1.000"].includes(text) ? rho(value) : text;
}

const SQUARE = "M3 3h10v10H3z", RING = "M3.2 8a4.8 4.8 0 1 0 9.6 0a4.8 4.8 0 1 0-9.6 0z", DISC = "M2.4 8a5.6 5.6 0 1 0 11.2 0a5.6 5.6 0 1 0-11.2 0z", DOT = "M6 8a2 2 0 1 0 4 0a2 2 0 1 0-4 0z";
const SHAPES = { none: SQUARE, nohit: SQUARE, below: "M8 2l6 11H2z", at: RING, open: "M8 2l6 6-6 6-6-6z", above: DISC };

/** The mark of a category: the report's shapes, so that nothing is told by colour alone. */
export const mark = (category) => el("svg", { class: "mark", viewBox: "0 0 16 16", "aria-hidden": "true" }, el("path", { class: `m-${category in SHAPES ? category : "open"}`, d: SHAPES[category] ?? DOT }));

/** Problems, each with its place and what to do; `open` is called with the line of one that has a line. */
export function problemList(problems, open) {
  return el("ul", {}, problems.map((p) => el("li", { class: p.severity },
    p.line && open ? [button(`line ${p.line}`, () => open(p.line), { class: "plain line" }), " "] : "",
    p.where ? [el("code", {}, p.where), " "] : "", p.what, p.got ? el("span", { class: "muted" }, ` (got ${p.got})`) : "", p.remedy ? el("span", { class: "remedy" }, ` ${p.remedy}`) : "")));
}

/** A figure of the library: parsed as XML, so that it is a picture or nothing; scripts in it would not run and are dropped. */
export function picture(text) {
  const root = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  if (root.nodeName !== "svg") return el("p", { class: "hint" }, "The figure cannot be drawn.");
  for (const node of root.querySelectorAll("script, foreignObject, style")) node.remove();
  return document.importNode(root, true);
}

/** A table of some class that scrolls by itself where it is too wide. */
export const scrolled = (name, props, head, body) => el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": name }, el("table", props, el("thead", {}, head), el("tbody", {}, body)));

/** A table of names and numbers. */
export const table = (name, heads, rows, id = null) => scrolled(name, { class: "pts", id }, el("tr", {}, heads.map((t, i) => (t ? el("th", { scope: "col", class: i ? "num" : null }, t) : el("td")))), rows);

export const row = (head, ...cells) => el("tr", {}, el("th", { scope: "row" }, head), cells.map((c) => el("td", { class: "num" }, c)));

/** Moves the focus through some elements by arrows, Home and End; `choose` gets the new one. */
export function roving(event, items, choose) {
  const at = items.indexOf(document.activeElement), last = items.length - 1;
  const next = { ArrowDown: at + 1, ArrowRight: at + 1, ArrowUp: at - 1, ArrowLeft: at - 1, Home: 0, End: last }[event.key];
  if (next === undefined || last < 0) return;
  event.preventDefault();
  choose(items[Math.max(0, Math.min(next, last))]);
}
