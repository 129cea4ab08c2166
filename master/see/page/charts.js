// The charts of the run's history. They share one range of checkpoints, and ask the server again
// when it changes: a shorter range comes back in finer pieces.

import { ask } from "./ask.js";
import { Chart } from "./chart.js";
import { brief, byId, fixed } from "./format.js";

export class Charts {
  constructor() {
    const onZoom = (from, to) => this.zoom(from, to);
    const four = (value) => fixed(value, 4);
    this.charts = [
      new Chart("Loss", [{ column: "loss", name: "", colour: "--chart-1" }], four, onZoom),
      new Chart("Precision on test examples", [
        { column: "p_at_1", name: "P@1", colour: "--chart-1" },
        { column: "p_at_3", name: "P@3", colour: "--chart-2" },
        { column: "p_at_5", name: "P@5", colour: "--chart-3" }], four, onZoom),
      new Chart("Examples per second", [
        { column: "examples_per_second", name: "", colour: "--chart-2" }], brief, onZoom),
    ];
    byId("charts").append(...this.charts.map((chart) => chart.node));
    this.range = null;
    this.data = null;
    this.asked = 0;
  }

  zoom(begin, end) {
    const from = begin === undefined ? undefined : Math.floor(begin);
    const to = begin === undefined ? undefined : Math.ceil(end);
    const whole = from === undefined || !this.data || (from <= this.data.first && to >= this.data.last);
    this.range = whole ? null : { from: Math.max(from, this.data.first), to: Math.min(to, this.data.last) };
    if (this.range && this.range.to <= this.range.from) this.range.to = this.range.from + 1;
    this.load();
  }

  async load() {
    const number = ++this.asked;
    const points = Math.min(1500, Math.max(300, Math.round(byId("charts").clientWidth / 2)));
    const query = new URLSearchParams({ points, ...this.range });
    const answer = await ask(`api/v1/history?${query}`);
    if (!answer.ok) return;
    const data = await answer.json();
    if (number !== this.asked) return;  // a later question was asked meanwhile
    this.data = data;
    for (const chart of this.charts) chart.show([{ ...data, x: data.checkpoint }], "checkpoint");
  }
}
