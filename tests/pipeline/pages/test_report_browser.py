"""The report in a real browser: no error, nothing wider than the window, no text on text."""

import copy
import shutil

import pytest
from playwright.sync_api import Browser

from paraloom.pipeline.judging.judgments import Action, JudgeFile
from tests.browser import browser, needs_browser, opened
from tests.pipeline.pages.made_run import MadeRun
from tests.pipeline.pages.test_report import CHOICE, document

__all__ = ["browser"]

pytestmark = needs_browser

CHECK = """
() => {
  document.querySelectorAll("details").forEach((d) => { d.open = true; });
  const seen = (e) => e.getClientRects().length > 0;
  const box = (e) => e.getBoundingClientRect();
  const found = {width: innerWidth, scroll: document.documentElement.scrollWidth,
                 overlaps: [], outside: [], pale: [], texts: 0, svgs: 0};
  for (const svg of document.querySelectorAll("svg")) {
    if (!seen(svg)) continue;
    found.svgs += 1;
    const texts = [...svg.querySelectorAll("text")].filter(seen);
    found.texts += texts.length;
    texts.forEach((a, i) => {
      const p = box(a), s = box(svg);
      if (p.left < s.left - 1 || p.right > s.right + 1 || p.top < s.top - 1
          || p.bottom > s.bottom + 3) found.outside.push(a.textContent);
      for (const b of texts.slice(i + 1)) {
        const q = box(b);
        const x = Math.min(p.right, q.right) - Math.max(p.left, q.left);
        const y = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
        // Boxes of lines have room above and below the letters.
        if (x > 0 && y > 0.25 * Math.min(p.height, q.height))
          found.overlaps.push(a.textContent + " / " + b.textContent);
      }
    });
  }
  const light = (c) => {
    const [r, g, b] = c.match(/[\\d.]+/g).map((v) => v / 255).map(
      (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const c = getComputedStyle(e).backgroundColor;
      if (c !== "rgba(0, 0, 0, 0)") return c;
    }
    return "rgb(255, 255, 255)";
  };
  for (const e of document.querySelectorAll(
      "p, a, th, td, dt, dd, h2, figcaption, mark, pre, text")) {
    if (!seen(e) || !e.textContent.trim()) continue;
    const style = getComputedStyle(e);
    const [a, b] = [light(e.tagName === "text" ? style.fill : style.color), light(ground(e))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) found.pale.push(e.tagName + " " + e.textContent.slice(0, 20));
  }
  found.ground = getComputedStyle(document.body).backgroundColor;
  return found;
}
"""


@pytest.fixture(scope="module")
def address(made_run: MadeRun, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of a run with judgments, and a scorer with a long name."""
    folder = tmp_path_factory.mktemp("judged") / "run"
    shutil.copytree(made_run.folder, folder)
    JudgeFile(str(folder), "Anna").append(
        Action(
            id=row["id"],
            reference=row["reference"],
            translation=row["translation"],
            score=100.0 * (row["unigram_f1_decile"] >= 4 + (i % 5 == 0)),
        )
        for i, row in enumerate(made_run.pairs.to_pylist())
    )
    record = copy.deepcopy(made_run.record)
    record["stages"]["auto_select"] = CHOICE
    record["stages"]["nmt"] = {"training": {"bleu": 31.64}, "seconds": 60.0}
    name = "/data/" + "a-long-name-of-a-corpus" * 5 + ".gz"
    record["stages"]["ingest"]["inputs"][0]["path"] = name
    page = folder.parent / "page.html"
    page.write_text(document(str(folder), record), encoding="utf-8")
    return page.as_uri()


@pytest.mark.parametrize(("width", "dark"), [(390, False), (1280, False), (390, True)])
def test_it_reads_well(browser: Browser, address: str, width: int, dark: bool) -> None:
    scheme = "dark" if dark else "light"
    page, complaints = opened(browser, address, width=width, color_scheme=scheme)
    found = page.evaluate(CHECK)
    assert complaints == []
    assert found["width"] == width
    assert found["scroll"] <= width
    assert found["svgs"] == 1 + 2 + 3 + 4
    assert found["texts"] > 100
    assert found["overlaps"] == []
    assert found["outside"] == []
    assert found["pale"] == []
    assert (found["ground"] == "rgb(20, 23, 27)") == dark


def test_pairs_are_browsed_by_bounds(browser: Browser, address: str, made_run: MadeRun) -> None:
    """From a file, by keyboard alone; what is found is what a plain count finds."""
    page, complaints = opened(browser, address, width=390)
    pairs, said = page.locator("#browse .pair:visible"), page.locator("#browse output")
    rows = made_run.record["stages"]["select"]["rows_out"]
    assert said.text_content() == f"{rows} of {rows} pairs, 20 shown" and pairs.count() == 20
    page.get_by_role("button", name="20 more").press("Enter")
    assert pairs.count() == 40
    focused = "[...document.querySelectorAll('.pair')].indexOf(document.activeElement)"
    assert page.evaluate(focused) == 20, "reading goes on at the first new pair"
    page.get_by_label("Show").focus()
    page.keyboard.press("ArrowDown")
    assert said.text_content() == "300 of 300 pairs, 20 shown"
    group = page.get_by_role("group", name="unigram f1")
    group.get_by_label("from").press_sequentially("0.5")
    group.get_by_label("to").press_sequentially("0.7")
    found = page.evaluate(
        "[...document.querySelectorAll('[data-group=scored]')]"
        ".map((e) => Number(e.dataset.values.split(' ')[2]))"
    )
    inside = sum(0.5 <= value <= 0.7 for value in found)
    assert said.text_content() == f"{inside} of 300 pairs, 20 shown" and inside > 20
    group.get_by_label("from").fill("9")
    assert said.text_content() == "0 of 300 pairs, 0 shown" and pairs.count() == 0
    page.get_by_role("button", name="No bounds").press("Enter")
    assert said.text_content() == "300 of 300 pairs, 20 shown"
    page.get_by_role("button", name="Bounds of the selection").press("Enter")
    bounds = page.get_by_role("group", name="trigram overlap")
    assert bounds.get_by_label("to").input_value() == "0.600"
    page.get_by_label("Show").select_option("corpus")
    assert said.text_content() == f"{rows} of {rows} pairs, 20 shown"
    assert complaints == []


def test_without_scripts_all_pairs_are_there(browser: Browser, address: str) -> None:
    page, _ = opened(browser, address, java_script_enabled=False)
    rows = page.locator("[data-group=scored]:visible").count()
    assert rows == 300 and not page.locator("form").is_visible()
