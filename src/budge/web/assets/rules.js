// Rules: what each alone holds back, switches, limits of features, the threshold, and what leaves the page. Drawn once per spec, then kept in step.

import { $, button, el, problemLines, visible } from "./dom.js";
import { download, post, postText } from "./api.js";

export class Rules {
  constructor(page) { this.page = page; }

  draw() {
    const { page } = this, model = page.model_, coding = model.rules.filter((r) => r.coding), own = model.rules.filter((r) => !r.coding);
    this.base = page.state.base;
    this.problems = el("p", { class: "note warn", id: "edit-problems", role: "alert", hidden: true });
    this.tau = el("input", { id: "threshold", type: "number", min: 0.001, max: 0.999, step: "any", disabled: !page.start.live, on: { change: () => this.edit({ tau: this.tau.value === "" ? null : Number(this.tau.value) }) } });
    const count = `${model.fixed} of ${model.of} features ${model.fixed === 1 ? "is" : "are"} fixed.`;
    $("rules").replaceChildren(el("h2", {}, "Rules"),
      el("p", { class: "hint" }, page.start.live ? "Switch a rule off to see what it holds back. Each line counts this rule alone." : "A saved run without its model: rules cannot be switched. Start with --data and --model."),
      this.problems, ...own.map((rule) => this.rule(rule)), own.length ? "" : el("p", {}, "No rule ties features together."),
      coding.length ? el("details", {}, el("summary", {}, "Codings"), el("p", { class: "hint" }, "They tie dummies together: without one, people are described who cannot be."), ...coding.map((rule) => this.rule(rule))) : "",
      page.start.live ? el("details", { id: "limits" }, el("summary", {}, "Limits of features"), ...model.features.map((f) => this.feature(f))) : "",
      el("p", { class: "hint" }, count),
      el("label", { class: "tau" }, "Threshold τ ", this.tau),
      el("p", { class: "tools" }, button("Spec ↓", () => this.save("spec"), { id: "export-spec", title: "Download the edited spec as YAML" }), button("Report ↓", () => this.save("report"), { id: "export-report", title: "Download the report of the edited model, one HTML file" })));
    this.sync();
  }

  rule(rule) {
    const box = el("input", { type: "checkbox", role: "switch", data: { rule: rule.id }, disabled: !this.page.start.live, on: { change: () => this.switch(rule.id) } });
    return el("label", { class: "rule", data: { of: rule.id } }, el("b", {}, visible(rule.title)), box, rule.sentence ? el("span", { class: "about" }, visible(rule.sentence)) : null, el("span", { class: "counts" }));
  }

  switch(id) {
    const off = this.page.state.off;
    return this.edit({ off: off.includes(id) ? off.filter((own) => own !== id) : [...off, id].sort() });
  }

  /** What one rule holds back. */
  told(record) {
    const line = document.querySelector(`[data-of="${CSS.escape(record.id)}"] .counts`);
    if (!line) return;
    line.replaceChildren(...record.lines.flatMap(({ text, hot }, i) => [i ? "; " : "Without it: ", el(hot ? "b" : "span", {}, visible(text[0])), ` ${visible(text[1])}`]));
    Object.assign(line.dataset, { hits: record.person?.hits ?? "", n: record.person?.n ?? "", able: record.people?.able ?? "", of: record.people?.of ?? "" });
  }

  feature(f) {
    const field = (name, label, kind, value) => {
      const box = kind === "choice" ? el("select", {}, ...[["", "both ways"], ["increase", "up only"], ["decrease", "down only"]].map(([v, t]) => el("option", { value: v }, t))) : el("input", { type: kind });
      Object.assign(box.dataset, { feature: f.name, field: name });
      box.addEventListener("change", () => this.limit(f, name));
      return el("label", { class: "field" }, label, box);
    };
    const fields = [field("actionable", "can be moved", "checkbox")];
    if (f.ranked) fields.push(field("direction", "direction", "choice"));
    if (f.steps) fields.push(field("max_increase", "at most up", "number"), field("max_decrease", "at most down", "number"), field("low", "from", "number"), field("high", "to", "number"));
    return el("fieldset", { class: "feature" }, el("legend", {}, visible(f.label)), ...fields);
  }

  /** The value of a limit: edited, or as declared. */
  value(f, name) {
    const edited = { ...f, ...(this.page.state.features[f.name] ?? {}) };
    return name === "low" ? edited.bounds?.[0] ?? null : name === "high" ? edited.bounds?.[1] ?? null : edited[name];
  }

  limit(f, name) {
    const box = this.box(f.name, name), number = (own) => { const v = this.box(f.name, own).value; return v === "" ? null : Number(v); };
    const bounds = name === "low" || name === "high";
    const value = bounds ? (number("low") === null && number("high") === null ? null : [number("low"), number("high")]) : box.type === "checkbox" ? box.checked : box.tagName === "SELECT" ? box.value || null : number(name);
    const features = { ...this.page.state.features, [f.name]: { ...(this.page.state.features[f.name] ?? {}), [bounds ? "bounds" : name]: value } };
    if (JSON.stringify(f[bounds ? "bounds" : name]) === JSON.stringify(value)) delete features[f.name][bounds ? "bounds" : name];
    if (!Object.keys(features[f.name]).length) delete features[f.name];
    return this.edit({ features });
  }

  box(feature, field) { return document.querySelector(`[data-feature="${CSS.escape(feature)}"][data-field="${field}"]`); }

  /** Tries an edit; one that is refused is told and taken back. */
  async edit(change) {
    const before = this.page.state, problems = await this.page.go({ ...change, at: null, cell: "" });
    this.problems.hidden = !problems?.length;
    if (problems?.length) { this.problems.replaceChildren(el("ul", {}, ...problemLines(problems))); await this.page.go(before, false); this.problems.hidden = false; }
  }

  /** Follows the state. */
  sync() {
    const { page } = this;
    if (this.base !== page.state.base) return this.draw();
    for (const box of document.querySelectorAll("[data-rule]")) {
      box.checked = !page.state.off.includes(box.dataset.rule);
      box.closest(".rule").classList.toggle("off", !box.checked);
    }
    for (const f of page.model_.features) {
      for (const field of ["actionable", "direction", "max_increase", "max_decrease", "low", "high"]) {
        const box = this.box(f.name, field), value = this.value(f, field);
        if (box?.type === "checkbox") box.checked = value; else if (box && document.activeElement !== box) box.value = value ?? "";
      }
    }
    if (document.activeElement !== this.tau || !this.problems.hidden) this.tau.value = page.tau;
    this.problems.hidden = true;
  }

  async save(what) {
    const { page } = this, own = $(`export-${what}`);
    own.disabled = true;
    try {
      if (what === "spec") download("spec.yaml", (await post("spec/text", { ...page.request(), export: true })).text, "application/yaml");
      else download("report.html", await postText("report", page.request()), "text/html");
    } catch (error) { page.fail(error); }
    own.disabled = false;
  }
}
