// One person: responsiveness with its interval, what flips the prediction, what a person can reach, point by point.

import { $, el, num, rho, delta, share, tag, gauge, cell, visible, problemLines, picture } from "./dom.js";
import { post } from "./api.js";

const open = { features: false, points: false, picture: false };

export function drawPerson(page, record) {
  $("person-name").textContent = `Person ${visible(record.label)}`;
  const parts = [cards(page, record)];
  if (record.status === "saved") parts.push(savedWitness(page, record));
  else {
    if (record.broken.length) parts.push(el("div", { class: "note warn" }, el("ul", {}, ...problemLines(record.broken))));
    if (record.reach) parts.push(flips(page, record), reach(page, record));
    else parts.push(el("p", { class: "note" }, visible(record.sentence)));
    parts.push(features(page, record));
    if (record.reach) parts.push(points(page, record), drawn(page, record));
  }
  $("person").replaceChildren(...parts);
}

// -- ρ, for each model ------------------------------------------------------------------------------------------------------

function cards(page, record) {
  const many = Object.keys(record.models).length > 1;
  return el("div", { class: "cards-row" }, ...Object.entries(record.models).map(([name, row]) => {
    const was = page.edited ? page.declared?.get(record.place)?.[name] : undefined;
    if (!page.edited && row.rho !== null) remember(page, record.place, name, row.rho);
    return el("article", { class: `rho-card ${row.verdict}`, "aria-label": many ? `Model ${visible(name)}` : "Responsiveness", data: { model: name, rho: String(row.rho), verdict: row.verdict } },
      el("header", {}, many ? el("b", { class: "name" }, visible(name)) : null, el("span", { class: "said" }, "prediction ", el("b", {}, cell(row.prediction))), tag(row.verdict)),
      el("p", { class: "big" }, el("span", { class: "greek" }, "ρ "), el("span", { class: "rho" }, rho(row.rho)), " ", was === undefined ? null : delta(row.rho, was)),
      gauge(row, page.state.threshold),
      el("p", { class: "told" }, told(row, page)));
  }));
}

function remember(page, place, name, value) {
  page.declared ??= new Map();
  page.declared.set(place, { ...page.declared.get(place), [name]: value });
}

function told(row, page) {
  if (row.method === "none") return row.status.replace("_", " ");
  const lost = row.unresolved ? `, ${num(row.unresolved)} without an answer` : "";
  if (row.method === "exact") return `${num(row.hits)} of all ${num(row.n)} reachable points hit the target${lost}: ${row.rho === null ? `between ${rho(row.low)} and ${rho(row.high)}` : "exact"}.`;
  if (row.method === "proved") return row.rho === null ? `Between ${rho(row.low)} and ${rho(row.high)}: proved from the model's structure.` : `${row.extreme === "none" ? "No reachable point hits the target" : row.extreme === "every" ? "Every reachable point hits the target" : row.n ? `${num(row.hits)} of all ${num(row.n)} reachable points hit the target` : "Exact"}: proved from the model's structure.`;
  if (row.exactness === "approximate") return `${num(row.hits)} of ${num(row.n)} draws of a chain hit the target${lost}: about ${rho(row.low)} to ${rho(row.high)}; no error rate is guaranteed.`;
  const level = Math.round(100 * (1 - page.start.design.alpha));
  return `${num(row.hits)} of ${num(row.n)} draws hit the target${lost}: between ${rho(row.low)} and ${rho(row.high)} at ${level} %.`;
}

// -- what flips it ---------------------------------------------------------------------------------------------------------

function flips(page, record) {
  const found = record.reach.models[page.model], row = record.models[page.model];
  const inside = el("section", { class: "block flips", "aria-labelledby": "flips-head" }, el("h3", { id: "flips-head" }, "What attains the target", Object.keys(record.models).length > 1 ? el("span", { class: "of" }, ` for ${visible(page.model)}`) : null));
  const plan = found.plan, least = plan && plan.least;
  const steps = least || (plan && plan.moves.length && !found.witness.length) ? plan.moves : found.witness;
  if (!steps.length) {
    const stays = found.hits > 0 || (plan && plan.status === "already");
    const proved = record.reach.exact && row.unresolved === 0;
    inside.append(el("p", {}, stays ? "Staying is enough: the prediction is in the target already." : proved ? `Nothing within reach: proved over all ${num(record.reach.points)} points.` : row.extreme === "none" || (plan && plan.status === "impossible") ? "Nothing within reach: proved from the model's structure." : row.method === "exact" ? `No hit among the points that have an answer: ρ is at most ${rho(row.upper)}.` : row.exactness === "approximate" ? `No hit in ${num(record.reach.points)} draws of a chain: ρ is about ${rho(row.upper)} or less; no error rate is guaranteed.` : `No hit in ${num(record.reach.points)} draws: ρ is at most ${rho(row.upper)} (error ${share(page.start.design.alpha)}).`));
    return inside;
  }
  const rest = found.flips.filter((f) => f.length && JSON.stringify(f) !== JSON.stringify(steps));
  inside.append(
    el("table", { class: "witness" },
      el("caption", {}, least ? `The least that does: ${plan.method === "listed" ? "every reachable point was asked about" : "proved from the model's structure"}.` : "The nearest one found, with no move that it does not need."),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Feature"), el("th", { scope: "col", class: "num" }, "from"), el("th", { scope: "col", class: "num" }, "to"))),
      el("tbody", {}, ...steps.map((w) => el("tr", {}, el("th", { scope: "row" }, visible(w.feature)), el("td", { class: "num" }, cell(w.from)), el("td", { class: "num to" }, cell(w.to)))))),
    rest.length ? el("details", {}, el("summary", {}, `${rest.length} more near ones`), el("ol", { class: "ways" }, ...rest.map((f) => el("li", {}, f.map((w, i) => [i ? ", " : "", el("span", { class: "step" }, `${visible(w.feature)} ${cell(w.from)} → `, el("b", {}, cell(w.to)))]).flat())))) : "");
  return inside;
}

