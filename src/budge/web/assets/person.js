// One person: a sentence, the table of what decides, what can be tried, and the points. Everything is computed by the server.

import { button, count, el, fill, picture, problemList, rho, row, scrolled, table } from "./dom.js";
import { DECLARED } from "./address.js";
import { post } from "./api.js";

const READ_ONLY = "This is a saved run without its model: what decides, what can be tried and what rules hold back need it. Start with --data and --model.";

export class PersonView {
  constructor(page) {
    this.page = page;
    this.turn = 0;
  }

  /** Draws a person anew; choices that the address holds are tried again. */
  draw(record) {
    const { page } = this, own = record.models[record.model], pinned = page.state.pin === page.state.p;
    this.record = record;
    this.points = record.points;
    this.pinBox = el("div", { id: "pin" });
    this.pointBox = el("section", { id: "points" });
    fill("person",
      el("div", { class: "head" }, el("div", {}, el("h1", { id: "person-name" }, `Person ${record.label}`), el("p", { class: "hint" }, record.facts.join(" · "))),
        el("span", { class: "tools" },
          button(pinned ? "Pinned" : "Pin to compare", () => page.go({ pin: pinned ? "" : page.state.p }), { id: "pin-this", "aria-pressed": String(pinned) }),
          button("‹", () => page.people.step(-1), { id: "person-back", "aria-label": "Person before", title: "Person before ( [ )" }), button("›", () => page.people.step(1), { id: "person-on", "aria-label": "Next person", title: "Next person ( ] )" }))),
      el("p", { class: "say", id: "sentence", data: { rho: own.rho, n: own.n, hits: own.hits } }, record.say.join(" ")),
      page.edits.length ? el("div", { class: "edited", id: "edited" }, el("span", {}, `Edited: ${page.edits.join("; ")}. ${record.declared}`), button("Back to the declared rules", () => page.go(DECLARED), { id: "reset" })) : "",
      this.pinBox,
      record.broken?.length ? el("div", { class: "note warn" }, problemList(record.broken)) : "",
      record.status === "saved" ? el("p", { class: "note", id: "read-only" }, READ_ONLY) : record.points ? [this.mosaic(), this.tryBox(), this.pointBox] : "",
      record.still ? el("details", {}, el("summary", {}, `What cannot change for ${record.label}`), el("dl", { class: "still" }, record.still.flatMap(([k, v]) => [el("dt", {}, k), el("dd", {}, v)]))) : "");
    if (!record.points) return;
    this.drawPoints();
    if (page.state.cell) page.run(this.list(page.state.cell));
    page.run(this.attempt(page.state.at));
  }

  fail(record) {
    this.record = null;
    fill("person", el("h1", { id: "person-name" }, `Person ${this.page.state.p}`), el("div", { class: "note warn" }, el("p", {}, "Nothing can be computed for this person:"), problemList(record.problems)));
  }

  pin(record) {
    const mine = this.record, { differs } = record;
    if (!mine || !record.say) return;
    const side = (title, one) => el("div", {}, el("h2", {}, title), el("p", { class: "hint" }, one.facts.join(" · ")), el("p", {}, one.say.join(" ")));
    fill(this.pinBox, el("div", { class: "pins" }, side(`Person ${mine.label}`, mine), side(`Pinned: person ${record.label}`, record)),
      differs.length ? el("details", { id: "differs" }, el("summary", {}, `Differs in ${count(differs.length)} features, of which ${count(differs.filter((d) => d.moves).length)} can change`),
        table("What differs", ["Feature", mine.label, record.label, "Can change"], differs.map((d) => row(d.feature, d.mine, d.other, d.moves ? "yes" : "no")))) : "",
      button("Unpin", () => this.page.go({ pin: "" }), { id: "unpin" }));
  }

  // -- what decides ------------------------------------------------------------------------------------------------------

