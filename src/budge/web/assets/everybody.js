// Everybody: the distribution of responsiveness before and after, who changed sides, and models beside each other.

import { $, el, svg, num, rho, delta, share, tag, visible, picture, problemLines } from "./dom.js";
import { post } from "./api.js";

const WIDE = 640, HIGH = 320, LEFT = 48, RIGHT = 16, TOP = 14, BOTTOM = 44;

export function drawEverybody(page, record) {
  const now = record.models[page.model], was = page.edited ? now.before : null;
  const who = record.whole ? `All ${num(now.people)} people${now.people < page.start.people ? " who were asked about" : ""}` : `${num(record.people)} of ${num(record.of)} people, drawn at random`;
  $("everybody-panel").replaceChildren(
    el("h2", {}, who, page.start.models.length > 1 ? el("span", { class: "of" }, ` · ${visible(page.model)}`) : null),
    ...now.sentences.map((s) => el("p", { class: "sentence" }, visible(s))),
    el("figure", { class: "cdf" }, cdf(now.cdf, was?.cdf, page.state.threshold), el("figcaption", {}, "Share of people with responsiveness up to ρ", was ? el("span", { class: "legend" }, el("i", { class: "now" }), "as edited", el("i", { class: "was" }), "as served") : "")),
    groups(page, record),
    was ? changes(was, now) : el("p", { class: "hint" }, "Switch a constraint: the distribution before stays in sight."),
  );
}

let by = "";

/** Verdicts by group: the library's figure, for everybody. */
function groups(page, record) {
  if (!page.start.groups?.length || !record.whole) return "";
  const inside = el("div", { class: "figure budge-figure" });
  const choice = el("select", { id: "by", "aria-label": "Verdicts by group" }, el("option", { value: "" }, "nothing"), ...page.start.groups.map((g) => el("option", { value: g }, visible(g))));
  choice.value = by;
  const load = async () => {
    by = choice.value;
    if (!by) return inside.replaceChildren();
    try {
      inside.replaceChildren(picture((await post("figure", { figure: "verdicts", by, state: page.state, model: page.model })).svg));
    } catch (error) {
      inside.replaceChildren(el("ul", { class: "hint" }, ...problemLines(error.problems ?? [])));
    }
  };
  choice.addEventListener("change", load);
  if (by) load();
  return el("section", { class: "block" }, el("h3", {}, el("label", {}, "Verdicts by ", choice)), inside);
}

function changes(was, now) {
  if (!was.changed.length) return el("p", {}, "Nobody's verdict differs from that of the model as it was served.");
  return el("section", { class: "block" }, el("h3", {}, "Whose verdict the edits change"), el("table", { class: "changes" },
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "as served"), el("th", { scope: "col" }, "as edited"), el("th", { scope: "col", class: "num" }, "people"))),
    el("tbody", {}, ...was.changed.map((c) => el("tr", {}, el("td", {}, tag(c.from)), el("td", {}, tag(c.to)), el("td", { class: "num" }, num(c.people)))))));
}

function cdf(now, was, tau) {
  const x = (v) => LEFT + v * (WIDE - LEFT - RIGHT), y = (v) => HIGH - BOTTOM - v * (HIGH - TOP - BOTTOM);
  const stairs = (steps) => {
    let at = 0, path = `M${x(0)} ${y(0)}`;
    for (const [r, s] of steps) { path += `L${x(r).toFixed(1)} ${y(at).toFixed(1)}L${x(r).toFixed(1)} ${y(s).toFixed(1)}`; at = s; }
    return `${path}L${x(1)} ${y(at).toFixed(1)}`;
  };
  const words = (text, props) => { const node = svg("text", props); node.textContent = text; return node; };
  const below = now.filter(([r]) => r < tau).at(-1)?.[1] ?? 0;
  const picture = svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": `Distribution of responsiveness: ${share(below)} of people have a ρ (estimated where it was drawn) below ${tau}` });
  for (const v of [0, 0.25, 0.5, 0.75, 1]) {
    picture.append(svg("line", { x1: x(0), x2: x(1), y1: y(v), y2: y(v), class: "grid" }), words(`${100 * v} %`, { x: LEFT - 8, y: y(v) + 4, class: "end" }), words(String(v), { x: x(v), y: HIGH - BOTTOM + 18, class: "mid" }));
  }
  picture.append(svg("line", { x1: x(tau), x2: x(tau), y1: y(0), y2: y(1), class: "tau" }), words(`τ = ${tau}`, { x: x(tau) + (tau > 0.85 ? -6 : 6), y: TOP + 12, class: tau > 0.85 ? "end" : "start" }), words("responsiveness ρ", { x: (x(0) + x(1)) / 2, y: HIGH - 6, class: "mid" }));
  if (was?.length) picture.append(svg("path", { d: stairs(was), class: "was" }));
  if (now.length) picture.append(svg("path", { d: stairs(now), class: "now" }));
  return picture;
}

