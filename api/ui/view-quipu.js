// The live DAG: cords and knots, and the same as a table.

import { Dag } from "./dag.js";
import { h, say, show, table } from "./dom.js";
import { count, plural, stamp } from "./format.js";
import { feed } from "./feed.js";
import { get } from "./api.js";
import { knotPanel } from "./knot-panel.js";
import { live, watch } from "./live.js";
import { Picture } from "./picture.js";
import { keep } from "./keeping.js";
import { states } from "./strip.js";
import { walk, steer } from "./steering.js";
import { chip, eventLink } from "./words.js";

const TABLE_ROWS = 200;
const TABLE_EVERY_MS = 1_000;

export async function draw(root, { query, signal }) {
  const view = new QuipuView(root, signal);
  view.show();
  const at = query.get("at");
  if (at) await view.goTo(at);
}

class QuipuView {
  constructor(root, signal) {
    Object.assign(this, { root, signal, dag: new Dag(), cones: { below: true, above: true }, asTable: false, tableDue: 0, filling: 0 });
  }

  show() {
    this.canvas = h("canvas", {
      class: "cords", tabindex: 0, role: "application", "aria-roledescription": "picture of the graph",
      "aria-label": "Cords and knots. Left and right walk along a cord, up to a parent, down to a child, brackets to a sibling, Enter reads the knot, plus and minus zoom.",
    });
    this.spoken = h("p", { class: "unseen", "aria-live": "polite" });
    this.note = h("p", { class: "note", role: "status" });
    this.side = h("aside", { class: "side", tabindex: "-1", "aria-label": "The chosen knot" }, legend());
    this.rows = h("div", { hidden: true });
    this.place = h("div", { class: "weave" }, this.canvas);
    show(this.root, h("h1", { class: "unseen" }, "Quipu"), this.bar(), this.note,
      h("div", { class: "beside" }, h("div", { class: "panel flush grow" }, this.place, this.rows), this.side), this.spoken);
    this.picture = new Picture(this.canvas, this.dag, { signal: this.signal, live: states, least: Math.max(340, Math.min(620, innerHeight - 260)) });
    this.picture.heard = () => this.drawn();
    this.feed = feed(this.dag, { signal: this.signal, changed: () => this.changed(), note: (text, kind) => this.told(text, kind) });
    steer(this.picture, { chose: (found) => this.choose(found), moved: () => this.released() });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    watch(() => { this.dag.setMembers(live.members); this.picture.change(); }, this.signal);
  }

  bar() {
    const press = (text, run, given = {}) => h("button", { type: "button", onclick: run, ...given }, text);
    this.followButton = press("Follow", () => this.follow(!this.picture.follows), { "aria-pressed": "true" });
    this.pauseButton = press("Pause", () => this.pause(), { "aria-pressed": "false" });
    this.tableButton = press("Table", () => this.turn(), { "aria-pressed": "false" });
    const cone = (way, text) => h("label", { class: "check" }, h("input", { type: "checkbox", checked: true, onchange: (event) => { this.cones[way] = event.target.checked; this.light(); } }), text);
    return h("div", { class: "bar", role: "toolbar", "aria-label": "The picture" },
      this.followButton, this.pauseButton,
      press("−", () => this.zoom(1.5), { "aria-label": "Zoom out" }), press("+", () => this.zoom(1 / 1.5), { "aria-label": "Zoom in" }),
      press("Newest", () => { this.picture.frame.fit(this.dag); this.follow(true); }),
      cone("below", "ancestors"), cone("above", "descendants"), h("span", { class: "grow" }),
      this.tableButton, press("SVG", () => keep("quipu.svg", "image/svg+xml", this.picture.svg())),
      press("PNG", () => this.canvas.toBlob((blob) => keep("quipu.png", "image/png", blob))));
  }

  changed() {
    this.picture.change();
    if (this.asTable) this.fillSoon();
  }