  mosaic() {
    const { table: cells, caption } = this.record, rows = cells?.map((line) => el("tr", {}, line.map((cell) => this.cell(cell)))) ?? [];
    const body = cells?.findIndex((line) => line.some((cell) => cell.tag === "td" && cell.cls !== "corner"));
    return el("section", { id: "mosaic" }, el("h2", {}, `Which combinations lead to ${this.page.start.aim}`),
      cells ? [el("p", { class: "hint" }, "Choose a cell to list its points and to try the best of them."), scrolled("Table of what decides", { class: "mosaic" }, rows.slice(0, body), rows.slice(body))] : "",
      el("p", { class: "hint" }, caption || "Nothing that this person can change makes a difference: there is one point."));
  }

  cell(cell) {
    const span = { colspan: cell.across, rowspan: cell.down, scope: cell.scope || null };
    if (!cell.key) return el(cell.tag, { class: cell.cls, ...span }, cell.text);
    const choose = () => this.page.go({ cell: this.page.state.cell === cell.key ? "" : cell.key }, false);
    return el("td", span, button([cell.text, cell.small ? el("small", {}, cell.small) : ""], choose, { class: cell.cls, data: { cell: cell.key }, "aria-pressed": "false", "aria-label": [cell.title, cell.small].filter(Boolean).join(", ") }));
  }

  /** Lists the points of a cell (of all, where none is named); `best`: tries the one nearest to the target. */
  async list(cell, best = false) {
    const found = await this.ask("points", { cell }, { cell: "" });
    if (!found) return;
    this.points = found;
    for (const own of document.querySelectorAll("[data-cell]")) own.setAttribute("aria-pressed", own.dataset.cell === cell);
    this.drawPoints();
    if (best && cell && found.at) await this.page.go({ at: found.at }, false);
  }

  /** Asks about the open person; nothing where another one has been opened since, or where the choice is refused: it is taken back. */
  async ask(path, more, back) {
    const mine = this.record;
    if (!mine?.points) return null;
    try {
      const found = await post(path, { ...this.page.request(), who: this.page.state.p, ...more });
      return mine === this.record ? found : null;
    } catch (error) {
      if (error.status !== 400) throw error;
      await this.page.go(back, false);
      return null;
    }
  }

  // -- trying a change ---------------------------------------------------------------------------------------------------

  tryBox() {
    const { label, controls, goal } = this.record, go = (text, at, props) => button(text, () => this.page.go({ at }, false), props);
    this.outcome = el("p", { class: "outcome", id: "outcome", "aria-live": "polite" });
    this.controls = controls.map((control, k) => this.control(control, k));
    return el("section", { id: "try" }, el("h2", {}, "Try a change"),
      el("p", { class: "hint" }, controls.length ? `Only what person ${label} can reach is offered; • marks today’s value.` : "There is nothing that this person can change."),
      el("div", { class: "result" }, this.outcome, this.chart()),
      el("div", { class: "controls" }, this.controls),
      el("p", { class: "tools" }, goal ? go("Go to the least change", goal, { id: "goal", class: "main" }) : "", controls.length ? go("Back to today", null, { id: "today" }) : ""));
  }

  control({ name, levels, now, slider }, k) {
    const id = `control-${k}`, group = `name-${k}`;
    if (slider) {
      const range = el("input", { type: "range", id, min: 0, max: levels.length - 1, on: { input: () => this.choose(k, Number(range.value)) } });
      return el("div", { class: "control" }, el("label", { for: id }, name), el("span", { class: "slide" }, range, el("output"), el("span", { class: "hint" }, `${levels[0]} to ${levels.at(-1)}`)));
    }
    const radio = (text, i) => el("label", { class: i === now ? "now" : null }, el("input", { type: "radio", name: id, value: i, on: { change: () => this.choose(k, i) } }), text);
    return el("div", { class: "control" }, el("span", { id: group }, name), el("span", { class: "seg", role: "radiogroup", "aria-labelledby": group }, levels.map(radio)));
  }

