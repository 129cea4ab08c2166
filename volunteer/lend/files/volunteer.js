// The volunteer's page: listens to what it does and why. The buttons send the same requests as the
// verbs of gleaner-volunteer, with the key that the page's address ends with.

import { brief, byId, bytes, clock, count, duration, element, fixed, percent, setText, unknown } from "./format.js";
import { tile } from "./tiles.js";

const key = location.hash.slice(1);
const isHere = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(location.hostname);
let status = null;

const rate = (value) => (value === null ? unknown : `${bytes(value)}/s`);
const known = (value, ifTrue, ifFalse, ifNull) => (value === null ? ifNull : value ? ifTrue : ifFalse);
const capital = (sentence) => sentence.charAt(0).toUpperCase() + sentence.slice(1);

function showTiles({ shards, loading, held_bytes: held, life, today, rates, run }) {
  tile("shards", "Shards", count(shards.length), loading ? `${count(loading)} on their way` : `${bytes(held)} of memory`);
  tile("credit", "Credit today", brief(today.examples), `examples; ${brief(life.examples)} since it started`);
  tile("speed", "Examples/s", brief(rates.examples_per_second), "over the last 10 s");
  tile("down", "Receives", rate(rates.down_bytes_per_second), `${bytes(today.down_bytes)} today`);
  tile("up", "Sends", rate(rates.up_bytes_per_second), `${bytes(today.up_bytes)} today`);
  tile("run", "Run", run ? percent(run.rounds ? run.round / run.rounds : 0, 1) : unknown, run && run.p_at_1 !== null ? `P@1 ${fixed(run.p_at_1, 4)}` : "");
}

function facts(id, rows) {
  byId(id).replaceChildren(...rows.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

function showFacts({ master, shards, when, run, run_name: name, purpose, machine }) {
  facts("work", [
    ["Master", master],
    ["Shards", shards.length ? shards.join(", ") : "none"],
    ["Run", name || unknown],
    ...(purpose ? [["What it is for", purpose]] : []),
    ["Progress", run ? `round ${count(run.round + 1)} of ${count(run.rounds)}, with ${count(run.volunteers)} volunteers` : unknown],
    ["It works", { always: "always", idle: "while nobody uses this machine", schedule: "in the hours of its schedule" }[when] ?? when],
  ]);
  facts("machine", [
    ["Power", known(machine.on_battery, "battery", "mains", "no battery is known")],
    ["Network", known(machine.metered, "metered", "not metered", "unknown, which counts as not metered")],
    ["Hottest part", machine.celsius === null ? unknown : `${fixed(machine.celsius, 0)} °C`],
    ["Free memory", bytes(machine.memory_bytes)],
    ["Others wait for a processor", machine.cpu_pressure === null ? unknown : `${fixed(machine.cpu_pressure, 1)} % of the time`],
    ["Others wait for memory", machine.memory_pressure === null ? unknown : `${fixed(machine.memory_pressure, 1)} % of the time`],
  ]);
}

function show(next) {
  const before = status;
  status = next;
  const { verdict } = status;
  document.body.classList.remove("is-lost");
  byId("lost").hidden = true;
  setText(byId("name"), status.name);
  setText(byId("headline"), `${capital(status.sentence)}.`);
  document.title = `${capital(status.sentence)} – Gleaner`;
  setText(byId("until"), verdict.works || verdict.until_seconds === null ? ""
    : `At the earliest at ${clock(Date.now() / 1000 + verdict.until_seconds).slice(0, 5)}, in ${duration(Math.round(verdict.until_seconds))}.`);
  byId("resume").disabled = !["asked", "snoozed"].includes(verdict.reason);
  showTiles(status);
  showFacts(status);
  if (key && isHere && (!before || before.verdict.reason !== verdict.reason)) showLog();
}

// The answer to a request of the control socket's protocol, or nothing; the page says what went wrong.
async function ask(request) {
  try {
    const answer = await fetch("api/v1/control", {
      method: "POST", headers: { "Content-Type": "application/json", "X-Gleaner-Key": key },
      body: JSON.stringify(request),
    });
    if (!answer.ok) throw new Error(await answer.text());
    const told = await answer.json();
    if (told.error) throw new Error(told.error);
    setText(byId("answer"), "");
    return told;
  } catch (error) {
    setText(byId("answer"), error.message);
    return null;
  }
}

async function tell(request) {
  const told = await ask(request);
  if (told) show(told);
}

async function showLog() {
  const told = await ask({ verb: "log" });
  if (!told) return;
  byId("log-card").hidden = false;
  byId("events").replaceChildren(...told.log.toReversed().map((line) => element("li", {}, line)));
}

function prepareButtons() {
  if (!key || !isHere) {
    setText(byId("no-buttons"), isHere
      ? "To pause, resume or end the volunteer here, open the whole address of this page: gleaner-volunteer status prints it."
      : "The volunteer can be paused, resumed and ended on its own machine alone.");
    byId("no-buttons").hidden = false;
    return;
  }
  byId("buttons").hidden = false;
  byId("pause").addEventListener("click", () => tell({ verb: "pause" }));
  byId("resume").addEventListener("click", () => tell({ verb: "resume" }));
  byId("snooze").addEventListener("click", () => tell({ verb: "snooze", seconds: Number(byId("snooze-time").value) }));
  byId("finish").addEventListener("click", () => byId("dialog").showModal());
  byId("dialog").addEventListener("close", () => byId("dialog").returnValue === "finish" && tell({ verb: "finish" }));
}

function listen() {
  const source = new EventSource("api/v1/events");
  source.addEventListener("status", (message) => show(JSON.parse(message.data)));
  source.addEventListener("error", () => {
    if (byId("lost").hidden) {
      setText(byId("lost"), `The volunteer has not answered since ${clock(Date.now() / 1000)}. This page tries again by itself.`);
      byId("lost").hidden = false;
      document.body.classList.add("is-lost");
    }
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, 3000);
  });
}

addEventListener("hashchange", () => location.reload());
prepareButtons();
listen();