  drawn() {
    const { drawn } = this.picture;
    this.place.classList.toggle("empty", this.dag.newest_ms === 0 && this.feed.isReady);
    if (this.feed.waiting) say(this.pauseButton, `Go on (${count(this.feed.waiting)} waiting)`);
    this.canvas.dataset.knots = drawn.knots.length;
    this.canvas.dataset.bundles = drawn.bundles.length;
  }

  told(text, kind) {
    this.note.className = `note ${kind}`;
    if (kind === "live" && this.note.dataset.kind === "gap") return;
    this.note.dataset.kind = kind;
    say(this.note, this.dag.newest_ms === 0 && kind === "live" ? "Nothing is written yet: the first entry is the first knot. Entries, Submit makes one." : text);
  }

  follow(wanted) {
    this.picture.follows = wanted;
    this.followButton.setAttribute("aria-pressed", String(wanted));
    this.picture.change();
  }

  /** Whoever moves the picture wants to look at something. */
  released() {
    if (this.picture.follows) this.follow(false);
  }

  pause() {
    const isPaused = this.pauseButton.getAttribute("aria-pressed") !== "true";
    this.pauseButton.setAttribute("aria-pressed", String(isPaused));
    say(this.pauseButton, isPaused ? "Go on" : "Pause");
    this.feed.pause(isPaused);
    this.picture.change();
  }

  zoom(by) {
    const { frame, follows } = this.picture;
    frame.zoom(by, follows ? frame.wide : frame.wide / 2);
    this.picture.change();
  }

  // --- the chosen knot --------------------------------------------------------------------------
  choose(found, isByKey = false) {
    if (found?.bundle) { this.open(found.bundle); return; }
    this.picture.chosen = found?.knot?.id ?? "";
    this.light();
    if (!found) { show(this.side, legend()); history.replaceState(null, "", "#/quipu"); return; }
    const { knot } = found;
    history.replaceState(null, "", `#/quipu?at=${knot.id}`);
    say(this.spoken, this.words(knot));
    knotPanel(this.side, knot.id, { signal: this.signal, go: (id) => this.goTo(id) });
    if (isByKey) this.bringIn(knot);
  }

  words(knot) {
    const lane = this.dag.laneOf.get(knot.lane);
    return `${lane.name} number ${knot.seq}, ${plural(knot.entries, "entry", "entries")}, ${knot.state}, ${plural(knot.below.length, "parent")}, ${plural(this.dag.children(knot.id).length, "child", "children")}, confirmed by ${this.dag.confirmedBy(knot).length}`;
  }

  light() {
    const id = this.picture.chosen, { below, above } = this.cones;
    this.picture.lit = !id || !(below || above) ? null
      : new Set([...(below ? this.dag.cone(id, "below") : [id]), ...(above ? this.dag.cone(id, "above") : [])]);
    this.picture.change();
  }

  /** A bundle comes apart: its time fills the picture. */
  open(bundle) {
    const { frame } = this.picture;
    this.released();
    frame.right_ms = bundle.upto + (bundle.upto - bundle.t) * 0.5;
    frame.scale = Math.max(0.02, ((bundle.upto - bundle.t) * 2) / Math.max(100, frame.wide - 92));
    say(this.spoken, `${plural(bundle.events, "event")} with ${plural(bundle.entries, "entry", "entries")}`);
    show(this.side, h("h2", {}, plural(bundle.events, "event")),
      h("p", {}, `${plural(bundle.entries, "entry", "entries")} of ${this.dag.laneOf.get(bundle.lane).name} from ${stamp(bundle.t)} to ${stamp(bundle.upto)}.`),
      h("p", {}, h("a", { href: `#/entries?since=${encodeURIComponent(new Date(bundle.t).toISOString())}&until=${encodeURIComponent(new Date(bundle.upto).toISOString())}` }, "Its entries")));
    this.picture.change();
  }

  /** Where its neighbours can be told from it. */
  around(knot) {
    const near = [...this.dag.knots.values()].map((one) => Math.abs(one.t - knot.t)).sort((one, other) => one - other);
    const reach = Math.max(1_000, near[Math.min(24, near.length - 1)]), { frame } = this.picture;
    if (frame.scale * frame.wide > 8 * reach || this.picture.frame.x(knot.t) < 120) {
      this.released();
      frame.scale = (reach * 2.6) / Math.max(200, frame.wide);
      frame.right_ms = knot.t + (frame.wide * frame.scale) / 2;
    }
    this.bringIn(knot);
    this.picture.change();
  }

