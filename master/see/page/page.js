// The run's page: listens to the master's events and draws what they say. Nothing here changes the
// run.

import { ask, follow } from "./ask.js";
import { Charts } from "./charts.js";
import { showConfiguration, showJoin } from "./configuration.js";
import { Events } from "./events.js";
import { brief, byId, bytes, clock, count, darkMode, duration, element, fixed, holderColour, percent, setText } from "./format.js";
import { preparePredict } from "./predict.js";
import { Receipts } from "./receipts.js";
import { ShardMap } from "./shards.js";
import { tile } from "./tiles.js";
import { Volunteers } from "./volunteers.js";

const charts = new Charts();
const shardMap = new ShardMap();
const volunteers = new Volunteers();
const receipts = new Receipts();
const events = new Events();
let life = null;
let run = null;
let historyVersion = null;
let joinShown = null;

function showTiles({ progress, precision, traffic, checkpoint, disk, volunteers_here: here, shards }) {
  tile("done", "Done", percent(progress.batches ? progress.batch / progress.batches : 0, 1), `epoch ${Math.min(progress.epoch + 1, progress.epochs)} of ${progress.epochs}`);
  tile("eta", "Time left", duration(progress.eta_seconds), progress.eta_seconds === null ? "" : `until ${clock(Date.now() / 1000 + progress.eta_seconds).slice(0, 5)}`);
  const interval = precision.p_at_1 === null ? "not evaluated yet"
    : precision.p_at_1_halfwidth === null ? "whole test set" : `± ${fixed(precision.p_at_1_halfwidth, 4)} (95 %)`;
  tile("p1", "P@1", fixed(precision.p_at_1, 4), interval);
  tile("p3", "P@3", fixed(precision.p_at_3, 4), precision.p_at_5 === null ? "" : `P@5 ${fixed(precision.p_at_5, 4)}`);
  tile("loss", "Loss", fixed(progress.loss, 4), progress.active === null ? "" : `${count(progress.active)} active neurons`);
  tile("speed", "Examples/s", brief(progress.examples_per_second), `lag ${count(progress.staleness)}`);
  tile("volunteers", "Volunteers", count(here), `for ${count(shards)} shards`);
  const down = traffic.bytes_per_second_down;
  tile("bytes", "Bytes/s", down === null ? bytes(null) : bytes(down + traffic.bytes_per_second_up), down === null ? "" : `${bytes(down)} sent`);
  tile("checkpoint", "Checkpoint age", checkpoint.age_seconds === null ? "none" : duration(checkpoint.age_seconds), `store ${bytes(disk.store_bytes)}`);
}

function showTime(uses) {
  const order = uses.map((use, i) => ({ ...use, colour: i === 0 ? "var(--accent)" : holderColour(i + 2, darkMode.matches) }));
  const stack = (key, label) => {
    const total = order.reduce((sum, use) => sum + use[key], 0);
    const bar = element("div", { className: "stack", ariaHidden: "true" }, ...order.filter((use) => use[key] > 0).map((use) => {
      const part = element("div", { title: `${use.text}: ${duration(use[key])}` });
      part.style.flexGrow = use[key];
      part.style.background = use.colour;
      return part;
    }));
    return [element("p", { className: "hint" }, `${label}, ${duration(total)}`), bar];
  };
  const totals = ["seconds", "recent_seconds"].map((key) => order.reduce((sum, use) => sum + use[key], 0) || 1);
  const rows = order.filter((use) => use.seconds > 0).sort((a, b) => b.seconds - a.seconds).map((use) => {
    const swatch = element("i", { className: "swatch" });
    swatch.style.background = use.colour;
    return element("tr", {}, element("th", { scope: "row" }, swatch, use.text),
      element("td", { className: "number" }, duration(use.seconds)),
      element("td", { className: "number" }, percent(use.seconds / totals[0])),
      element("td", { className: "number" }, percent(use.recent_seconds / totals[1])));
  });
  byId("time").replaceChildren(...stack("seconds", "Since the master began"), ...stack("recent_seconds", "The last five minutes"),
    element("table", {}, element("thead", {}, element("tr", {}, ...["Waited for", "Time", "Of all", "Lately"].map((h, i) =>
      element("th", { scope: "col", className: i ? "number" : "" }, h)))), element("tbody", {}, ...rows)));
}

function showRun(next) {
  run = next;
  document.body.classList.remove("is-lost");
  byId("lost").hidden = true;
  setText(byId("headline"), run.headline);
  setText(byId("store"), run.store);
  byId("why-list").replaceChildren(...run.why.map((sentence) => element("li", {}, sentence)));
  const part = run.progress.batches ? run.progress.batch / run.progress.batches : 0;
  byId("bar-done").style.width = percent(part, 2).replace(" ", "");
  byId("bar").setAttribute("aria-valuenow", Math.floor(100 * part));
  setText(byId("place"), `batch ${count(run.progress.batch)} of ${count(run.progress.batches)}, checkpoint ${count(run.progress.round)} of ${count(run.progress.rounds)}`);
  document.title = `${percent(part)} ${run.stage} – Gleaner`;
  showTiles(run);
  showTime(run.time);
  if (life !== run.life) {
    life = run.life;
    showConfiguration();
  }
  if (joinShown !== JSON.stringify([run.join, run.program])) {
    joinShown = JSON.stringify([run.join, run.program]);
    showJoin(run.join, run.program);
  }
  if (historyVersion !== run.history_version) {
    historyVersion = run.history_version;
    charts.load();
    receipts.load();
  }
}

async function get(path, show) {
  const answer = await ask(path);
  if (answer.ok) show(await answer.json());
}

let isAsking = false;
let asked = 0;
async function askForTables() {
  // With very many shards, less often: the answer is long.
  const pause = run && run.shards > 1000 ? 4000 : 900;
  if (isAsking || document.hidden || performance.now() - asked < pause) return;
  isAsking = true;
  asked = performance.now();
  try {
    const [, data] = await Promise.all([get("api/v1/shards", (shards) => shardMap.show(shards)), volunteers.load()]);
    if (data !== null) receipts.showFaults(data);
  } catch {
    // The event stream says that the master is gone.
  }
  isAsking = false;
}

function lost(refusal) {
  if (refusal) {
    setText(byId("lost"), refusal);
    byId("lost").hidden = false;
  } else if (byId("lost").hidden) {
    const isOver = run && run.stage === "done";
    setText(byId("lost"), isOver
      ? `The run ended at ${clock(run.wall_seconds)}, and the master with it. This is how it stood.`
      : `The master has not answered since ${clock(Date.now() / 1000)}. This page tries again by itself.`);
    byId("lost").hidden = false;
    document.body.classList.add("is-lost");
  }
}

function take(kind, data) {
  if (kind === "event") {
    events.add(data);
  } else if (document.hidden) {
    run = data;
  } else {
    showRun(data);
    askForTables();
  }
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden || !run) return;
  showRun(run);
  askForTables();
});
addEventListener("hashchange", () => location.reload());
preparePredict();
follow("api/v1/events", take, lost);
