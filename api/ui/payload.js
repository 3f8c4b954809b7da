// What an entry carries, as text whatever it is: nothing of it ever becomes markup.

import { h } from "./dom.js";
import { bytesOf, hexDump, plain, size } from "./format.js";

const SHOWN_MAX = 64 * 1024; // characters; a browser lays more out slowly
const STRICT = new TextDecoder("utf-8", { fatal: true });

/**
 * The data of an answer, byte for byte: a value that was parsed has lost its spaces and the last
 * digits of large numbers. No text within JSON holds an unescaped quote, so the name is found.
 */
export function exactData(answer, entry) {
  if (entry.data_base64 !== undefined) return bytesOf(entry.data_base64);
  const from = answer.indexOf(',"data":') + 8;
  return new TextEncoder().encode(answer.slice(from, endOfValue(answer, from)));
}

function endOfValue(text, from) {
  let deep = 0, isText = false;
  for (let at = from; at < text.length; at += 1) {
    const sign = text[at];
    if (isText) {
      if (sign === "\\") at += 1;
      else if (sign === '"') isText = false;
    } else if (sign === '"') isText = true;
    else if (sign === "{" || sign === "[") deep += 1;
    else if (deep === 0 && (sign === "," || sign === "}")) return at;
    else if (sign === "}" || sign === "]") deep -= 1;
  }
  return text.length;
}

/** On one line. */
export function preview(entry, most = 120) {
  if (entry.data !== undefined) return plain(JSON.stringify(entry.data), most);
  const bytes = bytesOf(entry.data_base64), text = asText(bytes.subarray(0, 4 * most));
  return text === null ? size(bytes.length) : plain(text, most);
}

/** All of it, or as much as can be looked at. */
export function payload(bytes, type) {
  const text = asText(bytes);
  if (text === null) return h("pre", { class: "payload", tabindex: 0, "aria-label": "Data in hex" }, hexDump(bytes));
  const shown = type.includes("json") ? pretty(text) : text;
  return [
    h("pre", { class: "payload wrap", tabindex: 0, dir: "auto", "aria-label": "Data" }, plain(shown, SHOWN_MAX)),
    shown.length > SHOWN_MAX && h("p", { class: "hint" }, `The first ${size(SHOWN_MAX)} of ${size(bytes.length)}; Keep gives all of it.`),
  ];
}

function pretty(text) {
  if (text.length > SHOWN_MAX) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function asText(bytes) {
  try {
    const text = STRICT.decode(bytes);
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}
