// The page: one state (which spec, what is switched, which threshold), its history, and one look at a time.

import { $, el, num, rho, delta, share, problemLines, visible } from "./dom.js";
import { takeToken, post, postText, lines, download } from "./api.js";
import { People } from "./people.js";
import { drawPerson } from "./person.js";
import { Edits } from "./edits.js";
import { Spec } from "./spec.js";
import { drawEverybody, drawModels } from "./everybody.js";

const page = {
  start: null, models: new Map(), history: [], at: 0, person: null, model: "", last: null, everybody: null, busy: null, bars: null,
  get state() { return this.history[this.at]; },
  get base() { return this.models.get(this.state.base); },
  get edited() { return this.at > 0 && JSON.stringify(this.state) !== JSON.stringify(this.history[0]); },
};
const window_ = crypto.randomUUID();
let people, edits, spec;

async function begin() {
  bindTheme();
  if (!takeToken()) return alert_("This tab has no token. Open the address that budge serve printed; each run has its own.");
  try {
    page.start = await post("start");
  } catch (error) {
    return fail(error);
  }
  const { start } = page;
  page.history = [start.state];
  page.models.set(start.state.base, start.model);
  page.model = start.models[0]?.name ?? "";
  document.title = `${start.title} · budge`;
  $("title").textContent = visible(start.title);
  $("asked").textContent = $("asked").title = sentence(start);
  $("threshold").value = start.state.threshold;
  people = new People(page, open_);
  edits = new Edits(page, edit);
  spec = new Spec(page, applied);
  bind();
  edits.draw();
  $("strip").hidden = $("desk").hidden = false;
  await people.load();
  await look({ person: start.people ? start.first : null });
}

function sentence(start) {
  const models = start.models.length === 1 ? visible(start.models[0].about || start.models[0].name) : `${start.models.length} models`;
  const counts = Object.entries(start.chosen), whole = (v) => v.toLocaleString("en");
  const alike = new Set(counts.map(([, k]) => k)).size === 1;
  const asked = alike ? (counts[0][1] === start.people ? "" : `${whole(counts[0][1])} of `) : `${counts.map(([m, k]) => `${visible(m)} ${whole(k)}`).join(", ")} of `;
  const who = `${asked}${whole(start.people)} people${start.population === "all" ? "" : ` (${visible(start.population)})`}`;
  return `Target: ${visible(start.target)} · ${who} · ${models} · ${start.live ? `at most ${num(start.design.n)} draws per person where points cannot be listed` : "a saved run, to be read: start with --data and --model to explore it"}`;
}

// -- one look: person first, then everybody --------------------------------------------------------------------------

async function look({ whole = null, person = page.person, quiet = false } = {}) {
  page.busy?.abort();
  const mine = (page.busy = new AbortController());
  const state = page.state;
  const began = performance.now();
  page.person = person;
  document.body.classList.add("busy");
  try {
    await lines("look", { state, person, window: window_, whole }, mine.signal, (record) => {
      if (mine.signal.aborted) return;
      if (record.kind === "model") edits.moving(new Set(record.moving));
      else if (record.kind === "person") { page.last = record; drawPerson(page, record); }
      else if (record.kind === "person_error") drawPersonError(record);
      else if (record.kind === "everybody") { page.everybody = record; drawStrip(record, began); people.load(); redraw(); }
      else if (record.kind === "everybody_error" || record.kind === "error") fail(record, record.kind === "everybody_error");
      else if (record.kind === "progress") $("state").textContent = `${record.done.toLocaleString("en")} of ${record.of.toLocaleString("en")} people …`;
    });
    if (!quiet) say();
  } catch (error) {
    if (error.name !== "AbortError") throw error;
  } finally {
    if (page.busy === mine) { page.busy = null; document.body.classList.remove("busy"); document.body.dataset.looked = String(Number(document.body.dataset.looked ?? 0) + 1); }
  }
}

function redraw() {
  if (!page.everybody) return;
  drawEverybody(page, page.everybody);
  if (page.start.models.length > 1) drawModels(page, page.everybody, (a, b) => { people.both(a, b); });
}

