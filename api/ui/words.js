// Small pieces that several views show alike.

import { h } from "./dom.js";
import { plain, short, stateWords } from "./format.js";

const SIGNS = {
  alive: "●", suspect: "◐", unreachable: "○", dead: "✕", left: "–", unknown: "?",
  stored: "○", read: "●", ordered: "◆", executed: "◆", void: "✕",
};

/** A state by sign, word and colour. */
export function chip(state, title = stateWords(state)) {
  return h("span", { class: `chip ${state}`, title }, h("span", { "aria-hidden": "true" }, SIGNS[state] ?? "·"), ` ${state}`);
}

export function eventLink(id) {
  return h("a", { href: `#/quipu?at=${id}`, class: "id", title: id }, short(id));
}

export function entryLink(id) {
  const [event, index] = id.split(":");
  return h("a", { href: `#/entry/${id}`, class: "id", title: id }, `${short(event)}:${index}`);
}

/** A name that somebody chose. */
export function named(text, most = 60) {
  return h("bdi", { class: "named" }, plain(text || "?", most));
}

export function fields(rows) {
  return h("dl", { class: "fields" }, rows.filter(Boolean).map(([name, value]) =>
    h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}
