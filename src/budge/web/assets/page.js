// The page: one state, which is the address; what differs from the state before is asked for and drawn.

import { $, button, count, el, fill, problemList, roving } from "./dom.js";
import { DECLARED, UNTRIED, link, read, takeToken, write } from "./address.js";
import { lines, post } from "./api.js";
import { People } from "./people.js";
import { PersonView } from "./person.js";
import { Rules } from "./rules.js";
import { Spec } from "./spec.js";
import { drawEveryone, drawModels, drawRuns } from "./views.js";

const window_ = crypto.randomUUID();
const LOOKED = ["p", "pin", "model", "off", "features", "tau", "base"]; // what a look depends on
const LISTED = ["show", "find", "other", "model"];
const VIEWED = ["view", "versus", "by"];
const DRAWN = { everyone: drawEveryone, models: drawModels, runs: drawRuns };

const page = {
  start: null, state: null, models: new Map(), everyone: null, names: {}, edits: [], busy: null,
  get model() { return this.state.model || this.start.models[0]; },
  get tau() { return this.state.tau ?? this.start.state.threshold; },
  get base() { return this.state.base || this.start.state.base; },
  /** The declared rules and features of the spec in use. */
  get declared() { return this.models.get(this.base); },
  /** What every request holds: the run, the model, and the state of the rules. */
  request() {
    const { run, off, features } = this.state;
    return { run, model: this.model, state: { base: this.base, off, features, threshold: this.tau } };
  },
  /** Changes the state; `push`: a step that the way back undoes. Returns the problems of an edit that is refused. */
  async go(change, push = true) {
    const before = this.state, next = { ...before, ...change };
    if (!differ(before, next, Object.keys(next))) return [];
    this.state = next;
    if (write(next) !== location.hash) history[push ? "pushState" : "replaceState"](null, "", write(next));
    return this.follow(before);
  },
  /** Asks for and draws what the change of state calls for; `restored`: the state comes from the address. */
  async follow(before, restored = false) {
    const { state } = this;
    try {
      if (before.run !== state.run) { await begin(); return []; }
      if (!this.declared) this.models.set(state.base, (await post("model", this.request())).model);
      this.rules.sync();
      this.spec.sync();
      show();
      if (differ(before, state, LISTED)) await this.people.load();
      this.people.mark();
      if (differ(before, state, LOOKED)) { alert_(); await look(); } else {
        if (before.cell !== state.cell) await this.person.list(state.cell, !restored);
        if (differ(before, this.state, ["at"])) await this.person.attempt(this.state.at);
      }
      if (differ(before, state, VIEWED)) await redraw();
    } catch (error) {
      if (error.status === 400) return error.problems;
      this.fail(error);
    }
    return [];
  },
  fail(error) {
    if (error.name === "AbortError" || error.status === 409) return;
    if (error.problems?.length) return alert_("", error.problems);
    const gone = error instanceof TypeError && /fetch|network/i.test(error.message);
    if (!gone) console.error(error);
    alert_(gone ? "The page does not answer. Is budge serve still running?" : `Something failed: ${error.message ?? error}`);
  },
  /** What is done with the work of a control whose errors nobody else takes. */
  run(work) { work.catch((error) => this.fail(error)); },
};

const differ = (a, b, keys) => keys.some((k) => JSON.stringify(a[k]) !== JSON.stringify(b[k]));
const viewed = () => ($(`view-${page.state.view}`)?.hidden === false ? page.state.view : "person");
const redraw = async () => DRAWN[viewed()]?.(page);

// -- beginning --------------------------------------------------------------------------------------------------------

async function begin() {
  const start = (page.start = await post("start", { run: page.state.run }));
  page.models = new Map([[start.state.base, start.model]]);
  Object.assign(page, { everyone: null, names: start.names });
  if (!start.models.includes(page.state.model)) page.state.model = "";
  document.title = `${start.title} · budge`;
  fill("run", start.runs.map((r) => el("option", { value: r.id }, r.title)));
  fill("model", start.models.map((name) => el("option", { value: name }, name)));
  $("model-pick").hidden = $("view-models").hidden = start.models.length < 2;
  $("view-runs").hidden = start.runs.filter((r) => r.saved).length < 2;
  fill("asked", start.asked);
  $("sum").hidden = $("lay").hidden = $("views").hidden = false;
  await known();
  page.rules.draw();
  page.spec.sync();
  show();
  await page.people.load();
  await look();
}

/** What an address holds must fit what is served now; else the page begins without it, and says so. */
async function known() {
  try {
    const found = await post("model", { ...page.request(), who: page.state.p || null, pin: page.state.pin || null });
    page.models.set(found.base, found.model);
  } catch (error) {
    if (error.status !== 400) throw error;
    Object.assign(page.state, DECLARED, { p: "", pin: "" });
    history.replaceState(null, "", write(page.state));
    alert_("The address does not fit what is served; the page begins anew.", error.problems);
  }
}

// -- one look: the person first, then everyone, then each rule --------------------------------------------------------------

