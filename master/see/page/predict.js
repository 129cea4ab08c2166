// The box where one asks the model: a text, or a test example by number or name.

import { ask } from "./ask.js";
import { byId, count, element, fixed, percent, setText, unknown } from "./format.js";

function time(seconds) {
  if (seconds === null) return unknown;
  return seconds < 1 ? `${(1000 * seconds).toPrecision(3)} ms` : `${fixed(seconds, 1)} s`;
}

// What nobody could answer cannot be chosen. Where that is everything, the answer says why.
function offer(...isThere) {
  const kind = byId("predict-kind");
  if (!isThere.includes(true)) return;
  isThere.forEach((there, i) => { kind.options[i].disabled = !there; });
  if (kind.selectedOptions[0].disabled) kind.selectedIndex = isThere.indexOf(true);
}

async function showModel() {
  const answer = await ask("v1/model");
  if (!answer.ok) return;
  const model = await answer.json();
  if (model.checkpoint !== null) offer(model.reads_texts, model.test_examples > 0);
  const figures = model.requests === 0 ? "nobody has asked yet"
    : `half of the answers within ${time(model.p50_seconds)}, 99 % within ${time(model.p99_seconds)}, ${fixed(model.examples_per_second, 1)} examples/s over the last minute`;
  setText(byId("predict-model"), model.checkpoint === null ? "The newest checkpoint answers."
    : `Checkpoint ${count(model.checkpoint)} answers; ${figures}.`);
}

function bar(probability) {
  const part = element("div", { className: "probability", ariaHidden: "true" }, element("i"));
  part.firstChild.style.width = percent(probability, 1).replace(" ", "");
  return part;
}

function named({ label, name, title }) {
  return title ?? name ?? `label ${label}`;
}

// The words that decided, where the model can tell.
function because({ why }) {
  if (!why?.length) return [];
  const parts = why.map(({ feature, name, value }) =>
    `${name ?? `feature ${feature}`} ${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(1)}`);
  return [element("div", { className: "hint" }, `because of ${parts.join(", ")}`)];
}

function showPrediction({ name, point, features, predicted, missed = [] }) {
  const rows = predicted.map((entry) => element("tr", { className: entry.is_true ? "is-true" : "" },
    element("td", { className: "number" }, percent(entry.probability, 1)),
    element("td", {}, bar(entry.probability)),
    element("td", { className: "mark-true" }, entry.is_true ? "✓ true" : ""),
    element("th", { scope: "row" }, named(entry), ...because(entry))));
  const known = features.slice(0, 10).map((feature) => feature.name ?? `feature ${feature.feature}`);
  byId("predict-answer").replaceChildren(
    element("h3", {}, name ?? `example ${count(point)}`),
    element("p", { className: "hint" }, known.length ? `known by: ${known.join(", ")}` : "No word of it is known to the model."),
    element("table", { className: "predicted" },
      element("thead", {}, element("tr", {}, element("th", { scope: "col", colSpan: 3 }, "Probability"), element("th", { scope: "col" }, "Label"))),
      element("tbody", {}, ...rows)),
    ...(missed.length ? [element("p", { className: "hint" }, `true, but not among these: ${missed.map(named).join(", ")}`)] : []));
}

async function predict(event) {
  event.preventDefault();
  const words = byId("predict-text").value.trim();
  if (words === "") return;
  const isExample = byId("predict-kind").value === "example";
  const input = isExample ? { example: /^\d+$/.test(words) ? Number(words) : words } : { text: words };
  const least = Number(byId("predict-least").value);
  byId("predict-answer").setAttribute("aria-busy", "true");
  byId("predict-answer").replaceChildren(element("p", { className: "hint" }, "Asking…"));
  try {
    const answer = await ask("v1/predict", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ inputs: [input], top: least > 0 ? 100 : 10, threshold: least / 100 }),
    });
    if (answer.ok) showPrediction((await answer.json()).predictions[0]);
    else byId("predict-answer").replaceChildren(element("p", { role: "alert" }, (await answer.text()).replace(/^inputs\[0\]\.?/, "")));
  } catch {
    byId("predict-answer").replaceChildren(element("p", { role: "alert" }, "Nobody answers here at the moment."));
  }
  byId("predict-answer").setAttribute("aria-busy", "false");
  showModel();
}

// Fills the page's section for it.
export function preparePredict() {
  const form = element("form", { id: "predict-form" },
    element("label", {}, "Give ", element("select", { id: "predict-kind" },
      element("option", { value: "text" }, "a text"),
      element("option", { value: "example" }, "a test example, by number or name"))),
    element("input", { id: "predict-text", type: "text", required: true, ariaLabel: "The text, or the example's number or name" }),
    element("label", {}, " at least ", element("input", { id: "predict-least", type: "number", min: 0, max: 100, value: 0 }), " %"),
    element("button", {}, "Predict"));
  form.addEventListener("submit", predict);
  byId("predict").replaceChildren(
    element("h2", { id: "predict-title" }, "Ask the model"),
    form,
    element("p", { id: "predict-model", className: "hint" }),
    element("div", { id: "predict-answer", ariaLive: "polite" }));
  showModel();
}
