// Two ways to draw the same: on a canvas, and as an SVG to keep.

import { svg } from "./dom.js";

const TAU = Math.PI * 2;

/** @typedef {{stroke?: string, fill?: string, width?: number, dash?: number[], offset?: number, alpha?: number}} Style */

export class CanvasPen {
  constructor(context) { this.to = context; }

  begin(style) {
    const { to } = this;
    to.globalAlpha = style.alpha ?? 1;
    to.lineWidth = style.width ?? 1;
    to.lineCap = style.cap ?? "round";
    to.setLineDash(style.dash ?? []);
    to.lineDashOffset = style.offset ?? 0;
    to.beginPath();
  }

  end(style) {
    if (style.fill) { this.to.fillStyle = style.fill; this.to.fill(); }
    if (style.stroke) { this.to.strokeStyle = style.stroke; this.to.stroke(); }
    this.to.globalAlpha = 1;
  }

  /** @param {number[][]} lines x, y, x, y */
  lines(lines, style) {
    this.begin(style);
    for (const [x, y, toX, toY] of lines) { this.to.moveTo(x, y); this.to.lineTo(toX, toY); }
    this.end(style);
  }

  /** Bows from one cord to another. */
  bows(lines, style) {
    this.begin(style);
    for (const [x, y, toX, toY] of lines) {
      const middle = (x + toX) / 2;
      this.to.moveTo(x, y);
      this.to.bezierCurveTo(middle, y, middle, toY, toX, toY);
    }
    this.end(style);
  }

  /** @param {number[][]} rings x, y, radius */
  rings(rings, style) {
    this.begin(style);
    for (const [x, y, r] of rings) { this.to.moveTo(x + r, y); this.to.arc(x, y, r, 0, TAU); }
    this.end(style);
  }

  /** @param {number[][]} boxes x, y, width, height, radius of the corners */
  boxes(boxes, style) {
    this.begin(style);
    for (const [x, y, w, h, r] of boxes) this.to.roundRect(x, y, w, h, r);
    this.end(style);
  }

  text(x, y, words, { fill, size = 12, align = "start", weight = 400 }) {
    this.to.globalAlpha = 1;
    this.to.font = `${weight} ${size}px system-ui, sans-serif`;
    this.to.textAlign = align;
    this.to.textBaseline = "middle";
    this.to.fillStyle = fill;
    this.to.fillText(words, x, y);
  }
}

export class SvgPen {
  constructor(wide, high) {
    this.root = svg("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${wide} ${high}`, width: wide, height: high });
  }

  add(tag, given, style, ...children) {
    this.root.append(svg(tag, {
      ...given, fill: style.fill ?? "none", stroke: style.stroke, "stroke-width": style.stroke && (style.width ?? 1),
      "stroke-dasharray": style.dash?.join(" "), "stroke-dashoffset": style.dash && (style.offset ?? 0).toFixed(1),
      "stroke-linecap": style.stroke && (style.cap ?? "round"), opacity: style.alpha,
    }, ...children));
  }

  path(pieces, style) { if (pieces.length) this.add("path", { d: pieces.join("") }, style); }

  lines(lines, style) {
    this.path(lines.map((four) => { const [x, y, toX, toY] = four.map(tenth); return `M${x} ${y}L${toX} ${toY}`; }), style);
  }

  bows(lines, style) {
    this.path(lines.map((four) => {
      const [x, y, toX, toY] = four.map(tenth), middle = tenth((x + toX) / 2);
      return `M${x} ${y}C${middle} ${y} ${middle} ${toY} ${toX} ${toY}`;
    }), style);
  }

  rings(rings, style) {
    for (const [x, y, r] of rings) this.add("circle", { cx: tenth(x), cy: tenth(y), r: tenth(r) }, style);
  }

  boxes(boxes, style) {
    for (const [x, y, w, h, r] of boxes) this.add("rect", { x: tenth(x), y: tenth(y), width: tenth(w), height: tenth(h), rx: r }, style);
  }

  text(x, y, words, { fill, size = 12, align = "start", weight = 400 }) {
    const anchor = align === "center" ? "middle" : align;
    this.add("text", { x: tenth(x), y: tenth(y), "font-family": "system-ui, sans-serif", "font-size": size, "font-weight": weight, "text-anchor": anchor, "dominant-baseline": "middle" }, { fill }, words);
  }

  toString() { return new XMLSerializer().serializeToString(this.root); }
}

const tenth = (number) => Math.round(number * 10) / 10;
