// Rules: what each alone holds back, switches, limits of features, the threshold, and what leaves the page. Drawn once per spec, then kept in step.

import { button, choice, el, fill, problemList } from "./dom.js";
import { UNTRIED } from "./address.js";
import { download, post } from "./api.js";

const WAYS = [["", "both ways"], ["increase", "up only"], ["decrease", "down only"]];

export class Rules {
  constructor(page) { this.page = page; }

  draw() {
    const { page } = this, { rules, features, fixed, of } = page.declared, { live } = page.start;
    const coding = rules.filter((r) => r.coding), own = rules.filter((r) => !r.coding);
    this.base = page.state.base;
    this.problems = el("div", { class: "note warn", id: "edit-problems", role: "alert", hidden: true });
    this.tau = el("input", { id: "threshold", type: "number", min: 0.001, max: 0.999, step: "any", disabled: !live, on: { change: () => this.edit({ tau: this.tau.value === "" ? null : Number(this.tau.value) }) } });
    this.boxes = [];
    fill("rules", el("h2", {}, "Rules"),
      el("p", { class: "hint" }, live ? "Switch a rule off to see what it holds back. Each line counts this rule alone." : "A saved run without its model: rules cannot be switched. Start with --data and --model."),
      this.problems, own.length ? own.map((rule) => this.rule(rule)) : el("p", {}, "No rule ties features together."),
      coding.length ? el("details", {}, el("summary", {}, "Codings"), el("p", { class: "hint" }, "They tie dummies together: without one, people are described who cannot be."), coding.map((rule) => this.rule(rule))) : "",
      live ? el("details", { id: "limits" }, el("summary", {}, "Limits of features"), features.map((f) => this.feature(f))) : "",
      el("p", { class: "hint" }, `${fixed} of ${of} features ${fixed === 1 ? "is" : "are"} fixed.`),
      el("label", { class: "tau" }, "Threshold τ ", this.tau),
      el("p", { class: "tools" }, this.save("spec", "Download the edited spec as YAML", "Spec ↓", "spec/text", "yaml", "application/yaml"),
        this.save("report", "Download the report of the edited model, one HTML file", "Report ↓", "report", "html", "text/html")));
    this.sync();
  }

  rule(rule) {
    const box = el("input", { type: "checkbox", role: "switch", data: { rule: rule.id }, disabled: !this.page.start.live, on: { change: () => this.switch(rule.id) } });
    return el("label", { class: "rule", data: { of: rule.id } }, el("b", {}, rule.title), box, rule.sentence ? el("span", { class: "about" }, rule.sentence) : "", el("span", { class: "counts" }));
  }

  switch(id) {
    const { off } = this.page.state;
    return this.edit({ off: off.includes(id) ? off.filter((own) => own !== id) : [...off, id].sort() });
  }

  /** What one rule holds back. */
  told({ id, lines, person, people }) {
    const line = document.querySelector(`[data-of="${CSS.escape(id)}"] .counts`);
    if (!line) return;
    fill(line, lines.map(({ text, hot }, i) => [i ? "; " : "Without it: ", el(hot ? "b" : "span", {}, text[0]), ` ${text[1]}`]));
    Object.assign(line.dataset, { hits: person?.hits ?? "", n: person?.n ?? "", able: people?.able ?? "", of: people?.of ?? "" });
  }

  /** The limits of one feature; each box knows its value in the state, and the edit that it makes of its own. */
  feature(f) {
    const field = (name, label, type) => {
      const data = { feature: f.name, field: name }, value = () => (type === "checkbox" ? box.checked : box.value === "" ? null : type === "number" ? Number(box.value) : box.value);
      const change = () => this.limit(f, name, value()), box = type ? el("input", { type, data, on: { change } }) : choice(WAYS, "", change, { data });
      this.boxes.push([box, () => ({ ...f, ...this.page.state.features[f.name] })[name]]);
      return el("label", { class: "field" }, label, box);
    };
    return el("fieldset", { class: "feature" }, el("legend", {}, f.label), field("actionable", "can be moved", "checkbox"), f.ranked ? field("direction", "direction") : "",
      f.steps ? [["max_increase", "at most up"], ["max_decrease", "at most down"], ["low", "from"], ["high", "to"]].map(([name, label]) => field(name, label, "number")) : "");
  }

  /** Sets one limit; one that is as declared is no edit. */
  limit(f, name, value) {
    const { [f.name]: own, ...features } = this.page.state.features, { [name]: _, ...rest } = own ?? {};
    const limits = value === f[name] ? rest : { ...rest, [name]: value };
    return this.edit({ features: Object.keys(limits).length ? { ...features, [f.name]: limits } : features });
  }

  /** Tries an edit; one that is refused is told and taken back. */
  async edit(change) {
    const before = this.page.state, problems = await this.page.go({ ...UNTRIED, ...change });
    if (!problems.length) return;
    await this.page.go(before, false);
    fill(this.problems, problemList(problems));
    this.problems.hidden = false;
  }

  /** Follows the state. */
  sync() {
    const { state, tau } = this.page;
    if (this.base !== state.base) return this.draw();
    for (const box of document.querySelectorAll("[data-rule]")) {
      box.checked = !state.off.includes(box.dataset.rule);
      box.closest(".rule").classList.toggle("off", !box.checked);
    }
    for (const [box, value] of this.boxes) if (box.type === "checkbox") box.checked = value(); else box.value = value() ?? "";
    this.tau.value = tau;
    this.problems.hidden = true;
  }

  /** A button that downloads what the server makes of the state. */
  save(what, title, label, path, end, type) {
    const own = button(label, async () => {
      own.disabled = true;
      try { download(`${what}.${end}`, (await post(path, { ...this.page.request(), export: true })).text, type); } catch (error) { this.page.fail(error); }
      own.disabled = false;
    }, { id: `export-${what}`, title });
    return own;
  }
}
