// One chart on a canvas. It draws what the server has condensed to about a piece per pixel: a line
// through the last values and a band from the lowest to the highest, so that no spike is lost.

import { brief, element, rem } from "./format.js";

// In rem.
const margins = { left: 3.1, right: 0.6, top: 0.5, bottom: 1.5 };

function axisLabel(value) {
  return Math.abs(value) >= 1000 ? brief(value) : String(Number(value.toPrecision(6)));
}

function niceStep(span, steps) {
  const raw = span / steps;
  const power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((m) => m * power).find((step) => step >= raw);
}

export class Chart {
  // `lines`: [{ column, name, colour }], where the colour is a custom property of the style sheet.
  // `onZoom(from, to)` is called with checkpoints, or without for the whole run.
  constructor(title, lines, format, onZoom) {
    this.lines = lines;
    this.format = format;
    this.onZoom = onZoom;
    this.title = title;
    this.data = null;
    this.heading = element("h3", {}, title);
    this.values = lines.map(() => element("span"));
    this.heading.append(...this.values);
    this.canvas = element("canvas", { tabIndex: 0 });
    this.canvas.setAttribute("role", "img");
    this.node = element("div", { className: "chart" }, this.heading, this.canvas);
    this.pointer = null;
    this.drag = null;
    this.margin = margins;
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  listen() {
    const canvas = this.canvas;
    canvas.addEventListener("pointermove", (event) => {
      this.pointer = event.offsetX;
      this.draw();
    });
    canvas.addEventListener("pointerleave", () => {
      this.pointer = null;
      this.draw();
    });
    canvas.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch") return;
      canvas.setPointerCapture(event.pointerId);
      this.drag = event.offsetX;
    });
    canvas.addEventListener("pointerup", (event) => {
      const begin = this.drag;
      this.drag = null;
      if (begin === null || Math.abs(event.offsetX - begin) < 8) return this.draw();
      const ends = [begin, event.offsetX].map((x) => this.checkpointAt(x)).sort((a, b) => a - b);
      this.onZoom(Math.floor(ends[0]), Math.ceil(ends[1]));
    });
    canvas.addEventListener("dblclick", () => this.onZoom());
    canvas.addEventListener("keydown", (event) => {
      if (!this.data || !this.data.checkpoint.length) return;
      const [from, to] = this.range();
      const span = Math.max(1, to - from);
      const moves = {
        "+": [from + span / 4, to - span / 4], "=": [from + span / 4, to - span / 4],
        "-": [from - span / 2, to + span / 2],
        ArrowLeft: [from - span / 4, to - span / 4], ArrowRight: [from + span / 4, to + span / 4],
      };
      if (event.key === "0" || event.key === "Escape") this.onZoom();
      else if (event.key in moves) this.onZoom(...moves[event.key].map(Math.round));
      else return;
      event.preventDefault();
    });
  }

  // `data` as /api/v1/history answers.
  show(data) {
    this.data = data;
    this.lines.forEach((line, i) => {
      const last = data.series[line.column].last.findLast((value) => value !== null);
      const text = last === undefined ? "" : `${line.name} ${this.format(last)}`.trim();
      this.values[i].replaceChildren();
      if (!text) return;
      const swatch = element("i", { className: "swatch" });
      swatch.style.background = `var(${line.colour})`;
      this.values[i].append(this.lines.length > 1 ? swatch : "", text);
    });
    this.canvas.setAttribute("aria-label", `${this.title} over the checkpoints: ` +
                             this.values.map((v) => v.textContent).join(", "));
    this.draw();
  }

  range() {
    const checkpoints = this.data.checkpoint;
    return [checkpoints[0], Math.max(checkpoints.at(-1), checkpoints[0] + 1)];
  }

  checkpointAt(x) {
    const [from, to] = this.range();
    const { margin } = this;
    const width = this.canvas.clientWidth - margin.left - margin.right;
    return from + (Math.min(Math.max(x - margin.left, 0), width) / width) * (to - from);
  }

  extent() {
    let low = Infinity;
    let high = -Infinity;
    for (const { column } of this.lines) {
      const series = this.data.series[column];
      for (const value of series.low) if (value !== null && value < low) low = value;
      for (const value of series.high) if (value !== null && value > high) high = value;
    }
    if (low > high) return null;
    if (low > 0 && low < 0.5 * high) low = 0;
    if (low === high) return [low - 0.5 * Math.abs(low || 1), high + 0.5 * Math.abs(high || 1)];
    const room = 0.06 * (high - low);
    return [low === 0 ? 0 : low - room, high + room];
  }

  draw() {
    const { canvas } = this;
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    const scale = devicePixelRatio;
    if (!width || !height) return;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    const style = getComputedStyle(canvas);
    const colour = (name) => style.getPropertyValue(name);
    const unit = rem();
    this.margin = Object.fromEntries(Object.entries(margins).map(([side, size]) => [side, size * unit]));
    const { margin } = this;
    this.unit = unit;
    pen.font = `${0.75 * unit}px ${style.fontFamily}`;
    const extent = this.data && this.data.checkpoint.length ? this.extent() : null;
    if (!extent) {
      pen.fillStyle = colour("--quiet");
      pen.fillText("Nothing has been measured yet.", margin.left, height / 2);
      return;
    }
    const [from, to] = this.range();
    const [low, high] = extent;
    const inner = { width: width - margin.left - margin.right,
                    height: height - margin.top - margin.bottom };
    const x = (value) => margin.left + ((value - from) / (to - from)) * inner.width;
    const y = (value) => margin.top + inner.height - ((value - low) / (high - low)) * inner.height;
    this.drawAxes(pen, colour, { x, y, from, to, low, high, width, height, inner });
    for (const line of this.lines) this.drawLine(pen, colour(line.colour), line.column, x, y);
    this.drawPointer(pen, colour, x, height);
  }

  drawAxes(pen, colour, a) {
    const { margin } = this;
    pen.lineWidth = 1;
    pen.strokeStyle = colour("--line");
    pen.fillStyle = colour("--quiet");
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    const step = niceStep(a.high - a.low, 4);
    for (let value = Math.ceil(a.low / step) * step; value <= a.high; value += step) {
      const at = Math.round(a.y(value)) + 0.5;
      pen.beginPath();
      pen.moveTo(margin.left, at);
      pen.lineTo(a.width - margin.right, at);
      pen.stroke();
      pen.fillText(axisLabel(value), margin.left - 0.4 * this.unit, at);
    }
    pen.textBaseline = "alphabetic";
    const across = Math.max(1, niceStep(a.to - a.from, Math.max(2, a.inner.width / (6 * this.unit))));
    for (let value = Math.ceil(a.from / across) * across; value <= a.to; value += across) {
      const at = a.x(value);
      pen.textAlign = at > a.width - 40 ? "right" : "center";
      pen.fillText(axisLabel(value), Math.min(at, a.width - margin.right), a.height - 0.4 * this.unit);
    }
  }

  drawLine(pen, colour, column, x, y) {
    const { checkpoint, series } = this.data;
    const { last, low, high } = series[column];
    const places = checkpoint.map((_, i) => i).filter((i) => last[i] !== null);
    if (!places.length) return;
    if (places.some((i) => low[i] !== high[i])) {
      pen.globalAlpha = 0.2;
      pen.fillStyle = colour;
      pen.beginPath();
      for (const i of places) pen.lineTo(x(checkpoint[i]), y(high[i]));
      for (const i of places.toReversed()) pen.lineTo(x(checkpoint[i]), y(low[i]));
      pen.fill();
      pen.globalAlpha = 1;
    }
    pen.strokeStyle = pen.fillStyle = colour;
    pen.lineWidth = 0.11 * this.unit;
    pen.lineJoin = "round";
    pen.beginPath();
    for (const i of places) pen.lineTo(x(checkpoint[i]), y(last[i]));
    pen.stroke();
    if (places.length > 60) return;
    for (const i of places) {
      pen.beginPath();
      pen.arc(x(checkpoint[i]), y(last[i]), 0.16 * this.unit, 0, 7);
      pen.fill();
    }
  }

  drawPointer(pen, colour, x, height) {
    if (this.pointer === null) return;
    const { margin, unit } = this;
    if (this.drag !== null) {
      pen.fillStyle = colour("--accent");
      pen.globalAlpha = 0.15;
      pen.fillRect(this.drag, margin.top, this.pointer - this.drag, height - margin.top - margin.bottom);
      pen.globalAlpha = 1;
      return;
    }
    const { checkpoint, series } = this.data;
    const wanted = this.checkpointAt(this.pointer);
    let place = checkpoint.findIndex((value) => value >= wanted);
    if (place < 0) place = checkpoint.length - 1;
    if (place > 0 && wanted - checkpoint[place - 1] < checkpoint[place] - wanted) --place;
    const at = Math.round(x(checkpoint[place])) + 0.5;
    pen.strokeStyle = colour("--quiet");
    pen.beginPath();
    pen.moveTo(at, margin.top);
    pen.lineTo(at, height - margin.bottom);
    pen.stroke();
    const parts = this.lines.map(({ column, name }) => {
      const value = series[column].last[place];
      return value === null ? "" : `${name} ${this.format(value)}`.trim();
    }).filter((part) => part);
    const text = `checkpoint ${checkpoint[place]}: ${parts.join("  ") || "not measured"}`;
    const wide = pen.measureText(text).width + unit;
    const left = Math.min(Math.max(at - wide / 2, 0), this.canvas.clientWidth - wide);
    pen.fillStyle = colour("--card");
    pen.fillRect(left, margin.top, wide, 1.2 * unit);
    pen.fillStyle = colour("--text");
    pen.textAlign = "left";
    pen.fillText(text, left + 0.5 * unit, margin.top + 0.85 * unit);
  }
}
