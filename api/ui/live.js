// What every view wants to know of the node, asked every two seconds while somebody looks.

import { askAll, get, Problem } from "./api.js";

const EVERY_MS = 2_000;
const COPIES_EVERY = 3; // of these rounds one asks the members for their copies
const KEPT = 90; // three minutes of samples
const MOVES_KEPT = 20;
const watchers = new Set();

export const live = {
  node: null, cluster: null, members: [], figures: null, evidence: [],
  copies: null, // {equal, answered, asked}
  samples: [], // {time_ms, gauges, counters, finality}
  moves: [], // of members, as the stream told them
  error: null,
  refresh: () => { round += 1; ask(); },
};
let round = 0, timer = 0, isAsking = false;

/** Calls now and after each answer. @returns {() => void} which ends it */
export function watch(hear, signal) {
  watchers.add(hear);
  hear();
  const end = () => watchers.delete(hear);
  signal?.addEventListener("abort", end, { once: true });
  return end;
}

/** Resolves once the members are known. */
export function known(signal) {
  return new Promise((resolve) => {
    const end = watch(() => { if (live.members.length) { resolve(); queueMicrotask(() => end()); } }, signal);
  });
}

export function moved(told) {
  live.moves.unshift({ ...told, time_ms: Date.now() });
  live.moves.length = Math.min(live.moves.length, MOVES_KEPT);
}

/** How much a counter rose a second between the samples. */
export function rates(name, from = "counters") {
  const found = [];
  for (let at = 1; at < live.samples.length; at += 1) {
    const [before, after] = [live.samples[at - 1], live.samples[at]];
    const rise = Number(after[from][name]) - Number(before[from][name]);
    found.push(Math.max(0, rise / Math.max(0.2, (after.time_ms - before.time_ms) / 1_000)));
  }
  return found;
}

export const gauges = (name) => live.samples.map((sample) => sample.gauges[name] ?? 0);

async function ask() {
  if (isAsking) return;
  isAsking = true;
  clearTimeout(timer);
  try {
    const [node, cluster, members, figures] = await Promise.all(
      ["v1/node", "v1/cluster", "v1/cluster/members", "v1/figures"].map((path) => get(path)));
    Object.assign(live, { node, cluster, members: members.items, figures, error: null });
    keep(figures);
    tell();
    if (round % COPIES_EVERY === 0) await more();
  } catch (error) {
    live.error = error instanceof Problem ? error : new Problem({ detail: String(error) });
  }
  isAsking = false;
  round += 1;
  tell();
  if (!document.hidden) timer = setTimeout(ask, EVERY_MS);
}

/** What costs the members an answer each, or seldom changes. */
async function more() {
  live.evidence = (await get("v1/evidence")).items;
  const told = await askAll("frontier");
  const answers = new Set(told.by.values());
  live.copies = { equal: answers.size === 1, answered: told.answered, asked: told.asked };
}

function keep(figures) {
  const { gauges: held, counters, finality } = figures;
  live.samples.push({ time_ms: Date.parse(figures.time), gauges: held, counters, finality });
  if (live.samples.length > KEPT) live.samples.shift();
}

function tell() {
  for (const hear of [...watchers]) hear();
}

document.addEventListener("visibilitychange", () => { if (!document.hidden) ask(); });
ask();
