// Everyone, models side by side, runs side by side: drawn when their tab is open.

import { $, button, count, el, picture, rho, row, table, visible, words } from "./dom.js";
import { post } from "./api.js";

/** Everyone as marks, the sentences of the summary, what an edit changed, and verdicts by group. */
export async function drawEveryone(page) {
  const named = words(page.tau), now = page.everyone?.models[page.model], groups = page.start.groups;
  if (!now) return;
  const found = await post("figure", { ...page.request(), figure: "strip" });
  const figure = el("div", { class: "figure budge-figure", id: "by-figure" });
  const by = el("select", { id: "by", on: { change: async () => figure.replaceChildren(by.value ? picture((await post("figure", { ...page.request(), figure: "verdicts", by: by.value })).svg) : "") } }, el("option", { value: "" }, "choose a column"), ...groups.map((g) => el("option", { value: g }, visible(g))));
  const { before } = now;
  $("everyone-panel").replaceChildren(el("h1", { id: "headline" }, visible(found.headline)), ...found.lede.map((line) => el("p", {}, visible(line))),
    ...["paper", "phone"].map((medium) => (found.strips[medium] ? el("figure", { class: `strip ${medium}` }, picture(found.strips[medium])) : "")), el("p", { class: "hint" }, visible(found.caption)),
    before ? el("section", { id: "changes" }, el("h2", {}, "What the edits change"), el("p", { id: "means", data: { before: before.mean_rho, after: now.mean_rho } }, `Mean ρ ${rho(before.mean_rho)} → ${rho(now.mean_rho)}.`),
      before.changed.length ? table(["Declared", "Edited", "People"], before.changed.map((c) => row(named[c.from], named[c.to], count(c.people))), "changed") : el("p", {}, "Nobody changes category.")) : "",
    el("h2", {}, "In words"), el("ul", { id: "sentences" }, ...now.sentences.map((s) => el("li", {}, visible(s)))),
    groups.length && page.start.live ? el("section", {}, el("h2", {}, "By group"), el("label", {}, "Verdicts by ", by), figure) : "");
}

/** Each model on its own people, and every two on the people whom both judge; a number opens its people. */
export async function drawModels(page) {
  if (page.start.models.length < 2) return;
  const { found } = await post("figure", { ...page.request(), figure: "models" });
  const open = (pair, i, j) => { const k = pair.counts[i][j]; return k ? button(count(k), () => page.go({ model: pair.first, show: pair.keys[i], other: `${pair.second}:${pair.keys[j]}`, find: "" }), { class: "plain" }) : "0"; };
  $("models-panel").replaceChildren(el("h1", {}, visible(found.heading)),
    table(["Model", "Own people", visible(found.claim), `of the ${count(found.people)} whom all judge`, "Mean ρ"], found.rows.map((r) => row(visible(r.model), count(r.people), count(r.harmed), count(r.shared), rho(r.mean))), "each"),
    ...found.pairs.map((pair) => el("section", { class: "pair" }, el("h2", {}, `${visible(pair.first)} (rows) and ${visible(pair.second)} (columns)`), el("p", { class: "hint" }, visible(pair.sentence)),
      table(["", ...pair.names], pair.names.map((name, i) => row(name, ...pair.names.map((_, j) => open(pair, i, j))))))));
}

/** Two saved runs: what differs between them, how many moved, and who. */
export async function drawRuns(page) {
  const runs = page.start.runs.filter((r) => r.saved && r.id !== page.start.run), panel = $("runs-panel"), named = words(page.tau);
  if (!runs.length || !page.start.runs[page.start.run].saved) return panel.replaceChildren(el("h1", {}, "Runs"), el("p", {}, "Two saved runs are needed: budge serve run1/ run2/."));
  const chosen = runs.find((r) => r.id === page.versus) ?? runs[0];
  page.versus = chosen.id;
  const other = chosen.models.includes(page.model) ? page.model : chosen.models[0];
  const found = await post("runs", { ...page.request(), other: chosen.id, other_model: other });
  const pick = el("select", { id: "versus", on: { change: () => { page.versus = Number(pick.value); drawRuns(page).catch((e) => page.fail(e)); } } }, ...runs.map((r) => el("option", { value: r.id, selected: r.id === chosen.id }, `${visible(r.title)} ${r.when}`)));
  panel.replaceChildren(el("h1", { id: "runs-head", data: { changed: found.changed, both: found.both } }, `${count(found.changed)} of ${count(found.both)} people changed`),
    el("p", {}, el("label", {}, `From this run (${visible(page.model)}) to `, pick), page.start.models.length > 1 || chosen.models.length > 1 ? ` (${visible(other)})` : ""),
    el("p", { class: "hint" }, `${found.differs.length ? `Between them: ${visible(found.differs.join("; "))}.` : "Spec, people, model and design are the same."} Only in this run: ${count(found.only[0])}; only in the other: ${count(found.only[1])}.`),
    table(["", "This run", "The other"], found.counts.map((c) => row(c.name === "at" ? "at the threshold" : named[c.name], count(c.was), count(c.is))), "run-counts"),
    found.rows.length ? el("h2", {}, found.rows.length < found.changed ? `The ${count(found.rows.length)} who changed most` : "Who changed") : "",
    found.rows.length ? table(["Person", "ρ", "Category"], found.rows.map((r) => row(button(visible(r.label), () => page.go({ p: r.label, view: "", at: null, cell: "" }), { class: "plain" }), `${rho(r.rho[0])} → ${rho(r.rho[1])}`, r.was === r.is ? named[r.was] : `${named[r.was]} → ${named[r.is]}`)), "run-people") : "");
}