  /** The levels of the controls: chosen, or today's. */
  levels(at) { return at ?? this.record.controls.map((control) => Math.max(control.now, 0)); }

  choose(k, level) {
    this.page.go({ at: this.levels(this.page.state.at).with(k, level) }, false);
  }

  /** Sets the controls to a choice and shows what comes of it; the answer to an older one is not shown. */
  async attempt(at) {
    if (!this.record?.points) return;
    const mine = ++this.turn, { controls, today } = this.record;
    if (at && at.length !== controls.length) { await this.page.go({ at: null }, false); return; }
    this.levels(at).forEach((level, k) => {
      const input = this.controls[k].querySelector(`input[type=range], input[value="${level}"]`);
      if (input?.type !== "range") { if (input) input.checked = true; return; }
      input.value = level;
      input.setAttribute("aria-valuetext", controls[k].levels[level]);
      fill(input.nextElementSibling, controls[k].levels[level]);
    });
    const found = at ? await this.ask("try", { at }, { at: null }) : today;
    if (found && mine === this.turn) this.result(found);
  }

  result({ state, head, answer, hints, score, output }) {
    fill(this.outcome, el("b", { class: state }, head), answer ? ` ${answer}` : "", el("span", { class: "hint" }, hints.map((text) => ` · ${text}`)));
    Object.assign(this.outcome.dataset, { state, score: score ?? "", output: output ?? "" });
    if (!this.marker) return;
    this.marker.hidden = score === null;
    this.marker.style.left = `${Math.max(0, Math.min(100, this.spot(score)))}%`;
    fill(this.marker, output);
  }

  // -- outputs of all points ------------------------------------------------------------------------------------------------

  chart() {
    const { chart } = this.record;
    this.marker = null;
    if (!chart) return "";
    this.spot = (value) => (100 * (value - chart.low)) / (chart.high - chart.low);
    this.marker = el("span", { class: "marker" });
    const cut = chart.cut === null ? "" : el("span", { class: "cut" }, el("span", { class: this.spot(chart.cut) > 60 ? "left" : null }, `needs ${chart.needs}`));
    if (cut) cut.style.left = `${this.spot(chart.cut)}%`;
    return el("div", { class: "chart" }, picture(chart.svg), cut, this.marker);
  }

  // -- points ----------------------------------------------------------------------------------------------------------------

  drawPoints() {
    const { points, page } = this, left = points.listed - points.rows.length, weighted = points.rows[0]?.weight !== undefined;
    const rows = points.rows.map((point) => el("tr", { class: point.hit ? "hit" : null }, el("td", { class: "num" }, point.output ?? "no answer"), el("td", {}, point.hit ? "yes" : "no"),
      weighted ? el("td", { class: "num" }, rho(point.weight)) : "", point.cells.map(([text, moved]) => el("td", { class: moved ? "moved" : "same" }, text))));
    const heads = ["Output", `Leads to ${page.start.aim}`, weighted ? "Weight" : [], points.columns].flat();
    fill(this.pointBox, el("h2", {}, points.drawn ? "Draws " : "Points ", el("span", { class: "hint", id: "points-note", data: { listed: points.listed, hits: points.hits } }, points.note), " ", page.state.cell ? button("Show all", () => page.go({ cell: "" }, false), { id: "show-all" }) : ""),
      scrolled("Table of points", { class: "pts" }, el("tr", {}, heads.map((text, i) => el("th", { scope: "col", class: i ? null : "num" }, text))), rows),
      left > 0 ? button(`and ${count(left)} more`, () => page.run(this.more()), { id: "points-more" }) : "");
  }

  async more() {
    const found = await this.ask("points", { cell: this.page.state.cell, offset: this.points.rows.length }, { cell: "" });
    if (!found) return;
    this.points = { ...found, rows: [...this.points.rows, ...found.rows] };
    this.drawPoints();
  }
}
