// Asking the server: JSON in, JSON out, lines as they come.

import { token } from "./address.js";

class Refused extends Error {
  constructor(record, status) {
    super(record.problems?.[0]?.what ?? "the page did not answer");
    this.problems = record.problems ?? [];
    this.status = status;
  }
}

async function ask(path, record, signal) {
  const answer = await fetch(`/api/${path}`, {
    method: "POST", signal, credentials: "omit", cache: "no-store", redirect: "error",
    headers: { "Content-Type": "application/json", "X-Budge-Token": token() },
    body: JSON.stringify(record),
  });
  if (!answer.ok) throw new Refused(await answer.json().catch(() => ({})), answer.status);
  return answer;
}

export const post = async (path, record) => (await ask(path, record)).json();

/** Each line's record as soon as it is there. */
export async function lines(path, record, signal, take) {
  const reader = (await ask(path, record, signal)).body.pipeThrough(new TextDecoderStream()).getReader();
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
  const url = URL.createObjectURL(new Blob([text], { type })), link = document.createElement("a");
  Object.assign(link, { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
