// One person: a sentence, the table of what decides, what can be tried, and the points. Everything is computed by the server.

import { $, button, count, el, problemLines, rho, row, svg, table, visible } from "./dom.js";
import { post } from "./api.js";

export class PersonView {
  constructor(page) {
    this.page = page;
    this.turn = 0;
  }

  /** Draws a person anew; choices that the address holds are tried again. */
  draw(record) {
    const { page } = this;
    this.record = record;
    this.points = record.points;
    const others = Object.entries(record.models).filter(([m]) => m !== record.model).map(([m, row]) => `${visible(m)}: ρ ${rho(row.rho)}`);
    const own = record.models[record.model];
    const today = `${page.start.models.length > 1 ? `${visible(record.model)}: ` : ""}output ${visible(record.today?.output ?? own.prediction)} today`;
    this.pinBox = el("div", { id: "pin" });
    this.pointBox = el("section", { id: "points" });
    $("person").replaceChildren(
      el("div", { class: "head" }, el("div", {}, el("h1", { id: "person-name" }, `Person ${visible(record.label)}`), el("p", { class: "hint" }, [...record.facts.map(visible), today, ...others].join(" · "))),
        el("span", { class: "tools" },
          button(page.state.pin === page.state.p ? "Pinned" : "Pin to compare", () => page.go({ pin: page.state.pin === page.state.p ? "" : page.state.p }), { id: "pin-this", "aria-pressed": String(page.state.pin === page.state.p) }),
          button("‹", () => page.people.step(-1), { id: "person-back", "aria-label": "Person before", title: "Person before ( [ )" }), button("›", () => page.people.step(1), { id: "person-on", "aria-label": "Next person", title: "Next person ( ] )" }))),
      el("p", { class: "say", id: "sentence", data: { rho: own.rho, n: own.n, hits: own.hits, verdict: own.verdict } }, visible(record.say.join(" "))),
      this.edited(), this.pinBox,
      ...(record.broken?.length ? [el("ul", { class: "note warn" }, ...problemLines(record.broken))] : []),
      ...(record.status === "saved" ? [el("p", { class: "note", id: "read-only" }, "This is a saved run without its model: what decides, what can be tried and what rules hold back need it. Start with --data and --model.")]
        : record.points ? [this.mosaic(), this.tryBox(), this.pointBox] : []),
      record.still ? el("details", {}, el("summary", {}, `What cannot change for ${visible(record.label)}`), el("dl", { class: "still" }, record.still.flatMap(([k, v]) => [el("dt", {}, visible(k)), el("dd", {}, visible(v))]))) : "",
    );
    if (!record.points) return;
    this.drawPoints();
    if (page.state.cell) this.list(page.state.cell).catch((error) => page.fail(error));
    this.result(record.today);
    if (page.state.at) this.attempt(page.state.at);
  }

  fail(record) {
    this.record = null;
    $("person").replaceChildren(el("h1", { id: "person-name" }, `Person ${visible(this.page.state.p)}`), el("div", { class: "note warn" }, el("p", {}, "Nothing can be computed for this person:"), el("ul", {}, ...problemLines(record.problems))));
  }

  /** What was edited, and the way back. */
  edited() {
    const { page } = this, was = this.record.declared, before = was ? ` As declared: ${count(was.hits)} of ${count(was.n)} ${was.method === "exact" ? "points" : "draws"} (ρ ${rho(was.rho)}).` : "";
    return page.edits.length ? el("div", { class: "edited", id: "edited" }, el("span", {}, `Edited: ${visible(page.edits.join("; "))}.${before}`), button("Back to the declared rules", () => page.reset(), { id: "reset" })) : "";
  }

