// The state of the page is its address: reload, share, back and forward keep it. The token is no part of it.

const TEXTS = ["model", "p", "show", "find", "cell", "pin", "view", "base", "other", "versus", "by"];
const KEY = "budge-token";

/** Nothing chosen of a person's points, and the rules as they were served. */
export const UNTRIED = { at: null, cell: "" };
export const DECLARED = { ...UNTRIED, off: [], features: {}, tau: null, base: "" };

/** The state that an address holds; what it leaves open is empty. */
export function read() {
  const given = new URLSearchParams(location.hash.slice(1)), run = given.get("run") ?? "", tau = given.get("tau");
  const state = Object.fromEntries(TEXTS.map((name) => [name, given.get(name) ?? ""]));
  state.run = /^\d{1,6}$/.test(run) ? Number(run) : 0;
  state.off = (given.get("off") ?? "").split(".").filter(Boolean);
  state.at = given.get("at")?.split(".").map(Number) ?? null;
  if (!state.at?.every(Number.isInteger)) state.at = null;
  state.tau = tau !== null && Number.isFinite(Number(tau)) ? Number(tau) : null;
  try { state.features = JSON.parse(given.get("edit")) ?? {}; } catch { state.features = {}; }
  return state;
}

/** The address of a state; what is as served is left out. */
export function write(state) {
  const made = new URLSearchParams();
  if (state.run) made.set("run", state.run);
  for (const name of TEXTS) if (state[name]) made.set(name, state[name]);
  if (state.off.length) made.set("off", state.off.join("."));
  if (state.at) made.set("at", state.at.join("."));
  if (state.tau !== null) made.set("tau", state.tau);
  if (Object.keys(state.features).length) made.set("edit", JSON.stringify(state.features));
  return `#${made}`;
}

/** Takes the token out of the address and keeps it for this tab; whether there is one. */
export function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1));
  if (given.has("token")) {
    sessionStorage.setItem(KEY, given.get("token"));
    given.delete("token");
    history.replaceState(null, "", `${location.pathname}#${given}`);
  }
  return Boolean(token());
}

export const token = () => sessionStorage.getItem(KEY) ?? "";

/** An address that opens this view in another tab of this machine. */
export const link = () => `${location.origin}${location.pathname}#token=${token()}&${location.hash.slice(1)}`;
