// Writes an entry, and watches it become stored, read and ordered.

import { post, token } from "./api.js";
import { h, hint, panel, show } from "./dom.js";
import { way } from "./way.js";
import { entryLink } from "./words.js";

export async function draw(root, { signal }) {
  const result = h("div", { "aria-live": "polite" });
  const stream = h("input", { name: "stream", value: "default", required: true, pattern: "[a-z0-9][a-z0-9._\\-]{0,127}", autocomplete: "off" });
  const type = h("select", { name: "type" }, ["application/json", "text/plain"].map((one) => h("option", { value: one }, one)));
  const data = h("textarea", { name: "data", required: true, spellcheck: "false" });
  const key = h("input", { name: "key", maxlength: 256, autocomplete: "off" });
  data.value = '{"order": 7}';
  const button = h("button", { type: "submit", class: "main" }, "Submit");
  const form = h("form", { class: "form" },
    h("div", { class: "pair" }, h("label", {}, "Stream", stream), h("label", {}, "Type", type)),
    h("label", {}, "Data", data), h("label", {}, "Idempotency key, if it may be sent twice", key), h("div", { class: "row" }, button));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      const receipt = await post("v1/entries?wait=stored", body(stream.value, type.value, data.value, key.value), { signal });
      show(result, h("h2", {}, receipt.duplicate ? "It was there already: " : "Taken: ", entryLink(receipt.id)), way(receipt.id, signal));
    } catch (error) {
      if (!signal.aborted) show(result, h("p", { class: "bad", role: "alert" }, error.text ?? error.message));
    }
    button.disabled = false;
  });
  show(root, h("h1", {}, "Submit an entry"),
    hint("It is answered when this node holds it durably; then watch the receipts come in. ", token() ? "It is sent with your token." : "Where the node asks for a token, the button at the top right takes one."),
    panel("New entry", form), result);
}

function body(stream, type, data, key) {
  const given = { stream, ...(key && { idempotency_key: key }) };
  if (type === "application/json") {
    try {
      return { ...given, data: JSON.parse(data) };
    } catch (error) {
      throw new Error(`The data is no JSON: ${error.message}`);
    }
  }
  const bytes = new TextEncoder().encode(data);
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return { ...given, data_base64: btoa(text), content_type: "text/plain" };
}
