// Moving through the picture: by pointer, wheel, two fingers, and by keys from knot to knot.

import { hit } from "./weave.js";

const CLICK_PX = 5;

export function steer(picture, { chose, moved }) {
  const { canvas } = picture, held = new Map();
  let far = 0, spread = 0;

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    held.set(event.pointerId, event.offsetX);
    far = 0;
    spread = apart();
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = held.get(event.pointerId);
    if (before === undefined) { hover(event); return; }
    held.set(event.pointerId, event.offsetX);
    if (held.size === 2) { pinch(); return; }
    far += Math.abs(event.offsetX - before);
    if (far > CLICK_PX) {
      moved();
      picture.frame.pan(event.offsetX - before);
      picture.change();
    }
  });
  const release = (event) => {
    const isClick = held.delete(event.pointerId) && far <= CLICK_PX && event.type === "pointerup";
    if (isClick && picture.drawn) chose(hit(picture.drawn, event.offsetX, event.offsetY));
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) { moved(); picture.frame.pan(-event.deltaX); }
    else picture.frame.zoom(Math.exp(Math.sign(event.deltaY) * Math.min(60, Math.abs(event.deltaY)) / 300), picture.follows ? picture.frame.wide : event.offsetX);
    picture.change();
  }, { passive: false });

  function apart() {
    const [one, other] = [...held.values()];
    return other === undefined ? 0 : Math.max(20, Math.abs(one - other));
  }

  function pinch() {
    const now = apart(), [one, other] = [...held.values()];
    moved();
    picture.frame.zoom(spread / now, (one + other) / 2);
    spread = now;
    far = CLICK_PX + 1;
    picture.change();
  }

  function hover(event) {
    const found = picture.drawn && hit(picture.drawn, event.offsetX, event.offsetY);
    canvas.style.cursor = found ? "pointer" : "grab";
  }
}

/**
 * The knot that a key leads to; null: the key means nothing here.
 * Left and right along the cord, up to a parent and down to a child of other cords first, brackets
 * to the siblings: other children of the same parent, else the nearest in time on the next cord.
 */
export function walk(dag, id, key) {
  const knot = dag.knots.get(id);
  if (!KEYS.has(key)) return null;
  if (!knot) return newest(dag);
  const lane = dag.laneOf.get(knot.lane), at = lane.knots.indexOf(knot);
  const there = (ids) => ids.map((one) => dag.knots.get(one)).filter(Boolean);
  const abroad = (list) => list.find((one) => one.lane !== knot.lane) ?? list[0] ?? knot;
  switch (key) {
    case "ArrowLeft": return lane.knots[at - 1] ?? knot;
    case "ArrowRight": return lane.knots[at + 1] ?? knot;
    case "ArrowUp": return abroad(there(knot.below));
    case "ArrowDown": return abroad(there(dag.children(id)));
    case "Home": return lane.knots[0];
    case "End": return lane.knots.at(-1);
    default: return sibling(dag, knot, key === "]" ? 1 : -1);
  }
}

const KEYS = new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "[", "]"]);

function newest(dag) {
  return dag.lanes.map((lane) => lane.knots.at(-1)).filter(Boolean).sort((one, other) => other.t - one.t)[0] ?? null;
}

function sibling(dag, knot, step) {
  const family = new Set(knot.below.flatMap((id) => dag.children(id)));
  const alike = [...family].map((id) => dag.knots.get(id)).filter(Boolean).sort((one, other) => one.t - other.t || one.lane - other.lane);
  const next = alike[alike.indexOf(knot) + step];
  if (next) return next;
  const lanes = dag.lanes.filter((lane) => lane.knots.length), at = lanes.findIndex((lane) => lane.number === knot.lane);
  return dag.nearest(lanes[(at + step + lanes.length) % lanes.length], knot.t) ?? knot;
}
