// Figures in the page's row of tiles: each a label, a value and a note below it.

import { byId, element, setText } from "./format.js";

const tiles = new Map();
const LONG = 8; // characters: a longer value is written smaller

// Makes the tile the first time, and changes what it says from then on.
export function tile(key, label, value, note) {
  if (!tiles.has(key)) {
    const parts = { value: element("div", { className: "value", id: `tile-${key}` }), note: element("div", { className: "note" }) };
    tiles.set(key, parts);
    byId("tiles").append(element("div", { className: "tile" }, element("div", { className: "label" }, label), parts.value, parts.note));
  }
  setText(tiles.get(key).value, value);
  tiles.get(key).value.classList.toggle("long", value.length > LONG);
  setText(tiles.get(key).note, note);
}
