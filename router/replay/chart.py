"""A replay as a picture: calls inside their promises, and the times that classes wait for. Needs the extra `chart`."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from classifiers.api import CallClass
from router.replay.figures import Column
from router.replay.recorded import NotReplayable
from router.replay.run import Replayed
from router.replay.show import columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ENDINGS: Final = (".png", ".svg")
_INSTALL: Final = (
    "a chart needs matplotlib, which serving does not: pip install 'twolane[chart]' "
    "(from a copy of the repository: pip install '.[chart]')"
)
_TIMES: Final = (
    (CallClass.TTFT, "ttft_s", "ttft: first token, s"),
    (CallClass.MIXED, "complete_s", "mixed: whole answer, s"),
    (CallClass.THROUGHPUT, "complete_s", "throughput: whole answer, s"),
)
_INCHES: Final = (3.4, 3.6)
"""Of one panel."""


def check(path: Path) -> None:
    """Before anything long is begun. Raises `NotReplayable`."""
    if path.suffix.lower() not in ENDINGS:
        raise NotReplayable(f"--chart {path}: the name has to end in {' or '.join(ENDINGS)}")
    if not path.absolute().parent.is_dir():
        raise NotReplayable(f"--chart {path}: there is no such folder; make it first")
    if importlib.util.find_spec("matplotlib") is None:
        raise NotReplayable(_INSTALL)


def draw(replayed: Replayed, path: Path) -> None:
    """Raises `OSError` where it cannot be written."""
    import matplotlib as mpl

    mpl.use("agg")  # no window, also where there is a screen
    from matplotlib.figure import Figure

    told = columns(replayed)
    times = [each for each in _TIMES if any(each[0] in column.classes for _, column in told)]
    figure = Figure(figsize=(_INCHES[0] * (1 + len(times)), _INCHES[1]), layout="constrained")
    axes: Sequence[Any] = figure.subplots(1, 1 + len(times), squeeze=False)[0]
    names = [name for name, _ in told]
    _shares(axes[0], [column for _, column in told])
    for panel, (call_class, what, title) in zip(axes[1:], times, strict=True):
        _percentiles(panel, [column for _, column in told], call_class, what, title)
    handles = axes[0].get_legend_handles_labels()[0]
    figure.legend(handles, names, loc="outside lower center", ncols=min(4, len(names)), frameon=False)
    figure.savefig(path, dpi=150)


def _shares(axes: Axes, told: Sequence[Column]) -> None:
    present = [name for name in CallClass if any(name in column.classes for column in told)]
    groups = [*map(str, present), "mean"]
    for number, column in enumerate(told):
        shares = [column.classes[name].share if name in column.classes else None for name in present]
        _bars(axes, number, len(told), [100 * (share or 0.0) for share in (*shares, column.mean_share)])
    _label(axes, groups, "calls inside their SLO, %")
    axes.set_ylim(0, 100)


def _percentiles(axes: Axes, told: Sequence[Column], call_class: CallClass, what: str, title: str) -> None:
    groups = ["p50", "p95", "p99"]
    for number, column in enumerate(told):
        figures = column.classes.get(call_class)
        values = getattr(figures, what) if figures is not None else {}
        _bars(axes, number, len(told), [values.get(name) or 0.0 for name in groups])
    _label(axes, groups, title)
    axes.set_yscale("symlog", linthresh=0.1)


def _bars(axes: Axes, number: int, count: int, heights: Sequence[float]) -> None:
    width = 0.8 / count
    places = [group - 0.4 + width * (number + 0.5) for group in range(len(heights))]
    axes.bar(places, heights, width, label=str(number), color=f"C{number}")


def _label(axes: Axes, groups: Sequence[str], title: str) -> None:
    axes.set_xticks(range(len(groups)), groups)
    axes.set_title(title, fontsize=10)
    axes.grid(axis="y", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
