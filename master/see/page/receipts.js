// Receipts of a round, a page of shards at a time, and who is kept out: of both there are sums alone
// without the key that ends the page's whole address. Also whose answers were at fault.

import { ask } from "./ask.js";
import { byId, count, element, setText, unknown } from "./format.js";

const perPage = 50;
const verdicts = {
  confirmed: "confirmed: the auditor got the same",
  trusted: "trusted: somebody vouches for the holder",
  unaudited: "unaudited: a stranger's, and nobody checked it",
};

export class Receipts {
  constructor() {
    this.round = null;  // the latest
    byId("receipts-round").addEventListener("change", (event) => {
      this.round = event.target.value === "" ? null : Number(event.target.value);
      this.load();
    });
    byId("receipts-first").addEventListener("change", () => this.load());
    byId("receipts-latest").addEventListener("click", () => {
      this.round = null;
      this.load();
    });
  }

  async load() {
    const query = new URLSearchParams({ count: perPage, first: Number(byId("receipts-first").value) || 0 });
    if (this.round !== null) query.set("round", this.round);
    const answer = await ask(`api/v1/receipts?${query}`);
    if (answer.ok) this.show(await answer.json());
    else setText(byId("checked"), (await answer.text()).trim());
  }

  show({ checked_up_to: checked, first_round: first, last_round: last, round, shards, verdicts: all, receipts, banned }) {
    this.showBanned(banned);
    if (last === null) {
      setText(byId("checked"), "No round is whole yet.");
      return;
    }
    setText(byId("checked"), all.unaudited > 0 || checked <= last
      ? `Up to checkpoint ${count(checked)} nobody's work went unchecked.`
      : `Nobody's work went unchecked, up to the last checkpoint (${count(checked)}).`);
    const number = byId("receipts-round");
    if (document.activeElement !== number) number.value = round;
    number.min = first;
    number.max = last;
    byId("receipts-first").max = Math.max(0, shards - 1);
    const heading = (text) => element("th", { scope: "col" }, text);
    const person = (name, key) => element("td", { title: key ?? "" }, name ?? unknown);
    const told = ["confirmed", "trusted", "unaudited"].filter((verdict) => all[verdict] > 0)
      .map((verdict) => `${count(all[verdict])} ${verdict}`).join(", ");
    byId("receipts").replaceChildren(
      element("p", { className: "hint" }, shards === 0
        ? `Round ${count(round)} has no receipts here: rounds ${count(first)} to ${count(last)} do. 'gleaner receipts' has all.`
        : `Round ${count(round)}: ${told}.`),
      receipts.length || shards === 0 ? element("table", {},
        element("thead", {}, element("tr", {}, ...["Shard", "Holder", "Auditor", "Verdict"].map(heading))),
        element("tbody", {}, ...receipts.map((one) => element("tr", {}, element("th", { scope: "row" }, String(one.shard)),
          person(one.holder, one.holder_key), person(one.auditor, one.auditor_key), element("td", {}, verdicts[one.verdict] ?? one.verdict)))))
        : element("p", { className: "hint" }, "The whole address of this page, which the master printed, shows whose work each shard is."));
  }

  showFaults({ contributions }) {
    const faults = contributions.filter((one) => one.faults > 0).map((one) => `${one.name}: ${count(one.faults)}`);
    setText(byId("faults"), faults.length ? `Faults since the master began, by volunteer: ${faults.join(", ")}.` : "No volunteer was at fault since the master began.");
  }

  showBanned(banned) {
    if (banned === null) return;
    byId("banned").replaceChildren(
      element("p", { className: "hint" }, banned.length ? "Kept out:" : "Nobody is kept out."),
      element("ul", {}, ...banned.slice(0, 100).map(({ key, name, reason }) => element("li", {}, `${name} (${key}): ${reason}`))),
      ...(banned.length > 100 ? [element("p", { className: "hint" }, `and ${count(banned.length - 100)} others; 'gleaner peers' has all.`)] : []));
  }
}
