// What people may do: constraints and effects as switches, limits of features as fields. Drawn once, then kept in step.

import { $, el, visible, problemLines } from "./dom.js";

export class Edits {
  constructor(page, edit) {
    this.page = page;
    this.edit = edit;
    this.base = null;
    this.rows = [];
  }

  draw() {
    const { page } = this;
    const model = page.base;
    this.base = page.state.base;
    this.rows = [];
    const movable = model.features.filter((f) => f.moving), still = model.features.filter((f) => !f.moving && f.type !== "fixed"), fixed = model.features.filter((f) => f.type === "fixed");
    const list = (features) => features.map((f) => this.feature(f));
    $("edits").replaceChildren(
      el("h2", {}, "What people may do"),
      page.start.live ? el("p", { class: "hint" }, "Every switch answers at once, for this person and for everybody.") : el("p", { class: "note" }, "A saved run alone cannot be explored: start with --data and --model."),
      el("p", { class: "problems-here", role: "alert", id: "edit-problems", hidden: true }),
      model.constraints.length ? el("h3", {}, "Constraints") : "",
      ...model.constraints.map((c, i) => this.switch("off", i, c)),
      model.effects.length ? el("h3", {}, "Effects") : "",
      ...model.effects.map((c, i) => this.switch("off_effects", i, c)),
      el("h3", {}, "Features that move"), ...list(movable),
      still.length ? el("details", { class: "still" }, el("summary", {}, `${still.length} that do not move`), ...list(still)) : "",
      fixed.length ? el("p", { class: "hint" }, `Fixed columns: ${fixed.map((f) => visible(f.name)).join(", ")}`) : "",
    );
    this.sync();
  }

  /** After any change of state: controls show it, and those that differ from what is declared are marked. */
  sync() {
    if (this.base !== this.page.state.base) return this.draw();
    this.problems([]);
    for (const row of this.rows) row();
  }

  moving() { /* which features move is seen in the person's table */ }

  problems(found) {
    const node = $("edit-problems");
    node.hidden = !found.length;
    node.replaceChildren(found.length ? el("ul", {}, ...problemLines(found)) : "");
  }

  async try(change) {
    const result = await this.edit(change);
    if (result !== true) { for (const row of this.rows) row(); this.problems(result); }
  }

  switch(key, i, item) {
    const box = el("input", { type: "checkbox", role: "switch", disabled: !this.page.start.live, data: { [key === "off" ? "constraint" : "effect"]: String(i) } });
    const row = el("label", { class: "toggle" }, box, el("span", { class: "text" }, el("b", {}, visible(item.label)), el("span", { class: "about" }, visible(item.sentence))));
    box.addEventListener("change", () => {
      const off = new Set(this.page.state[key]);
      if (box.checked) off.delete(i); else off.add(i);
      this.try({ [key]: [...off].sort((a, b) => a - b) });
    });
    this.rows.push(() => { const off = this.page.state[key].includes(i); box.checked = !off; row.classList.toggle("edited", off); });
    return row;
  }

  /** The limits as they stand: declared, or as edited. */
  now(f) { return { ...f, ...this.page.state.features[f.name] }; }

  set(f, field, value) {
    const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
    const limits = { ...this.page.state.features[f.name], [field]: value };
    for (const [k, v] of Object.entries(limits)) if (same(v, f[k])) delete limits[k];
    const features = { ...this.page.state.features };
    if (Object.keys(limits).length) features[f.name] = limits; else delete features[f.name];
    return this.try({ features });
  }

  feature(f) {
    const live = this.page.start.live;
    const free = el("input", { type: "checkbox", role: "switch", disabled: !live, "aria-label": visible(`${f.name}: can be moved`), title: "Whether it can be moved directly", data: { feature: f.name, field: "actionable" } });
    free.addEventListener("change", () => this.set(f, "actionable", free.checked));
    const gist = el("span", { class: "gist" });
    const fields = [];
    const number = (field, name, read = (n) => n[field], write = (v) => v) => {
      const box = el("input", { type: "number", step: "any", disabled: !live, "aria-label": visible(`${f.name}: ${name}`), placeholder: "none", data: { feature: f.name, field: name } });
      box.addEventListener("change", () => this.set(f, field, write(box.value === "" ? null : Number(box.value))));
      fields.push(() => { box.value = read(this.now(f)) ?? ""; });
      return el("label", { class: "field" }, name, box);
    };
    let body = null;
    if (f.ranked) {
      const way = el("select", { disabled: !live, "aria-label": visible(`${f.name}: direction`), data: { feature: f.name, field: "direction" } }, el("option", { value: "" }, "both ways"), el("option", { value: "increase" }, "up only"), el("option", { value: "decrease" }, "down only"));
      way.addEventListener("change", () => this.set(f, "direction", way.value || null));
      fields.push(() => { way.value = this.now(f).direction ?? ""; });
      const bounds = f.bounds && f.bounds.every((b) => b !== null);
      const end = (k, name) => number("bounds", name, (n) => n.bounds?.[k], (v) => { const now = [...this.now(f).bounds]; now[k] = v ?? f.bounds[k]; return now; });
      body = el("div", { class: "limits" }, el("label", { class: "field" }, "direction", way), f.type === "binary" ? null : number("max_increase", "at most up"), f.type === "binary" ? null : number("max_decrease", "at most down"), bounds && f.type !== "binary" ? end(0, "lowest") : null, bounds && f.type !== "binary" ? end(1, "highest") : null);
    }
    const name = el("span", { class: "name" }, visible(f.name));
    const head = el("div", { class: "feature-head" }, free, body ? el("details", {}, el("summary", {}, name, gist), body) : el("span", { class: "alone" }, name, gist));
    const row = el("div", { class: "feature", data: { feature: f.name } }, head);
    this.rows.push(() => {
      const n = this.now(f);
      free.checked = n.actionable;
      gist.textContent = gist.title = this.gist(n);
      row.classList.toggle("edited", Boolean(this.page.state.features[f.name]));
      for (const update of fields) update();
    });
    return row;
  }

  gist(n) {
    if (!n.actionable) return n.moving ? "moved by others" : "stays";
    const way = { increase: "↑", decrease: "↓" }[n.direction] ?? "↕";
    const steps = [n.max_increase !== null ? `+${n.max_increase.toLocaleString("en")}` : "", n.max_decrease !== null ? `−${n.max_decrease.toLocaleString("en")}` : ""].filter(Boolean).join(" ");
    if (n.levels) return `${n.levels.length} levels${n.direction || steps ? ` ${way} ${steps}` : ""}`;
    const range = n.bounds && n.type !== "binary" ? `${n.bounds[0]?.toLocaleString("en") ?? "−∞"} – ${n.bounds[1]?.toLocaleString("en") ?? "∞"}` : n.type;
    return `${way} ${steps} ${steps ? "· " : ""}${range}`;
  }
}
