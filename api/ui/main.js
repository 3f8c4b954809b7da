// Finds the view that the address names, shows it, and ends the one before.

import { keepToken, Problem, token } from "./api.js";
import { h, hint, say, show } from "./dom.js";
import { plain } from "./format.js";
import { live, watch } from "./live.js";
import { themeButton } from "./theme.js";

const VIEWS = [
  { path: "", title: "Overview", load: () => import("./view-overview.js") },
  { path: "quipu", title: "Quipu", load: () => import("./view-quipu.js") },
  { path: "entries", title: "Entries", load: () => import("./view-entries.js") },
  { path: "cluster", title: "Cluster", load: () => import("./view-cluster.js") },
  { path: "order", title: "Order", load: () => import("./view-order.js") },
  { path: "consistency", title: "Consistency", load: () => import("./view-consistency.js") },
  { path: "entry", title: "Entry", within: "entries", load: () => import("./view-entry.js") },
  { path: "submit", title: "Submit", within: "entries", load: () => import("./view-submit.js") },
  { path: "search", title: "Search", load: () => import("./view-search.js") },
];
const IN_BAR = 6;
const main = document.getElementById("view");
let leaving = new AbortController();
let current = "";

/** #/entry/ID?x=y -> the view, "ID", and what stands behind the question mark */
function place() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/");
  const view = VIEWS.find((one) => one.path === name) ?? VIEWS[0];
  return { view, argument: decodeURIComponent(rest.join("/")), query: new URLSearchParams(query) };
}

async function go() {
  const { view, argument, query } = place();
  leaving.abort();
  const mine = (leaving = new AbortController());
  if (current !== view.path || view.within) show(main);
  const isNew = current !== view.path;
  current = view.path;
  document.title = `${view.title} · Quipu`;
  mark(view.within ?? view.path);
  try {
    const module = await view.load();
    if (mine.signal.aborted) return;
    await module.draw(main, { argument, query, signal: mine.signal });
  } catch (error) {
    if (!mine.signal.aborted) trouble(error);
  }
  if (isNew && document.activeElement?.closest("nav")) main.focus({ preventScroll: true });
}

function trouble(error) {
  const told = error instanceof Problem ? error : null;
  show(main, h("section", { class: "panel trouble", role: "alert" },
    h("h1", {}, told?.status === 404 ? "Not found" : "This cannot be shown"),
    h("p", {}, plain(told?.text ?? String(error), 600)),
    told && h("p", {}, h("a", { href: `../problems/${told.code}` }, "What this means and what to do")),
    told?.status === 401 && hint("This node asks for a token: the button at the top right takes one."),
    h("button", { type: "button", onclick: go }, "Try again")));
}

function mark(path) {
  for (const link of document.querySelectorAll("#views a")) {
    if (link.dataset.path === path) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function bar() {
  show(document.getElementById("views"), VIEWS.slice(0, IN_BAR).map(({ path, title }) =>
    h("a", { href: `#/${path}`, "data-path": path }, title)));
  document.getElementById("search").addEventListener("submit", (event) => {
    event.preventDefault();
    const wanted = document.getElementById("search-text").value.trim();
    if (wanted) location.hash = `#/search?q=${encodeURIComponent(wanted)}`;
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest?.("input, textarea, select, [role=application]");
    if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      document.getElementById("search-text").focus();
    }
  });
  themeButton(document.getElementById("theme"));
  tokenDialog();
}

function tokenDialog() {
  const dialog = document.getElementById("token"), opener = document.getElementById("token-open");
  const field = h("input", { id: "token-text", type: "password", autocomplete: "off", spellcheck: "false" });
  const mark = () => say(opener, token() ? "Token ✓" : "Token");
  const close = (text) => { keepToken(text); mark(); dialog.close(); go(); };
  show(dialog, h("form", { method: "dialog", onsubmit: (event) => { event.preventDefault(); close(field.value.trim()); } },
    h("h2", { id: "token-title" }, "Token"),
    hint("A node that was given tokens asks for one. It is kept in this tab alone, until you close it, and sent to this node alone. ", h("code", {}, "quipu token new"), " makes one."),
    h("label", { for: "token-text" }, "Bearer token"), field,
    h("div", { class: "row" }, h("button", { type: "submit", class: "main" }, "Keep"),
      h("button", { type: "button", onclick: () => close("") }, "Forget"),
      h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"))));
  opener.addEventListener("click", () => { field.value = token(); dialog.showModal(); });
  mark();
}

/** One line at the top while the node does not answer, or wants a token. */
function notice() {
  const line = document.getElementById("notice"), foot = document.getElementById("foot");
  watch(() => {
    line.classList.toggle("on", Boolean(live.error));
    say(line, !live.error ? "" : live.error.status === 401 || live.error.status === 403
      ? "This node wants a token for what you see here: the button at the top right takes one."
      : `${live.error.message} What you see is what was last heard; it is asked again every few seconds.`);
    if (!live.node) return;
    const { name, cluster_name, version } = live.node;
    say(foot, `${plain(name, 60)} of ${plain(cluster_name, 60)} · version ${version}`);
  });
}

bar();
notice();
foot();
addEventListener("hashchange", go);
addEventListener("quipu-token", () => live.refresh());
go();

function foot() {
  document.getElementById("foot").after(h("nav", { class: "foot", "aria-label": "More" },
    h("a", { href: "../docs" }, "HTTP API"), " · ", h("a", { href: "../openapi.json" }, "openapi.json")));
}
