// Keeps a graph equal to the node's: the first picture from a window, what follows from the stream.
// The stream is opened first, so nothing falls between the two; a gap is said and read again.

import { get, listen } from "./api.js";
import { count } from "./format.js";
import { live, moved } from "./live.js";

const WINDOW = 400; // events of the first picture
const HELD_MAX = 2_000; // news kept while paused; beyond, all is read again

/**
 * @param {import("./dag.js").Dag} dag
 * @param {{signal: AbortSignal, changed: () => void, note?: (text: string, kind: string) => void}} how
 */
export function feed(dag, { signal, changed, note = () => {} }) {
  const state = { isPaused: false, held: [], missed: 0, isReady: false };

  async function picture() {
    try {
      const found = await get(`v1/dag/window?before=${WINDOW}&after=0`, { signal });
      for (const event of found.items) dag.put(event);
      state.isReady = true;
      note("", "live");
    } catch (error) {
      if (!signal.aborted) note(error.message, "broken");
    }
    changed();
  }

  function take({ event, data }) {
    if (event === "event") dag.put(data);
    else if (event === "status") dag.advance(data.event_id, data.state);
    else if (event === "receipts") dag.setReceipts(data.receipts);
    else if (event === "member") { moved(data); live.refresh(); }
    changed();
  }

  function hear(told) {
    if (told.event === "opened") picture();
    else if (told.event === "gap") {
      note(`${count(told.data.missed)} news were too many for this page: the picture was read again.`, "gap");
      picture();
    } else if (told.event === "goodbye") note("The node is stopping.", "broken");
    else if (!state.isPaused) take(told);
    else if (state.held.length < HELD_MAX) state.held.push(told);
    else state.missed += 1;
  }

  listen("v1/stream?events=dag,members,receipts", {
    signal, hear,
    state: (word, error) => {
      if (word === "broken") note("The connection broke: it is tried again.", "broken");
      if (word === "refused") note(error.text, "broken");
    },
  });
  return {
    get waiting() { return state.held.length + state.missed; },
    pause(isPaused) {
      state.isPaused = isPaused;
      if (isPaused) return;
      const held = state.held;
      state.held = [];
      for (const told of held) take(told);
      if (state.missed) picture();
      state.missed = 0;
    },
    picture,
  };
}
