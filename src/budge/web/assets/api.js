// Asking the server: JSON in, JSON out, lines as they come.

import { token } from "./address.js";

export class Refused extends Error {
  constructor(record, status) {
    super(record.problems?.[0]?.what ?? "the page did not answer");
    this.problems = record.problems ?? [];
    this.status = status;
  }
}

function ask(path, record, signal) {
  return fetch(`/api/${path}`, {
    method: "POST", signal, credentials: "omit", cache: "no-store", redirect: "error",
    headers: { "Content-Type": "application/json", "X-Budge-Token": token() },
    body: JSON.stringify(record),
  });
}

async function checked(answer) {
  if (answer.ok) return answer;
  let record = {};
  try { record = await answer.json(); } catch { /* not ours */ }
  throw new Refused(record, answer.status);
}

export async function post(path, record = {}, signal = undefined) {
  return (await checked(await ask(path, record, signal))).json();
}

export async function postText(path, record = {}) {
  return (await checked(await ask(path, record))).text();
}

/** Each line's record as soon as it is there. */
export async function lines(path, record, signal, take) {
  const answer = await checked(await ask(path, record, signal));
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    for (const part of parts) if (part) take(JSON.parse(part));
  }
}

export function download(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