async function look({ whole = null } = {}) {
  page.busy?.abort();
  const mine = (page.busy = new AbortController()), { p, pin } = page.state;
  document.body.classList.add("busy");
  const take = {
    model: (r) => { page.edits = r.edited; page.names = r.names; },
    person: (r) => { if (r.who) opened(r.who); page.person.draw(r); },
    person_error: (r) => page.person.fail(r),
    pin: (r) => page.person.pin(r),
    progress: (r) => fill("state", `${count(r.done)} of ${count(r.of)} people …`),
    everyone: (r) => { page.everyone = r; drawSum(r); page.run(page.people.load()); if (r.whole) page.run(redraw()); },
    rule: (r) => page.rules.told(r),
    error: (r) => page.fail(r),
  };
  try {
    await lines("look", { ...page.request(), who: p || null, pin: pin || null, window: window_, whole }, mine.signal, (record) => { if (!mine.signal.aborted) take[record.kind]?.(record); });
    const { record } = page.person;
    fill("say", record ? `Person ${record.label}: ${record.say.join(" ")}` : "");
  } catch (error) {
    if (error.name !== "AbortError") throw error;
  } finally {
    if (page.busy === mine) { page.busy = null; document.body.classList.remove("busy"); document.body.dataset.looked = Number(document.body.dataset.looked ?? 0) + 1; }
  }
}

/** The person who was opened because nobody was named: the most harmed. */
function opened(who) {
  page.state.p = who;
  history.replaceState(null, "", write(page.state));
  page.people.mark();
}

/** Everyone in one line: how many are in each category, as declared and as edited. */
function drawSum(record) {
  const now = record.models[page.model], was = now.before?.counts;
  fill("counts", Object.keys(page.names).filter((k) => now.counts[k] || was?.[k]).map((k) => {
    const a = was?.[k] ?? 0, b = now.counts[k] ?? 0;
    return el("span", { data: { category: k, count: b, was: was ? a : "" } }, el("strong", {}, was && a !== b ? `${count(a)} → ${count(b)}` : count(b)), ` ${page.names[k]}`);
  }));
  const all = () => button(`Ask about everyone (about ${Math.ceil(record.seconds_for_all)} s)`, () => page.run(look({ whole: true })), { id: "ask-all" });
  fill("state", now.said, " ", record.stopped ? all() : record.whole ? "" : " · everyone follows …");
  Object.assign($("state").dataset, { whole: record.whole, mean: now.mean_rho });
}

// -- the frame ------------------------------------------------------------------------------------------------------------

function show() {
  const view = viewed();
  for (const tab of $("views").children) {
    const on = tab.id === `view-${view}`;
    tab.setAttribute("aria-selected", on);
    tab.tabIndex = on ? 0 : -1;
    $(tab.getAttribute("aria-controls")).hidden = !on;
  }
  $("run").value = page.state.run;
  $("model").value = page.model;
  if (view === "spec") page.spec.shown();
}

function bind() {
  for (const tab of $("views").children) tab.addEventListener("click", () => page.go({ view: tab.id === "view-person" ? "" : tab.id.slice(5) }));
  $("views").addEventListener("keydown", (event) => roving(event, [...$("views").children].filter((b) => !b.hidden), (tab) => { tab.click(); tab.focus(); }));
  $("run").addEventListener("change", () => page.go({ ...DECLARED, run: Number($("run").value), pin: "", other: "", versus: "", by: "" }));
  $("model").addEventListener("change", () => page.go({ ...UNTRIED, model: $("model").value, other: "" }));
  $("copy").addEventListener("click", async () => {
    await navigator.clipboard.writeText(link()).then(() => fill("copy", "Copied"), () => alert_(`Copy this address: ${link()}`));
    setTimeout(() => fill("copy", "Copy link"), 2000);
  });
  addEventListener("popstate", async () => {
    const before = page.state;
    page.state = read();
    const problems = await page.follow(before, true);
    if (problems.length) alert_("", problems);
  });
  document.addEventListener("keydown", (event) => {
    if (event.target.matches?.("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") { event.preventDefault(); $("find").focus(); }
    if (event.key === "]" || event.key === "[") page.people.step(event.key === "]" ? 1 : -1);
  });
}

function bindTheme() {
  const root = document.documentElement, kept = sessionStorage.getItem("budge-theme");
  if (kept) root.dataset.theme = kept;
  $("theme").addEventListener("click", () => {
    const now = root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark";
    sessionStorage.setItem("budge-theme", root.dataset.theme);
  });
}

/** Shows what went wrong; without a text and problems there is nothing to show. */
function alert_(text = "", problems = []) {
  fill("alert", text, problems.length ? problemList(problems) : "");
  $("alert").hidden = !$("alert").hasChildNodes();
}

bindTheme();
if (takeToken()) {
  page.state = read();
  page.people = new People(page);
  page.person = new PersonView(page);
  page.rules = new Rules(page);
  page.spec = new Spec(page);
  bind();
  page.run(begin());
} else {
  alert_("This tab has no token. Open the address that budge serve printed; each run has its own.");
}
