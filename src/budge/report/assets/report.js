/* The script of a report. It reads the data that stands in the file, and nothing else. Texts are set as texts, never as HTML. */
(() => {
  "use strict";
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  const root = document.documentElement;
  root.classList.add("js");

  const element = (name, words, cls) => {
    const made = document.createElement(name);
    if (words !== undefined && words !== "") made.textContent = words;
    if (cls) made.className = cls;
    return made;
  };
  const SVG = "http://www.w3.org/2000/svg";
  const drawn = (name, attributes) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const shown = (v) => {
    if (v === null || v === undefined || Number.isNaN(v)) return "–";
    if (Number.isInteger(v)) return v.toLocaleString("en");
    const sign = v < 0 ? "−" : ""; // the rule of `number` in people.py
    const size = Math.abs(v);
    if (size < 1e-4) return sign + size.toExponential(1);
    if (size >= 1000) return sign + size.toLocaleString("en", { maximumFractionDigits: 0 });
    return sign + Number(size.toPrecision(3)).toLocaleString("en", { maximumFractionDigits: 8 });
  };
  const plain = (word) => word.replaceAll("_", " ");

  /* ---- statistics: the tails of the binomial through the incomplete beta function ---------------------------------- */
  const logGamma = (x) => { // Stirling's series, shifted up until it is exact to the last digits
    let shift = 0;
    while (x < 15) { shift += Math.log(x); x += 1; }
    const z = 1 / (x * x);
    const series = (1 / 12 - z * (1 / 360 - z * (1 / 1260 - z * (1 / 1680 - z * (1 / 1188 - z * 691 / 360360))))) / x;
    return (x - 0.5) * Math.log(x) - x + 0.9189385332046727418 + series - shift;
  };
  const fraction = (a, b, x) => { // Lentz's continued fraction
    const tiny = 1e-300;
    let c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (Math.abs(d) < tiny ? tiny : d);
    let h = d;
    for (let m = 1; m <= 5000; m += 1) {
      const m2 = 2 * m;
      let aa = m * (b - m) * x / ((a + m2 - 1) * (a + m2));
      d = 1 + aa * d; c = 1 + aa / c;
      d = 1 / (Math.abs(d) < tiny ? tiny : d); c = Math.abs(c) < tiny ? tiny : c;
      h *= d * c;
      aa = -(a + m) * (a + b + m) * x / ((a + m2) * (a + m2 + 1));
      d = 1 + aa * d; c = 1 + aa / c;
      d = 1 / (Math.abs(d) < tiny ? tiny : d); c = Math.abs(c) < tiny ? tiny : c;
      h *= d * c;
      if (Math.abs(d * c - 1) < 1e-16) break;
    }
    return h;
  };
  const beta = (x, a, b) => { // I_x(a, b)
    if (x <= 0) return 0;
    if (x >= 1) return 1;
    const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x));
    return x < (a + 1) / (a + b + 2) ? front * fraction(a, b, x) / a : 1 - front * fraction(b, a, 1 - x) / b;
  };
  const quantile = (p, a, b) => {
    let low = 0, high = 1;
    for (let i = 0; i < 200; i += 1) {
      const middle = (low + high) / 2;
      if (middle === low || middle === high) break;
      if (beta(middle, a, b) < p) low = middle; else high = middle;
    }
    return (low + high) / 2;
  };
  const interval = (hits, n, alpha) => [
    hits === 0 ? 0 : quantile(alpha / 2, hits, n - hits + 1),
    hits === n ? 1 : quantile(1 - alpha / 2, hits + 1, n - hits),
  ];
  const atMost = (hits, n, rate) => (hits >= n ? 1 : beta(1 - rate, n - hits, hits + 1));
  const atLeast = (hits, n, rate) => (hits <= 0 ? 1 : beta(rate, hits, n - hits + 1));
  const judged = (r) => {
    const { threshold, alpha } = data.design;
    if (r.exact) return r.rho < threshold ? "below" : r.rho > threshold ? "above" : "inconclusive";
    if (atMost(r.hits, r.n, threshold) < alpha) return "below";
    return atLeast(r.hits, r.n, threshold) < alpha ? "above" : "inconclusive";
  };

  /* ---- light and dark ----------------------------------------------------------------------------------------------- */
  const theme = byId("theme");
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const named = () => { theme.textContent = dark() ? "Light" : "Dark"; theme.setAttribute("aria-label", dark() ? "Use light colours" : "Use dark colours"); };
  theme.hidden = false;
  named();
  theme.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; named(); });

  /* ---- everybody ---------------------------------------------------------------------------------------------------- */
  const PAGE = 100;
  const tables = data.table.models;
  const body = document.querySelector("#everybody tbody");
  const state = { model: 0, key: "", up: true, page: 0, found: [] };
  const word = (t, key, i) => t[key].names[t[key].codes[i]];
  const moves = (t, i) => (t.moves && t.moves[i] ? t.moves[i].map(([f, a, b]) => `${data.table.features[f]}: ${a} → ${b}`).join("; ") : "");
  const carried = new Map();

  const mini = (low, high, rho) => {
    const svg = drawn("svg", { viewBox: "0 0 64 12", width: 64, height: 12, "aria-hidden": "true" });
    const x = (v) => 2 + 60 * v;
    svg.append(drawn("line", { x1: 2, x2: 62, y1: 6, y2: 6, class: "mini-line" }));
    svg.append(drawn("line", { x1: x(data.design.threshold), x2: x(data.design.threshold), y1: 1, y2: 11, class: "mini-tau" }));
    if (low !== null && high > low) svg.append(drawn("line", { x1: x(low), x2: x(high), y1: 6, y2: 6, class: "mini-span", "stroke-width": 3 }));
    svg.append(drawn("circle", { cx: x(rho), cy: 6, r: 2.6, class: "mini-dot" }));
    return svg;
  };
  const line = (t, i) => {
    const row = element("tr");
    const name = element("th", String(t.label[i]));
    name.scope = "row";
    row.append(name, element("td", word(t, "prediction", i)));
    const rho = element("td", "", "num");
    rho.append(element("span", shown(t.rho[i]), "rho"));
    if (t.rho[i] !== null) {
      rho.title = `${shown(t.hits[i])} of ${shown(t.n[i])} points attain the target`;
      rho.prepend(mini(t.low[i], t.high[i], t.rho[i]));
    }
    const method = word(t, "method", i);
    const ends = method === "exact" ? "exact" : t.low[i] === null ? "–" : `${shown(t.low[i])} – ${shown(t.high[i])}`;
    row.append(rho, element("td", ends, "num"), element("td", `${shown(t.hits[i])} of ${shown(t.n[i])}`, "num"));
    const verdict = element("td");
    verdict.append(element("span", plain(word(t, "verdict", i)), `tag ${word(t, "verdict", i)}`));
    row.append(verdict, element("td", t.p_adjusted ? shown(t.p_adjusted[i]) : "–", "num"));
    const moved = element("td", moves(t, i) || "–", "moved");
    if (carried.has(`${state.model}:${i}`)) {
      const open = element("button", "Try switches", "plain");
      open.type = "button";
      open.setAttribute("aria-label", `Switch constraints for ${t.label[i]}`);
      open.addEventListener("click", () => choose(carried.get(`${state.model}:${i}`)));
      moved.append(open);
    }
    row.append(moved);
    return row;
  };
  const compare = (t, key) => {
    const column = t[key];
    if (key === "moves") return (a, b) => (t.moves ? (t.moves[a] || []).length - (t.moves[b] || []).length : 0);
    if (!column) return () => 0;
    if (column.codes) {
      const rank = column.names.map((name, k) => [name, k]).sort((a, b) => String(a[0]).localeCompare(String(b[0]), "en", { numeric: true }));
      const place = [];
      rank.forEach(([, k], at) => { place[k] = at; });
      return (a, b) => place[column.codes[a]] - place[column.codes[b]];
    }
    if (key === "label") {
      if (column.every((v) => typeof v === "number")) return (a, b) => column[a] - column[b];
      const collator = new Intl.Collator("en", { numeric: true });
      return (a, b) => collator.compare(String(column[a]), String(column[b]));
    }
    return (a, b) => column[a] - column[b];
  };
  const search = () => {
    const t = tables[state.model];
    const wanted = byId("find").value.trim().toLowerCase();
    const verdict = byId("verdict").value, method = byId("method").value;
    const found = [];
    for (let i = 0; i < t.label.length; i += 1) {
      if (verdict && word(t, "verdict", i) !== verdict) continue;
      if (method && word(t, "method", i) !== method) continue;
      if (wanted) {
        const text = `${t.label[i]} ${word(t, "prediction", i)} ${word(t, "status", i)} ${word(t, "method", i)} ${plain(word(t, "verdict", i))}`.toLowerCase();
        if (!text.includes(wanted) && !moves(t, i).toLowerCase().includes(wanted)) continue;
      }
      found.push(i);
    }
    if (state.key) {
      const by = compare(t, state.key), column = t[state.key];
      const gone = (i) => Array.isArray(column) && column[i] === null;
      found.sort((a, b) => gone(a) - gone(b) || (gone(a) ? a - b : (state.up ? by(a, b) : by(b, a)) || a - b));
    } else if (wanted) { // whoever is called just so comes first
      const exact = (i) => (String(t.label[i]).toLowerCase() === wanted ? 0 : 1);
      found.sort((a, b) => exact(a) - exact(b) || a - b);
    }
    state.found = found;
    state.page = 0;
    show();
  };
  const show = () => {
    const t = tables[state.model], many = state.found.length, pages = Math.max(1, Math.ceil(many / PAGE));
    const part = state.found.slice(state.page * PAGE, (state.page + 1) * PAGE);
    body.replaceChildren(...part.map((i) => line(t, i)));
    byId("count").textContent = `${many.toLocaleString("en")} of ${t.label.length.toLocaleString("en")} people`;
    byId("where").textContent = `Page ${state.page + 1} of ${pages}`;
    byId("previous").disabled = state.page === 0;
    byId("next").disabled = state.page >= pages - 1;
    byId("pager").hidden = pages === 1;
    byId("printed").textContent = pages === 1 ? "" : `Printed are people ${(state.page * PAGE + 1).toLocaleString("en")} to ${(state.page * PAGE + part.length).toLocaleString("en")} of ${many.toLocaleString("en")}; the file holds everybody.`;
  };
  const choices = () => {
    const t = tables[state.model];
    for (const key of ["verdict", "method"]) {
      const select = byId(key), had = select.value;
      select.replaceChildren(new Option("all", ""), ...t[key].names.map((name) => new Option(plain(name), name)));
      select.value = t[key].names.includes(had) ? had : "";
    }
  };
  const safe = (value) => { // a cell that a spreadsheet would run is shown as text
    const text = value === null || value === undefined ? "" : String(value);
    const tame = typeof value !== "number" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(tame) ? `"${tame.replaceAll('"', '""')}"` : tame;
  };
  const asCsv = () => {
    const t = tables[state.model];
    const lines = [["person", "prediction", "status", "method", "n", "hits", "rho", "low", "high", "p_adjusted", "verdict", "witness"].join(",")];
    for (const i of state.found) {
      const cells = [t.label[i], word(t, "prediction", i), word(t, "status", i), word(t, "method", i), t.n[i], t.hits[i], t.rho[i], t.low[i], t.high[i],
        t.p_adjusted ? t.p_adjusted[i] : null, word(t, "verdict", i), moves(t, i)];
      lines.push(cells.map(safe).join(","));
    }
    return `${lines.join("\r\n")}\r\n`;
  };
  byId("export").addEventListener("click", () => {
    const link = element("a");
    link.href = URL.createObjectURL(new Blob([asCsv()], { type: "text/csv" }));
    link.download = "people.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
  for (const head of document.querySelectorAll("#everybody thead th")) {
    const key = head.dataset.key;
    const button = element("button", head.textContent, "plain");
    button.type = "button";
    head.dataset.name = head.textContent; // for print
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      state.up = state.key === key ? !state.up : true;
      state.key = key;
      for (const other of document.querySelectorAll("#everybody thead th")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", state.up ? "ascending" : "descending");
      search();
    });
  }
  let waiting = 0;
  byId("find").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(search, 60); });
  byId("verdict").addEventListener("change", search);
  byId("method").addEventListener("change", search);
  byId("previous").addEventListener("click", () => { state.page -= 1; show(); });
  byId("next").addEventListener("click", () => { state.page += 1; show(); });
  byId("which").replaceChildren(...tables.map((t, i) => new Option(t.name, String(i))));
  byId("of-model").hidden = tables.length === 1;
  byId("which").addEventListener("change", (event) => { state.model = Number(event.target.value); choices(); search(); });
  byId("controls").hidden = false;
  for (const text of document.querySelectorAll(".without")) text.hidden = true;

  /* ---- switches ----------------------------------------------------------------------------------------------------- */
  const live = data.live;
  let choose = () => {};
  if (live) {
    live.people.forEach((p, at) => p.rows.forEach((row, m) => { if (row >= 0) carried.set(`${m}:${row}`, at); }));
    const whom = byId("whom"), asks = byId("asks");
    const boxes = [...document.querySelectorAll("[data-switch]")];
    const bankOf = (off) => {
      const asked = off.filter((t) => live.toggles[t].within === undefined || !off.includes(live.toggles[t].within));
      return live.banks.findIndex((bank) => bank.off.every((t) => asked.includes(t)) && asked.every((t) => bank.off.includes(t) || bank.masks.includes(t)));
    };
    /* One person with these switches off: {rho, n, hits, exact, as} or {no: why}. */
    const answer = (at, m, off) => {
      const person = live.people[at], row = person.rows[m];
      if (!off.length && row >= 0) {
        const t = tables[m], method = word(t, "method", row);
        if (t.rho[row] === null) return { no: `status: ${plain(word(t, "status", row))}` };
        if (method === "exact") return { rho: t.rho[row], n: t.n[row], hits: t.hits[row], exact: true, audited: true };
        if (method === "sample" && !(t.unresolved && t.unresolved[row])) return { rho: t.hits[row] / t.n[row], n: t.n[row], hits: t.hits[row], exact: false, audited: true };
      }
      const b = bankOf(off);
      if (b < 0) return { no: "combination" };
      const cells = person.banks[b];
      if (!cells) return { no: "not carried" };
      const bank = live.banks[b], step = 2 + live.models.length;
      let on = 0;
      bank.masks.forEach((t, k) => { if (!off.includes(t)) on |= 1 << k; });
      let n = 0, hits = 0;
      for (let i = 1; i < cells.length; i += step) {
        if ((cells[i] & on) === 0) { n += cells[i + 1]; hits += cells[i + 2 + m]; }
      }
      const exact = cells[0] > 1;
      if (n === 0 && exact) return { no: "empty" };
      if (!exact && n < live.least) return { no: "few", n };
      return { rho: hits / n, n: cells[0] === 3 ? null : n, hits, exact };
    };
    const ends = (r) => (r.exact ? [r.rho, r.rho] : interval(r.hits, r.n, data.design.alpha));
    /* The mean over the people drawn at random. */
    const average = (m, off, only) => {
      const who = [];
      let sum = 0, spread = 0, many = 0, few = 0, exact = true;
      const verdicts = { below: 0, above: 0, inconclusive: 0 };
      let no = "";
      live.people.forEach((p, at) => {
        if (only ? !only.includes(at) : !p.mean || p.rows[m] < 0) return;
        const r = answer(at, m, off);
        if (r.no) { few += 1; no = r.no; return; }
        many += 1;
        who.push(at);
        sum += r.rho;
        if (!r.exact) { exact = false; spread += 1 / r.n; }
        verdicts[judged(r)] += 1;
      });
      if (many < Math.max(1, few)) return { no: no || "few", n: 0 };
      const half = Math.sqrt(Math.log(2 / data.design.alpha) / 2 * spread) / many;
      return { rho: sum / many, exact, low: Math.max(0, sum / many - half), high: Math.min(1, sum / many + half), many, few, verdicts, who };
    };
    const level = `${shown(100 * (1 - data.design.alpha))} %`;
    const REASONS = {
      few: (r) => `Too few points are left (${r.n}): no number is shown.`,
      empty: () => "Nothing is feasible for this person then, not even to stay.",
      "not carried": () => "The file carries no points of this person for these switches.",
      combination: (r, off) => {
        const own = off.filter((t) => live.toggles[t].how !== "mask").map((t) => `“${live.toggles[t].says}”`);
        return `The file carries no points for this combination. Switch one of these back on: ${own.join(", ")}`;
      },
    };
    const because = (r, off) => (REASONS[r.no] ? REASONS[r.no](r, off) : r.no);
    const picture = (low, high, rho) => {
      const svg = drawn("svg", { viewBox: "0 0 260 34", role: "presentation" });
      const x = (v) => 6 + 248 * v;
      svg.append(drawn("line", { x1: 6, x2: 254, y1: 14, y2: 14, class: "mini-line", "stroke-width": 4 }));
      if (high > low) svg.append(drawn("line", { x1: x(low), x2: x(high), y1: 14, y2: 14, class: "mini-span", "stroke-width": 4 }));
      svg.append(drawn("line", { x1: x(data.design.threshold), x2: x(data.design.threshold), y1: 4, y2: 24, class: "mini-tau", "stroke-width": 1.5 }));
      svg.append(drawn("circle", { cx: x(rho), cy: 14, r: 5.5, class: "mini-dot" }));
      for (const [at, name, anchor] of [[0, "0", "start"], [1, "1", "end"]]) {
        const text = drawn("text", { x: x(at), y: 33, "font-size": 10, fill: "currentColor", "text-anchor": anchor });
        text.textContent = name;
        svg.append(text);
      }
      return svg;
    };
    const model = () => (asks ? Number(asks.value) : 0);
    const offNow = () => boxes.filter((box) => !box.checked).map((box) => Number(box.dataset.switch)).sort((a, b) => a - b);
    const update = () => {
      const off = offNow(), at = Number(whom.value), m = model();
      const ask = (set) => (at < 0 ? average(m, set) : answer(at, m, set));
      const now = ask(off), before = at < 0 && !now.no ? average(m, [], now.who) : ask([]); // the same people before and after
      const big = byId("result-rho"), text = byId("result-text"), said = [];
      byId("result-who").textContent = at < 0 ? "Mean responsiveness" : `Responsiveness of ${live.people[at].label}`;
      big.classList.toggle("no", Boolean(now.no));
      big.textContent = now.no ? "No number" : shown(now.rho);
      big.dataset.value = now.no ? "" : String(now.rho);
      const spot = byId("result-picture");
      spot.replaceChildren();
      if (now.no) {
        said.push(because(now, off));
      } else if (at < 0) {
        spot.append(picture(now.low, now.high, now.rho));
        said.push(now.exact ? `Exactly, over ${now.many} people; every point was listed.` : `Between ${shown(now.low)} and ${shown(now.high)} at ${level}, for these ${now.many} people.`);
        said.push(`${now.verdicts.below} below the threshold, ${now.verdicts.above} above, ${now.verdicts.inconclusive} inconclusive.`);
        if (now.few) said.push(`${now.few === 1 ? "1 more person has" : `${now.few} more people have`} too few points left and ${now.few === 1 ? "is" : "are"} not in the mean.`);
      } else {
        const [low, high] = ends(now);
        big.dataset.low = String(low);
        big.dataset.high = String(high);
        spot.append(picture(low, high, now.rho));
        said.push(now.exact ? (now.n === null ? "Exactly: every point was listed and weighed." : `Exactly: ${shown(now.hits)} of ${shown(now.n)} points.`)
          : `${shown(now.hits)} of ${shown(now.n)} points; between ${shown(low)} and ${shown(high)} at ${level}.`);
        said.push(`Against the threshold ${shown(data.design.threshold)}: ${judged(now)}.`);
      }
      text.replaceChildren(...said.map((words) => element("p", words)));
      const count = off.length ? `${off.length} ${off.length === 1 ? "rule is" : "rules are"} off. ` : "All rules are on. ";
      byId("result-before").textContent = `${count}${off.length && !before.no ? `As audited: ${shown(before.rho)}.` : ""}`;
      for (const box of boxes) {
        const t = Number(box.dataset.switch);
        const flipped = box.checked ? [...off, t].sort((a, b) => a - b) : off.filter((other) => other !== t);
        const then = ask(flipped);
        const place = document.querySelector(`[data-alone="${t}"]`);
        place.textContent = then.no ? "" : `${box.checked ? "off" : "on"}: ${shown(Number(then.rho.toFixed(3)))}`;
      }
    };
    for (const box of boxes) box.addEventListener("change", update);
    whom.addEventListener("change", update);
    if (asks) asks.addEventListener("change", update);
    byId("all-on").addEventListener("click", () => { for (const box of boxes) box.checked = true; update(); });
    byId("switches").addEventListener("submit", (event) => event.preventDefault());
    choose = (at) => { whom.value = String(at); if (asks) asks.value = String(state.model); update(); byId("live").scrollIntoView(); whom.focus(); };
    byId("board").hidden = false;
    whom.value = "-1";
    for (const box of boxes) box.checked = true;
    update();
  }
  choices();
  search();
  if (typeof globalThis.budgeTests === "function") globalThis.budgeTests({ interval, beta, quantile, atMost, atLeast, safe, asCsv, shown });
})();
