// Elements by hand. Whatever comes from the ledger goes in as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

/**
 * @param {string} tag
 * @param {Record<string, unknown>} [given] attributes; on… are listeners; booleans set or leave out
 * @param {...unknown} children elements, text, arrays of both; null and false are left out
 */
export function h(tag, given = {}, ...children) {
  return fill(document.createElement(tag), given, children);
}

/** The same inside of an SVG. */
export function svg(tag, given = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), given, children);
}

function fill(element, given, children) {
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...flat(children));
  return element;
}

function flat(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}

/** In place of all that the element holds. */
export function show(element, ...children) {
  element.replaceChildren(...flat(children));
  return element;
}

/** Changes text only where it is another one: a screen reader says what changes. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** A table with a caption; cells may be elements. */
export function table(caption, heads, rows, extra = {}) {
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h("table", extra,
      h("caption", { class: "unseen" }, caption),
      h("thead", {}, h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", {}, rows.map((cells) => h("tr", {}, cells.map((cell, place) =>
        place === 0 ? h("th", { scope: "row" }, cell) : h("td", {}, cell)))))));
}

/** A heading with what belongs to it. */
export function panel(title, ...children) {
  return h("section", { class: "panel" }, h("h2", {}, title), children);
}

export function hint(...children) {
  return h("p", { class: "hint" }, children);
}

/** Gives a text to the clipboard, or selects it where there is no clipboard. */
export function copyButton(text, what) {
  const button = h("button", { type: "button", class: "copy", "aria-label": `Copy ${what}` }, "copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "copied";
    } catch {
      button.textContent = "no clipboard";
    }
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  });
  return button;
}
