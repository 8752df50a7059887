// Everyone, models side by side, runs side by side: drawn when their tab is open.

import { button, choice, count, decimals, el, fill, picture, rho, row, table } from "./dom.js";
import { UNTRIED } from "./address.js";
import { post } from "./api.js";

const DILUTED = "A relaxed rule adds points: where most of them miss the target, ρ falls although nobody loses a way.";

/** Everyone as marks, the sentences of the summary, what an edit changed, and groups. */
export async function drawEveryone(page) {
  const { state, start } = page, now = page.everyone?.models[page.model];
  if (!now) return;
  const found = await post("figure", { ...page.request(), figure: "strip" });
  const by = start.groups.includes(state.by) ? await post("figure", { ...page.request(), figure: "groups", by: state.by }) : null;
  const { before } = now;
  fill("everyone-panel", el("h1", { id: "headline" }, found.headline), found.lede.map((line) => el("p", {}, line)),
    figures(found),
    before ? el("section", { id: "changes" }, el("h2", {}, "What the edits change"), el("p", { id: "means", data: { before: before.mean_rho, after: now.mean_rho } }, `Mean ρ ${rho(before.mean_rho)} → ${rho(now.mean_rho)}.`, now.mean_rho < before.mean_rho ? ` ${DILUTED}` : ""),
      before.changed.length ? table("Who changes category", ["Declared", "Edited", "People"], before.changed.map((c) => row(start.names[c.from], start.names[c.to], count(c.people))), "changed") : el("p", {}, "Nobody changes category.")) : "",
    el("h2", {}, "In words"), el("ul", { id: "sentences" }, now.sentences.map((line) => el("li", {}, line))),
    start.groups.length ? el("section", {}, el("h2", {}, "By group"), el("label", {}, "By ", choice([["", "choose a column"], ...start.groups.map((g) => [g, g])], by ? state.by : "", (value) => page.go({ by: value }, false), { id: "by" })),
      by ? el("div", { id: "by-figure" }, el("h3", {}, by.heading), figures(by), table(`Groups of ${state.by}`, ["Group", "People", by.claim, "No way at all", "Mean ρ"],
        by.rows.map(([group, people, harmed, share, none, mean]) => row(group, count(people), `${count(harmed)} (${share})`, count(none), decimals(mean))), "groups")) : "") : "");
}

/** A figure of the report in the widths of the page, and its caption. */
const figures = ({ strips, caption }) => [Object.entries(strips).map(([medium, svg]) => el("figure", { class: `strip ${medium}` }, picture(svg))), el("p", { class: "hint" }, caption)];

/** Each model on its own people, and every two on the people whom both judge; a number opens its people. */
export async function drawModels(page) {
  const found = await post("figure", { ...page.request(), figure: "models" });
  const open = (pair, i, j) => (pair.counts[i][j] ? button(count(pair.counts[i][j]), () => page.go({ model: pair.first, show: pair.keys[i], other: `${pair.second}:${pair.keys[j]}`, find: "" }), { class: "plain" }) : "0");
  fill("models-panel", el("h1", {}, found.heading),
    table("Models", ["Model", "Own people", found.claim, `of the ${count(found.people)} whom all judge`, "Mean ρ"], found.rows.map((r) => row(r.model, count(r.people), count(r.harmed), count(r.shared), decimals(r.mean))), "each"),
    found.pairs.map((pair) => el("section", { class: "pair" }, el("h2", {}, `${pair.first} (rows) and ${pair.second} (columns)`), el("p", { class: "hint" }, pair.sentence),
      table(`${pair.first} and ${pair.second}`, ["", ...pair.names], pair.names.map((name, i) => row(name, ...pair.names.map((_, j) => open(pair, i, j))))))));
}

/** Two saved runs: what differs between them, how many moved, and who. */
export async function drawRuns(page) {
  const { start, model } = page, runs = start.runs.filter((r) => r.saved && r.id !== start.run);
  if (!runs.length || !start.runs[start.run].saved) return fill("runs-panel", el("h1", {}, "Runs"), el("p", {}, "Two saved runs are needed: budge serve run1/ run2/."));
  const chosen = runs.find((r) => String(r.id) === page.state.versus) ?? runs[0], other = chosen.models.includes(model) ? model : chosen.models[0];
  const found = await post("runs", { ...page.request(), other: chosen.id, other_model: other });
  fill("runs-panel", el("h1", { id: "runs-head", data: { changed: found.changed, both: found.both } }, `${count(found.changed)} of ${count(found.both)} people changed category`),
    el("p", {}, el("label", {}, `From this run (${model}) to `, choice(runs.map((r) => [r.id, r.title]), chosen.id, (value) => page.go({ versus: value }, false), { id: "versus" })), start.models.length > 1 || chosen.models.length > 1 ? ` (${other})` : ""),
    el("p", { class: "hint" }, `${found.differs} ρ alone differs for ${count(found.moved)}. Only in this run: ${count(found.only[0])}; only in the other: ${count(found.only[1])}.`),
    table("People by category", ["", "This run", "The other"], found.counts.map((c) => row(c.name, count(c.was), count(c.is))), "run-counts"),
    found.rows.length ? [el("h2", {}, found.rows.length < found.changed + found.moved ? `The ${count(found.rows.length)} who changed most` : "Who changed"),
      table("Who changed", ["Person", "ρ", "Category"], found.rows.map((r) => row(button(r.label, () => page.go({ ...UNTRIED, p: r.label, view: "" }), { class: "plain" }), r.rho.map(decimals).join(" → "), r.was === r.is ? r.was : `${r.was} → ${r.is}`)), "run-people")] : "");
}
