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
from analysis.figures.queue import draw_initial_queue, draw_published_slices, draw_queue_slices
from analysis.figures.representation import draw_plane, draw_spectra, spectra_drawn
from analysis.figures.style import OTHER, PAPER, figure_style, new_figure, to_png, to_svg

__all__ = [
    "OTHER",
    "PAPER",
    "draw_batch_curves",
    "draw_curve",
    "draw_initial_queue",
    "draw_mtd_curve",
    "draw_paired_curve",
    "draw_plane",
    "draw_published_curve",
    "draw_published_slices",
    "draw_queue_slices",
    "draw_runs",
    "draw_simcse",
    "draw_spectra",
    "figure_style",
    "new_figure",
    "spectra_drawn",
    "to_png",
    "to_svg",
]
