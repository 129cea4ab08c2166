// The shard map: a cell for each shard, in its holder's colour; what it is doing is shown by the
// cell's form as well, so that no colour need be told from another.

import { byId, count, darkMode, duration, element, holderColour, percent, rem, setText } from "./format.js";

const stateText = {
  training: "is trained by", committing: "has its commit awaited from", replaying: "replays at",
  loading: "is loaded by", releasing: "is handed over by", free: "is nobody's",
};

export class ShardMap {
  constructor() {
    this.canvas = byId("shards");
    this.shards = [];
    this.colours = new Map();  // holder -> colour; a holder keeps its colour
    this.chosen = null;
    this.canvas.addEventListener("pointermove", (event) => this.choose(this.at(event.offsetX, event.offsetY)));
    this.canvas.addEventListener("pointerleave", () => this.choose(null));
    this.canvas.addEventListener("keydown", (event) => this.move(event));
    new ResizeObserver(() => this.draw()).observe(this.canvas.parentElement);
    darkMode.addEventListener("change", () => this.draw());
  }

  show({ shards, batch }) {
    this.shards = shards;
    this.batch = batch;
    const names = [...new Set(shards.map((shard) => shard.holder).filter((name) => name !== null))].sort();
    for (const name of names) if (!this.colours.has(name)) this.colours.set(name, this.colours.size);
    if (this.colours.size > 4 * names.length + 64) this.colours = new Map(names.map((name, i) => [name, i]));
    this.legend(names);
    this.draw();
    if (this.chosen !== null) this.tell();
  }

  colour(name) {
    return holderColour(this.colours.get(name), darkMode.matches);
  }

  legend(names) {
    const states = new Map();
    const held = new Map();
    for (const { state, holder } of this.shards) {
      states.set(state, (states.get(state) ?? 0) + 1);
      held.set(holder, (held.get(holder) ?? 0) + 1);
    }
    const stateList = [...states].map(([state, many]) => `${many} ${state}`).join(" · ");
    setText(byId("shard-states"), stateList);
    this.canvas.setAttribute("aria-label",
      `${this.shards.length} shards: ${stateList.replaceAll(" · ", ", ")}. Arrow keys tell of each.`);
    byId("shard-holders").replaceChildren(...names.slice(0, 60).map((name) => {
      const swatch = element("i", { className: "swatch" });
      swatch.style.background = this.colour(name);
      return element("span", {}, swatch, `${name} `, element("span", { className: "count" }, String(held.get(name))));
    }), names.length > 60 ? element("span", {}, `and ${names.length - 60} others`) : "");
  }

  layout() {
    const width = this.canvas.parentElement.clientWidth -
                  2 * parseFloat(getComputedStyle(this.canvas.parentElement).paddingLeft);
    const total = Math.max(1, this.shards.length);
    const height = Math.min(0.6 * width, 24 * rem());
    const side = Math.max(0.5 * rem(), Math.min(4.5 * rem(), Math.floor(Math.sqrt((width * height) / total))));
    const columns = Math.max(1, Math.floor(width / side));
    return { width, side, columns, rows: Math.ceil(total / columns) };
  }

  draw() {
    const { width, side, columns, rows } = this.layout();
    const scale = devicePixelRatio;
    const canvas = this.canvas;
    canvas.style.height = `${rows * side}px`;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(rows * side * scale);
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    const style = getComputedStyle(canvas);
    this.ink = style.getPropertyValue("--text");
    this.quiet = style.getPropertyValue("--quiet");
    this.card = style.getPropertyValue("--card");
    pen.font = `${Math.round(side * 0.32)}px ${style.fontFamily}`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    this.shards.forEach((shard, i) => {
      this.drawCell(pen, shard, (i % columns) * side, Math.floor(i / columns) * side, side, i === this.chosen);
    });
  }

  drawCell(pen, shard, x, y, side, isChosen) {
    const gap = side > 16 ? 2 : 1;
    const inner = side - 2 * gap;
    pen.save();
    pen.translate(x + gap, y + gap);
    pen.beginPath();
    pen.roundRect(0, 0, inner, inner, Math.min(5, side / 6));
    pen.clip();
    const colour = shard.holder === null ? null : this.colour(shard.holder);
    if (shard.state === "free") {
      pen.strokeStyle = this.quiet;
      pen.setLineDash([3, 3]);
      pen.lineWidth = 2;
      pen.stroke();
    } else if (shard.state === "loading") {
      // It fills up as it is loaded.
      pen.globalAlpha = 0.25;
      pen.fillStyle = colour;
      pen.fillRect(0, 0, inner, inner);
      pen.globalAlpha = 1;
      const part = inner * (shard.loaded ?? 0);
      pen.fillRect(0, inner - part, inner, part);
    } else {
      pen.fillStyle = colour;
      pen.globalAlpha = shard.state === "releasing" ? 0.45 : 1;
      pen.fillRect(0, 0, inner, inner);
      pen.globalAlpha = 1;
      if (shard.state === "replaying") this.stripe(pen, inner);
      if (shard.state === "committing") {
        pen.fillStyle = this.card;
        pen.fillRect(inner * 0.2, inner * 0.82, inner * 0.6, Math.max(1.5, inner * 0.07));
      }
    }
    if (side >= 1.5 * rem()) {
      pen.fillStyle = shard.state === "training" || shard.state === "committing" ? this.card : this.ink;
      pen.fillText(String(shard.shard), inner / 2, inner / 2 + 1);
    }
    pen.restore();
    if (!isChosen) return;
    pen.strokeStyle = this.ink;
    pen.lineWidth = 2;
    pen.strokeRect(x + 1, y + 1, side - 2, side - 2);
  }

  stripe(pen, inner) {
    pen.strokeStyle = this.card;
    pen.lineWidth = Math.max(1.5, inner / 12);
    for (let offset = -inner; offset < inner; offset += inner / 3) {
      pen.beginPath();
      pen.moveTo(offset, inner);
      pen.lineTo(offset + inner, 0);
      pen.stroke();
    }
  }

  at(x, y) {
    const { side, columns } = this.layout();
    const column = Math.floor(x / side);
    const place = Math.floor(y / side) * columns + column;
    return column < columns && place >= 0 && place < this.shards.length ? place : null;
  }

  move(event) {
    const { columns } = this.layout();
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns };
    if (!(event.key in steps) || !this.shards.length) return;
    event.preventDefault();
    const next = this.chosen === null ? 0 : this.chosen + steps[event.key];
    if (next >= 0 && next < this.shards.length) this.choose(next);
  }

  choose(place) {
    if (place === this.chosen) return;
    this.chosen = place;
    this.draw();
    this.tell();
  }

  tell() {
    const shard = this.chosen === null ? null : this.shards[this.chosen];
    if (!shard) return setText(byId("shard-text"), "");
    let text = `Shard ${shard.shard}${shard.layer === "input" ? " (input layer)" : ""} ${stateText[shard.state]}`;
    if (shard.holder !== null) text += ` ${shard.holder}`;
    text += `, for ${duration(shard.since_seconds)}; version ${count(shard.version)}`;
    if (shard.loaded !== null && shard.state === "loading") text += `, ${percent(shard.loaded)} here`;
    if (shard.lag > 0) text += `, ${count(shard.lag)} batches behind`;
    if (shard.held_before !== null && shard.moved_why !== null) {
      text += `. It left ${shard.held_before}: ${shard.moved_why}`;
    }
    setText(byId("shard-text"), text + ".");
  }
}
