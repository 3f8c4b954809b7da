// One entry: what it says, how far it is, and its proof, checked in this browser.

import { ask } from "./api.js";
import { hasCrypto, NO_CRYPTO } from "./crypto.js";
import { copyButton, h, panel, show } from "./dom.js";
import { count, plain, size, stamp } from "./format.js";
import { keep } from "./keeping.js";
import { exactData, payload } from "./payload.js";
import { check } from "./proof.js";
import { way } from "./way.js";
import { eventLink, fields, named } from "./words.js";

export async function draw(root, { argument: id, signal }) {
  show(root, h("h1", {}, "Entry"), h("p", { class: "waiting" }, "Asking the node …"));
  const answer = await said(id, signal), [event, index] = id.split(":"), steps = h("div");
  show(root, h("div", { class: "bar" }, h("h1", {}, "Entry ", h("span", { class: "id" }, `${event.slice(0, 8)}:${index}`)), h("span", { class: "grow" }), eventLink(event), h("a", { href: "#/entries" }, "All entries")),
    way(id, signal),
    answer === null ? panel("What it said", h("p", { class: "wait" }, "It was erased. Its place, its receipts and its leaf hash stay, and so does the proof that it was final.")) : content(id, answer),
    panel("Proof", h("p", { class: "hint" }, "Anybody can check that this entry is final, without believing any node: this browser does it here, step by step."),
      h("div", { class: "row" }, h("button", { type: "button", class: "main", onclick: () => prove(id, steps, signal) }, "Check the proof"),
        h("button", { type: "button", onclick: () => download(id, steps) }, "Keep the proof")), steps));
}

/** The answer's text, whose bytes count; null: it was erased. */
async function said(id, signal) {
  try {
    return await (await ask(`v1/entries/${encodeURIComponent(id)}`, { signal })).text();
  } catch (error) {
    if (error.code === "erased") return null;
    throw error;
  }
}

function content(id, answer) {
  const entry = JSON.parse(answer), bytes = exactData(answer, entry), [event, index] = id.split(":");
  return h("div", { class: "two" },
      panel("What it says", payload(bytes, entry.content_type), h("div", { class: "row" },
        h("button", { type: "button", onclick: () => keep(`${event.slice(0, 16)}-${index}.data`, "application/octet-stream", bytes) }, "Keep"))),
      panel("What it is", fields([
        ["Id", h("code", { class: "long" }, id, " ", copyButton(id, "the id"))], ["Stream", named(entry.stream, 130)], ["Written by", named(entry.author.name)],
        ["Time", stamp(entry.time)], ["Type", plain(entry.content_type)], ["Size", `${size(bytes.length)} (${count(bytes.length)} bytes)`],
        entry.submitter && ["Submitter", named(entry.submitter, 130)], entry.idempotency_key && ["Key", named(entry.idempotency_key, 260)],
        entry.message_id && ["Message", `${entry.message_id} of client ${entry.client_id}`]])));
}

async function bundle(id, signal) {
  return new Uint8Array(await (await ask(`v1/entries/${encodeURIComponent(id)}/proof`, { signal })).arrayBuffer());
}

async function download(id, steps) {
  try {
    keep(`${id.slice(0, 16)}-${id.split(":")[1]}.quipu`, "application/octet-stream", await bundle(id));
  } catch (error) {
    show(steps, h("p", { class: "bad", role: "alert" }, error.message));
  }
}

async function prove(id, steps, signal) {
  if (!hasCrypto()) {
    show(steps, h("p", { class: "wait", role: "alert" }, NO_CRYPTO));
    return;
  }
  const list = h("ol", { class: "steps", "aria-live": "polite" });
  show(steps, list);
  try {
    const found = await check(await bundle(id, signal), id, ({ what, why, holds }) => list.append(
      h("li", {}, h("span", { class: `sign ${holds ? "good" : "bad"}` }, holds ? "✓" : "✕"), h("span", { class: "what" }, what, h("span", { class: "unseen" }, holds ? " holds" : " does not hold")), h("span", { class: "why" }, plain(why, 700)))));
    const word = h("p", { class: `verdict ${found.holds ? "good" : "bad"}`, role: "status" },
      found.holds ? "Proven: this entry is final." : "Not proven: the step above says why.");
    steps.append(word);
    if (found.holds) steps.append(h("p", { class: "hint" }, "What remains to be believed is that the cluster is the one you mean. Its id, to compare with the one you were given: ", h("code", { class: "long" }, found.clusterId)),
      ...(found.entry.erased ? [] : [h("h3", {}, "The data as the proof has it"), ...[payload(found.entry.data, found.entry.type ?? "")].flat().filter(Boolean)]));
  } catch (error) {
    if (!signal.aborted) show(steps, h("p", { class: "bad", role: "alert" }, error.code === "not-read" ? "There is no proof yet: the entry is not final." : error.message));
  }
}
