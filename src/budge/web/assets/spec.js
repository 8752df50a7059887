// The spec as text: problems as one types, each with its line and what to do; applied when it is right.

import { $, el, visible, problemLines, picture } from "./dom.js";
import { post } from "./api.js";

const QUICK = 150, DEEP = 700;

export class Spec {
  constructor(page) {
    this.page = page;
    this.text = null; // what the state says
    this.kind = "yaml";
    this.turn = 0;
    const box = $("spec-text");
    box.addEventListener("input", () => this.typed());
    box.addEventListener("scroll", () => { $("gutter").scrollTop = box.scrollTop; });
    box.addEventListener("keydown", (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key === "Enter" && !$("spec-apply").disabled) { event.preventDefault(); this.send(); }
    });
    $("spec-apply").addEventListener("click", () => this.send());
    $("spec-revert").addEventListener("click", () => { this.kind = "yaml"; this.put(this.text); });
    $("spec-file").addEventListener("change", async () => {
      const file = $("spec-file").files[0];
      if (!file) return;
      if (file.size > 2_000_000) return this.status("That file is too large for a spec: at most 2,000,000 bytes.", true);
      this.kind = { json: "json", toml: "toml" }[file.name.split(".").pop().toLowerCase()] ?? "yaml";
      $("spec-text").value = await file.text();
      $("spec-file").value = "";
      this.typed();
    });
    $("parts").addEventListener("toggle", () => this.parts());
    // The address does not hold a text that was not applied: leaving would lose it.
    addEventListener("beforeunload", (event) => { if (this.own) event.preventDefault(); });
  }

  /** Whether the text was edited and not applied. */
  get own() { return this.text !== null && $("spec-text").value !== this.text; }

  /** The state changed: what nobody has edited here follows it. */
  sync() { this.stale = true; if (!$("spec-panel").hidden) { this.shown(); this.parts(); } }

  async shown() {
    if (this.text !== null && !this.stale) return;
    const { own } = this;
    $("spec-text").readOnly = !this.page.start.live;
    try {
      const { text } = await post("spec/text", this.page.request());
      this.text = text;
      this.stale = false;
      if (!own) this.put(text);
    } catch (error) {
      this.status(error.problems?.map((p) => `${p.what}; ${p.remedy}`).join(" ") ?? error.message, true);
    }
  }

  /** The partition of the model in use, where it is opened. */
  async parts() {
    if (!$("parts").open) return;
    try {
      $("parts-figure").replaceChildren(picture((await post("figure", { ...this.page.request(), figure: "partition" })).svg));
    } catch (error) {
      $("parts-figure").replaceChildren(el("ul", {}, ...problemLines(error.problems ?? [])));
    }
  }

  put(text) { $("spec-text").value = text; this.typed(); }

  typed() {
    const text = $("spec-text").value;
    const changed = text !== this.text;
    $("spec-revert").disabled = !changed;
    $("spec-apply").disabled = true;
    this.number(new Set());
    const mine = ++this.turn;
    clearTimeout(this.quick);
    clearTimeout(this.deep);
    this.quick = setTimeout(() => this.check(text, mine, changed, false), QUICK);
    this.deep = setTimeout(() => this.check(text, mine, changed, true), DEEP);
  }

  async check(text, mine, changed, deep) {
    let found;
    try {
      found = await post("spec/check", { run: this.page.state.run, text, kind: this.kind, deep });
    } catch (error) {
      found = { ok: false, problems: error.problems ?? [], report: null };
    }
    if (mine !== this.turn) return;
    const errors = found.problems.filter((p) => p.severity !== "warning");
    $("spec-apply").disabled = !found.ok || !changed || !this.page.start.live;
    this.number(new Set(found.problems.map((p) => p.line).filter(Boolean)));
    this.status(found.ok ? (changed ? "No problem. Apply with Ctrl Enter." : "As it is in use.") : `${errors.length} problem${errors.length === 1 ? "" : "s"}`, !found.ok);
    const items = found.problems.map((p) => {
      const item = problemLines([p])[0];
      item.className = p.severity;
      if (p.line) item.prepend(el("button", { type: "button", class: "plain line", on: { click: () => this.go(p.line) } }, `line ${p.line}`), " ");
      return item;
    });
    $("spec-problems").replaceChildren(items.length ? el("ul", {}, ...items) : "", ...(found.report ? [el("details", { class: "against", open: !found.report.ok }, el("summary", {}, found.report.ok ? "Against the people: nothing breaks it" : "Against the people: see below"), el("pre", {}, visible2(found.report.sentences)))] : []));
  }

  async send() {
    $("spec-apply").disabled = true;
    try {
      const { base, model } = await post("spec/apply", { run: this.page.state.run, text: $("spec-text").value, kind: this.kind });
      this.page.models.set(base, model);
      this.text = $("spec-text").value;
      const problems = await this.page.go({ base: base === this.page.start.state.base ? "" : base, off: [], features: {}, at: null, cell: "" });
      if (problems?.length) return this.status(problems.map((p) => p.what).join("; "), true);
      this.kind = "yaml";
      this.stale = true;
      await this.shown();
      this.status("Applied.", false);
    } catch (error) {
      this.status(error.problems?.map((p) => p.what).join("; ") || error.message, true);
    }
  }

  go(line) {
    const box = $("spec-text"), before = box.value.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    const end = box.value.indexOf("\n", before);
    box.focus();
    box.setSelectionRange(before, end < 0 ? box.value.length : end);
    box.scrollTop = Math.max(0, (line - 5) * parseFloat(getComputedStyle(box).lineHeight));
  }

  number(bad) {
    const count = $("spec-text").value.split("\n").length;
    $("gutter").replaceChildren(...Array.from({ length: count }, (_, i) => el("span", { class: bad.has(i + 1) ? "bad" : null }, `${i + 1}\n`)));
    $("gutter").scrollTop = $("spec-text").scrollTop;
  }

  status(text, bad = false) {
    $("spec-status").textContent = visible(text);
    $("spec-status").className = bad ? "bad" : "";
  }
}

const visible2 = (sentences) => sentences.map((s) => visible(s)).join("\n");
