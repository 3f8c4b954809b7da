// Draws the woven: cords with their twist, ties, knots by state, receipts, what is chosen.

import { brief, plain } from "./format.js";
import { GUTTER, ticks, TOP } from "./weave.js";

const FIBRES = {
  light: ["#a4562f", "#2f6f73", "#8a6b1c", "#5b4a8a", "#8c3b4a", "#3f6b3a", "#3d5f8f", "#7a5a3e"],
  dark: ["#d98b5f", "#6fb8b4", "#d6b04c", "#a594db", "#d97f8f", "#8fbf83", "#86aee0", "#c2a183"],
};
const INKS = {
  light: { ground: "#fffdf9", text: "#23272e", quiet: "#646a73", line: "#e6dfd2", main: "#4c4335", stored: "#b4540a", read: "#14706a", ordered: "#3b3f9c", void: "#8d2d2d", chosen: "#c2185b", tie: "#9a9080", shine: "#ffffff" },
  dark: { ground: "#171b21", text: "#e8e6e1", quiet: "#a0a6ae", line: "#2b3139", main: "#cdbf9f", stored: "#f0a355", read: "#5cc4b6", ordered: "#a3a8ff", void: "#ef8a8a", chosen: "#ff8ab8", tie: "#69707a", shine: "#171b21" },
};
const STATES = ["stored", "read", "ordered", "void"];
const seenAs = (state) => (state === "executed" ? "ordered" : state);

export const fibre = (place, isDark) => FIBRES[isDark ? "dark" : "light"][place % 8];

/**
 * @param {{isDark: boolean, chosen?: string, lit?: Set<string>, live?: Map<number, string>, withNames?: boolean}} how
 */
export function draw(pen, dag, frame, drawn, how) {
  const ink = INKS[how.isDark ? "dark" : "light"];
  pen.boxes([[0, 0, frame.wide, frame.high, 0]], { fill: ink.ground });
  axis(pen, frame, ink, drawn);
  for (const lane of drawn.lanes) cord(pen, frame, lane, fibre(lane.place, how.isDark), ink, how.live?.get(lane.number));
  ties(pen, drawn, ink, how);
  bundles(pen, drawn, ink);
  for (const state of STATES) knots(pen, drawn.knots.filter((put) => seenAs(put.knot.state) === state), state, ink, how);
  receipts(pen, dag, drawn, ink, how);
  chosen(pen, drawn, ink, how);
  names(pen, frame, drawn, ink, how);
}

/** The main cord, from which the moments hang. */
function axis(pen, frame, ink, drawn) {
  const { step, found } = ticks(frame), last = drawn.lanes.at(-1)?.y ?? frame.high;
  pen.lines(found.map((t) => [frame.x(t), TOP - 12, frame.x(t), last + 14]), { stroke: ink.line });
  pen.lines([[GUTTER - 10, TOP - 14, frame.wide, TOP - 14]], { stroke: ink.main, width: 4, cap: "butt" });
  pen.lines([[GUTTER - 10, TOP - 14, frame.wide, TOP - 14]], { stroke: ink.ground, width: 1.4, dash: [2, 7], alpha: 0.8, offset: frame.left_ms / frame.scale % 9 });
  for (const t of found.filter((one) => frame.x(one) > GUTTER + 24 && frame.x(one) < frame.wide - 40)) pen.text(frame.x(t), TOP - 27, moment(t, step), { fill: ink.quiet, size: 11, align: "center" });
}

function moment(t, step) {
  const text = new Date(t).toTimeString().slice(0, 8);
  if (step >= 864e5) return new Date(t).toISOString().slice(0, 10);
  return step < 1_000 ? `${text}.${String(Math.floor(t % 1_000)).padStart(3, "0")}` : text;
}

/** Two plies: a strand with a lighter one around it, fixed to the time and not to the screen. */
function cord(pen, frame, lane, colour, ink, state) {
  const line = [[GUTTER, lane.y, frame.wide, lane.y]];
  const isGone = state !== undefined && state !== "alive";
  pen.lines(line, { stroke: colour, width: 4.4, cap: "butt", alpha: isGone ? 0.35 : 0.85, dash: isGone ? [10, 7] : [], offset: frame.left_ms / frame.scale % 17 });
  if (!isGone) pen.lines(line, { stroke: ink.ground, width: 1.2, dash: [3, 8], alpha: 0.75, cap: "butt", offset: frame.left_ms / frame.scale % 11 });
}

