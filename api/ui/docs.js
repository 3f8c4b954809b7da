// The API to read, made from openapi.json: each operation with its parameters, body, answers, and a
// line for the shell.

import { h, show, table } from "./dom.js";
import { themeButton } from "./theme.js";

const VERBS = ["get", "post", "put", "delete"];
const TITLES = { entries: "Entries", dag: "The graph", node: "This node", cluster: "The cluster", consumers: "Consumers", order: "The order", admin: "Administration", documents: "Documents" };

async function draw() {
  const main = document.getElementById("view");
  try {
    const answer = await fetch(new URL("openapi.json", document.baseURI));
    if (!answer.ok) throw new Error(`openapi.json: ${answer.status}`);
    show(main, page(await answer.json()));
    document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
  } catch (error) {
    show(main, h("h1", {}, "HTTP API"), h("p", { class: "bad", role: "alert" }, `It cannot be read: ${error.message}`));
  }
}

function page(api) {
  const groups = new Map();
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const verb of VERBS) {
      if (!methods[verb]) continue;
      const tag = methods[verb].tags?.[0] ?? "entries";
      groups.set(tag, [...(groups.get(tag) ?? []), { path, verb: verb.toUpperCase(), ...methods[verb] }]);
    }
  }
  return [h("h1", {}, `HTTP API, version ${api.info.version}`),
    h("p", {}, "JSON by default. What goes wrong is ", h("code", {}, "application/problem+json"), " with a code of a closed list; each has its page at ", h("code", {}, "/problems/{code}"), "."),
    h("div", { class: "reading" },
      h("nav", { "aria-label": "Operations" }, [...groups].map(([tag, list]) => [h("h2", {}, TITLES[tag] ?? tag), h("ul", {}, list.map((one) => h("li", {}, h("a", { href: `#${one.operationId}` }, one.summary))))])),
      h("div", {}, [...groups].map(([tag, list]) => h("section", {}, h("h2", {}, TITLES[tag] ?? tag), list.map((one) => operation(one, api))))))];
}

function operation(one, api) {
  const body = one.requestBody?.content ?? {}, example = body["application/json"]?.example;
  return h("section", { class: "panel operation", id: one.operationId },
    h("h3", {}, h("span", { class: `verb ${one.verb}` }, one.verb), h("code", {}, one.path)),
    h("p", {}, one.summary, ". ", h("span", { class: "quiet" }, one["x-scope"] ? ["Scope ", h("code", {}, one["x-scope"]), "."] : "No token is needed.")),
    one.parameters?.length > 0 && table(`Parameters of ${one.operationId}`, ["Parameter", "In", "Form", "Meaning"], one.parameters.map((given) => [
      h("code", {}, given.name), given.in, form(given.schema, api), given.description ?? ""])),
    Object.keys(body).length > 0 && h("details", {}, h("summary", {}, `Body: ${Object.keys(body).join(", ")}`), fieldsOf(body["application/json"]?.schema, api)),
    example !== undefined && h("pre", { tabindex: 0, "aria-label": `Example of ${one.operationId}` }, JSON.stringify(example, null, 2)),
    h("pre", { tabindex: 0, "aria-label": `Command for ${one.operationId}` }, shell(one, example)),
    h("details", {}, h("summary", {}, "Answers"), table(`Answers of ${one.operationId}`, ["Status", "Meaning", "Form"], Object.entries(one.responses).map(([status, told]) => [
      status, told.description, Object.values(told.content ?? {}).map((kind) => named(kind.schema)).find(Boolean) ?? "–"])),
    fieldsOf(first(one.responses), api)));
}

function first(responses) {
  const good = Object.entries(responses).find(([status]) => status.startsWith("2"));
  return good?.[1].content?.["application/json"]?.schema;
}

const named = (schema) => schema?.$ref?.split("/").pop() ?? schema?.type;

function follow(schema, api) {
  const name = schema?.$ref?.split("/").pop();
  return name ? api.components.schemas[name] : schema;
}

function form(schema, api) {
  const held = follow(schema, api) ?? {};
  if (held.enum) return held.enum.map(String).join(" | ");
  if (held.anyOf) return held.anyOf.map((one) => form(one, api)).join(" or ");
  if (held.type === "array") return `list of ${form(held.items ?? {}, api)}`;
  const bounds = [held.minimum !== undefined && `from ${held.minimum}`, held.maximum !== undefined && `to ${held.maximum}`, held.default !== undefined && `else ${JSON.stringify(held.default)}`].filter(Boolean);
  return [schema.$ref ? named(schema) : held.type ?? "any", ...bounds].join(", ");
}

function fieldsOf(schema, api) {
  const held = follow(schema?.type === "array" ? schema.items : schema, api);
  if (!held?.properties) return null;
  return [held.description && h("p", { class: "hint" }, held.description),
    table(`Fields of ${named(schema) ?? "the body"}`, ["Field", "Form", ""], Object.entries(held.properties).map(([name, one]) => [
      h("code", {}, name), form(one, api), held.required?.includes(name) ? "always there" : ""]))];
}

function shell(one, example) {
  const base = new URL("./", document.baseURI).href.replace(/\/$/, ""), path = one.path.replace(/\{(\w+)\}/g, (_, name) => name.toUpperCase());
  const needed = (one.parameters ?? []).filter((given) => given.in === "query" && given.required).map((given) => `${given.name}=…`).join("&");
  const lines = [`curl ${one.verb === "GET" ? "" : `-X ${one.verb} `}'${base}${path}${needed ? `?${needed}` : ""}'`];
  if (one["x-scope"]) lines.push("-H \"Authorization: Bearer $TOKEN\"");
  if (example !== undefined) lines.push("-H 'Content-Type: application/json'", `-d '${JSON.stringify(example)}'`);
  return lines.join(" \\\n  ");
}

themeButton(document.getElementById("theme"));
draw();
