"""Figures: each function draws on the given axes what another module computed.

Only the object-oriented interface of matplotlib is used; there is no global figure.
"""

from analysis.figures.distance import (
    draw_batch_curves,
    draw_curve,
    draw_mtd_curve,
    draw_paired_curve,
    draw_published_curve,
    draw_runs,
    draw_simcse,
)
from analysis.figures.experiments import (
    draw_boxes,
    draw_grid,
    draw_line,
    draw_published_line,
    draw_published_rows,
    draw_rows,
)
from analysis.figures.representation import draw_plane, draw_spectra, spectra_drawn
from analysis.figures.steps import draw_structures
from analysis.figures.style import OTHER, PAPER, figure_style, new_figure, to_png, to_svg
from analysis.figures.together import draw_models, draw_studies

__all__ = [
    "OTHER",
    "PAPER",
    "draw_batch_curves",
    "draw_boxes",
    "draw_curve",
    "draw_grid",
    "draw_line",
    "draw_models",
    "draw_mtd_curve",
    "draw_paired_curve",
    "draw_plane",
    "draw_published_curve",
    "draw_published_line",
    "draw_published_rows",
    "draw_rows",
    "draw_runs",
    "draw_simcse",
    "draw_spectra",
    "draw_structures",
    "draw_studies",
    "figure_style",
    "new_figure",
    "spectra_drawn",
    "to_png",
    "to_svg",
]
