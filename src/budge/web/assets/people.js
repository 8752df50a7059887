// The list: the harmed first, in the order of the declared rules, so that it does not move under an edit. One page of it at a time.

import { $, button, count, el, mark, rho, roving, visible, words } from "./dom.js";
import { post } from "./api.js";

const ALWAYS = ["none", "below", "at", "above"];
const CHIPS = ["none", "nohit", "below", "at", "open", "above", "has", "out", "odd", "wait"];

export class People {
  constructor(page) {
    this.page = page;
    this.rows = [];
    this.turn = 0;
    $("find-form").addEventListener("submit", (event) => { event.preventDefault(); if (this.rows.length) page.go({ p: who(this.rows[0]), view: "" }); });
    $("find").addEventListener("input", () => { clearTimeout(this.typing); this.typing = setTimeout(() => page.go({ find: $("find").value }, false), 120); });
    $("list").addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); document.activeElement.click(); }
      roving(event, [...$("list").children], (item) => this.focus(item));
    });
    $("more").addEventListener("click", () => this.load(this.rows.length));
  }

  /** Asks for the list (from `offset` on: for more of it). */
  async load(offset = 0) {
    const mine = ++this.turn, { state } = this.page;
    const [other, otherShow] = state.other.split(":");
    const found = await post("people", { ...this.page.request(), show: state.show, find: state.find, offset, other, other_show: otherShow ?? "" });
    if (mine !== this.turn) return null;
    this.rows = offset ? [...this.rows, ...found.rows] : found.rows;
    this.found = found;
    this.draw();
    return found;
  }

  draw() {
    const { page, found } = this, { state } = page, named = words(page.tau);
    if ($("find").value !== state.find && document.activeElement !== $("find")) $("find").value = state.find;
    const total = Object.values(found.counts).reduce((a, b) => a + b, 0);
    const usual = ALWAYS.filter((k) => k !== "none" || !found.counts.nohit || found.counts.none);
    const chip = (key, text, k) => button([el("span", {}, text), " ", el("b", {}, count(k))], () => page.go({ show: key, other: "" }), { data: { show: key, count: k }, "aria-pressed": String(found.show === key) });
    $("chips").replaceChildren(...CHIPS.filter((k) => usual.includes(k) || found.counts[k]).map((k) => chip(k, named[k], found.counts[k] ?? 0)), chip("all", "everyone", total));
    const [other, where] = state.other.split(":");
    $("find-note").textContent = visible([found.note, state.find ? `${count(total)} found` : "", where ? `of these, ${named[where]} for ${other}` : ""].filter(Boolean).join(" · "));
    $("list").replaceChildren(...(this.rows.length ? this.rows.map((row) => this.item(row)) : [el("li", { class: "nobody", role: "option", "aria-disabled": "true" }, "Nobody.")]));
    $("more").hidden = this.rows.length >= found.listed;
    $("more").textContent = `Show more (${count(this.rows.length)} of ${count(found.listed)})`;
    this.mark();
  }

  item(row) {
    const { page } = this, moved = row.now !== undefined && row.category_now !== "wait" && rho(row.now) !== rho(row.rho);
    const n = moved ? row.n_now : row.n;
    const each = row.each ? Object.entries(row.each).filter(([m, v]) => m !== page.model && v !== null).slice(0, 2).map(([m, v]) => `${visible(m)} ${rho(v)}`) : [];
    return el("li", { role: "option", tabindex: -1, data: { who: who(row), place: row.place, rho: row.rho, category: row.category }, on: { click: () => page.go({ p: who(row), view: "", at: null, cell: "" }) } },
      mark(row.category),
      el("span", { class: "who" }, visible(row.label), el("small", {}, [...row.facts.map(visible), ...each].join(" · ") || words(page.tau)[row.category])),
      el("span", { class: "v" }, moved ? [rho(row.rho), " → ", el("b", {}, rho(row.now))] : rho(row.rho), el("small", {}, n ? `${row.drawn ? "by" : "of"} ${count(n)}` : "")));
  }

  /** Marks the open person; the list has one stop for the tabulator. */
  mark() {
    const items = [...$("list").children], open = items.find((item) => item.dataset.who === this.page.state.p);
    for (const item of items) { item.setAttribute("aria-selected", String(item === open)); item.tabIndex = -1; }
    const stop = open ?? items[0];
    if (stop) stop.tabIndex = 0;
    const list = $("list"), top = open ? open.offsetTop - list.offsetTop : 0;
    if (open && (top < list.scrollTop || top + open.offsetHeight > list.scrollTop + list.clientHeight)) list.scrollTop = top - list.clientHeight / 3;
  }

  focus(item) {
    for (const other of $("list").children) other.tabIndex = -1;
    item.tabIndex = 0;
    item.focus();
  }

  /** Opens the person before or after. */
  step(by) {
    const at = this.rows.findIndex((row) => who(row) === this.page.state.p), next = this.rows[at + by];
    if (next) this.page.go({ p: who(next), at: null, cell: "" });
  }
}

const who = (row) => row.who ?? row.label;
