// The page: one state, which is the address; what differs from the state before is asked for and drawn.

import { $, count, el, problemLines, rho, roving, visible, words } from "./dom.js";
import { link, read, takeToken, write } from "./address.js";
import { lines, post } from "./api.js";
import { People } from "./people.js";
import { PersonView } from "./person.js";
import { Rules } from "./rules.js";
import { Spec } from "./spec.js";
import { drawEveryone, drawModels, drawRuns } from "./views.js";

const window_ = crypto.randomUUID();
const LOOKED = ["p", "pin", "model", "off", "features", "tau", "base"]; // what a look depends on
const LISTED = ["show", "find", "other", "model"];

const page = {
  start: null, state: read(), models: new Map(), everyone: null, edits: [], versus: null, busy: null,
  get model() { return this.state.model || this.start.models[0].name; },
  get tau() { return this.state.tau ?? this.start.state.threshold; },
  get model_() { return this.models.get(this.state.base || this.start.state.base); },
  /** What every request holds: the run, the model, and the state of the rules. */
  request() {
    const { run, off, features } = this.state;
    return { run, model: this.model, state: { base: this.state.base || this.start.state.base, off, features, threshold: this.tau } };
  },
  /** Changes the state; `push`: a step that the way back undoes. Returns the problems of an edit that is refused. */
  async go(change, push = true) {
    const before = this.state, next = { ...before, ...change };
    if (!differs(before, next, Object.keys(next)).length) return [];
    this.state = next;
    if (write(next) !== location.hash) history[push ? "pushState" : "replaceState"](null, "", write(next));
    return this.follow(before);
  },
  reset() { return this.go({ off: [], features: {}, tau: null, base: "", at: null, cell: "" }); },
  /** Asks for and draws what the change of state calls for; `restored`: the state comes from the address. */
  async follow(before, restored = false) {
    const { state } = this;
    try {
      if (before.run !== state.run) return void (await begin());
      if (before.base !== state.base && !this.model_) this.models.set(state.base, (await post("model", this.request())).model);
      this.rules.sync();
      this.spec.sync();
      show();
      if (differs(before, state, LISTED).length) await this.people.load();
      this.people.mark();
      if (differs(before, state, LOOKED).length) { clearAlert(); await look(); } else {
        if (before.cell !== state.cell) await this.person.list(state.cell, !restored);
        if (differs(before, this.state, ["at"]).length) await this.person.attempt(this.state.at);
      }
      if (before.view !== state.view) await redraw();
      return [];
    } catch (error) {
      if (error.status === 400) return error.problems;
      this.fail(error);
      return [];
    }
  },
  fail(error) {
    if (error.name === "AbortError" || error.status === 409) return;
    if (error.problems?.length) return alert_("", error.problems);
    const gone = error instanceof TypeError && /fetch|network/i.test(error.message);
    if (!gone) console.error(error);
    alert_(gone ? "The page does not answer. Is budge serve still running?" : `Something failed: ${visible(error.message ?? error)}`);
  },
};

const differs = (a, b, keys) => keys.filter((k) => JSON.stringify(a[k]) !== JSON.stringify(b[k]));

// -- beginning --------------------------------------------------------------------------------------------------------

async function begin() {
  page.start = await post("start", { run: page.state.run });
  const { start } = page;
  page.models = new Map([[start.state.base, start.model]]);
  page.everyone = null;
  if (!start.models.some((m) => m.name === page.state.model)) page.state.model = "";
  document.title = `${start.title} · budge`;
  const option = (value, text, selected) => el("option", { value, selected }, visible(text));
  $("run").replaceChildren(...start.runs.map((r) => option(r.id, [r.title, r.when].filter(Boolean).join(" · "), r.id === start.run)));
  $("model").replaceChildren(...start.models.map((m) => option(m.name, m.name, m.name === page.model)));
  $("model-pick").hidden = $("view-models").hidden = start.models.length < 2;
  $("view-runs").hidden = start.runs.filter((r) => r.saved).length < 2;
  $("asked").textContent = $("asked").title = asked(start);
  $("sum").hidden = $("lay").hidden = $("views").hidden = false;
  await known();
  page.rules.draw();
  page.spec.text = null;
  show();
  await page.people.load();
  await look();
}

/** The person who was opened because nobody was named: the most harmed. */
function opened(who) {
  page.state.p = who;
  history.replaceState(null, "", write(page.state));
  page.people.mark();
}

/** What an address holds must fit what is served now; else the page begins without it, and says so. */
async function known() {
  try {
    const found = await post("model", { ...page.request(), who: page.state.p || null, pin: page.state.pin || null });
    page.models.set(found.base, found.model);
  } catch (error) {
    if (error.status !== 400) throw error;
    Object.assign(page.state, { off: [], features: {}, tau: null, base: "", at: null, cell: "", p: "", pin: "" });
    history.replaceState(null, "", write(page.state));
    alert_("The address does not fit what is served; the page begins anew.", error.problems);
  }
}

