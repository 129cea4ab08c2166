// The table of volunteers. Only the rows that can be seen exist, so ten thousand scroll like ten.
// Their addresses are there with the key that ends the page's whole address, and only then.

import { ask, key } from "./ask.js";
import { brief, byId, bytes, clock, count, duration, element, fixed, percent, setText, unknown } from "./format.js";

const text = (value) => value ?? unknown;
const milliseconds = (value) => (value === null ? unknown : fixed(1000 * value, 1) + " ms");

// key, heading, how it is shown, whether it is a number
const columns = [
  ["name", "Name", text, false],
  ["state", "State", (state, one) => (state === "paused" ? one.no_shards : text(state)), false],
  ["shards", "Shards", count, true],
  ["speed", "Speed", (value) => (value > 0 ? brief(value) : unknown), true],
  ["share", "Part", (value) => percent(value), true],
  ["threads", "Threads", count, true],
  ["round_trip_seconds", "Round trip", milliseconds, true],
  ["silent_seconds", "Heard", (value) => duration(value) + " ago", true],
  ["credit", "Credit", brief, true],
  ["bytes_down", "Received", bytes, true],
  ["bytes_up", "Sent", bytes, true],
  ["faults", "Faults", count, true],
  ...(key === "" ? [] : [["address", "Address", text, false]]),
];

const since = (value) => `${clock(Date.now() / 1000 - value)}, for ${duration(value)}`;

const facts = [
  ["here_seconds", "Here since", since],
  ...columns.slice(1),
  ["units_out", "Units out", count],
  ["owes_seconds", "Owes work for", duration],
  ["no_shards", "Why it has no shards or works none", text],
  ["last_words", "Last time it went", text],
  ["examples", "Examples × shards answered", brief],
  ["confirmed", "of it confirmed by an auditor", brief],
  ["trusted", "trusted, so not audited", brief],
  ["unaudited", "not audited", brief],
  ["audited", "Work of others that it did again", brief],
  ["units", "Units answered", count],
  ["units_expired", "Units lost", count],
  ["commits", "Commits", count],
];

const counts = "Credit is what counts since the master began, in examples × shards of whole rounds: ";
const creditRules = {
  off: "This run audits nothing: credit is all that was answered, and nobody checked it.",
  adaptive: `${counts}work that another volunteer did again with the same result, doing it again, and the work of ` +
            "trusted volunteers. What the audits passed over does not count.",
  all: `${counts}work that another volunteer did again with the same result, doing it again, and the work of ` +
       "trusted volunteers.",
};

export class Volunteers {
  constructor() {
    this.box = byId("volunteers");
    this.rows = [];
    this.sortKey = "credit";
    this.isDescending = true;
    this.head = element("tr");
    for (const [key, heading, , isNumber] of columns) {
      const button = element("button", { type: "button" }, heading);
      button.addEventListener("click", () => this.sortBy(key, isNumber));
      this.head.append(element("th", { scope: "col", className: isNumber ? "number" : "" }, button));
    }
    this.body = element("tbody");
    this.table = element("table", {}, element("thead", {}, this.head), this.body);
    this.box.append(this.table);
    this.box.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  sortBy(key, isNumber) {
    this.isDescending = this.sortKey === key ? !this.isDescending : isNumber;
    this.sortKey = key;
    this.order();
    this.draw();
  }

  async load() {
    const answer = await ask("api/v1/volunteers");
    if (!answer.ok) return null;
    const data = await answer.json();
    this.show(data);
    return data;
  }

  show({ audit, here, gone, contributions, volunteers_here: total }) {
    const credit = new Map(contributions.map((one) => [one.name, one]));
    const nothing = { credit: 0, examples: 0, confirmed: 0, trusted: 0, unaudited: 0, audited: 0, units: 0,
                      units_expired: 0, bytes_down: 0, bytes_up: 0, commits: 0, faults: 0 };
    const words = new Map(gone.map((one) => [one.name, `${duration(one.ago_seconds)} ago: ${one.reason}`]));
    this.rows = here.map((one) => ({
      ...one, ...(credit.get(one.name) ?? nothing), last_words: words.get(one.name) ?? null,
    }));
    setText(byId("credit"), creditRules[audit]);
    this.order();
    this.draw();
    setText(byId("volunteers-count"), `${count(total)} here${total > here.length ? `, ${here.length} of them listed` : ""}`);
    const last = gone.slice(-3).reverse();
    const told = last.map((one) => `${one.name} went ${duration(one.ago_seconds)} ago: ${one.reason}.`);
    setText(byId("gone"), told.join(" "));
    const shown = this.rows.find((one) => one.name === this.opened);
    if (shown && byId("dialog").open) this.tell(shown);
  }

  order() {
    const key = this.sortKey;
    const sign = this.isDescending ? -1 : 1;
    this.rows.sort((a, b) => {
      const [left, right] = [a[key], b[key]];
      if (left === right) return a.name < b.name ? -1 : 1;
      if (left === null || right === null) return left === null ? 1 : -1;
      return (left < right ? -1 : 1) * sign;
    });
    columns.forEach(([column], i) => {
      const isKey = column === key;
      this.head.cells[i].ariaSort = !isKey ? "none" : this.isDescending ? "descending" : "ascending";
      this.head.cells[i].firstChild.textContent =
        columns[i][1] + (isKey ? (this.isDescending ? " ▾" : " ▴") : "");
    });
  }

  // The rows that exist have a fixed height; the others are two rows of nothing above and below.
  draw() {
    const rowHeight = this.head.offsetHeight || 32;
    const first = Math.max(0, Math.floor(this.box.scrollTop / rowHeight) - 5);
    const last = Math.min(this.rows.length, first + Math.ceil(this.box.clientHeight / rowHeight) + 12);
    const focused = document.activeElement?.dataset?.name;
    const pad = (many) => {
      const row = element("tr", { className: "pad", ariaHidden: "true" }, element("td", { colSpan: columns.length }));
      row.firstChild.style.height = `${many * rowHeight}px`;
      return row;
    };
    this.table.setAttribute("aria-rowcount", this.rows.length + 1);
    this.body.replaceChildren(
      ...(first > 0 ? [pad(first)] : []),
      ...this.rows.slice(first, last).map((row, i) => this.row(row, first + i)),
      ...(last < this.rows.length ? [pad(this.rows.length - last)] : []));
    if (focused !== undefined) {
      this.body.querySelector(`[data-name="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    }
  }

  row(data, place) {
    const row = element("tr", {}, ...columns.map(([key, , show, isNumber], i) => {
      if (i > 0) return element("td", { className: isNumber ? "number" : "" }, show(data[key], data));
      const button = element("button", { type: "button", title: data.name }, data.name || unknown);
      button.dataset.name = data.name;
      button.addEventListener("click", () => this.open(data));
      return element("td", {}, button);
    }));
    row.setAttribute("aria-rowindex", place + 2);
    return row;
  }

  open(data) {
    this.opened = data.name;
    setText(byId("dialog-title"), data.name);
    this.values = facts.map(() => element("dd"));
    byId("dialog-facts").replaceChildren(...this.values.flatMap((value, i) =>
      [element("dt", {}, facts[i][1]), value]));
    this.tell(data);
    byId("dialog").showModal();
  }

  tell(data) {
    this.values.forEach((value, i) => {
      const [key, , show] = facts[i];
      setText(value, String(show(data[key], data)));
    });
  }
}
