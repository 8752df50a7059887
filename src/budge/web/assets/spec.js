// The spec as text: problems as one types, each with its line and what to do; applied when it is right.

import { $, el, fill, picture, problemList } from "./dom.js";
import { DECLARED } from "./address.js";
import { post } from "./api.js";

const QUICK = 150, DEEP = 700;
const LARGEST = 2_000_000;

export class Spec {
  constructor(page) {
    Object.assign(this, { page, text: null, kind: "yaml", turn: 0, stale: true, box: $("spec-text") }); // text: what the state says
    const { box } = this, on = (id, event, act) => $(id).addEventListener(event, act);
    on("spec-text", "input", () => this.typed());
    on("spec-text", "scroll", () => { $("gutter").scrollTop = box.scrollTop; });
    on("spec-text", "keydown", (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key === "Enter" && !$("spec-apply").disabled) { event.preventDefault(); this.send(); }
    });
    on("spec-apply", "click", () => this.send());
    on("spec-revert", "click", () => this.put(this.text));
    on("spec-file", "change", () => this.open($("spec-file").files[0]));
    on("parts", "toggle", () => this.parts());
    // The address does not hold a text that was not applied: leaving would lose it.
    addEventListener("beforeunload", (event) => { if (this.own) event.preventDefault(); });
  }

  /** Whether the text was edited and not applied. */
  get own() { return this.text !== null && this.box.value !== this.text; }

  /** The state changed: a text that nobody has edited here follows it. */
  sync() { this.stale = true; if (!$("spec-panel").hidden) { this.shown(); this.parts(); } }

  async shown() {
    if (!this.stale) return;
    const { own } = this;
    this.box.readOnly = !this.page.start.live;
    try {
      this.text = (await post("spec/text", this.page.request())).text;
      this.stale = false;
      if (own) this.typed(); else this.put(this.text);
    } catch (error) { this.refused(error); }
  }

  /** The partition of the model in use, where it is opened. */
  async parts() {
    if (!$("parts").open) return;
    try {
      fill("parts-figure", picture((await post("figure", { ...this.page.request(), figure: "partition" })).svg));
    } catch (error) { fill("parts-figure", problemList(error.problems ?? [])); }
  }

  async open(file) {
    if (!file) return;
    if (file.size > LARGEST) return this.status(`That file is too large for a spec: at most ${LARGEST.toLocaleString("en")} bytes.`, true);
    this.put(await file.text(), { json: "json", toml: "toml" }[file.name.split(".").pop().toLowerCase()]);
    $("spec-file").value = "";
  }

  put(text, kind = "yaml") { this.kind = kind; this.box.value = text; this.typed(); }

  typed() {
    $("spec-revert").disabled = !this.own;
    $("spec-apply").disabled = true;
    this.number(new Set());
    const mine = ++this.turn;
    for (const wait of [QUICK, DEEP]) setTimeout(() => { if (mine === this.turn) this.check(mine, wait === DEEP); }, wait);
  }

  async check(mine, deep) {
    const found = await post("spec/check", { run: this.page.state.run, text: this.box.value, kind: this.kind, deep }).catch((error) => ({ ok: false, problems: error.problems ?? [] }));
    if (mine !== this.turn) return;
    const { ok, problems, report } = found, errors = problems.filter((p) => p.severity !== "warning").length;
    $("spec-apply").disabled = !ok || !this.own || !this.page.start.live;
    this.number(new Set(problems.map((p) => p.line)));
    this.status(!ok ? `${errors} problem${errors === 1 ? "" : "s"}` : this.own ? "No problem. Apply with Ctrl Enter." : "As it is in use.", !ok);
    fill("spec-problems", problems.length ? problemList(problems, (line) => this.go(line)) : "",
      report ? el("details", { class: "against", open: !report.ok }, el("summary", {}, report.ok ? "Against the people: nothing breaks it" : "Against the people: see below"), report.sentences.map((line) => el("p", {}, line))) : "");
  }

  async send() {
    $("spec-apply").disabled = true;
    try {
      const { base, model } = await post("spec/apply", { run: this.page.state.run, text: this.box.value, kind: this.kind });
      this.page.models.set(base, model);
      this.text = this.box.value;
      const problems = await this.page.go({ ...DECLARED, base: base === this.page.start.state.base ? "" : base, tau: this.page.state.tau });
      if (problems.length) return this.refused({ problems });
      await this.shown();
      this.status("Applied.", false);
    } catch (error) { this.refused(error); }
  }

  refused({ problems, message }) { this.status(problems?.map((p) => [p.what, p.remedy].filter(Boolean).join("; ")).join(" ") || message, true); }

  go(line) {
    const { box } = this, rows = box.value.split("\n"), before = rows.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
    box.focus();
    box.setSelectionRange(before, before + rows[line - 1].length);
    box.scrollTop = Math.max(0, (line - 5) * parseFloat(getComputedStyle(box).lineHeight));
  }

  /** Numbers the lines and marks the bad ones. */
  number(bad) {
    fill("gutter", this.box.value.split("\n").map((_, i) => el("span", { class: bad.has(i + 1) ? "bad" : null }, i + 1)));
    $("gutter").scrollTop = this.box.scrollTop;
  }

  status(text, bad) {
    fill("spec-status", text);
    $("spec-status").className = bad ? "bad" : "";
  }
}
