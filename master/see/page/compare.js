// Histories of several runs in the same charts, a colour for each run.

import { Chart } from "./chart.js";
import { brief, byId, darkMode, element, fixed, holderColour } from "./format.js";

const hour = 3600;
const axes = {
  epoch: { label: "epochs", name: "epoch", place: (run, i) => run.batches[i] / run.batches_per_epoch },
  batch: { label: "batches", name: "batch", place: (run, i) => run.batches[i] },
  hour: { label: "hours since the first checkpoint", name: "hour", place: (run, i) => (run.wall_seconds[i] - run.wall_seconds[0]) / hour },
};
const columns = [["Loss", "loss", (value) => fixed(value, 4)], ["P@1 on test examples", "p_at_1", (value) => fixed(value, 4)],
                 ["P@5 on test examples", "p_at_5", (value) => fixed(value, 4)], ["Examples per second", "examples_per_second", brief]];

class Comparison {
  constructor(names) {
    const lines = (column) => names.map((name, i) => ({ column, name: names.length > 1 ? name : "", run: i, colour: () => holderColour(i, darkMode.matches) }));
    this.axis = element("select", { id: "compare-axis" }, ...Object.entries(axes).map(([key, { label }]) => element("option", { value: key }, label)));
    this.axis.addEventListener("change", () => {
      this.zoomed = null;
      this.draw();
    });
    this.zoomed = null;
    this.charts = columns.map(([title, column, format]) => new Chart(title, lines(column), format, (from, to) => {
      this.zoomed = from === undefined ? null : [from, to];
      this.draw();
    }));
    byId("compare").append(element("div", { className: "filters" }, element("label", {}, "Over ", this.axis)),
      element("div", { id: "charts" }, ...this.charts.map((chart) => chart.node)));
    darkMode.addEventListener("change", () => this.draw());
  }

  show(runs) {
    this.runs = runs;
    this.draw();
  }

  // The runs as far as they lie in what was zoomed to.
  draw() {
    const { name, place } = axes[this.axis.value];
    const shown = this.runs.map((run) => {
      const x = run.checkpoint.map((_, i) => place(run, i));
      const kept = x.map((_, i) => i).filter((i) => !this.zoomed || (x[i] >= this.zoomed[0] && x[i] <= this.zoomed[1]));
      const pick = (values) => kept.map((i) => values[i]);
      const series = Object.fromEntries(Object.entries(run.series).map(([column, { last, low, high }]) =>
        [column, { last: pick(last), low: pick(low), high: pick(high) }]));
      return { name: run.name, x: pick(x), series, checkpoint: pick(run.checkpoint), batches: pick(run.batches), epoch: pick(run.epoch), wall_seconds: pick(run.wall_seconds) };
    });
    for (const chart of this.charts) chart.show(shown, name);
  }
}

// Names without the folders that all of them begin with.
function short(names) {
  let shared = names.length > 1 ? names[0].lastIndexOf("/") + 1 : 0;
  for (const name of names) {
    while (!name.startsWith(names[0].slice(0, shared))) shared = names[0].lastIndexOf("/", shared - 2) + 1;
  }
  return names.map((name) => name.slice(shared));
}

// Fills the page's section for it, and keeps it fresh; hides it where no store has a history.
export async function prepareCompare() {
  let comparison = null;
  const load = async () => {
    if (document.hidden) return;
    const answer = await fetch("api/v1/histories");
    if (!answer.ok) return;
    const { runs } = await answer.json();
    if (!runs.some((run) => run.checkpoint.length)) return;
    byId("compare").hidden = false;
    short(runs.map((run) => run.name)).forEach((name, i) => { runs[i].name = name; });
    comparison ??= new Comparison(runs.map((run) => run.name));
    comparison.show(runs);
  };
  await load();
  setInterval(load, 15_000);
}
