"""The report in a real browser: no error, nothing wider than the window, no text on text."""

import copy
import json
import re
import shutil
import subprocess
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest

from paraloom.pipeline.judging.judgments import Action, JudgeFile
from tests.pipeline.report.made_run import MadeRun
from tests.pipeline.report.test_report import CHOICE, document
from tests.run_helpers import BROWSER

needs_browser = pytest.mark.skipif(not BROWSER, reason="no Chromium on this machine")

CHECK = """
<script>
addEventListener("load", () => {
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
  const result = document.createElement("pre");
  result.id = "found";
  result.textContent = JSON.stringify(found);
  parent.document.body.replaceChildren(result);
});
</script>
"""


def opened(
    folder: Path, text: str, *, width: int, dark: bool = False
) -> tuple[dict[str, Any], list[str]]:
    """What the check found in the browser, and the lines of its console."""
    # In a frame, for the browser's own window is never narrower than 500.
    content = escape(text.replace("</body>", f"{CHECK}</body>"))
    page = folder / f"page{width}{dark}.html"
    page.write_text(
        '<!doctype html><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
        f'<iframe style="width: {width}px; height: 900px; border: 0" srcdoc="{content}"></iframe>',
        encoding="utf-8",
    )
    options = [
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
        *("--disable-dev-shm-usage", "--hide-scrollbars", "--enable-logging=stderr", "--v=0"),
        f"--user-data-dir={folder / f'profile{width}{dark}'}",
        "--window-size=1400,1000",
        *(["--blink-settings=preferredColorScheme=0"] if dark else []),
    ]
    done = subprocess.run(
        [BROWSER, *options, "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout)
    assert found, f"{done.returncode}: {done.stderr[-2000:]}"
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(unescape(found.group(1))), console


@pytest.fixture(scope="module")
def text(made_run: MadeRun, tmp_path_factory: pytest.TempPathFactory) -> str:
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
    record["inputs"][0]["path"] = "/data/" + "a-long-name-of-a-corpus" * 5 + ".gz"
    return document(str(folder), record)


@needs_browser
@pytest.mark.parametrize(("width", "dark"), [(390, False), (1280, False), (390, True)])
def test_it_reads_well(text: str, tmp_path: Path, width: int, dark: bool) -> None:
    found, console = opened(tmp_path, text, width=width, dark=dark)
    assert console == []
    assert found["width"] == width
    assert found["scroll"] <= width
    assert found["svgs"] == 1 + 2 + 3 + 4
    assert found["texts"] > 100
    assert found["overlaps"] == []
    assert found["outside"] == []
    assert found["pale"] == []
    assert (found["ground"] == "rgb(20, 23, 27)") == dark