  pin(record) {
    if (!record.say) return this.pinBox?.replaceChildren();
    const mine = this.record, line = (one) => { const row = one.models[mine.model]; return `ρ ${rho(row?.rho)}, ${count(row?.hits ?? 0)} of ${count(row?.n ?? 0)}`; };
    const side = (title, one) => el("div", {}, el("h2", {}, title), el("p", { class: "hint" }, [...one.facts.map(visible), line(one)].join(" · ")), el("p", {}, visible(one.say.join(" "))));
    this.pinBox.replaceChildren(el("div", { class: "pins" }, side(`Person ${visible(mine.label)}`, mine), side(`Pinned: person ${visible(record.label)}`, record)),
      record.differs.length ? el("details", { id: "differs" }, el("summary", {}, `Differs in ${count(record.differs.length)} features, of which ${count(record.differs.filter((d) => d.moves).length)} can change`),
        table(["Feature", visible(mine.label), visible(record.label), "Can change"], record.differs.map((d) => row(visible(d.feature), visible(d.mine), visible(d.other), d.moves ? "yes" : "no")))) : "",
      button("Unpin", () => this.page.go({ pin: "" }), { id: "unpin" }));
  }

  // -- what decides ------------------------------------------------------------------------------------------------------

  mosaic() {
    const { table, caption } = this.record, aim = visible(this.page.start.words.aim);
    const box = el("section", { id: "mosaic" }, el("h2", {}, `Which combinations lead to ${aim}`));
    if (table) {
      const body = table.findIndex((line) => line.some((cell) => cell.tag === "td" && cell.cls !== "corner"));
      const lines = (some) => some.map((line) => el("tr", {}, ...line.map((cell) => this.cell(cell))));
      box.append(el("p", { class: "hint" }, "Choose a cell to list its points and to try the best of them."),
        el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Table of what decides" }, el("table", { class: "mosaic" }, el("thead", {}, ...lines(table.slice(0, body))), el("tbody", {}, ...lines(table.slice(body))))));
    }
    box.append(el("p", { class: "hint" }, visible(caption || "Nothing that this person can change makes a difference: there is one point.")));
    return box;
  }

  cell(cell) {
    const span = { colspan: cell.across > 1 ? cell.across : null, rowspan: cell.down > 1 ? cell.down : null, scope: cell.scope || null };
    if (!cell.key) return el(cell.tag, { class: cell.cls, ...span }, visible(cell.text));
    const pick = button([visible(cell.text), cell.small ? el("small", {}, cell.small) : null], () => this.page.go({ cell: this.page.state.cell === cell.key ? "" : cell.key }, false), { class: cell.cls, data: { cell: cell.key }, "aria-pressed": "false", "aria-label": `${visible(cell.title)}${cell.small ? `, ${cell.small}` : ""}` });
    return el("td", span, pick);
  }

  /** Lists the points of a cell (of all, where none is named); `best`: tries the one nearest to the target. */
  async list(cell, best = false) {
    if (!this.record?.points) return;
    let found;
    try { found = await this.ask("points", { cell }); } catch (error) { if (error.status !== 400) throw error; return this.page.go({ cell: "" }, false); }
    if (!found) return;
    this.points = found;
    for (const own of document.querySelectorAll("[data-cell]")) own.setAttribute("aria-pressed", String(own.dataset.cell === cell));
    this.drawPoints();
    if (best && cell && found.at) await this.page.go({ at: found.at }, false);
  }

  // -- trying a change ---------------------------------------------------------------------------------------------------

  tryBox() {
    const { record } = this;
    this.live = el("p", { class: "outcome", id: "outcome", "aria-live": "polite" });
    this.controls = record.controls.map((control, k) => this.control(control, k));
    return el("section", { id: "try" }, el("h2", {}, "Try a change"),
      el("p", { class: "hint" }, record.controls.length ? `Only what person ${visible(record.label)} can reach is offered; • marks today’s value.` : "There is nothing that this person can change."),
      el("div", { class: "result" }, this.live, this.chart()),
      el("div", { class: "controls" }, ...this.controls),
      el("p", { class: "tools" }, record.goal ? button("Go to the least change", () => this.page.go({ at: record.goal }, false), { id: "goal", class: "main" }) : "",
        record.controls.length ? button("Back to today", () => this.page.go({ at: null }, false), { id: "today" }) : ""));
  }

  control(control, k) {
    const name = visible(control.name), levels = control.levels.map(visible), at = Math.max(control.now, 0);
    if (control.slider) {
      const said = el("output", {}, levels[at]), slider = el("input", { type: "range", id: `control-${k}`, min: 0, max: levels.length - 1, value: at, "aria-valuetext": levels[at], data: { control: k } });
      slider.addEventListener("input", () => this.choose(k, Number(slider.value)));
      return el("div", { class: "control" }, el("label", { for: `control-${k}` }, name), el("span", { class: "slide" }, slider, said, el("span", { class: "hint" }, `${levels[0]} to ${levels.at(-1)}`)));
    }
    return el("div", { class: "control" }, el("span", { id: `name-${k}` }, name), el("span", { class: "seg", role: "radiogroup", "aria-labelledby": `name-${k}` },
      ...levels.map((text, i) => el("label", { class: i === control.now ? "now" : null }, el("input", { type: "radio", name: `control-${k}`, value: i, checked: i === at, data: { control: k }, on: { change: () => this.choose(k, i) } }), text))));
  }

  choose(k, level) {
    const at = [...(this.page.state.at ?? this.record.controls.map((c) => Math.max(c.now, 0)))];
    at[k] = level;
    this.set(at);
    this.page.go({ at }, false);
  }

  /** Sets the controls to levels, without a change of their own. */
  set(at) {
    this.record.controls.forEach((control, k) => {
      const level = at ? at[k] : Math.max(control.now, 0), slider = this.controls[k].querySelector("input[type=range]");
      if (!slider) { const radio = this.controls[k].querySelector(`input[value="${level}"]`); if (radio) radio.checked = true; return; }
      slider.value = level;
      slider.setAttribute("aria-valuetext", visible(control.levels[level]));
      slider.nextElementSibling.textContent = visible(control.levels[level]);
    });
  }

  /** Asks what comes of a choice; the answer to an older one is not shown. */
  async attempt(at) {
    if (!this.record?.points) return;
    const mine = ++this.turn;
    if (at && at.length !== this.record.controls.length) return this.page.go({ at: null }, false);
    this.set(at);
    if (!at) return this.result(this.record.today);
    try {
      const found = await this.ask("try", { at });
      if (found && mine === this.turn) this.result(found);
    } catch (error) {
      if (error.status === 400) this.page.go({ at: null }, false); else this.page.fail(error);
    }
  }

  /** Asks about the open person; nothing where another one has been opened since. */
  async ask(path, more) {
    const mine = this.record, found = await post(path, { ...this.page.request(), who: this.page.state.p, ...more });
    return mine === this.record ? found : null;
  }

  result(found) {
    const aim = visible(this.page.start.words.aim), { today } = this.record;
    const state = !found.feasible ? "barred" : !found.answered ? "open" : found.draws > 1 ? "draws" : found.hit ? "yes" : "no";
    const head = { barred: "Cannot be reached", open: "No answer", yes: `Leads to ${aim}`, no: `Does not lead to ${aim}`, draws: `Leads to ${aim} in ${count(found.hits ?? 0)} of ${count(found.draws ?? 0)} draws of what follows` }[state];
    const output = found.output ? ` ${found.draws > 1 ? "median output" : "output"} ${visible(found.output)}${found.today || !today.output ? "" : ` (today ${visible(today.output)})`}` : "";
    const follows = (found.follows ?? []).map(([name, from, to]) => `${visible(name)} ${visible(to)} (today ${visible(from)}, follows)`);
    this.live.replaceChildren(el("b", { class: state }, head), output ? el("span", {}, output) : "", el("span", { class: "hint" }, [...(found.why ?? []).map(visible), ...follows].map((t) => ` · ${t}`).join("")));
    Object.assign(this.live.dataset, { state, score: found.score ?? "", output: found.output ?? "" });
    this.place(found.score ?? null, found.output);
  }

  // -- outputs of all points ------------------------------------------------------------------------------------------------

  chart() {
    const { chart } = this.record;
    this.marker = null;
    if (!chart) return "";
    const n = chart.hits.length, most = Math.max(...chart.hits.map((h, i) => h + chart.misses[i]));
    const bar = (i, from, k, cls) => (k ? [svg("rect", { class: cls, x: i + 0.06, y: 40 - (40 * (from + k)) / most, width: 0.88, height: Math.max((40 * k) / most, 1.5) })] : []);
    const bars = chart.hits.flatMap((h, i) => [...bar(i, 0, chart.misses[i], "miss"), ...bar(i, chart.misses[i], h, "hit")]);
    const spot = (v) => (100 * (v - chart.low)) / (chart.high - chart.low), cut = chart.cut === null ? null : spot(chart.cut);
    const zone = cut === null ? [] : [svg("rect", { class: "zone", x: chart.lower ? 0 : (cut * n) / 100, y: 0, width: (n * (chart.lower ? cut : 100 - cut)) / 100, height: 40 })];
    const drawn = svg("svg", { viewBox: `0 0 ${n} 40`, preserveAspectRatio: "none", role: "img", "aria-label": `Outputs of ${count(this.record.points.of)} ${this.record.points.drawn ? "draws" : "points"}; best ${this.record.best}${cut === null ? "" : `; ${this.page.start.words.aim} needs ${chart.needs}`}` }, ...zone, ...bars);
    this.marker = el("span", { class: "marker" });
    this.spot = spot;
    const line = el("span", { class: "cut" }, el("span", { class: cut > 60 ? "left" : null }, `needs ${chart.needs}`));
    if (cut !== null) line.style.left = `${cut}%`;
    return el("div", { class: "chart" }, drawn, cut === null ? "" : line, this.marker);
  }

  place(score, text) {
    if (!this.marker) return;
    this.marker.hidden = score === null;
    if (score === null) return;
    this.marker.style.left = `${Math.max(0, Math.min(100, this.spot(score)))}%`;
    this.marker.textContent = visible(text);
  }

  // -- points ----------------------------------------------------------------------------------------------------------------

  drawPoints() {
    const { points, page } = this, kind = points.drawn ? "draws" : "points", cell = points.listed < points.of || page.state.cell;
    const head = cell ? `in the cell chosen: ${count(points.listed)} of ${count(points.of)}` : `all ${count(points.of)}, nearest to ${visible(page.start.words.aim)} first`;
    const rows = points.rows.map((row) => el("tr", { class: row.hit ? "hit" : null }, el("td", { class: "num" }, row.output === null ? "no answer" : visible(row.output)), el("td", {}, row.hit ? "yes" : "no"), row.weight === undefined ? null : el("td", { class: "num" }, rho(row.weight)), ...row.cells.map(([text, moved]) => el("td", { class: moved ? "moved" : "same" }, visible(text)))));
    const heads = ["Output", `Leads to ${visible(page.start.words.aim)}`, ...(points.rows[0]?.weight === undefined ? [] : ["Weight"]), ...points.columns.map(visible)];
    const left = points.listed - points.rows.length;
    this.pointBox.replaceChildren(el("h2", {}, `${points.drawn ? "Draws" : "Points"} `, el("span", { class: "hint", id: "points-note", data: { listed: points.listed, hits: points.hits } }, head), " ", page.state.cell ? button("Show all", () => page.go({ cell: "" }, false), { id: "show-all" }) : ""),
      el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": `Table of ${kind}` }, el("table", { class: "pts" }, el("thead", {}, el("tr", {}, ...heads.map((t, i) => el("th", { scope: "col", class: i ? null : "num" }, t)))), el("tbody", {}, ...rows))),
      left > 0 ? button(`and ${count(left)} more`, () => this.more(), { id: "points-more" }) : "");
  }

  async more() {
    const found = await this.ask("points", { cell: this.page.state.cell, offset: this.points.rows.length }).catch((error) => this.page.fail(error));
    if (!found) return;
    this.points = { ...found, rows: [...this.points.rows, ...found.rows] };
    this.drawPoints();
  }
}