function say() {
  const row = page.last?.models?.[page.model];
  const one = row ? `Person ${page.last.label}: responsiveness ${rho(row.rho)}, ${row.verdict}. ` : "";
  const all = page.everybody?.models?.[page.model];
  $("say").textContent = one + (all ? `${all.people} people: ${all.verdicts.below ?? 0} below, ${all.verdicts.above ?? 0} above.` : "");
}

function drawStrip(record, began) {
  const now = record.models[page.model], was = now.before;
  const count = (v) => now.verdicts[v] ?? 0;
  const old = (v) => (was ? was.verdicts[v] ?? 0 : null);
  const whole_ = (v) => v.toLocaleString("en");
  const one = (name, cls, verdict, title) => el("div", { class: `stat ${cls}`, title, data: { verdict, count: String(count(verdict)) } }, el("b", {}, whole_(count(verdict))), el("span", {}, name, " ", page.edited && was ? delta(count(verdict), old(verdict), whole_) : null));
  const others = Object.entries(now.verdicts).filter(([v]) => !["below", "above", "inconclusive"].includes(v));
  $("numbers").replaceChildren(
    one("below τ", "below", "below", "Responsiveness is below the threshold"),
    one("inconclusive", "open", "inconclusive", "Neither claim can be made"),
    one("above τ", "above", "above", "Responsiveness is above the threshold"),
    ...others.map(([v, k]) => el("div", { class: "stat open" }, el("b", {}, whole_(k)), el("span", {}, visible(v.replace("_", " "))))),
    el("div", { class: "stat mean", id: "mean-rho", data: { value: String(now.mean_rho) } }, el("b", {}, rho(now.mean_rho)), el("span", {}, "mean ρ ", page.edited && was ? delta(now.mean_rho, was.mean_rho) : null)),
  );
  const total = Object.values(now.verdicts).reduce((a, b) => a + b, 0) || 1;
  $("split").replaceChildren(...["below", "inconclusive", "at the threshold", "above"].map((v) => el("span", { class: v === "at the threshold" ? "inconclusive" : v, width: `${(100 * count(v)) / total}%` })));
  const seconds = (performance.now() - began) / 1000;
  const exact = (now.methods.exact ?? 0) + (now.methods.proved ?? 0) === now.people && !now.between_ends ? ", each exactly" : "";
  const who = record.whole ? `${whole_(now.people)} people${exact}` : `${whole_(record.people)} of ${whole_(record.of)} people, drawn at random${exact}`;
  const slow = record.stopped === true;
  $("state").title = `answered in ${seconds.toFixed(2)} s`;
  $("state").replaceChildren(who, ...(slow ? [" ", el("button", { type: "button", id: "ask-all", on: { click: () => look({ whole: true }) } }, `Ask about everybody (about ${Math.ceil(record.seconds_for_all)} s)`)] : record.whole ? [] : [" · everybody follows …"]));
  $("state").dataset.whole = String(record.whole);
}

function drawPersonError(record) {
  page.last = null;
  $("person").replaceChildren(el("div", { class: "note warn" }, el("p", {}, "Nothing can be computed for this person:"), el("ul", {}, ...problemLines(record.problems))));
}

// -- edits and history --------------------------------------------------------------------------------------------------

async function edit(change, { from = page.state } = {}) {
  const next = { ...from, ...change };
  const before = { history: page.history, at: page.at };
  if (JSON.stringify(next) === JSON.stringify(page.state)) return true;
  page.history = [...page.history.slice(0, page.at + 1), next].slice(-300);
  page.at = page.history.length - 1;
  try {
    clearAlert();
    changed();
    await look();
    return true;
  } catch (error) {
    if (page.state === next) { Object.assign(page, before); changed(); }
    if (error.status === 400) return error.problems;
    fail(error);
    return [];
  }
}

function move(by) {
  const at = page.at + by;
  if (at < 0 || at >= page.history.length) return;
  page.at = at;
  clearAlert();
  changed();
  look().catch(fail);
}

function changed() {
  $("undo").disabled = page.at === 0;
  $("redo").disabled = page.at === page.history.length - 1;
  $("reset").disabled = !page.edited;
  $("threshold").value = page.state.threshold;
  edits.sync();
  spec.sync();
}

async function applied(base, model) {
  page.models.set(base, model);
  return edit({ base, off: [], off_effects: [], features: {} });
}

// -- opening people -------------------------------------------------------------------------------------------------------

