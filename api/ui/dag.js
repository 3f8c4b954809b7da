// The graph as far as it is shown: the newest knots with all their ties, older ones as counts.

import { msOfHlc } from "./format.js";

const KNOTS_MAX = 3_000; // about 4 MB; what is older is counted in cells
const EARLY_MAX = 2_000; // the newest: what is older than the first picture never comes
const CELL_MS = 1_000;
const CELLS_MAX = 1_800; // of one cord: half an hour of one a second
const EVICTED_AT_ONCE = 300;

/**
 * @typedef {object} Knot
 * @property {string} id
 * @property {number} lane of its author
 * @property {string} cord author, journal and branch
 * @property {number} seq
 * @property {number} t milliseconds
 * @property {string[]} below prev and parents
 * @property {number} entries
 * @property {"stored" | "read" | "ordered" | "void"} state
 */

export class Dag {
  constructor(most = KNOTS_MAX) {
    this.most = most;
    /** @type {Map<string, Knot>} */
    this.knots = new Map();
    /** @type {{number: number, name: string, knots: Knot[], cells: Map<number, object>}[]} */
    this.lanes = [];
    this.laneOf = new Map();
    this.above = new Map(); // id -> ids that name it
    this.early = new Map(); // id -> state of an event that is not here yet
    this.signed = new Map(); // cord -> [[number, seq], …]
    this.newest_ms = 0;
    this.version = 0; // rises with every change
  }

  /** The cords, by number of the member: they stay where they are. */
  setMembers(members) {
    for (const { number, name } of members) if (number !== null) this.lane(number, name);
  }

  lane(number, name = "") {
    let lane = this.laneOf.get(number);
    if (!lane) {
      lane = { number, name, knots: [], cells: new Map() };
      this.laneOf.set(number, lane);
      this.lanes.push(lane);
      this.lanes.sort((one, other) => one.number - other.number);
      this.version += 1;
    }
    if (name) lane.name = name;
    return lane;
  }

  /** @param {object} body an event as the API tells it */
  put(body) {
    const known = this.knots.get(body.id);
    if (known) return this.advance(body.id, body.state);
    const lane = this.lane(body.author.number, body.author.name);
    const early = this.early.get(body.id);
    this.early.delete(body.id);
    const knot = {
      id: body.id, lane: lane.number, cord: `${lane.number}.${body.journal}.${body.branch}`,
      seq: Number(body.seq), t: msOfHlc(body.hlc), state: STEPS[early] > STEPS[body.state] ? early : body.state, entries: body.entry_count,
      below: body.prev ? [body.prev, ...body.parents] : body.parents,
    };
    this.knots.set(knot.id, knot);
    insert(lane.knots, knot);
    for (const id of knot.below) {
      const above = this.above.get(id);
      if (above) above.push(knot.id);
      else this.above.set(id, [knot.id]);
    }
    this.newest_ms = Math.max(this.newest_ms, knot.t);
    this.version += 1;
    if (this.knots.size > this.most + EVICTED_AT_ONCE) this.evict();
    return knot;
  }

  /** A state only goes forward: news and pictures may overtake each other. */
  advance(id, state) {
    const knot = this.knots.get(id);
    if (!knot) this.foretell(id, state);
    if (knot && STEPS[state] > STEPS[knot.state]) {
      knot.state = state;
      this.version += 1;
    }
    return knot;
  }

  /** What became of an event may be told before the picture that has it. */
  foretell(id, state) {
    if (STEPS[state] > (STEPS[this.early.get(id)] ?? 0)) this.early.set(id, state);
    if (this.early.size > EARLY_MAX) this.early.delete(this.early.keys().next().value);
  }

  setReceipts(rows) {
    for (const row of rows) {
      const cord = `${row.author.number}.${row.journal}.${row.branch}`;
      this.signed.set(cord, row.signed.map(({ number, seq }) => [number, Number(seq)]));
    }
    this.version += 1;
  }

  /** Numbers of the members other than its author whose receipts cover it. */
  confirmedBy(knot) {
    return (this.signed.get(knot.cord) ?? []).filter(([number, seq]) => number !== knot.lane && seq >= knot.seq).map(([number]) => number);
  }

  children(id) {
    return this.above.get(id) ?? [];
  }

  /** All that an event rests on ("below"), or that rests on it ("above"), as far as it is here. */
  cone(id, way) {
    const found = new Set([id]), edge = [id];
    while (edge.length) {
      const at = edge.pop();
      const next = way === "below" ? this.knots.get(at)?.below ?? [] : this.children(at);
      for (const one of next) {
        if (!found.has(one) && this.knots.has(one)) {
          found.add(one);
          edge.push(one);
        }
      }
    }
    return found;
  }

  /** The knots of a cord within a time. */
  within(lane, from_ms, upto_ms) {
    return lane.knots.slice(place(lane.knots, from_ms), place(lane.knots, upto_ms));
  }

  nearest(lane, t) {
    const at = place(lane.knots, t), [before, after] = [lane.knots[at - 1], lane.knots[at]];
    if (!before || !after) return before ?? after;
    return t - before.t <= after.t - t ? before : after;
  }

  /** The oldest knots become counts: what is held stays bounded, whatever comes. */
  evict() {
    const oldest = [...this.knots.values()].sort((one, other) => one.t - other.t).slice(0, this.knots.size - this.most);
    for (const knot of oldest) {
      this.knots.delete(knot.id);
      this.above.delete(knot.id);
      count(this.laneOf.get(knot.lane).cells, knot);
    }
    for (const lane of this.lanes) lane.knots = lane.knots.filter((knot) => this.knots.has(knot.id));
    for (const id of this.above.keys()) if (!this.knots.has(id) && !this.isAwaited(id)) this.above.delete(id);
  }

  /** Named by a knot that is here. */
  isAwaited(id) {
    return this.above.get(id).some((one) => this.knots.has(one));
  }

  clear() {
    this.knots.clear();
    this.above.clear();
    this.early.clear();
    for (const lane of this.lanes) { lane.knots = []; lane.cells.clear(); }
    this.newest_ms = 0;
    this.version += 1;
  }
}

export const STEPS = { stored: 0, void: 1, read: 2, ordered: 3, executed: 4 };

function place(knots, t) {
  let low = 0, high = knots.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (knots[middle].t < t) low = middle + 1;
    else high = middle;
  }
  return low;
}

function insert(knots, knot) {
  if (!knots.length || knots.at(-1).t <= knot.t) knots.push(knot);
  else knots.splice(place(knots, knot.t), 0, knot);
}

function count(cells, knot) {
  const at = Math.floor(knot.t / CELL_MS) * CELL_MS;
  const cell = cells.get(at) ?? { t: at, upto: at + CELL_MS, events: 0, entries: 0, state: "ordered" };
  add(cell, knot);
  cells.set(at, cell);
  if (cells.size > CELLS_MAX) cells.delete(cells.keys().next().value);
}

/** A cell is as far as the least of its knots. */
export function add(cell, knot) {
  cell.events += knot.events ?? 1;
  cell.entries += knot.entries;
  if (STEPS[knot.state] < STEPS[cell.state]) cell.state = knot.state;
}
