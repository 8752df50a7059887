// The list of people: found, filtered, sorted, page by page; arrows move through it.

import { $, el, rho, delta, gauge, cell, visible } from "./dom.js";
import { post } from "./api.js";

const PAGE = 50;
const NAMES = [["", "all"], ["below", "below"], ["inconclusive", "inconclusive"], ["above", "above"]];

export class People {
  constructor(page, open) {
    this.page = page;
    this.open = open;
    this.wish = { find: "", verdict: "", sort: "place", down: false, offset: 0, limit: PAGE, other: "", other_verdict: "" };
    this.record = null;
    this.turn = 0;
    let wait;
    $("find").addEventListener("input", () => { clearTimeout(wait); wait = setTimeout(() => this.ask({ find: $("find").value, offset: 0, other: "" }), 150); });
    $("find-form").addEventListener("submit", (event) => { event.preventDefault(); const one = this.first(); if (one !== null) this.open(one); });
    $("sort").addEventListener("change", () => this.ask({ sort: $("sort").value, offset: 0 }));
    $("down").addEventListener("click", () => { const down = !this.wish.down; $("down").setAttribute("aria-pressed", String(down)); $("down").textContent = down ? "↓" : "↑"; this.ask({ down, offset: 0 }); });
    $("page-back").addEventListener("click", () => this.ask({ offset: Math.max(0, this.wish.offset - PAGE) }));
    $("page-on").addEventListener("click", () => this.ask({ offset: this.wish.offset + PAGE }));
    $("list").addEventListener("keydown", (event) => this.keys(event));
  }

  ask(change) { Object.assign(this.wish, change); return this.load(); }

  both(a, b) { // those to whom two models give these verdicts
    this.page.model = a.model;
    $("model").value = a.model;
    return this.ask({ verdict: a.verdict, other: b.model, other_verdict: b.verdict, offset: 0 });
  }

  async load() {
    const mine = ++this.turn;
    try {
      const record = await post("people", { state: this.page.state, model: this.page.model, ...this.wish });
      if (mine === this.turn) { this.record = record; this.draw(); }
    } catch (error) {
      if (mine === this.turn) $("find-note").textContent = error.problems?.[0]?.what ?? "The list cannot be read.";
    }
  }

  draw() {
    const { record, wish, page } = this;
    const counts = record.counts;
    const more = Object.keys(counts).filter((v) => !NAMES.some(([k]) => k === v)).map((v) => [v, v.replace("_", " ")]);
    const focused = document.activeElement?.dataset?.verdictChip;
    $("verdicts").replaceChildren(...[...NAMES, ...more].map(([verdict, name]) => el("button", {
      type: "button", class: `chip ${verdict}`, "aria-pressed": String(wish.verdict === verdict && !wish.other), data: { verdictChip: verdict },
      on: { click: () => this.ask({ verdict, offset: 0, other: "" }) },
    }, name, " ", el("span", { class: "count" }, (verdict === "" ? record.found : counts[verdict] ?? 0).toLocaleString("en")))));
    if (focused !== undefined) $("verdicts").querySelector(`[data-verdict-chip="${CSS.escape(focused)}"]`)?.focus();
    const pair = wish.other ? `${wish.verdict} for ${page.model}, ${wish.other_verdict} for ${wish.other}` : "";
    $("find-note").textContent = visible(pair || (record.note && wish.find ? (record.found ? `${record.found.toLocaleString("en")} found ${record.note}` : record.note === "by label" || record.note === "by a condition on features" ? `nobody found ${record.note}` : record.note) : ""));
    const held = document.activeElement?.dataset?.place;
    $("list").replaceChildren(...record.rows.map((row) => this.row(row)));
    if (held !== undefined) $("list").querySelector(`[data-place="${held}"]`)?.focus();
    const last = Math.min(wish.offset + PAGE, record.listed);
    $("page-at").textContent = record.listed ? `${wish.offset + 1}–${last} of ${record.listed.toLocaleString("en")}` : "nobody";
    $("page-back").disabled = wish.offset === 0;
    $("page-on").disabled = last >= record.listed;
  }

  row(row) {
    const { page } = this;
    const others = row.each ? Object.entries(row.each).filter(([m]) => m !== page.model) : [];
    const told = `${row.label}: prediction ${cell(row.prediction)}, responsiveness ${rho(row.rho)}, ${row.verdict}`;
    return el("button", {
      type: "button", class: "who", "aria-current": row.place === page.person ? "true" : null, "aria-label": visible(told), data: { place: String(row.place), rho: String(row.rho) },
      on: { click: () => this.open(row.place) },
    },
    el("span", { class: "label", title: visible(row.label) }, visible(row.label)),
    el("span", { class: "said", title: `prediction ${cell(row.prediction)}` }, cell(row.prediction)),
    el("span", { class: "value" }, rho(row.rho)),
    el("span", { class: "moved" }, page.edited && row.rho !== row.was ? delta(row.rho, row.was) : null),
    gauge(row, page.state.threshold),
    el("span", { class: "under" }, el("span", { class: `verdict ${row.verdict}` }, visible(row.verdict.replace("_", " "))), ...others.map(([m, v]) => el("span", {}, `${visible(m)} ${rho(v)}`))));
  }

  mark(place) {
    this.page.person = place;
    for (const node of $("list").children) {
      if (node.dataset.place === String(place)) node.setAttribute("aria-current", "true");
      else node.removeAttribute("aria-current");
    }
  }

  first() { return this.record?.rows[0]?.place ?? null; }

  async step(by) {
    const rows = this.record?.rows ?? [];
    const at = rows.findIndex((row) => row.place === this.page.person) + by;
    if (at < 0 && this.wish.offset > 0) { await this.ask({ offset: Math.max(0, this.wish.offset - PAGE) }); this.open(this.record.rows.at(-1).place); }
    else if (at >= rows.length && this.wish.offset + PAGE < this.record.listed) { await this.ask({ offset: this.wish.offset + PAGE }); this.open(this.first()); }
    else if (rows[at]) { this.open(rows[at].place); $("list").querySelector(`[data-place="${rows[at].place}"]`)?.scrollIntoView({ block: "nearest" }); }
  }

  keys(event) {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by) return;
    const rows = [...$("list").children];
    const next = rows[rows.indexOf(document.activeElement) + by];
    if (next) { event.preventDefault(); next.focus(); }
  }
}