function open_(place) {
  people.mark(place);
  show("view-person");
  return look({ person: place }).catch(fail);
}

// -- the frame ------------------------------------------------------------------------------------------------------------

function show(tab) {
  for (const button of $("views").children) {
    const on = button.id === tab;
    button.setAttribute("aria-selected", String(on));
    button.tabIndex = on ? 0 : -1;
    $(button.getAttribute("aria-controls")).hidden = !on;
  }
  if (tab === "view-spec") spec.shown();
}

function bind() {
  const many = page.start.models.length > 1;
  $("view-models").hidden = !many;
  $("model-pick").hidden = !many;
  $("model").replaceChildren(...page.start.models.map((m) => el("option", { value: m.name }, visible(m.name))));
  $("model").addEventListener("change", () => { page.model = $("model").value; if (page.everybody) drawStrip(page.everybody, performance.now()); if (page.last) drawPerson(page, page.last); people.load(); redraw(); });
  for (const button of $("views").children) button.addEventListener("click", () => show(button.id));
  $("views").addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const tabs = [...$("views").children].filter((b) => !b.hidden);
    const next = tabs[(tabs.indexOf(document.activeElement) + by + tabs.length) % tabs.length];
    show(next.id);
    next.focus();
  });
  for (const [tab, other] of [["tab-people", "tab-edits"], ["tab-edits", "tab-people"]]) {
    $(tab).addEventListener("click", () => { $(tab).setAttribute("aria-selected", "true"); $(other).setAttribute("aria-selected", "false"); $("desk").classList.toggle("editing", tab === "tab-edits"); });
  }
  $("undo").addEventListener("click", () => move(-1));
  $("redo").addEventListener("click", () => move(1));
  $("reset").addEventListener("click", () => edit(page.history[0]));
  $("threshold").disabled = !page.start.live;
  $("threshold").addEventListener("change", async () => {
    const value = Number($("threshold").value);
    const result = await edit({ threshold: value });
    if (result !== true) { alert_("", result); $("alert").dataset.of = "threshold"; $("threshold").value = page.state.threshold; }
  });
  $("threshold").addEventListener("input", () => { // what was refused before is over, also where the value in force is typed again
    const value = Number($("threshold").value);
    if ($("alert").dataset.of === "threshold" && value > 0 && value < 1) clearAlert();
  });
  $("export-spec").addEventListener("click", async () => {
    try { download("spec.yaml", (await post("spec/text", { state: page.state, export: true })).text, "application/yaml"); } catch (error) { fail(error); }
  });
  $("export-report").addEventListener("click", async () => {
    $("export-report").disabled = true;
    try { download("report.html", await postText("report", { state: page.state }), "text/html"); } catch (error) { fail(error); }
    $("export-report").disabled = false;
  });
  $("person-back").addEventListener("click", () => people.step(-1));
  $("person-on").addEventListener("click", () => people.step(1));
  document.addEventListener("keydown", keys);
}

function keys(event) {
  const typing = event.target.matches?.("input, textarea, select");
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z" && !event.target.matches?.("textarea, input[type=search], input[type=number]")) {
    event.preventDefault();
    move(event.shiftKey ? 1 : -1);
  } else if (!typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    if (event.key === "/") { event.preventDefault(); $("find").focus(); }
    else if (event.key === "]") people.step(1);
    else if (event.key === "[") people.step(-1);
  }
}

function bindTheme() {
  const kept = sessionStorage.getItem("budge-theme");
  if (kept) document.documentElement.dataset.theme = kept;
  $("theme").addEventListener("click", () => {
    const dark = document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    const next = dark === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    sessionStorage.setItem("budge-theme", next);
  });
}

function alert_(text, problems = []) {
  $("alert").replaceChildren(text, problems.length ? el("ul", {}, ...problemLines(problems)) : "");
  $("alert").hidden = false;
  delete $("alert").dataset.of;
}

function clearAlert() { $("alert").hidden = true; }

function fail(error) {
  if (error.name === "AbortError") return;
  if (error.problems?.length) return alert_("", error.problems);
  alert_(error instanceof TypeError ? "The page does not answer. Is budge serve still running?" : visible(error.message ?? "Something failed."));
}

begin().catch(fail);
