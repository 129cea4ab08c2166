// One chart on a canvas, of one run's history or of several. It draws what the server has condensed
// to about a piece per pixel: a line through the last values and a band from the lowest to the
// highest, so that no spike is lost.

import { brief, element, rem, save } from "./format.js";

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
  // `lines`: [{ column, name, colour, run }], where the colour is a custom property of the style
  // sheet or a function that gives one, and the run a place in what show() gets, 0 unless given.
  // `onZoom(from, to)` is called with places on the axis, or without for all of it.
  constructor(title, lines, format, onZoom) {
    this.lines = lines;
    this.format = format;
    this.onZoom = onZoom;
    this.title = title;
    this.runs = [];
    this.axis = "checkpoint";
    this.heading = element("h3", {}, title);
    this.values = lines.map(() => element("span"));
    const button = (kind, action) => {
      const made = element("button", { type: "button", ariaLabel: `Save ${title} as ${kind}` }, kind);
      made.addEventListener("click", action);
      return made;
    };
    this.heading.append(...this.values, element("span", { className: "saves" },
      button("PNG", () => this.savePicture()), button("CSV", () => this.saveTable())));
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
      const ends = [begin, event.offsetX].map((x) => this.placeAt(x)).sort((a, b) => a - b);
      this.onZoom(...ends);
    });
    canvas.addEventListener("dblclick", () => this.onZoom());
    canvas.addEventListener("keydown", (event) => {
      if (!this.runs.some((run) => run.x.length)) return;
      const [from, to] = this.range();
      const span = to - from;
      const moves = {
        "+": [from + span / 4, to - span / 4], "=": [from + span / 4, to - span / 4],
        "-": [from - span / 2, to + span / 2],
        ArrowLeft: [from - span / 4, to - span / 4], ArrowRight: [from + span / 4, to + span / 4],
      };
      if (event.key === "0" || event.key === "Escape") this.onZoom();
      else if (event.key in moves) this.onZoom(...moves[event.key]);
      else return;
      event.preventDefault();
    });
  }

  // `runs`: what /api/v1/history answers, with `x`, the places of the pieces on the axis, and for
  // several runs the `name` of each; `axis` is the axis' name.
  show(runs, axis) {
    this.runs = runs;
    this.axis = axis;
    this.lines.forEach((line, i) => {
      const last = this.seriesOf(line).last.findLast((value) => value !== null);
      const text = last === undefined ? "" : `${line.name} ${this.format(last)}`.trim();
      this.values[i].replaceChildren();
      if (!text) return;
      const swatch = element("i", { className: "swatch" });
      swatch.style.background = typeof line.colour === "function" ? line.colour() : `var(${line.colour})`;
      this.values[i].append(this.lines.length > 1 ? swatch : "", text);
    });
    this.canvas.setAttribute("aria-label", `${this.title} over the ${axis}s: ` +
                             this.values.map((v) => v.textContent).join(", "));
    this.draw();
  }

  runOf(line) {
    return this.runs[line.run ?? 0];
  }

  seriesOf(line) {
    return this.runOf(line).series[line.column];
  }

  range() {
    const runs = this.runs.filter((run) => run.x.length);
    const from = Math.min(...runs.map((run) => run.x[0]));
    const to = Math.max(...runs.map((run) => run.x.at(-1)));
    return [from, to > from ? to : from + 1];
  }

  placeAt(x) {
    const [from, to] = this.range();
    const { margin } = this;
    const width = this.canvas.clientWidth - margin.left - margin.right;
    return from + (Math.min(Math.max(x - margin.left, 0), width) / width) * (to - from);
  }

  extent() {
    let low = Infinity;
    let high = -Infinity;
    for (const line of this.lines) {
      const series = this.seriesOf(line);
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
    const colour = (name) => (typeof name === "function" ? name() : style.getPropertyValue(name));
    const unit = rem();
    this.margin = Object.fromEntries(Object.entries(margins).map(([side, size]) => [side, size * unit]));
    const { margin } = this;
    this.unit = unit;
    pen.font = `${0.75 * unit}px ${style.fontFamily}`;
    const extent = this.runs.some((run) => run.x.length) ? this.extent() : null;
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
    for (const line of this.lines) this.drawLine(pen, colour(line.colour), line, x, y);
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

  drawLine(pen, colour, line, x, y) {
    const at = this.runOf(line).x;
    const { last, low, high } = this.seriesOf(line);
    const places = at.map((_, i) => i).filter((i) => last[i] !== null);
    if (!places.length) return;
    if (places.some((i) => low[i] !== high[i])) {
      pen.globalAlpha = 0.2;
      pen.fillStyle = colour;
      pen.beginPath();
      for (const i of places) pen.lineTo(x(at[i]), y(high[i]));
      for (const i of places.toReversed()) pen.lineTo(x(at[i]), y(low[i]));
      pen.fill();
      pen.globalAlpha = 1;
    }
    pen.strokeStyle = pen.fillStyle = colour;
    pen.lineWidth = 0.11 * this.unit;
    pen.lineJoin = "round";
    pen.beginPath();
    for (const i of places) pen.lineTo(x(at[i]), y(last[i]));
    pen.stroke();
    if (places.length > 60) return;
    for (const i of places) {
      pen.beginPath();
      pen.arc(x(at[i]), y(last[i]), 0.16 * this.unit, 0, 7);
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
    const wanted = this.placeAt(this.pointer);
    const near = this.lines.map((line) => this.nearest(this.runOf(line).x, wanted));
    const first = this.lines.findIndex((_, i) => near[i] >= 0);
    if (first < 0) return;
    const place = this.runOf(this.lines[first]).x[near[first]];
    const at = Math.round(x(place)) + 0.5;
    pen.strokeStyle = colour("--quiet");
    pen.beginPath();
    pen.moveTo(at, margin.top);
    pen.lineTo(at, height - margin.bottom);
    pen.stroke();
    const parts = this.lines.map((line, i) => {
      const value = near[i] < 0 ? null : this.seriesOf(line).last[near[i]];
      return value === null ? "" : `${line.name} ${this.format(value)}`.trim();
    }).filter((part) => part);
    const text = `${this.axis} ${axisLabel(place)}: ${parts.join("  ") || "not measured"}`;
    const wide = pen.measureText(text).width + unit;
    const left = Math.min(Math.max(at - wide / 2, 0), this.canvas.clientWidth - wide);
    pen.fillStyle = colour("--card");
    pen.fillRect(left, margin.top, wide, 1.2 * unit);
    pen.fillStyle = colour("--text");
    pen.textAlign = "left";
    pen.fillText(text, left + 0.5 * unit, margin.top + 0.85 * unit);
  }

  // The place of the value nearest to `wanted` in ascending values; -1 when there is none.
  nearest(values, wanted) {
    let place = values.findIndex((value) => value >= wanted);
    if (place < 0) place = values.length - 1;
    return place > 0 && wanted - values[place - 1] < values[place] - wanted ? place - 1 : place;
  }

  fileName(ending) {
    return `${this.title.toLowerCase().replaceAll(" ", "-")}.${ending}`;
  }

  // As it is shown, with its heading, on the card's ground.
  savePicture() {
    const scale = devicePixelRatio;
    const style = getComputedStyle(this.canvas);
    const picture = element("canvas", { width: this.canvas.width, height: this.canvas.height + 2 * rem() * scale });
    const pen = picture.getContext("2d");
    pen.fillStyle = style.getPropertyValue("--card");
    pen.fillRect(0, 0, picture.width, picture.height);
    pen.drawImage(this.canvas, 0, 2 * rem() * scale);
    pen.scale(scale, scale);
    pen.font = `${0.9 * rem()}px ${style.fontFamily}`;
    pen.textBaseline = "middle";
    let left = 0.6 * rem();
    const write = (text, colour) => {
      pen.fillStyle = colour;
      pen.fillText(text, left, rem());
      left += pen.measureText(text).width + rem();
    };
    write(this.title, style.getPropertyValue("--text"));
    this.lines.forEach((line, i) => write(this.values[i].textContent,
      typeof line.colour === "function" ? line.colour() : style.getPropertyValue(line.colour)));
    picture.toBlob((blob) => save(blob, this.fileName("png")));
  }

  // Saves the shown figures: a row for each piece, with its last values.
  saveTable() {
    const columns = [...new Set(this.lines.map((line) => line.column))];
    const quoted = (text) => `"${text.replaceAll('"', '""')}"`;
    const rows = this.runs.flatMap((run) => run.x.map((_, i) => [
      ...(run.name === undefined ? [] : [quoted(run.name)]),
      run.checkpoint[i], run.batches[i], run.epoch[i], run.wall_seconds[i],
      ...columns.map((column) => run.series[column].last[i] ?? "")].join(",")));
    const head = ["checkpoint", "batches", "epoch", "wall_seconds", ...columns];
    if (this.runs.some((run) => run.name !== undefined)) head.unshift("run");
    save(new Blob([[head.join(","), ...rows, ""].join("\n")], { type: "text/csv" }), this.fileName("csv"));
  }
}
