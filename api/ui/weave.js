// Where everything stands in the picture. A knot's place follows from its time and its cord alone,
// so it never jumps: panning moves all, zooming stretches all.

import { add } from "./dag.js";

export const GUTTER = 92; // names of the cords
export const TOP = 40; // the main cord with the times
const LANE_MIN = 30, LANE_MAX = 150, FOOT = 26;
const KNOTS_SHOWN_MAX = 260; // more are shown as bundles: a frame stays below 12 ms
const BUNDLE_PX = 22;
const SCALE_MIN = 0.02, SCALE_MAX = 2_000_000; // milliseconds a pixel
const KNOT_PX = 38; // of its cord for each knot, when all is shown anew
const LITTLE = 6, PAUSE_SHARE = 0.8; // of knots that are enough to look at; of the time after it
const STEPS_MS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 144e5, 432e5, 864e5];

/** Which part of time is seen. */
export class Frame {
  constructor() {
    this.wide = 800;
    this.high = 300;
    this.right_ms = Date.now();
    this.scale = 30; // milliseconds a pixel
  }

  get left_ms() { return this.right_ms - (this.wide - GUTTER) * this.scale; }

  x(t) { return this.wide - (this.right_ms - t) / this.scale; }

  t(x) { return this.right_ms - (this.wide - x) * this.scale; }

  laneHigh(lanes) {
    return Math.max(LANE_MIN, Math.min(LANE_MAX, (this.high - TOP - FOOT) / Math.max(1, lanes)));
  }

  y(place, lanes) { return TOP + this.laneHigh(lanes) * (place + 0.5); }

  /** As high as that many cords want. */
  static wanted(lanes, least) { return Math.max(least, TOP + FOOT + lanes * LANE_MIN); }

  /** Around what lies under x, which stays there. */
  zoom(by, x = this.wide) {
    const held = this.t(x);
    this.scale = Math.max(SCALE_MIN, Math.min(SCALE_MAX, this.scale * by));
    this.right_ms = held + (this.wide - x) * this.scale;
  }

  pan(pixels) { this.right_ms -= pixels * this.scale; }

  /** So that as many of the newest knots are seen as can be told from each other. */
  fit(dag) {
    const wanted = Math.round(Math.max(14, Math.min(150, ((this.wide - GUTTER) / KNOT_PX) * dag.lanes.length)));
    const times = dag.lanes.flatMap((lane) => lane.knots.slice(-wanted).map((knot) => knot.t)).sort((a, b) => b - a);
    if (!times.length) return;
    let last = Math.min(wanted, times.length) - 1;
    for (let at = LITTLE; at <= last; at += 1) {
      if (times[at - 1] - times[at] > PAUSE_SHARE * Math.max(2_000, times[0] - times[at - 1])) last = at - 1; // a pause: what lies before it would squeeze the rest
    }
    const span = Math.max(2_000, times[0] - times[last]);
    this.scale = (span * 1.12) / Math.max(120, this.wide - GUTTER);
    this.right_ms = times[0] + span * 0.06;
  }
}

export const radius = (entries) => Math.min(13, 4.2 + 1.15 * Math.log2(1 + entries));

/**
 * What is to be drawn: knots and ties one by one, or bundles where there are too many.
 * @returns {{lanes: object[], knots: object[], ties: object[], bundles: object[], isBundled: boolean}}
 */
export function weave(dag, frame) {
  const reach = 20 * frame.scale, from = frame.left_ms - reach, upto = frame.right_ms + reach;
  const lanes = dag.lanes.map((lane, place) => ({ ...lane, place, y: frame.y(place, dag.lanes.length), seen: dag.within(lane, from, upto) }));
  const total = lanes.reduce((sum, lane) => sum + lane.seen.length, 0);
  const isBundled = total > KNOTS_SHOWN_MAX;
  const at = new Map(), knots = [], bundles = [];
  for (const lane of lanes) {
    if (isBundled) bundles.push(...bundled(lane, lane.seen, frame));
    else {
      for (const knot of lane.seen) {
        const put = { knot, x: frame.x(knot.t), y: lane.y, r: Math.min(radius(knot.entries), frame.laneHigh(lanes.length) / 2.6) };
        at.set(knot.id, put);
        knots.push(put);
      }
    }
    bundles.push(...bundled(lane, [...lane.cells.values()].filter((cell) => cell.upto > from && cell.t < upto), frame));
  }
  return { lanes, knots, bundles, isBundled, at, ties: isBundled ? [] : tiesOf(knots, at) };
}

/** Only to other cords: along its own the cord itself is the tie. */
function tiesOf(knots, at) {
  const ties = [];
  for (const put of knots) {
    for (const id of put.knot.below) {
      const below = at.get(id);
      if (below && below.y !== put.y) ties.push({ from: below, to: put });
    }
  }
  return ties;
}

/** Into pieces of time that depend on the zoom alone, so that bundles do not jump either. */
function bundled(lane, parts, frame) {
  const width_ms = STEPS_MS.find((step) => step >= frame.scale * BUNDLE_PX) ?? STEPS_MS.at(-1);
  const found = new Map();
  for (const part of parts) {
    const t = Math.floor(part.t / width_ms) * width_ms;
    let bundle = found.get(t);
    if (!bundle) found.set(t, (bundle = { lane: lane.number, t, upto: t + width_ms, y: lane.y, events: 0, entries: 0, state: "ordered" }));
    add(bundle, part);
  }
  for (const bundle of found.values()) {
    bundle.x = frame.x(bundle.t + width_ms / 2);
    bundle.wide = Math.max(7, width_ms / frame.scale - 4);
    bundle.high = Math.min(frame.laneHigh(1e9) * 0.8, 6 + 2.4 * Math.log2(1 + bundle.events));
  }
  return [...found.values()];
}

/** Moments for the axis, some 110 pixels apart. */
export function ticks(frame) {
  const step = STEPS_MS.find((one) => one / frame.scale >= 110) ?? STEPS_MS.at(-1);
  const found = [];
  for (let t = Math.ceil(frame.left_ms / step) * step; t < frame.right_ms; t += step) found.push(t);
  return { step, found };
}

/** What lies under a point, the nearest first. */
export function hit(drawn, x, y) {
  let best = null, least = 14 * 14;
  for (const put of drawn.knots) {
    const far = (put.x - x) ** 2 + (put.y - y) ** 2;
    if (far < Math.max(least, 0) && far < (put.r + 8) ** 2) { best = put; least = far; }
  }
  if (best) return { knot: best.knot };
  const bundle = drawn.bundles.find((one) => Math.abs(one.x - x) <= one.wide / 2 + 2 && Math.abs(one.y - y) <= one.high / 2 + 6);
  return bundle ? { bundle } : null;
}