export function drawModels(page, record, choose) {
  const names = page.start.models.map((m) => m.name);
  const row = (name) => {
    const m = record.models[name];
    return el("tr", {}, el("th", { scope: "row" }, visible(name)), el("td", { class: "num people" }, num(m.people)), ...["below", "inconclusive", "above"].map((v) => el("td", { class: "num" }, num(m.verdicts[v] ?? 0))), el("td", { class: "num", data: { mean: String(m.mean_rho) } }, rho(m.mean_rho), " ", page.edited && m.before ? delta(m.mean_rho, m.before.mean_rho) : null));
  };
  const alike = new Set(names.map((name) => record.models[name].people)).size === 1 && record.pairs.every((p) => p.people === record.models[p.a].people);
  $("models-panel").replaceChildren(
    el("h2", {}, alike ? "The same people and points, model by model" : "Model by model"),
    el("table", { class: "models" }, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Model"), el("th", { scope: "col", class: "num" }, "people"), el("th", { scope: "col", class: "num" }, "below τ"), el("th", { scope: "col", class: "num" }, "inconclusive"), el("th", { scope: "col", class: "num" }, "above τ"), el("th", { scope: "col", class: "num" }, "mean ρ"))), el("tbody", {}, ...names.map(row))),
    ...page.start.models.map((m) => el("p", { class: "hint" }, el("b", {}, visible(m.name)), `: ${visible(m.about)}`)),
    ...record.pairs.map((pair) => cross(pair, choose, alike)),
  );
}

function cross(pair, choose, alike) {
  const rank = ["below", "inconclusive", "at the threshold", "above"];
  const order = (key) => [...new Set([...rank, ...pair.counts.map((c) => c[key])])];
  const count = (a, b) => pair.counts.find((c) => c.a === a && c.b === b)?.people ?? 0;
  const columns = order("b");
  return el("section", { class: "block" }, el("h3", {}, `${visible(pair.a)} against ${visible(pair.b)}`),
    el("p", { class: "gap" }, `${alike ? "" : `${num(pair.people)} people asked of both: `}ρ of ${visible(pair.b)} is ${pair.mean_gap === null ? "–" : `${pair.mean_gap >= 0 ? "higher by " : "lower by "}${rho(Math.abs(pair.mean_gap))} on average`}, at most ${rho(pair.largest_gap)} apart. A number opens its people.`),
    el("table", { class: "cross" },
      el("thead", {}, el("tr", {}, el("td", { class: "corner" }, `${visible(pair.a)} ↓  ${visible(pair.b)} →`), ...columns.map((v) => el("th", { scope: "col", class: "num" }, tag(v))))),
      el("tbody", {}, ...order("a").map((a) => el("tr", {}, el("th", { scope: "row" }, tag(a)), ...columns.map((b) => el("td", { class: `num ${a === b ? "same" : ""}` }, count(a, b) ? el("button", { type: "button", class: "plain", title: "List these people", on: { click: () => choose({ model: pair.a, verdict: a }, { model: pair.b, verdict: b }) } }, num(count(a, b))) : el("span", { class: "muted" }, "0"))))))));
}
