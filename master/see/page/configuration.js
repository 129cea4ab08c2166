// How a machine joins, what the recipe chose and why, and every setting in effect.

import { ask } from "./ask.js";
import { byId, element } from "./format.js";

function table(headings, rows) {
  return element("table", {},
    element("thead", {}, element("tr", {}, ...headings.map((h) => element("th", { scope: "col" }, h)))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((cell) => element("td", {}, cell))))));
}

// The rows of a QR code, a '1' for each dark module, as a picture.
function picture(rows) {
  const make = (tag, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const quiet = 4;
  const side = rows.length + 2 * quiet;
  const dark = rows.flatMap((row, y) => [...row.matchAll(/1+/g)].map((run) =>
    `M${run.index + quiet} ${y + quiet}h${run[0].length}v1h-${run[0].length}z`));
  const made = make("svg", { viewBox: `0 0 ${side} ${side}`, role: "img", "aria-label": "The line as a QR code", "shape-rendering": "crispEdges" });
  made.append(make("path", { d: dark.join(""), fill: "currentColor" }));
  return made;
}

// Something to type, with a button that copies it; browsers let no page do that over plain HTTP from
// another machine.
function copied(text) {
  const button = element("button", { type: "button" }, "Copy");
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  });
  return element("div", { className: "command" }, element("code", {}, text), ...(navigator.clipboard ? [button] : []));
}

// Where a machine without Gleaner gets the program, and what proves that it arrived whole.
function programNodes(program) {
  const hint = (...text) => element("p", { className: "hint" }, ...text);
  if (program === null) {
    return [hint("A machine without Gleaner needs the portable program: a master that was started with --serve-program FILE hands it out here.")];
  }
  const { url, machine, sha256 } = program;
  return [
    element("h3", {}, "A machine without Gleaner"),
    hint(`The portable program for ${machine} Linux, from HOST, which is the master's machine; its SHA-256 is checked:`),
    copied(`ssh HOST curl -sS ${url} > gleaner-volunteer && echo '${sha256}  gleaner-volunteer' | sha256sum -c && chmod +x gleaner-volunteer`),
    hint("Or ", element("a", { href: new URL(url).pathname, download: "gleaner-volunteer" }, "take the file"), " from here. SHA-256: ",
      element("code", { id: "program-sha256" }, sha256))];
}

// With the key that ends the page's whole address, the line itself; else where it is to be had.
export async function showJoin(command, program) {
  if (command === null) {
    byId("join").replaceChildren(element("p", {},
      "This run takes no connections: it was started without --listen, and trains with its own volunteers."));
    return;
  }
  const answer = await ask("api/v1/join");
  const told = answer.ok ? await answer.json() : { command, command_for_others: null, qr: [] };
  byId("join").replaceChildren(
    element("p", {}, "On the machine that helps; it may vanish at any time:"),
    copied(told.command),
    ...(told.qr.length ? [picture(told.qr)] : []),
    ...(told.command_for_others === null ? [] : [
      element("p", {}, "Keep this line to yourself: nobody checks the work of machines that join by it. For other people:"),
      copied(told.command_for_others)]),
    ...(answer.status === 403 ? [element("p", { className: "hint" }, "The whole address of this page, which the master printed, shows the line here, and as a QR code.")] : []),
    ...programNodes(program));
}

export async function showConfiguration() {
  const answer = await ask("api/v1/configuration");
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
