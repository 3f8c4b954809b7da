// Do the nodes hold the same? Their own signed words, cord by cord; and the last report of Spark.

import { askAll, get, pause } from "./api.js";
import { h, hint, panel, say, show, table } from "./dom.js";
import { count, plain, plural, short, stamp } from "./format.js";
import { known, live } from "./live.js";
import { eventLink, named } from "./words.js";

const EVERY_MS = 4_000;
const CORDS_SHOWN = 64;

export async function draw(root, { signal }) {
  const lead = h("p", { class: "verdict", "aria-live": "polite" }, "Asking the members …"), cords = h("div", { class: "slot" }), last = h("div");
  show(root, h("h1", {}, "Consistency"), lead,
    panel("Frontiers", hint("How far each node holds each cord, and how much of it is final. Cords are hash chains: the same id at the end means the same bytes all along."), cords),
    panel("Last report", last));
  await known(signal);
  report(last, signal);
  while (!signal.aborted) {
    await frontiers(lead, cords, signal).catch((error) => { if (!signal.aborted) say(lead, error.message); });
    await pause(EVERY_MS, signal);
  }
}

async function frontiers(lead, place, signal) {
  const told = await askAll("cords", signal), roster = live.members.filter((one) => one.number !== null);
  if (signal.aborted || !roster.length) return;
  const by = roster.map((one) => rowsOf(told.by.get(one.node_id)));
  const keys = [...new Set(by.flatMap((rows) => [...(rows?.keys() ?? [])]))].sort((one, other) => (other.split(".")[1].padStart(20) < one.split(".")[1].padStart(20) ? -1 : 1));
  const found = compared(keys, by);
  lead.className = `verdict ${found.word}`;
  say(lead, found.text);
  const name = (number) => roster.find((one) => one.number === number)?.name ?? `${number}`;
  show(place, keys.length === 0 ? h("p", { class: "quiet" }, "No cord has an event yet.") : table("Frontier of each node, cord by cord", ["Cord", ...roster.map((one) => plain(one.name, 14))], keys.slice(0, CORDS_SHOWN).map((key) => {
    const [number, journal] = key.split("."), rows = by.map((held) => held?.get(key)), most = rows.reduce((best, row) => (row && row.seq > (best?.seq ?? -1) ? row : best), null);
    return [h("span", { title: `journal ${journal}` }, named(name(Number(number)), 14), " ", h("span", { class: "quiet" }, `…${journal.slice(-5)}`)), ...rows.map((row, column) => cell(row, most, by[column]))];
  }), { class: "matrix" }), keys.length > CORDS_SHOWN && hint(`The ${CORDS_SHOWN} newest of ${plural(keys.length, "cord")}.`));
}

function cell(row, most, answered) {
  if (!answered) return h("span", { class: "cell bad" }, "✕ silent");
  if (!row) return h("span", { class: "cell wait" }, "◐ nothing");
  const isOther = row.seq === most.seq && row.id !== most.id;
  const word = isOther ? "bad" : row.seq < most.seq ? "wait" : "good";
  const sign = isOther ? "✕ other" : row.seq < most.seq ? "◐" : "●";
  return h("span", { class: `cell ${word}`, title: `held ${row.seq} (${short(row.id)}), final ${row.read}` }, `${sign} ${count(row.seq)}`, row.read < row.seq && h("span", { class: "quiet" }, ` final ${count(row.read)}`));
}

/** @returns {Map<string, {seq: number, id: string, read: number}> | null} by author and journal */
function rowsOf(answer) {
  try {
    const found = new Map();
    // journals are beyond what a double holds: they are read as text
    const text = answer.replace(/\[(\d+),(\d+),(\d+),"([0-9a-f]*)",(\d+)\]/g, '[$1,"$2",$3,"$4",$5]');
    for (const [author, journal, seq, id, read] of JSON.parse(text).rows) {
      const before = found.get(`${author}.${journal}`);
      if (!before || before.seq < seq) found.set(`${author}.${journal}`, { seq, id, read });
    }
    return found;
  } catch {
    return null;
  }
}

export function compared(keys, by) {
  const here = by.filter(Boolean);
  let behind = 0, forks = 0;
  for (const key of keys) {
    const rows = here.map((held) => held.get(key)), most = Math.max(...rows.map((row) => row?.seq ?? 0));
    behind += rows.some((row) => (row?.seq ?? 0) < most) ? 1 : 0;
    forks += new Set(rows.filter((row) => row?.seq === most).map((row) => row.id)).size > 1 ? 1 : 0;
  }
  const silent = by.length - here.length, who = silent ? ` ${plural(silent, "node does", "nodes do")} not answer.` : "";
  if (forks) return { word: "bad", text: `${plural(forks, "cord")} differ at the same place: somebody signed two things.${who}` };
  if (behind) return { word: "wait", text: `${plural(behind, "cord is", "cords are")} on the way: some nodes hold more of them than others.${who}` };
  return { word: silent ? "wait" : "good", text: `${here.length === 1 ? "The node that answers holds" : `All ${here.length} nodes that answer hold`} the same in ${plural(keys.length, "cord")}.${who}` };
}

async function report(place, signal) {
  if (!live.figures.has_report) {
    show(place, h("p", { class: "quiet" }, "None was published yet. An analysis over dumps of all nodes proves what this page can only compare:"),
      h("pre", { tabindex: 0, "aria-label": "Commands" }, "quipu export dumps/n1 --data-dir var\nquipu analyse dumps/n1 dumps/n2 dumps/n3 --out report --publish var"));
    return;
  }
  try {
    show(place, shownReport(await get("v1/reports/last", { signal })));
  } catch (error) {
    if (!signal.aborted) show(place, h("p", { class: "bad" }, error.message));
  }
}

function shownReport(found) {
  const wrong = (found.checks ?? []).filter((check) => check.count), passed = (found.checks ?? []).length - wrong.length;
  const word = found.exit_code === 0 ? "good" : found.exit_code === 9 ? "bad" : "wait";
  return [
    h("p", { class: `verdict ${word}` }, plain(String(found.verdict ?? "A report without a verdict."), 400)),
    h("p", { class: "hint" }, [found.made_ms && `Made ${stamp(found.made_ms)}`, found.engine && `by ${plain(String(found.engine), 40)}`, found.checks && `${count(passed)} checks passed`].filter(Boolean).join(", ")),
    wrong.map((check) => h("section", {}, h("h3", {}, `${plain(check.check, 80)}: ${plural(check.count, "finding")}`), h("p", {}, plain(check.meaning, 300)),
      h("ul", { class: "plain" }, (check.examples ?? []).slice(0, 20).map((one) => h("li", {}, exampleText(one)))))),
    found.checks && h("details", {}, h("summary", {}, `All ${plural(found.checks.length, "check")}`), table("Checks", ["Check", "Found", "What it holds"], found.checks.map((check) => [h("code", {}, plain(check.check, 80)), count(check.count), plain(check.meaning, 300)]))),
  ];
}

/** An id in an example leads to its event. */
function exampleText(example) {
  return Object.values(example).filter(Boolean).map((part) => {
    const text = String(part);
    return [" ", /^[0-9a-f]{64}$/.test(text) ? eventLink(text) : plain(text, 300)];
  });
}
