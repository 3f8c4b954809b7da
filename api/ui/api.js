// The node's own API, and nothing else: relative to the page, so that a path before it does not matter.

export const ROOT = new URL("../", document.baseURI);
const TOKEN = "quipu-token";
const TIMEOUT_MS = 20_000;

/** What the node says went wrong (RFC 9457), or that it does not answer at all. */
export class Problem extends Error {
  /** @param {{status?: number, code?: string, title?: string, detail?: string, errors?: any[]}} body */
  constructor(body) {
    super(body.detail || body.title || "The node does not answer.");
    this.status = body.status ?? 0;
    this.code = body.code ?? "unreachable";
    this.errors = body.errors ?? [];
  }

  /** With the places that are wrong. */
  get text() {
    const places = this.errors.map((one) => `${one.pointer}: ${one.detail}`).join("; ");
    return places ? `${this.message} (${places})` : this.message;
  }
}

/** Kept for this tab alone, until it is closed. */
export function token() {
  return sessionStorage.getItem(TOKEN) ?? "";
}

export function keepToken(text) {
  if (text) sessionStorage.setItem(TOKEN, text);
  else sessionStorage.removeItem(TOKEN);
  dispatchEvent(new Event("quipu-token"));
}

function headersOf(given = {}) {
  const held = token();
  return held ? { ...given, Authorization: `Bearer ${held}` } : given;
}

/** @returns {Promise<Response>} raises `Problem` */
export async function ask(path, { method = "GET", headers = {}, body, signal } = {}) {
  const ends = AbortSignal.timeout(TIMEOUT_MS);
  const signals = signal ? AbortSignal.any([signal, ends]) : ends;
  let answer;
  try {
    answer = await fetch(new URL(path, ROOT), { method, body, headers: headersOf(headers), signal: signals });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem({ detail: ends.aborted ? "The node did not answer in time." : "The node does not answer." });
  }
  if (!answer.ok) throw new Problem(await problemOf(answer));
  return answer;
}

async function problemOf(answer) {
  try {
    return await answer.json();
  } catch {
    return { status: answer.status, detail: `The answer was ${answer.status}.` };
  }
}

export async function get(path, options) {
  return (await ask(path, options)).json();
}

export async function post(path, value, options = {}) {
  const headers = { "Content-Type": "application/json" };
  return (await ask(path, { ...options, method: "POST", headers, body: JSON.stringify(value) })).json();
}

/** What all members answer, by node id. */
export async function askAll(question, signal) {
  const told = await post("v1/cluster/queries", { question, timeout: "3s", everybody: true }, { signal });
  return { ...told, by: new Map(told.answers.map((one) => [one.node_id, one.answer])) };
}

/**
 * Server-sent events by fetch(), which can send the token, until the signal ends it.
 * @returns {AsyncGenerator<{event: string, id: string, data: any}>}
 */
export async function* events(path, signal) {
  const answer = await fetch(new URL(path, ROOT), { headers: headersOf({ Accept: "text/event-stream" }), signal });
  if (!answer.ok) throw new Problem(await problemOf(answer));
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", isOpened = false;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    // Its first word: from here on nothing is missed, so what is asked for now has no hole to it.
    if (!isOpened) yield { event: "opened", id: "", data: null };
    isOpened = true;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const told = readBlock(block);
      if (told) yield told;
    }
  }
}

function readBlock(block) {
  let event = "", id = "", data = "";
  for (const line of block.split("\n")) {
    if (line.startsWith("data: ")) data += line.slice(6);
    else if (line.startsWith("event: ")) event = line.slice(7);
    else if (line.startsWith("id: ")) id = line.slice(4);
  }
  return data ? { event, id, data: JSON.parse(data) } : null;
}

/** Tells `hear` whatever comes, and begins again where the connection broke. */
export async function listen(path, { signal, hear, state = () => {} }) {
  let wait_ms = 500;
  while (!signal.aborted) {
    try {
      state("connecting");
      for await (const told of events(path, signal)) {
        wait_ms = 500;
        if (told.event === "opened") state("live");
        hear(told);
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem && error.status && error.status < 500 && error.status !== 429) {
        state("refused", error);
        return;
      }
    }
    state("broken");
    await pause(wait_ms, signal);
    wait_ms = Math.min(8_000, wait_ms * 2);
  }
}

export function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
  });
}
