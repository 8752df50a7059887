// The list: the harmed first, in the order of the declared rules, so that it does not move under an edit. One page of it at a time.

import { $, button, count, decimals, el, fill, mark, rho, roving } from "./dom.js";
import { UNTRIED } from "./address.js";
import { post } from "./api.js";

export class People {
  constructor(page) {
    this.page = page;
    this.rows = [];
    this.turn = 0;
    $("find-form").addEventListener("submit", (event) => { event.preventDefault(); this.open(this.rows[0]); });
    $("find").addEventListener("input", () => { clearTimeout(this.typing); this.typing = setTimeout(() => page.go({ find: $("find").value }, false), 120); });
    $("list").addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); document.activeElement.click(); }
      roving(event, [...$("list").children], (item) => { this.stop(item); item.focus(); });
    });
    $("more").addEventListener("click", () => page.run(this.load(this.rows.length)));
  }

  /** Asks for the list (from `offset` on: for more of it). */
  async load(offset = 0) {
    const mine = ++this.turn, { show, find, other: both } = this.page.state, [other, other_show = ""] = both.split(":");
    const found = await post("people", { ...this.page.request(), show, find, offset, other, other_show });
    if (mine !== this.turn) return;
    this.rows = offset ? [...this.rows, ...found.rows] : found.rows;
    this.draw(found);
  }

  draw(found) {
    const { page } = this, { find, other: both } = page.state, [other, where] = both.split(":");
    if (document.activeElement !== $("find")) $("find").value = find;
    const chip = ([key, text, k]) => button([el("span", {}, text), " ", el("b", {}, count(k))], () => page.go({ show: key, other: "" }), { data: { show: key, count: k }, "aria-pressed": String(found.show === key) });
    fill("chips", found.chips.map(chip));
    fill("find-note", [found.note, find ? `${count(found.found)} found` : "", where ? `of these, ${page.start.names[where]} for ${other}` : ""].filter(Boolean).join(" · "));
    fill("list", this.rows.length ? this.rows.map((row) => this.item(row)) : el("li", { class: "nobody", role: "option", "aria-disabled": "true" }, "Nobody."));
    $("more").hidden = this.rows.length >= found.listed;
    fill("more", `Show more (${count(this.rows.length)} of ${count(found.listed)})`);
    this.mark();
  }

  item(row) {
    const moved = row.now !== undefined && row.category_now !== "wait" && rho(row.now) !== rho(row.rho), n = moved ? row.n_now : row.n;
    const each = Object.entries(row.each ?? {}).filter(([m, v]) => m !== this.page.model && v !== null).slice(0, 2).map(([m, v]) => `${m} ${rho(v)}`);
    return el("li", { role: "option", tabindex: -1, data: { who: row.who, rho: row.rho, category: row.category }, on: { click: () => this.open(row) } },
      mark(row.category),
      el("span", { class: "who" }, row.label, el("small", {}, [...row.facts, ...each].join(" · ") || this.page.start.names[row.category])),
      el("span", { class: "v" }, decimals(row.rho), moved ? [" → ", el("b", {}, decimals(row.now))] : "", el("small", {}, n ? `${row.drawn ? "by" : "of"} ${count(n)}` : "")));
  }

  /** Marks the open person. */
  mark() {
    const list = $("list"), items = [...list.children], open = items.find((item) => item.dataset.who === this.page.state.p);
    for (const item of items) item.setAttribute("aria-selected", item === open);
    this.stop(open ?? items[0]);
    const top = open ? open.offsetTop - list.offsetTop : 0;
    if (open && (top < list.scrollTop || top + open.offsetHeight > list.scrollTop + list.clientHeight)) list.scrollTop = top - list.clientHeight / 3;
  }

  /** Makes one line the list's stop for the tabulator. */
  stop(item) { for (const own of $("list").children) own.tabIndex = own === item ? 0 : -1; }

  open(row) { if (row) this.page.go({ ...UNTRIED, p: row.who, view: "" }); }

  /** Opens the person before or after. */
  step(by) {
    const next = this.rows[this.rows.findIndex((row) => row.who === this.page.state.p) + by];
    if (next) this.page.go({ ...UNTRIED, p: next.who });
  }
}
