// What happened, in sentences, the latest first. A bounded list, however long the page is open.

import { byId, clock, element } from "./format.js";

const kept = 1000;
const shown = 200;

export class Events {
  constructor() {
    this.list = byId("events");
    this.level = byId("event-level");
    this.text = byId("event-text");
    this.level.value = "info";
    this.events = [];
    this.ids = new Set();
    this.isStale = false;
    this.level.addEventListener("change", () => this.draw());
    this.text.addEventListener("input", () => this.draw());
  }

  add(event) {
    if (this.ids.has(event.id)) return;  // sent again after a reconnect
    this.ids.add(event.id);
    this.events.push(event);
    while (this.events.length > kept) this.ids.delete(this.events.shift().id);
    if (this.isStale) return;
    this.isStale = true;
    requestAnimationFrame(() => this.draw());
  }

  isWanted({ level, text }, words) {
    const levels = { all: ["debug", "info", "warning", "error"], info: ["info", "warning", "error"],
                     warning: ["warning", "error"] };
    return levels[this.level.value].includes(level) &&
           words.every((word) => text.toLowerCase().includes(word));
  }

  draw() {
    this.isStale = false;
    const words = this.text.value.toLowerCase().split(/\s+/).filter((word) => word);
    const wanted = this.events.filter((event) => this.isWanted(event, words)).slice(-shown).reverse();
    this.list.replaceChildren(...wanted.map(({ wall_seconds: at, level, text, event }) => {
      const isWarning = level === "error" || (level === "warning" && ["log", "paused", "rates_cut"].includes(event.event));
      return element("li", { className: isWarning ? level : "" }, element("time", {}, clock(at)), text);
    }));
    if (!wanted.length) this.list.append(element("li", {}, "Nothing of that kind has happened."));
  }
}
