// How a machine joins, what the recipe chose and why, and every setting in effect.

import { byId, element } from "./format.js";

function table(headings, rows) {
  return element("table", {},
    element("thead", {}, element("tr", {}, ...headings.map((h) => element("th", { scope: "col" }, h)))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((cell) => element("td", {}, cell))))));
}

export function showJoin(command) {
  if (command === null) {
    byId("join").replaceChildren(element("p", {},
      "This run takes no connections: it was started without --listen, and trains with its own volunteers."));
    return;
  }
  const button = element("button", { type: "button" }, "Copy");
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(command);
    button.textContent = "Copied";
  });
  byId("join").replaceChildren(
    element("p", {}, "On the machine that helps; it may vanish at any time:"),
    element("div", { className: "command" }, element("code", {}, command), button));
}

export async function showConfiguration() {
  const answer = await fetch("/api/v1/configuration");
  if (!answer.ok) return;
  const { recipe, settings } = await answer.json();
  const set = settings.filter((setting) => !setting.is_default);
  byId("configuration").replaceChildren(
    element("p", {}, `Recipe ${recipe.name}: what nobody set follows from the data.`),
    table(["Key", "Value", "Because"], recipe.values.map(({ key, value, why }) => [element("code", {}, key), value, why])),
    element("details", {}, element("summary", {}, `${set.length} settings differ from the defaults`),
      table(["Key", "Value"], set.map(({ key, value, unit }) => [element("code", {}, key), `${value} ${unit}`]))),
    element("details", {}, element("summary", {}, `All ${settings.length} settings`),
      table(["Key", "Value", "Meaning"], settings.map(({ key, value, unit, doc }) =>
        [element("code", {}, key), `${value} ${unit}`, doc]))));
}
