// The cords of the last moments, small, to look at.

import { Dag } from "./dag.js";
import { h } from "./dom.js";
import { feed } from "./feed.js";
import { live, watch } from "./live.js";
import { Picture } from "./picture.js";

const KNOTS = 400;

export function strip(signal) {
  const canvas = h("canvas", { class: "cords", role: "img", "aria-label": "The cords of the nodes with their newest knots. The view Quipu shows the same to walk through, and as a table." });
  const place = h("div", { class: "weave small" }, canvas), dag = new Dag(KNOTS);
  queueMicrotask(() => {
    const picture = new Picture(canvas, dag, { signal, live: states, least: 190 });
    watch(() => { dag.setMembers(live.members); picture.change(); }, signal);
    feed(dag, { signal, changed: () => picture.change() });
  });
  return place;
}

/** What each member is held for, by number. */
export function states() {
  return new Map(live.members.map((member) => [member.number, member.state]));
}
