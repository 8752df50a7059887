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
    if (size < 1e-6) return sign + size.toExponential(1);
    if (size >= 1000) return sign + size.toLocaleString("en", { maximumFractionDigits: 0 });
    return sign + Number(size.toPrecision(3)).toLocaleString("en", { maximumFractionDigits: 8 });
  };
  const share = (v) => { // for a column: the rule of `decimals` in people.py
    const text = v === null ? "–" : v.toFixed(3);
    if (!(text === "0.000" && v > 0) && !(text === "1.000" && v < 1)) return text;
    return v < 0.5 ? shown(v) : String(Number((1 - Number((1 - v).toPrecision(1))).toPrecision(15)));
  };
  const plain = (word) => word.replaceAll("_", " "), many = (n) => n.toLocaleString("en");

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
  const state = { model: data.main, key: "", up: true, page: 0, found: [] };
  const word = (t, key, i) => t[key].names[t[key].codes[i]];
  const moves = (t, i) => (t.moves && t.moves[i] ? t.moves[i].map(([f, a, b]) => `${data.table.features[f]}: ${a} → ${b}`).join("; ") : "");

  const mini = (low, high, rho) => {
    const svg = drawn("svg", { viewBox: "0 0 64 12", width: 64, height: 12, "aria-hidden": "true" });
    const x = (v) => 2 + 60 * v;
    svg.append(drawn("line", { x1: 2, x2: 62, y1: 6, y2: 6, class: "mini-line" }));
    svg.append(drawn("line", { x1: x(data.threshold), x2: x(data.threshold), y1: 1, y2: 11, class: "mini-tau" }));
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
    rho.append(element("span", share(t.rho[i]), "rho"));
    const method = word(t, "method", i);
    if (t.rho[i] !== null) {
      rho.title = method === "proved" ? "proved from the model's structure" : `${shown(t.hits[i])} of ${shown(t.n[i])} points attain the target`;
      rho.prepend(mini(t.low[i], t.high[i], t.rho[i]));
    }
    const known = (method === "exact" || method === "proved") && t.rho[i] !== null;
    const ends = known ? method : t.low[i] === null ? "–" : `${share(t.low[i])} – ${share(t.high[i])}`;
    row.append(rho, element("td", ends, "num"), element("td", t.n[i] ? `${shown(t.hits[i])} of ${shown(t.n[i])}` : "–", "num"));
    const verdict = element("td");
    verdict.append(element("span", plain(word(t, "verdict", i)), `tag ${word(t, "verdict", i).replaceAll(" ", "-")}`), " ", element("small", word(t, "extreme", i)));
    row.append(verdict, element("td", t.p_adjusted ? shown(t.p_adjusted[i]) : "–", "num"));
    row.append(element("td", moves(t, i) || "–", "moved"));
    return row;
  };
  const sortable = (t, key, i) => { // what a column is sorted by: witnesses by how much they move
    if (key === "moves") return t.moves && t.moves[i] ? t.moves[i].length : 0;
    return t[key] && t[key].codes ? word(t, key, i) : t[key] ? t[key][i] : null;
  };
  const { compare } = new Intl.Collator("en", { numeric: true });
  const search = () => {
    const t = tables[state.model];
    const wanted = byId("find").value.trim().toLowerCase();
    const verdict = byId("verdict").value, method = byId("method").value;
    const found = [];
    for (let i = 0; i < t.label.length; i += 1) {
      if (verdict && word(t, "verdict", i) !== verdict) continue;
      if (method && word(t, "method", i) !== method) continue;
      if (wanted) {
        const text = `${t.label[i]} ${word(t, "prediction", i)} ${word(t, "status", i)} ${word(t, "method", i)} ${plain(word(t, "verdict", i))} ${word(t, "extreme", i)}`.toLowerCase();
        if (!text.includes(wanted) && !moves(t, i).toLowerCase().includes(wanted)) continue;
      }
      found.push(i);
    }
    if (state.key) {
      const keys = new Map(found.map((i) => [i, sortable(t, state.key, i)])), turn = state.up ? 1 : -1;
      const words = [...keys.values()].some((key) => typeof key === "string");
      const order = (a, b) => (a === null) - (b === null) || turn * (words ? compare(a, b) : a - b); // what is not known comes last
      found.sort((a, b) => order(keys.get(a), keys.get(b)) || a - b);
    } else if (wanted) { // whoever is called just so comes first
      const exact = (i) => (String(t.label[i]).toLowerCase() === wanted ? 0 : 1);
      found.sort((a, b) => exact(a) - exact(b) || a - b);
    }
    state.found = found;
    state.page = 0;
    show();
  };
  const show = () => {
    const t = tables[state.model], total = state.found.length, pages = Math.max(1, Math.ceil(total / PAGE)), first = state.page * PAGE;
    const part = state.found.slice(first, first + PAGE);
    body.replaceChildren(...part.map((i) => line(t, i)));
    byId("count").textContent = `${many(total)} of ${many(t.label.length)} people`;
    byId("where").textContent = `Page ${state.page + 1} of ${pages}`;
    byId("previous").disabled = state.page === 0;
    byId("next").disabled = state.page >= pages - 1;
    byId("pager").hidden = pages === 1;
    byId("printed").textContent = pages === 1 ? "" : `Printed are people ${many(first + 1)} to ${many(first + part.length)} of ${many(total)}; the file holds all of them.`;
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
    const lines = [["person", "prediction", "status", "method", "n", "hits", "rho", "low", "high", "p_adjusted", "verdict", "exactness", "witness"].join(",")];
    for (const i of state.found) {
      const cells = [t.label[i], word(t, "prediction", i), word(t, "status", i), word(t, "method", i), t.n[i], t.hits[i], t.rho[i], t.low[i], t.high[i],
        t.p_adjusted ? t.p_adjusted[i] : null, word(t, "verdict", i), word(t, "exactness", i), moves(t, i)];
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
  byId("which").replaceChildren(...tables.map((t, i) => new Option(t.name, String(i), false, i === data.main)));
  byId("of-model").hidden = tables.length === 1;
  byId("which").addEventListener("change", (event) => { state.model = Number(event.target.value); choices(); search(); });
  byId("controls").hidden = false;
  for (const text of document.querySelectorAll(".without")) text.hidden = true;

  choices();
  search();
})();
