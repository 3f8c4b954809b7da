// A line of the last samples. It says in words what it shows.

import { svg } from "./dom.js";

const WIDE = 120, HIGH = 30;

/** @param {number[]} values oldest first */
export function sparkline(values, words) {
  const most = Math.max(1e-9, ...values), step = WIDE / Math.max(1, values.length - 1);
  const at = (value, place) => `${(place * step).toFixed(1)},${(HIGH - 2 - (value / most) * (HIGH - 5)).toFixed(1)}`;
  const line = values.length > 1 ? values.map(at).join(" ") : `0,${HIGH - 2} ${WIDE},${HIGH - 2}`;
  return svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, class: "sparkline", role: "img", "aria-label": words, preserveAspectRatio: "none" },
    svg("polygon", { points: `0,${HIGH} ${line} ${WIDE},${HIGH}`, class: "under" }),
    svg("polyline", { points: line, "vector-effect": "non-scaling-stroke" }));
}
