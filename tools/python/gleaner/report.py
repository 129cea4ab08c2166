"""How a run went, for people: a table of checkpoints, and a curve and a recipe in a notebook."""

import html

FIGURES = ("p_at_1", "p_at_3", "p_at_5", "psp_at_1", "psp_at_3", "psp_at_5")
WIDTH, HEIGHT = 320, 120


def history(checkpoints, evaluations):
    rows = {}
    for event in checkpoints:
        rows[event["checkpoint"]] = {"checkpoint": event["checkpoint"], "epoch": event["epoch"], "loss": event["loss"]}
    for event in evaluations:
        row = rows.setdefault(event["checkpoint"], {"checkpoint": event["checkpoint"], "epoch": event["epoch"]})
        row.update({name: event[name] for name in FIGURES})
    ordered = [rows[checkpoint] for checkpoint in sorted(rows)]
    try:
        import pandas
    except ImportError:
        return ordered
    return pandas.DataFrame(ordered)


def _curve(points):
    """P@1 by epoch, as SVG."""
    end = max(epoch for epoch, _ in points) or 1
    places = " ".join(f"{WIDTH * epoch / end:.1f},{HEIGHT * (1 - value):.1f}" for epoch, value in points)
    return (f'<svg width="{WIDTH}" height="{HEIGHT}" style="border:1px solid"><title>P@1 by epoch, from 0 to 1</title>'
            f'<polyline points="{places}" fill="none" stroke="steelblue" stroke-width="2"/></svg>')


def as_html(run):
    """The curve of the run and the recipe."""
    parts = [f"<p><code>{html.escape(repr(run))}</code>" + ("" if run.model else ", not trained yet") + "</p>"]
    points = [(event["epoch"], event["p_at_1"]) for event in run.evaluations]
    if points:
        parts.append(f"<p>P@1 {points[-1][1]:.4f} after {points[-1][0]:g} epochs</p>" + _curve(points))
    chosen = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in (key, value, why)) + "</tr>"
                     for key, (value, why) in run.recipe_.items())
    if chosen:
        parts.append(f"<table><tr><th>setting</th><th>value</th><th>why</th></tr>{chosen}</table>")
    return "".join(parts)
