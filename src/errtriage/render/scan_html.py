"""The report of a scan as one HTML file: it opens offline, sorts and filters by itself, and asks the network for nothing."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import Environment

from errtriage.model import Outcome
from errtriage.render.words import ACTIONS, OUTCOMES
from errtriage.survey import BINS, SEVERITY, Survey

#: How high the timeline is, in its own units.
_HEIGHT = 100


def render(survey: Survey) -> str:
    """The report."""
    folder = files("errtriage.render")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    script = (folder / "scan.js").read_text(encoding="utf-8")
    template = environment.from_string((folder / "scan.html.j2").read_text(encoding="utf-8"))
    return template.render(
        survey=survey,
        outcomes=OUTCOMES,
        actions=ACTIONS,
        bars=_bars(survey),
        height=_HEIGHT,
        bins=BINS,
        style=(folder / "scan.css").read_text(encoding="utf-8"),
        script=script,
        # The page may run this script and no other, whatever stands in a log.
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
    )


def _bars(survey: Survey) -> list[dict[str, Any]]:
    """The timeline: for each part of the time, the outcomes one on top of the other, the worst at the bottom."""
    columns: list[dict[Outcome, int]] = [{} for _ in range(BINS)]
    for group in survey.groups:
        outcome = Outcome(group.key.outcome)
        for i, count in enumerate(group.histogram):
            columns[i][outcome] = columns[i].get(outcome, 0) + count
    most = max((sum(column.values()) for column in columns), default=0)
    bars = []
    for i, column in enumerate(columns):
        below = 0.0
        for outcome in [outcome for outcome in SEVERITY if column.get(outcome)]:
            height = column[outcome] * _HEIGHT / most
            bars.append({"bin": i, "outcome": outcome, "count": column[outcome], "y": round(_HEIGHT - below - height, 2), "height": round(height, 2)})
            below += height
    return bars