  bringIn(knot) {
    const { frame } = this.picture, x = frame.x(knot.t);
    if (x > 120 && x < frame.wide - 40) return;
    this.released();
    frame.right_ms = knot.t + (frame.wide * frame.scale) / 2;
    this.picture.change();
  }

  async goTo(id) {
    if (!this.dag.knots.has(id)) {
      const found = await get(`v1/dag/window?center=${encodeURIComponent(id)}&before=60&after=60`, { signal: this.signal });
      for (const event of found.items) this.dag.put(event);
    }
    const knot = this.dag.knots.get(id);
    if (!knot) return;
    this.picture.paint();
    this.choose({ knot });
    this.around(knot);
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const { picture } = this;
    if (event.key === "+" || event.key === "=") this.zoom(1 / 1.5);
    else if (event.key === "-") this.zoom(1.5);
    else if (event.key === "Escape") this.choose(null);
    else if (event.key === "Enter") (this.side.querySelector("a, button, summary") ?? this.side).focus();
    else {
      const knot = walk(this.dag, picture.chosen, event.key);
      if (!knot) return;
      this.choose({ knot }, true);
    }
    event.preventDefault();
  }

  // --- the same as a table ----------------------------------------------------------------------
  turn() {
    this.asTable = !this.asTable;
    this.tableButton.setAttribute("aria-pressed", String(this.asTable));
    this.rows.hidden = !this.asTable;
    this.place.hidden = this.asTable;
    if (this.asTable) this.fillTable();
    else this.picture.fit();
  }

  /** At most once a second, and never not at all: the last news may be the last for hours. */
  fillSoon() {
    if (this.filling) return;
    this.filling = setTimeout(() => {
      this.filling = 0;
      if (this.asTable && !this.signal.aborted) this.fillTable();
    }, Math.max(0, this.tableDue - performance.now()));
  }

  fillTable() {
    this.tableDue = performance.now() + TABLE_EVERY_MS;
    if (this.rows.contains(document.activeElement) && document.activeElement.matches("button, a")) { this.fillSoon(); return; }
    const newest = [...this.dag.knots.values()].sort((one, other) => other.t - one.t).slice(0, TABLE_ROWS);
    const name = (number) => this.dag.laneOf.get(number)?.name || `${number}`;
    show(this.rows, table("Events, the newest first", ["Event", "Cord", "Number", "Time", "Entries", "State", "Parents", "Confirmed by"], newest.map((knot) => [
      eventLink(knot.id), name(knot.lane), count(knot.seq), stamp(knot.t), count(knot.entries), chip(knot.state),
      h("span", { class: "ids" }, knot.below.map((id) => eventLink(id))), this.dag.confirmedBy(knot).map(name).join(", ") || "nobody yet",
    ])));
  }
}

function legend() {
  const line = (state, text) => h("li", {}, chip(state), ` ${text}`);
  return [h("h2", {}, "How to read it"), h("ul", { class: "legend" },
    line("stored", "an open loop: one node holds it durably, receipts are on their way"),
    line("read", "a knot: a quorum has signed that it holds it, so it is final"),
    line("ordered", "wound twice: it has its place in the one order of the cluster"),
    line("void", "a cross: its author left before it became final")),
  h("p", { class: "hint" }, "A cord is a node, time runs along it. A knot is a signed event: the more entries, the larger. Bows tie it to its parents on other cords. The dots below are the other members: full once their receipt has come."),
  h("p", { class: "hint" }, "Drag to move, wheel or pinch to zoom, click a knot to read it. With the keyboard: ", h("kbd", {}, "←"), " ", h("kbd", {}, "→"), " along the cord, ", h("kbd", {}, "↑"), " parent, ", h("kbd", {}, "↓"), " child, ", h("kbd", {}, "["), " ", h("kbd", {}, "]"), " sibling.")];
}
