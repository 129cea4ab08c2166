// The table of volunteers. Only the rows that can be seen exist, so ten thousand scroll like ten.
// Their addresses are there with the key that ends the page's whole address, and only then.

import { ask, key } from "./ask.js";
import { brief, byId, bytes, count, duration, element, fixed, percent, setText, unknown } from "./format.js";

const text = (value) => value ?? unknown;
const milliseconds = (value) => (value === null ? unknown : fixed(1000 * value, 1) + " ms");

// key, heading, how it is shown, whether it is a number
const columns = [
  ["name", "Name", text, false],
  ["state", "State", text, false],
  ["shards", "Shards", count, true],
  ["speed", "Speed", (value) => (value > 0 ? brief(value) : unknown), true],
  ["share", "Part", (value) => percent(value), true],
  ["threads", "Threads", count, true],
  ["round_trip_seconds", "Round trip", milliseconds, true],
  ["silent_seconds", "Heard", (value) => duration(value) + " ago", true],
  ["examples", "Credit", brief, true],
  ["bytes_down", "Received", bytes, true],
  ["bytes_up", "Sent", bytes, true],
  ["faults", "Faults", count, true],
  ...(key === "" ? [] : [["address", "Address", text, false]]),
];

const facts = [
  ...columns,
  ["units_out", "Units out", count],
  ["owes_seconds", "Owes work for", duration],
  ["no_shards", "Why it has no shards", text],
  ["units", "Units answered", count],
  ["units_expired", "Units lost", count],
  ["commits", "Commits", count],
];

export class Volunteers {
  constructor() {
    this.box = byId("volunteers");
    this.rows = [];
    this.sortKey = "examples";
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
    const answer = await ask("/api/v1/volunteers");
    if (!answer.ok) return null;
    const data = await answer.json();
    this.show(data);
    return data;
  }

  show({ here, gone, contributions, volunteers_here: total }) {
    const credit = new Map(contributions.map((one) => [one.name, one]));
    const nothing = { examples: 0, units: 0, units_expired: 0, bytes_down: 0, bytes_up: 0, commits: 0, faults: 0 };
    this.rows = here.map((one) => ({ ...one, ...(credit.get(one.name) ?? nothing) }));
    this.order();
    this.draw();
    setText(byId("volunteers-count"), `${count(total)} here${total > here.length ? `, ${here.length} of them listed` : ""}`);
    const last = gone.slice(-3).reverse();
    const told = last.map((one) => `${one.name} went ${duration(one.ago_seconds)} ago: ${one.reason}.`);
    setText(byId("gone"), told.join(" "));
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
      if (i > 0) return element("td", { className: isNumber ? "number" : "" }, show(data[key]));
      const button = element("button", { type: "button", title: data.name }, data.name || unknown);
      button.dataset.name = data.name;
      button.addEventListener("click", () => this.open(data));
      return element("td", {}, button);
    }));
    row.setAttribute("aria-rowindex", place + 2);
    return row;
  }

  open(data) {
    setText(byId("dialog-title"), data.name);
    byId("dialog-facts").replaceChildren(...facts.slice(1).flatMap(([key, heading, show]) =>
      [element("dt", {}, heading), element("dd", {}, show(data[key]))]));
    byId("dialog").showModal();
  }
}
