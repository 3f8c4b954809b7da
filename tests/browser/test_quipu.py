"""The picture: every control, by hand and by key, live and in faults."""

import json
import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

from quipu.devnet import Devnet
from tests.browser.browsing import Tab
from tests.browser.writing import ask, stored, writing

CANVAS = "canvas.cords"


def knots(page: Page) -> int:
    return int(page.locator(CANVAS).get_attribute("data-knots") or 0)


def shown(tab: Tab, least: int = 1) -> Page:
    page = tab.open("quipu")
    tab.until(f"least => Number(document.querySelector('{CANVAS}')?.dataset.knots) >= least", least)
    return page


def chosen(page: Page) -> str:
    """As the page itself has it: what Playwright calls its address comes a moment later."""
    place: str = page.evaluate("location.hash")
    return place.partition("at=")[2]


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def test_knots_arrive_while_one_looks(tab: Tab, bases: list[str]) -> None:
    page = shown(tab)
    press(page, "Table")
    rows = page.locator("table tbody tr")
    before = rows.first.inner_text()
    with writing(bases):
        expect(rows.first).not_to_have_text(before)
    expect(page.locator("table").get_by_text("ordered").first).to_be_visible()


def test_pause_holds_and_loses_nothing(tab: Tab, bases: list[str]) -> None:
    page = shown(tab)
    press(page, "Pause")
    event = stored(bases[2], "while paused")[:64]
    expect(page.get_by_role("button", name=re.compile("Go on .* waiting"))).to_be_visible()
    press(page, "Table")
    expect(page.locator("table")).not_to_contain_text(event[:8])
    page.get_by_role("button", name=re.compile("Go on")).click()
    expect(page.locator("table")).to_contain_text(event[:8])


def test_a_link_leads_to_an_event_with_all_about_it(tab: Tab, bases: list[str]) -> None:
    event = stored(bases[1], {"a": 1}, stream="orders")[:64]
    page = tab.open(f"quipu?at={event}")
    side = page.locator("aside.side")
    expect(side).to_contain_text(f"Event {event[:8]}")
    told = ask(f"{bases[0]}/v1/events/{event}")
    expect(side).to_contain_text("n2")
    expect(side.locator("button.id").first).to_have_text(told["prev"][:8])
    side.get_by_text("What was signed").click()
    expect(side.locator("pre.bytes")).to_contain_text("00000  9e 01")
    side.locator("button.id").first.click()
    expect(side).to_contain_text(f"Event {told['prev'][:8]}")
    assert chosen(page) == told["prev"]


def test_keys_walk_along_the_cord_and_to_parents_children_and_siblings(tab: Tab) -> None:
    page = shown(tab, 6)
    page.locator(CANVAS).focus()
    page.keyboard.press("End")
    tab.until("() => location.hash.includes('at=')")
    newest = chosen(page)
    told: dict[str, Any] = {}
    for key in ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "[", "]", "Home", "End"):
        page.keyboard.press(key)
        told[key] = chosen(page)
    assert told["ArrowLeft"] != newest
    assert told["ArrowRight"] == newest
    parent = ask(f"{tab.base}/v1/events/{newest}")
    assert told["ArrowUp"] in [parent["prev"], *parent["parents"]]
    expect(page.locator("[aria-live]").last).to_contain_text("confirmed by")
    expect(page.locator("aside.side")).to_contain_text("What was signed")
    page.keyboard.press("Enter")
    tab.until("() => document.activeElement.closest('aside') !== null")
    page.locator(CANVAS).focus()
    page.keyboard.press("Escape")
    expect(page.locator("aside.side")).to_contain_text("How to read it")


def test_a_click_chooses_and_a_drag_moves(tab: Tab, bases: list[str]) -> None:
    stored(bases[0], "to be clicked")
    page = shown(tab, 3)
    press(page, "Newest")
    expect(page.locator(CANVAS)).to_be_visible()
    box = page.locator(CANVAS).bounding_box()
    assert box is not None
    page.evaluate("document.activeElement.blur()")
    found = False
    for lane in range(3):
        high = (box["height"] - 66) / 3
        y = box["y"] + 40 + min(150, high) * (lane + 0.5)
        for x in range(int(box["width"]) - 30, 100, -6):
            page.mouse.click(box["x"] + x, y)
            if chosen(page):
                found = True
                break
        if found:
            break
    assert found
    follow = page.get_by_role("button", name="Follow")
    press(page, "Follow") if follow.get_attribute("aria-pressed") == "false" else None
    page.mouse.move(box["x"] + 500, box["y"] + 120)
    page.mouse.down()
    page.mouse.move(box["x"] + 700, box["y"] + 120, steps=5)
    page.mouse.up()
    expect(follow).to_have_attribute("aria-pressed", "false")
    page.mouse.wheel(0, -300)
    for name in ("Zoom in", "Zoom out"):
        press(page, name)


