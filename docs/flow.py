"""Draws docs/flow.svg, the way of a pair through the stages: `python docs/flow.py`."""

from pathlib import Path

from paraloom.pipeline.stages import TABLE, folder_of

STAGES = {  # the module with the work, and resources that other stages make
    "ingest": ("beam_jobs/ingest.py", ""),
    "back_translate": ("beam_jobs/back_translate.py", "nmt/"),
    "score": ("beam_jobs/score.py", "paragram/ …"),
    "bucket": ("beam_jobs/bucket.py", ""),
    "select": ("beam_jobs/select.py", ""),
    "embeddings": ("models/embeddings/", ""),
    "evaluate": ("pipeline/stages/evaluate.py", ""),
}
LOOP = ("embeddings", "score")
WIDTH, ROW, LEFT, BOX = 860, 64, 150, 150
STYLE = """
text { font: 14px system-ui, sans-serif; fill: #1f2328 }
.name { font-weight: 600; text-anchor: middle } .small { font-size: 12px; fill: #59636e }
rect { fill: #ddf4ff; stroke: #0969da } .side { fill: none; stroke-dasharray: 4 3 }
path { fill: none; stroke: #59636e; stroke-width: 1.5; marker-end: url(#head) }
#head path { fill: #59636e; stroke: none; marker-end: none } .loop { stroke: #bf3989 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .small { fill: #9198a1 } rect { fill: #0c2d6b; stroke: #4493f8 }
  .side { fill: none } path { stroke: #9198a1 } #head path { fill: #9198a1 }
  .loop { stroke: #db61a2 }
}"""


def escaped(text: str) -> str:
    """The text in XML."""
    return text.replace("&", "&amp;").replace("<", "&lt;")


def drawing() -> str:
    """The SVG: a row for each stage, resources on the left, the loop of rounds further left."""
    parts, middle = [], LEFT + BOX // 2
    tops = {name: 52 + ROW * number for number, name in enumerate(STAGES)}
    parts.append(f'<text class="name" x="{middle}" y="22">bitext</text>')
    for name, (module, resource) in STAGES.items():
        adds = TABLE[name].makes
        folder = "evaluation.json" if name == "evaluate" else f"{folder_of(name)}/"
        y = tops[name]
        parts += [
            f'<path d="M{middle} {y - 24} V{y - 4}"/>',
            f'<rect x="{LEFT}" y="{y}" width="{BOX}" height="36" rx="6"/>',
            f'<text class="name" x="{middle}" y="{y + 23}">{name}</text>',
            f'<text x="{LEFT + BOX + 24}" y="{y + 15}">{escaped(adds)}</text>',
            f'<text class="small" x="{LEFT + BOX + 24}" y="{y + 33}">{folder} · {module}</text>',
        ]
        if resource:
            parts += [
                f'<rect class="side" x="34" y="{y + 3}" width="86" height="30" rx="6"/>',
                f'<text class="small" x="44" y="{y + 22}">{resource}</text>',
                f'<path d="M120 {y + 18} H{LEFT - 5}"/>',
            ]
    start, end = (tops[name] for name in LOOP)
    parts += [
        f'<path class="loop" d="M{LEFT} {start + 18} H16 V{end - 10} H{LEFT + 20} V{end - 4}"/>',
        f'<text class="small" x="24" y="{start + 12}">next round</text>',
    ]
    head = (
        '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" '
        'orient="auto"><path d="M0 0 L8 4 L0 8 Z"/></marker>'
    )
    size = f'width="{WIDTH}" height="{40 + ROW * len(STAGES)}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n<style>{STYLE}\n</style>\n'
        f"<title>The way of a pair through the stages</title>\n<defs>{head}</defs>\n"
        + "\n".join(parts)
        + "\n</svg>\n"
    )


if __name__ == "__main__":
    Path(__file__).with_name("flow.svg").write_text(drawing(), "utf-8")
