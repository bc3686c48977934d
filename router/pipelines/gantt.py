"""One task as a picture: a bar for each hop, in SVG that needs nothing beside it.

Light: in the router's line; middle: until the first token; dark: the answer. Hops of the critical path have a mark at
the left, and a line stands where the deadline is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, Final

_WIDTH, _LEFT, _RIGHT, _TOP = 960, 250, 24, 56
_ROW: Final = 18
_TICKS: Final = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1_800, 3_600)
_STYLE: Final = """
text{font:12px system-ui,sans-serif;fill:#1b1f24}.small{font-size:11px;fill:#57606a}
.line{fill:#d0d7de}.prefill{fill:#7aa7e0}.answer{fill:#1f5fa8}.broken{fill:#b35900}.path{fill:#1b1f24}
.axis{stroke:#d0d7de}.deadline{stroke:#b3261e;stroke-dasharray:4 3}.back{fill:#ffffff}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9da7b1}.back{fill:#0d1117}.line{fill:#3d444d}
.prefill{fill:#4a7ebb}.answer{fill:#9cc4f5}.path{fill:#e6edf3}.axis{stroke:#3d444d}}
"""


def gantt(task: Mapping[str, Any]) -> str:
    """`task` as `GET /pipelines/ID` tells it."""
    hops = task["hops_shown"]
    deadline_s = task["deadline_s"]
    end_s = max([hop["ended_s"] for hop in hops] + [task["makespan_s"], 0.001])
    if deadline_s is not None and deadline_s < 3 * end_s:
        end_s = max(end_s, deadline_s)
    height = _TOP + _ROW * max(1, len(hops)) + 34
    scale = (_WIDTH - _LEFT - _RIGHT) / end_s
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>{escape(_title(task))}</title><style>{_STYLE}</style>",
        f'<rect class="back" width="{_WIDTH}" height="{height}"/>',
        f'<text x="12" y="22">{escape(_title(task))}</text>',
        f'<text class="small" x="12" y="40">{escape(_path(task))}</text>',
        *_axis(end_s, scale, height),
        *(part for number, hop in enumerate(hops) for part in _bar(number, hop, scale)),
    ]
    if deadline_s is not None and deadline_s <= end_s:
        x = _LEFT + deadline_s * scale
        parts.append(f'<line class="deadline" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 8}" y2="{height - 26}"/>')
    return "\n".join([*parts, "</svg>\n"])


def _title(task: Mapping[str, Any]) -> str:
    words = {"met": "deadline met", "missed": "deadline missed", "open": "deadline ahead", "none": "no deadline"}
    return (
        f"pipeline {task['id']} ({task['found']}): {task['hops']} hops, {task['makespan_s']:.2f} s, "
        f"{words[task['deadline']]}"
    )


def _path(task: Mapping[str, Any]) -> str:
    path = task["critical_path"]
    reused = task["cached_tokens"] / max(1, task["prompt_tokens"])
    return (
        f"critical path of {path['hops']} hops: {path['line_s']:.2f} s in line, {path['prefill_s']:.2f} s to first "
        f"tokens, {path['answer_s']:.2f} s of answers, {path['own_s']:.2f} s of the program; "
        f"{100 * reused:.0f} % of prompts from caches"
    )


def _axis(end_s: float, scale: float, height: int) -> Iterator[str]:
    tick_s = next((tick for tick in _TICKS if end_s / tick <= 10), end_s / 8)
    for number in range(int(end_s / tick_s) + 1):
        x = _LEFT + number * tick_s * scale
        yield f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 4}" y2="{height - 28}"/>'
        yield f'<text class="small" x="{x:.1f}" y="{height - 12}" text-anchor="middle">{number * tick_s:g} s</text>'


def _bar(number: int, hop: Mapping[str, Any], scale: float) -> Iterator[str]:
    y = _TOP + _ROW * number
    placed_s = hop["placed_s"] if hop["placed_s"] is not None else hop["ended_s"]
    first_s = min(max(hop["first_s"] if hop["first_s"] is not None else placed_s, placed_s), hop["ended_s"])
    words = f"{number + 1} {hop['kind']} {hop['class']}{' final' if hop['final'] else ''} {hop['backend'] or '-'}"
    yield f'<text x="24" y="{y + 12}">{escape(words[:38])}</text>'
    if hop["critical"]:
        yield f'<rect class="path" x="12" y="{y + 3}" width="5" height="10"/>'
    answer = "answer" if hop["complete"] else "broken"
    yield "<g>"
    yield (
        f"<title>{escape(words)}: {hop['prompt_tokens']} tokens in, {hop['cached_tokens']} of them cached, "
        f"{hop['output_tokens']} out</title>"
    )
    for style, from_s, to_s in (
        ("line", hop["arrived_s"], placed_s),
        ("prefill", placed_s, first_s),
        (answer, first_s, hop["ended_s"]),
    ):
        if to_s > from_s:
            x, width = _LEFT + from_s * scale, max(0.5, (to_s - from_s) * scale)
            yield f'<rect class="{style}" x="{x:.1f}" y="{y + 2}" width="{width:.1f}" height="{_ROW - 5}"/>'
    yield "</g>"
