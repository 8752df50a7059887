// Building the page: elements with text, never markup from data.

export const $ = (id) => document.getElementById(id);

/** An element with properties and children; strings become text. */
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  set(node, props);
  node.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false).map((c) => (c instanceof Node ? c : String(c))));
  return node;
}

export function svg(tag, props = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [k, v] of Object.entries(props)) node.setAttribute(k, v);
  node.append(...children);
  return node;
}

function set(node, props) {
  for (const [k, v] of Object.entries(props)) {
    if (v === null || v === undefined || v === false) continue;
    if (k === "on") for (const [event, f] of Object.entries(v)) node.addEventListener(event, f);
    else if (k === "data") for (const [name, value] of Object.entries(v)) node.dataset[name] = value;
    else if (k === "width") node.style.width = v;
    else if (k === "left") node.style.left = v;
    else if (k === "class") node.className = v;
    else node.setAttribute(k, v === true ? "" : v);
  }
}

/** A number as people read it: few digits, but never a rounded 0 or 1 that is none. */
export function num(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value)) return value.toLocaleString("en");
  const size = Math.abs(value);
  if (size >= 1000) return value.toLocaleString("en", { maximumFractionDigits: 2 });
  if (size < 0.001) return value.toExponential(1);
  if (size < 1 && Number(value.toFixed(digits)) === Math.round(value)) return String(Number(value.toPrecision(4)));
  return value.toFixed(digits);
}

export function rho(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0 || value === 1) return String(value);
  const text = value.toFixed(3);
  return text === "0.000" ? "<0.001" : text === "1.000" ? ">0.999" : text;
}

export function delta(now, was, show = rho) {
  if (now === null || was === null || now === undefined || was === undefined) return null;
  const d = now - was;
  if (Math.abs(d) < 1e-12) return el("span", { class: "delta same" }, "±0");
  return el("span", { class: `delta ${d > 0 ? "up" : "down"}` }, `${d > 0 ? "+" : "−"}${show(Math.abs(d))}`);
}

export function cell(value) {
  if (value === null || value === undefined) return "–";
  if (value === true) return "true";
  if (value === false) return "false";
  return typeof value === "number" ? (Number.isInteger(value) ? String(value) : num(value, Math.abs(value) < 1000 ? 3 : 2)) : visible(value);
}

/** A text whose control characters are seen and not obeyed. */
export function visible(text) {
  return String(text).replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

export function tag(verdict) {
  const known = verdict === "below" || verdict === "above";
  return el("span", { class: `tag ${known ? verdict : "open"}` }, verdict === "invalid_start" ? "invalid start" : verdict);
}

/** A bar from 0 to 1 with an interval, a value and the threshold. */
export function gauge(row, tau) {
  if (row.rho === null && row.low === null) return el("span", { class: "gauge none" });
  const low = row.low ?? row.rho, high = row.high ?? row.rho;
  const pct = (v) => `${(100 * v).toFixed(2)}%`;
  return el("span", { class: `gauge ${row.verdict}`, "aria-hidden": "true" },
    el("span", { class: "span", left: pct(low), width: `${Math.max(0.4, 100 * (high - low)).toFixed(2)}%` }),
    row.rho === null ? null : el("span", { class: "fill", width: pct(row.rho) }),
    el("span", { class: "tick", left: pct(tau) }));
}

export function problemLines(problems) {
  return problems.map((p) => el("li", {}, p.where ? el("code", {}, visible(p.where)) : null, p.where ? " " : "", visible(p.what), p.got ? el("span", { class: "muted" }, ` (got ${visible(p.got)})`) : null, p.remedy ? el("span", { class: "remedy" }, ` ${visible(p.remedy)}`) : null));
}

/** Numbers with their names, as a definition list reads. */
export const share = (v) => (v === null || v === undefined ? "–" : `${(100 * v).toFixed(v > 0 && v < 0.01 ? 1 : 0)} %`);

/** A figure of the library: parsed as XML, so that it is a picture or nothing; scripts in it would not run and are dropped. */
export function picture(text) {
  const root = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  if (root.nodeName !== "svg") return el("p", { class: "hint" }, "The figure cannot be drawn.");
  for (const node of root.querySelectorAll("script, foreignObject, style")) node.remove();
  return document.importNode(root, true);
}
