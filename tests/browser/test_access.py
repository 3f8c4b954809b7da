"""For everybody: axe-core in light and dark, the keyboard alone, narrow and wide, nothing moves."""

from collections.abc import Callable
from importlib.resources import files

import pytest
from playwright.sync_api import Page, expect

from tests.browser.browsing import Tab
from tests.browser.writing import stored

VIEWS = ("", "quipu", "entries", "cluster", "order", "consistency", "submit", "search?q=n1")
SERIOUS = {"serious", "critical"}
# What sticks out of the window, is cut off within its box, or lies upon other text.
LAID_OUT = """() => {
  const found = [], wide = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > wide + 1) found.push(`the page is ${document.documentElement.scrollWidth} wide`);
  const boxes = [];
  for (const one of document.querySelectorAll("main *, header *, footer *")) {
    if (one.closest(".scroll, .unseen, .reading > nav, pre, svg, select, dialog:not([open])") || !one.checkVisibility()) continue;
    const box = one.getBoundingClientRect();
    if (box.width && (box.right > wide + 1 || box.left < -1)) found.push(`${one.tagName}.${one.className} sticks out`);
    const hasText = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!hasText) continue;
    if (one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX !== "visible") found.push(`${one.textContent.slice(0, 30)} is cut`);
    const range = document.createRange();
    range.selectNodeContents(one);
    boxes.push([one, range.getBoundingClientRect()]);
  }
  for (let a = 0; a < boxes.length; a += 1) for (let b = a + 1; b < boxes.length; b += 1) {
    const [one, p] = boxes[a], [other, q] = boxes[b];
    if (one.contains(other) || other.contains(one)) continue;
    const overX = Math.min(p.right, q.right) - Math.max(p.left, q.left), overY = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
    if (overX > 3 && overY > 5) found.push(`${one.textContent.slice(0, 20)} upon ${other.textContent.slice(0, 20)}`);
  }
  return [...new Set(found)].slice(0, 10);
}"""
SHIFTS = """() => { window.shifted = 0; new PerformanceObserver((list) => {
  for (const one of list.getEntries()) if (!one.hadRecentInput) window.shifted += one.value;
}).observe({ type: "layout-shift", buffered: true }); }"""


@pytest.fixture(scope="module")
def axe() -> str:
    return files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


def settled(tab: Tab, place: str) -> Page:
    page = tab.open(place)
    tab.until("() => !document.querySelector('main .waiting')")
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(opened: Callable[..., Tab], axe: str, scheme: str) -> None:
    tab = opened(color_scheme=scheme)
    entry, found = stored(tab.base, {"order": 1}), {}
    for place in (*VIEWS, f"entry/{entry}", f"quipu?at={entry[:64]}", "docs"):
        if place == "docs":
            page = tab.page
            page.goto(f"{tab.base}/docs")
            tab.until("() => document.querySelectorAll('.operation').length > 10")
        else:
            page = settled(tab, place)
        if place.startswith("entry/"):
            page.get_by_role("button", name="Check the proof").click()
            tab.says("Proven")
        page.evaluate(axe)
        told = page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")
        found[place] = [
            (one["id"], one["nodes"][0]["html"][:120], one["nodes"][0].get("failureSummary"))
            for one in told["violations"]
            if one["impact"] in SERIOUS
        ]
    assert {place: said for place, said in found.items() if said} == {}


@pytest.mark.parametrize("width", [360, 768, 1440])
def test_nothing_is_cut_and_nothing_overlaps(opened: Callable[..., Tab], width: int) -> None:
    tab, found = opened(viewport={"width": width, "height": 900}), {}
    entry = stored(tab.base, {"order": 1, "text": "word " * 60}, stream="a-" + "long" * 25)
    for place in (*VIEWS, f"entry/{entry}", f"quipu?at={entry[:64]}"):
        page = settled(tab, place)
        found[place] = page.evaluate(LAID_OUT)
    tab.page.goto(f"{tab.base}/docs")
    tab.until("() => document.querySelectorAll('.operation').length > 10")
    found["docs"] = tab.page.evaluate(LAID_OUT)
    assert {place: said for place, said in found.items() if said} == {}


def test_nothing_moves_after_the_first_picture(tab: Tab) -> None:
    moved = {}
    for place in ("", "quipu", "entries", "cluster"):
        page = settled(tab, place)
        page.evaluate(SHIFTS)
        page.wait_for_timeout(1_200)
        moved[place] = page.evaluate("window.shifted")
        page.goto("about:blank")
    assert {place: by for place, by in moved.items() if by > 0.02} == {}


def test_the_keyboard_alone_leads_everywhere(tab: Tab) -> None:
    page = tab.open()
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to the content")
    names = []
    for _ in range(14):
        page.keyboard.press("Tab")
        names.append(page.evaluate("document.activeElement.textContent.trim()"))
    for name in ("Overview", "Quipu", "Entries", "Cluster", "Order", "Consistency", "Token"):
        assert name in names
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search-text"
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Entries", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page).to_have_title("Entries · Quipu")


def test_whoever_wants_no_motion_gets_none(opened: Callable[..., Tab]) -> None:
    tab = opened(reduced_motion="reduce")
    page = settled(tab, "quipu")
    tab.until("() => Number(document.querySelector('canvas').dataset.knots) > 0")
    stored(tab.base, "one more")
    module = f"{tab.base}/ui/picture.js"
    calm = """async (module) => {
        const { Picture } = await import(module), { Dag } = await import(module.replace("picture", "dag"));
        const place = document.createElement("div"), canvas = document.createElement("canvas");
        place.append(canvas); document.body.append(place);
        const dag = new Dag(), picture = new Picture(canvas, dag, { signal: new AbortController().signal });
        const event = (n) => ({ id: `e${n}`, author: { number: 1, name: "n" }, journal: "1", branch: 0, seq: "1", hlc: String(BigInt(n) << 16n), state: "read", entry_count: 1, prev: null, parents: [] });
        dag.put(event(1000)); picture.paint(); dag.put(event(9000)); picture.paint();
        return Math.round(picture.frame.wide - picture.frame.x(9000));
    }"""
    assert page.evaluate(calm, module) == 46
