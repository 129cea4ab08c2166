// Questions to the server. Each shows the key that ends the page's address, if there is one: the page's
// own, or an invite's. The key is the part after the last dot, so that the whole line of an invite does
// as well.

import { save } from "./format.js";

export const key = location.hash.slice(1).split(".").pop();
const shown = key === "" ? {} : { "X-Gleaner-Key": key };

export const ask = (path, more = {}) => fetch(path, { ...more, headers: { ...shown, ...more.headers } });

// The fields of one event of a stream.
function fieldsOf(text) {
  return Object.fromEntries(text.split("\n").map((line) => {
    const colon = line.indexOf(": ");
    return [line.slice(0, colon), line.slice(colon + 2)];
  }));
}

// Gives `take` each event of the answer: its name and its data.
async function read(answer, take) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = "", part = await reader.read(); !part.done; part = await reader.read()) {
    const events = (text + part.value).split("\n\n");
    text = events.pop();
    for (const event of events) take(fieldsOf(event));
  }
}

// The stream of events, for ever: after a break it goes on after the last event that came.
// EventSource would do the same, but it can show no key. `lost` is told of each break, with what the
// server says where it refuses.
export async function follow(path, take, lost) {
  let last = {};
  for (;;) {
    let refusal = "";
    try {
      const answer = await ask(path, { headers: { Accept: "text/event-stream", ...last } });
      if (answer.ok) {
        await read(answer, (event) => {
          if (event.id) last = { "Last-Event-ID": event.id };
          take(event.event, JSON.parse(event.data));
        });
      } else {
        refusal = (await answer.text()).trim();
      }
    } catch {
      // Nobody answers.
    }
    lost(refusal);
    await new Promise((go) => setTimeout(go, 3000));
  }
}

// Links to files of the server: a browser that follows one by itself shows no key.
document.addEventListener("click", async (event) => {
  const link = event.target.closest("a[download]");
  if (key === "" || !link?.getAttribute("href").startsWith("api/")) return;
  event.preventDefault();
  const answer = await ask(link.href);
  if (answer.ok) save(await answer.blob(), link.download);
});
