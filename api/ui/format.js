// How things are written: numbers, times, sizes, ids, and text that somebody else chose.

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
// Seen as nothing, or turning what follows around: shown by their number.
const UNSEEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

export const count = (number) => WHOLE.format(Number(number));
export const brief = (number) => (Number(number) < 10_000 ? WHOLE : SHORT).format(Number(number));
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${Number(number) === 1 ? one : many}`;

/** Milliseconds, as long as they are worth counting. */
export function took(ms) {
  if (ms < 1) return "<1 ms";
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)} min`;
  if (ms < 172_800_000) return `${Math.round(ms / 3_600_000)} h`;
  return `${Math.round(ms / 86_400_000)} d`;
}

export function size(bytes) {
  let number = Number(bytes);
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (number < 1_024 || unit === "GiB") return `${number < 10 && unit !== "B" ? number.toFixed(1) : Math.round(number)} ${unit}`;
    number /= 1_024;
  }
  return "";
}

/** @param {string | number | null} moment RFC 3339, or milliseconds */
export function clock(moment) {
  return moment === null || moment === undefined ? "not known" : CLOCK.format(new Date(moment));
}

export function stamp(moment) {
  if (moment === null || moment === undefined) return "not known";
  const date = new Date(moment);
  return `${DAY.format(date)} ${CLOCK.format(date)}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

/** Enough of an id to tell it from others at a glance. */
export const short = (id) => id.slice(0, 8);

/** A text of somebody else's, on one line, with nothing hidden in it. */
export function plain(text, most = 200) {
  const cut = text.length > most ? `${text.slice(0, most)}…` : text;
  return cut.replace(UNSEEN, (sign) => `‹${sign.codePointAt(0).toString(16).padStart(4, "0")}›`);
}

/** hlc is milliseconds << 16 | counter; a double keeps it to 16 of these counts. */
export const msOfHlc = (hlc) => Number(hlc) / 65_536;

const STATES = { stored: "stored, not final yet", read: "final", ordered: "final and in order", executed: "in order, and its SQL was executed", void: "void" };
export const stateWords = (state) => STATES[state] ?? state;

export function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (sign) => sign.charCodeAt(0));
}

export function hex(bytes) {
  let text = "";
  for (const byte of bytes) text += byte.toString(16).padStart(2, "0");
  return text;
}

/** Rows of offset, hex and characters. */
export function hexDump(bytes, most = 4_096) {
  const lines = [];
  for (let at = 0; at < Math.min(bytes.length, most); at += 16) {
    const row = [...bytes.subarray(at, at + 16)];
    const pairs = row.map((byte) => byte.toString(16).padStart(2, "0")).join(" ").padEnd(47);
    const signs = row.map((byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : ".")).join("");
    lines.push(`${at.toString(16).padStart(5, "0")}  ${pairs}  ${signs}`);
  }
  if (bytes.length > most) lines.push(`… ${count(bytes.length - most)} bytes more`);
  return lines.join("\n");
}