function savedWitness(page, record) {
  const found = record.witness[page.model];
  if (found && !found.length) return el("section", { class: "block" }, el("h3", {}, "What attains the target"), el("p", {}, "Staying is enough: the prediction is in the target already."));
  return el("section", { class: "block" }, el("h3", {}, "What attains the target"),
    found ? el("table", { class: "witness" }, el("caption", {}, "The nearest one found, with no move that it does not need."),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Feature"), el("th", { scope: "col", class: "num" }, "from"), el("th", { scope: "col", class: "num" }, "to"))),
      el("tbody", {}, ...found.map((w) => el("tr", {}, el("th", { scope: "row" }, visible(w.feature)), el("td", { class: "num" }, cell(w.from)), el("td", { class: "num to" }, cell(w.to))))))
      : el("p", {}, "No point was found that does."));
}

// -- what a person can reach ------------------------------------------------------------------------------------------------------

function reach(page, record) {
  const r = record.reach;
  return el("section", { class: "block", "aria-labelledby": "reach-head" }, el("h3", { id: "reach-head" }, "What this person can reach"),
    el("p", { class: "sentence", data: { points: String(r.points), exact: String(r.exact) } }, visible(record.sentence)),
    r.moved.length ? el("div", { class: "scroll" }, el("table", { class: "reach" },
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Feature"), el("th", { scope: "col", class: "num" }, "now"), el("th", { scope: "col" }, "reaches"), el("th", { scope: "col", title: "Share of the points in which it differs from now" }, "moves"), el("th", { scope: "col", title: "Share of the points that attain the target in which it differs from now" }, "in hits"))),
      el("tbody", {}, ...r.moved.map((m) => el("tr", {},
        el("th", { scope: "row" }, visible(m.name)), el("td", { class: "num" }, cell(m.from)),
        el("td", {}, m.levels ? m.levels.map(cell).join(", ") : el("span", {}, `${cell(m.low)} – ${cell(m.high)}`, el("span", { class: "muted" }, m.values > 2 ? ` · ${m.values.toLocaleString("en")} values` : ""))),
        el("td", {}, meter(m.share)), el("td", {}, meter(m.share_of_hits[page.model]))))))) : "");
}

function meter(value) {
  return el("span", { class: "meter" }, el("span", { class: "track", "aria-hidden": "true" }, el("span", { class: "fill", width: `${100 * (value ?? 0)}%` })), el("span", { class: "n" }, share(value)));
}

function kept(name, summary, ...children) {
  const node = el("details", { class: "block", open: open[name] }, el("summary", {}, el("h3", {}, summary)), ...children);
  node.addEventListener("toggle", () => { open[name] = node.open; });
  return node;
}

function features(page, record) {
  const extra = Object.entries(record.extra);
  return kept("features", `All ${record.features.length} features`, el("div", { class: "tiles" }, ...record.features.map((f) => el("div", { class: f.moves ? "tile moves" : "tile" },
    el("span", { class: "k" }, visible(f.name)), el("b", {}, cell(f.value)), f.own && f.free ? el("span", { class: "own" }, `${f.own[0] < 0 ? `−${num(-f.own[0])}` : "0"} … ${f.own[1] > 0 ? `+${num(f.own[1])}` : "0"}`) : el("span", { class: "own" }, f.free ? "any level" : f.moves ? "follows" : "stays")))),
  extra.length ? el("p", { class: "hint" }, `Not in the spec: ${extra.map(([k, v]) => `${visible(k)} = ${cell(v)}`).join(", ")}`) : "");
}

function points(page, record) {
  const { listed, points: total } = record.reach;
  const models = Object.keys(listed.outputs);
  const many = models.length > 1;
  const rows = listed.distance.map((d, i) => el("tr", { class: listed.hits[page.model][i] ? "hit" : null },
    ...models.map((m) => el("td", { class: `num out ${listed.hits[m][i] ? "hit" : ""}` }, cell(listed.outputs[m][i]), listed.hits[m][i] ? el("span", { class: "sr" }, " (in the target)") : null)),
    el("td", { class: "num far" }, num(d)),
    ...listed.columns.map((_, j) => el("td", { class: "num" }, cell(listed.rows[j][i])))));
  const shown = rows.length < total ? `the nearest ${rows.length} of ${total.toLocaleString("en")}` : `all ${total.toLocaleString("en")}`;
  return kept("points", `Points: ${shown}`, el("div", { class: "scroll points" }, el("table", {},
    el("thead", {}, el("tr", {}, ...models.map((m) => el("th", { scope: "col", class: "num" }, many ? visible(m) : "output")), el("th", { scope: "col", class: "num", title: "Moves in units of each feature's range" }, "distance"), ...listed.columns.map((c) => el("th", { scope: "col", class: "num" }, visible(c))))),
    el("tbody", {}, ...rows))));
}

function drawn(page, record) {
  const inside = el("div", { class: "figure budge-figure" });
  const load = async () => {
    inside.replaceChildren(el("p", { class: "hint" }, "Drawing …"));
    try {
      inside.replaceChildren(picture((await post("figure", { figure: "person", state: page.state, person: record.place, model: page.model })).svg));
    } catch (error) {
      inside.replaceChildren(el("ul", { class: "hint" }, ...problemLines(error.problems ?? [])));
    }
  };
  const node = kept("picture", "The points as a picture", inside);
  node.addEventListener("toggle", () => { if (node.open && !inside.childElementCount) load(); });
  return node;
}