function asked(start) {
  const chosen = Object.values(start.chosen), alike = new Set(chosen).size === 1;
  const own = alike ? `${count(chosen[0])} ` : `${Object.entries(start.chosen).map(([m, k]) => `${visible(m)} ${count(k)}`).join(", ")} `;
  const all = alike && chosen[0] === start.people ? "" : ` of ${count(start.people)} people`;
  const kind = start.live ? "" : " · a saved run, to be read";
  return `Target: ${visible(start.words.target)} · ${own}${visible(start.words.people)}${all}${start.population === "all" ? "" : ` (${visible(start.population)})`}${kind}`;
}

// -- one look: the person first, then everyone, then each rule --------------------------------------------------------------

async function look({ whole = null } = {}) {
  page.busy?.abort();
  const mine = (page.busy = new AbortController()), { p, pin } = page.state;
  document.body.classList.add("busy");
  let told = false;
  const take = {
    person: (r) => { if (r.who) opened(r.who); page.person.draw(r); }, person_error: (r) => page.person.fail(r), pin: (r) => page.person.pin(r), model: (r) => { page.edits = r.edited; },
    everyone: (r) => { page.everyone = r; drawSum(r); told = true; page.people.load().catch((e) => page.fail(e)); if (r.whole) redraw().catch((e) => page.fail(e)); },
    everyone_error: (r) => page.fail(r), error: (r) => page.fail(r), rule: (r) => page.rules.told(r),
    progress: (r) => { $("state").textContent = `${count(r.done)} of ${count(r.of)} people …`; },
  };
  try {
    await lines("look", { ...page.request(), who: p || null, pin: pin && pin !== p ? pin : null, window: window_, whole, pick: true }, mine.signal, (record) => { if (!mine.signal.aborted) take[record.kind]?.(record); });
    if (told) say();
  } catch (error) {
    if (error.name !== "AbortError") throw error;
  } finally {
    if (page.busy === mine) { page.busy = null; document.body.classList.remove("busy"); document.body.dataset.looked = String(Number(document.body.dataset.looked ?? 0) + 1); }
  }
}

function say() {
  const row = page.person.record?.models?.[page.model];
  $("say").textContent = row ? `Person ${page.person.record.label}: responsiveness ${rho(row.rho)}, ${row.verdict}.` : "";
}

/** Everyone in one line: how many are in each category, as declared and as edited. */
function drawSum(record) {
  const now = record.models[page.model], was = now.before?.counts, named = words(page.tau);
  const keys = Object.keys(named).filter((k) => now.counts[k] || was?.[k]);
  $("counts").replaceChildren(...keys.map((k) => {
    const a = was?.[k] ?? 0, b = now.counts[k] ?? 0;
    return el("span", { data: { category: k, count: b, was: was ? a : "" } }, el("strong", {}, was && a !== b ? `${count(a)} → ${count(b)}` : count(b)), ` ${named[k]}`);
  }));
  const who = `of ${count(now.people)} ${visible(page.start.words.people)}${page.start.models.length > 1 ? ` under ${visible(page.model)}` : ""}${now.exact ? ", each known exactly" : ""}`;
  const part = record.whole ? who : `of ${count(record.people)} people drawn at random from ${count(record.of)}`;
  const slow = record.stopped ? el("button", { type: "button", id: "ask-all", on: { click: () => look({ whole: true }).catch((e) => page.fail(e)) } }, `Ask about everyone (about ${Math.ceil(record.seconds_for_all)} s)`) : record.whole ? "" : " · everyone follows …";
  $("state").replaceChildren(part, " ", slow);
  Object.assign($("state").dataset, { whole: record.whole, mean: now.mean_rho });
}

// -- the frame ------------------------------------------------------------------------------------------------------------

const DRAWN = { everyone: drawEveryone, models: drawModels, runs: drawRuns };
const redraw = async () => DRAWN[page.state.view]?.(page);

function show() {
  const view = $(`view-${page.state.view}`) && !$(`view-${page.state.view}`).hidden ? page.state.view : "person";
  for (const tab of $("views").children) {
    const on = tab.id === `view-${view}`;
    tab.setAttribute("aria-selected", String(on));
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
  $("run").addEventListener("change", () => page.go({ run: Number($("run").value), off: [], features: {}, tau: null, base: "", at: null, cell: "", pin: "", other: "" }));
  $("model").addEventListener("change", () => page.go({ model: $("model").value, at: null, cell: "", other: "" }));
  $("copy").addEventListener("click", async () => { await navigator.clipboard.writeText(link()).then(() => { $("copy").textContent = "Copied"; }, () => alert_(`Copy this address: ${link()}`)); setTimeout(() => { $("copy").textContent = "Copy link"; }, 2000); });
  addEventListener("popstate", () => { const before = page.state; page.state = read(); page.follow(before, true).then((problems) => problems?.length && alert_("", problems)); });
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

function alert_(text, problems = []) {
  $("alert").replaceChildren(text, problems.length ? el("ul", {}, ...problemLines(problems)) : "");
  $("alert").hidden = false;
}

function clearAlert() { $("alert").hidden = true; }

bindTheme();
if (takeToken()) {
  page.state = read();
  page.people = new People(page);
  page.person = new PersonView(page);
  page.rules = new Rules(page);
  page.spec = new Spec(page);
  bind();
  begin().catch((error) => page.fail(error));
} else {
  alert_("This tab has no token. Open the address that budge serve printed; each run has its own.");
}