def test_nothing_jumps(tab: Tab, bases: list[str]) -> None:
    """Between two knots the distance on the screen stays what it is, whatever comes between."""
    page = tab.open()
    module = f"{tab.base}/ui/"
    script = """async ([base, rows]) => {
        const { Dag } = await import(base + "dag.js");
        const { Frame, weave } = await import(base + "weave.js");
        const dag = new Dag(), frame = new Frame();
        const far = () => { const { at } = weave(dag, frame); return at.get("b").x - at.get("a").x; };
        const event = (id, ms, number) => ({ id, author: { number, name: "n" }, journal: "1", branch: 0, seq: "1",
            hlc: String(BigInt(ms) << 16n), state: "stored", entry_count: 1, prev: null, parents: [] });
        frame.right_ms = 20000; frame.scale = 20;
        dag.put(event("a", 10000, 1)); dag.put(event("b", 12000, 2));
        const before = [far(), weave(dag, frame).at.get("a").y];
        for (let n = 0; n < rows; n += 1) dag.put(event("x" + n, 9000 + n, 1 + n % 2));
        dag.put(event("c", 15000, 2));
        return [before, [far(), weave(dag, frame).at.get("a").y]];
    }"""
    before, after = page.evaluate(script, [module, 200])
    assert before == after == [100, before[1]]


def test_what_became_of_an_event_may_be_told_before_the_event(tab: Tab) -> None:
    page = tab.open()
    script = """async (base) => {
        const { Dag } = await import(base + "dag.js");
        const dag = new Dag();
        const event = (state) => ({ id: "a", author: { number: 1, name: "n" }, journal: "1", branch: 0, seq: "1",
            hlc: "0", state, entry_count: 1, prev: null, parents: [] });
        dag.advance("a", "read");
        dag.advance("a", "ordered");
        dag.advance("a", "read");
        dag.put(event("stored"));
        for (let n = 0; n < 5000; n += 1) dag.advance("x" + n, "read");
        return [dag.knots.get("a").state, dag.early.size];
    }"""
    assert page.evaluate(script, f"{tab.base}/ui/") == ["ordered", 2_000]


def test_both_exports_are_pictures(tab: Tab) -> None:
    page = shown(tab)
    with page.expect_download() as saved:
        press(page, "SVG")
    text = saved.value.path().read_text()
    assert text.startswith("<svg")
    assert "n1" in text
    with page.expect_download() as saved:
        press(page, "PNG")
    assert saved.value.path().read_bytes().startswith(b"\x89PNG")


def test_a_node_that_is_killed_while_one_looks(
    opened: Callable[..., Tab], net: Devnet, bases: list[str]
) -> None:
    """Its cord goes grey, the others write on, and it comes back; the page misses nothing."""
    looking, other = opened(), opened(bases[1])
    page = shown(looking)
    other.open("quipu")
    with writing(bases[:2]):
        net.kill(3)
        looking.page.goto(f"{bases[0]}/ui/#/cluster")
        looking.says("suspect")
        net.start(3)
    page = looking.open("")
    expect(page.locator("h1.verdict")).to_contain_text("3 of 3 nodes alive")
    expect(page.locator("h1.verdict")).to_contain_text("copies equal")


def test_the_own_node_is_killed_while_one_looks(
    opened: Callable[..., Tab], net: Devnet, bases: list[str]
) -> None:
    """It is said, and all that was written meanwhile is there when it is back: nothing by hand."""
    tab = opened(bases[1])
    page = shown(tab)
    net.kill(2)
    expect(page.locator("#notice")).to_contain_text("does not answer")
    event = stored(bases[0], "while n2 was away")[:64]
    net.start(2)
    expect(page.locator("#notice")).to_have_text("")
    press(page, "Table")
    expect(page.locator("table")).to_contain_text(event[:8])
    assert all("ERR_" in trouble for trouble in tab.troubles), tab.troubles
    tab.troubles.clear()


def test_a_gap_is_said_and_read_again(tab: Tab) -> None:
    told = json.dumps({"type": "gap", "missed": 7, "after": "a", "upto": "b"})
    block = json.dumps(f": connected\n\nevent: gap\ndata: {told}\n\n")
    tab.page.add_init_script(f"""const asked = window.fetch;
        window.fetch = (url, how) => !String(url).includes("events=dag") ? asked(url, how)
            : Promise.resolve(new Response(new ReadableStream({{
                start: (to) => to.enqueue(new TextEncoder().encode({block})) }})));""")
    with tab.page.expect_request(lambda request: "dag/window" in request.url):
        tab.open("quipu")
    tab.says("7 news were too many for this page: the picture was read again.")


def test_two_tabs_and_a_reload_show_the_same(opened: Callable[..., Tab], bases: list[str]) -> None:
    one, other = opened(), opened(bases[2])
    with writing(bases):
        pages = [shown(one), shown(other)]
    event = stored(bases[0], "the last")[:64]
    pages[1].reload()
    for page in pages:
        press(page, "Table")
        expect(page.locator("table")).to_contain_text(event[:8])


def test_too_many_to_tell_apart_are_bundled(tab: Tab, bases: list[str]) -> None:
    with writing(bases, per_s=200, entries=1):
        page = shown(tab)
        tab.until(
            f"""() => Number(document.querySelector('{CANVAS}').dataset.bundles) > 1
            || (document.querySelector('[aria-label="Zoom out"]').click(), false)"""
        )
        assert knots(page) == 0
