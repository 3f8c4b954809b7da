// The graph on a canvas that fits its place, drawn at most once a frame and only where it changed.

import { draw } from "./draw.js";
import { CanvasPen, SvgPen } from "./pens.js";
import { isDark } from "./theme.js";
import { Frame, weave } from "./weave.js";

const GLIDE = 0.16; // of what is left, each frame
const MARGIN_PX = 46; // right of the newest knot

export class Picture {
  /** @param {{signal: AbortSignal, live?: () => Map<number, string>, least?: number}} how */
  constructor(canvas, dag, { signal, live, least = 300 }) {
    Object.assign(this, { canvas, dag, live, least, frame: new Frame(), follows: true, chosen: "", lit: null, drawn: null });
    this.isFitted = false;
    this.isDue = false;
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
    this.heard = () => {};
    const sized = new ResizeObserver(() => this.fit());
    sized.observe(canvas.parentElement);
    addEventListener("quipu-theme", () => this.change(), { signal });
    signal.addEventListener("abort", () => sized.disconnect(), { once: true });
    this.signal = signal;
    this.fit();
  }

  fit() {
    const { canvas, frame } = this, wide = canvas.parentElement.clientWidth;
    if (!wide) return;
    const high = Frame.wanted(this.dag.lanes.length, this.least), dots = Math.min(2, devicePixelRatio || 1);
    frame.wide = wide;
    frame.high = high;
    canvas.style.height = `${high}px`;
    if (canvas.width !== Math.round(wide * dots) || canvas.height !== Math.round(high * dots)) {
      canvas.width = Math.round(wide * dots);
      canvas.height = Math.round(high * dots);
    }
    this.pen = new CanvasPen(canvas.getContext("2d", { alpha: false }));
    this.pen.to.setTransform(dots, 0, 0, dots, 0, 0);
    this.paint();
  }

  change() {
    if (this.isDue || this.signal.aborted) return;
    this.isDue = true;
    requestAnimationFrame(() => { this.isDue = false; this.paint(); });
  }

  paint() {
    const { dag, frame } = this;
    if (this.signal.aborted || !this.pen) return;
    if (!this.isFitted && dag.newest_ms) { frame.fit(dag); this.isFitted = true; }
    if (frame.high !== Frame.wanted(dag.lanes.length, this.least)) { this.fit(); return; }
    if (this.follows && dag.newest_ms) this.glide();
    this.drawn = weave(dag, frame);
    draw(this.pen, dag, frame, this.drawn, this.how());
    this.heard();
  }

  /** Towards the newest knot, softly: everything moves together. */
  glide() {
    const { frame, dag } = this, wanted = dag.newest_ms + MARGIN_PX * frame.scale, left = wanted - frame.right_ms;
    const isFar = Math.abs(left) > frame.wide * frame.scale * 2;
    if (this.calm.matches || isFar || Math.abs(left) < frame.scale * 0.5) { frame.right_ms = wanted; return; }
    frame.right_ms += left * GLIDE;
    this.change();
  }

  how() {
    return { isDark: isDark(), chosen: this.chosen, lit: this.lit, live: this.live?.() };
  }

  /** What is seen now, to keep. */
  svg() {
    const pen = new SvgPen(this.frame.wide, this.frame.high);
    draw(pen, this.dag, this.frame, weave(this.dag, this.frame), this.how());
    return String(pen);
  }
}