function ties(pen, drawn, ink, { lit }) {
  const line = ({ from, to }) => [from.x, from.y, to.x, to.y];
  const isLit = ({ from, to }) => lit && lit.has(from.knot.id) && lit.has(to.knot.id);
  pen.bows(drawn.ties.filter((tie) => !isLit(tie)).map(line), { stroke: ink.tie, width: 1, alpha: lit ? 0.22 : 0.62 });
  if (lit) pen.bows(drawn.ties.filter(isLit).map(line), { stroke: ink.chosen, width: 1.6, alpha: 0.9 });
}

function bundles(pen, drawn, ink) {
  for (const state of STATES) {
    const boxes = drawn.bundles.filter((one) => seenAs(one.state) === state);
    const places = boxes.map((one) => [one.x - one.wide / 2, one.y - one.high / 2, one.wide, one.high, Math.min(6, one.high / 2)]);
    pen.boxes(places, state === "stored" ? { fill: ink.ground, stroke: ink[state], width: 2 } : { fill: ink[state] });
    if (state === "ordered") pen.lines(boxes.map((one) => [one.x - one.wide / 2 + 3, one.y, one.x + one.wide / 2 - 3, one.y]), { stroke: ink.shine, width: 1.2 });
    for (const one of boxes) if (one.wide > 26) pen.text(one.x, one.y + one.high / 2 + 9, brief(one.events), { fill: ink.quiet, size: 10, align: "center" });
  }
}

/** stored: an open loop. read: a knot. ordered: a knot wound twice. void: a cross. */
function knots(pen, puts, state, ink, { lit }) {
  for (const [group, alpha] of lit ? [[puts.filter((put) => !lit.has(put.knot.id)), 0.25], [puts.filter((put) => lit.has(put.knot.id)), 1]] : [[puts, 1]]) {
    if (!group.length) continue;
    const rings = group.map((put) => [put.x, put.y, put.r]);
    if (state === "stored") pen.rings(rings, { fill: ink.ground, stroke: ink.stored, width: 2.2, alpha });
    else if (state === "void") {
      pen.lines(group.flatMap(({ x, y, r }) => [[x - r, y - r, x + r, y + r], [x - r, y + r, x + r, y - r]]), { stroke: ink.void, width: 2.4, alpha });
    } else {
      pen.rings(rings, { fill: ink[state], stroke: ink.ground, width: 1.5, alpha });
      const winds = state === "ordered" ? [-0.3, 0.3] : [0];
      pen.lines(group.flatMap(({ x, y, r }) => winds.map((wind) => [x + (wind - 0.18) * r, y + 0.55 * r, x + (wind + 0.18) * r, y - 0.55 * r])), { stroke: ink.shine, width: 1.3, alpha: alpha * 0.9 });
    }
  }
}

/** Below a knot one dot for each other member: full once its receipt has come. */
function receipts(pen, dag, drawn, ink, { chosen: id }) {
  const others = drawn.lanes.length - 1;
  if (others < 1 || others > 8 || drawn.knots.length > 140) return;
  const full = [], open = [];
  for (const put of drawn.knots) {
    if (put.knot.state === "ordered" && put.knot.id !== id && drawn.knots.length > 70) continue;
    const signed = new Set(dag.confirmedBy(put.knot));
    const members = drawn.lanes.filter((lane) => lane.number !== put.knot.lane);
    members.forEach((lane, place) => {
      const dot = [put.x + (place - (others - 1) / 2) * 5.2, put.y + put.r + 6, 1.7];
      (signed.has(lane.number) ? full : open).push(dot);
    });
  }
  pen.rings(full, { fill: ink.read });
  pen.rings(open, { stroke: ink.quiet, width: 0.8 });
}

function chosen(pen, drawn, ink, { chosen: id }) {
  const put = id && drawn.at.get(id);
  if (!put) return;
  pen.rings([[put.x, put.y, put.r + 5]], { stroke: ink.chosen, width: 2.4 });
}

function names(pen, frame, drawn, ink, how) {
  pen.boxes([[0, 0, GUTTER - 8, frame.high, 0]], { fill: ink.ground });
  for (const lane of drawn.lanes) {
    const state = how.live?.get(lane.number);
    const colour = fibre(lane.place, how.isDark), isGone = state !== undefined && state !== "alive";
    pen.rings([[16, lane.y, 5]], isGone ? { stroke: colour, width: 2 } : { fill: colour });
    pen.text(28, isGone ? lane.y - 6 : lane.y, plain(lane.name || `${lane.number}`, 8), { fill: ink.text, size: 13, weight: 600 });
    if (isGone) pen.text(28, lane.y + 8, state, { fill: ink.stored, size: 10 });
  }
}
