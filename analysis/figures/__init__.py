"""Figures: each function draws on the given axes what another module computed.

Only the object-oriented interface of matplotlib is used; there is no global figure. Seaborn draws
the grids; each module says why not its other figures.
"""

from analysis.figures.components import draw_component_axis, draw_configurations
from analysis.figures.conditions import draw_conditions
from analysis.figures.distance import (
    draw_baseline,
    draw_batch_curves,
    draw_curve,
    draw_deviations,
    draw_mtd_curve,
    draw_paired_curve,
    draw_published_curve,
    draw_runs,
    draw_seed_differences,
    draw_untraced,
)
from analysis.figures.experiments import (
    draw_grid,
    draw_line,
    draw_published_line,
    draw_published_rows,
    draw_rows,
    draw_seeds,
)
from analysis.figures.files import to_page, to_png, to_svg
from analysis.figures.history import draw_half_lives, draw_retained, draw_score_by_half_life
from analysis.figures.importances import draw_importances
from analysis.figures.methods import draw_methods
from analysis.figures.multi_study import draw_models, draw_studies
from analysis.figures.parallel import draw_parallel
from analysis.figures.representation import draw_plane, draw_spectra, draw_spectrum_ratios
from analysis.figures.spots import add_spots
from analysis.figures.steps import draw_structures, draw_training
from analysis.figures.style import OTHER, add_legend, figure_style, new_figure

__all__ = [
    "OTHER",
    "add_legend",
    "add_spots",
    "draw_baseline",
    "draw_batch_curves",
    "draw_component_axis",
    "draw_conditions",
    "draw_configurations",
    "draw_curve",
    "draw_deviations",
    "draw_grid",
    "draw_half_lives",
    "draw_importances",
    "draw_line",
    "draw_methods",
    "draw_models",
    "draw_mtd_curve",
    "draw_paired_curve",
    "draw_parallel",
    "draw_plane",
    "draw_published_curve",
    "draw_published_line",
    "draw_published_rows",
    "draw_retained",
    "draw_rows",
    "draw_runs",
    "draw_score_by_half_life",
    "draw_seed_differences",
    "draw_seeds",
    "draw_spectra",
    "draw_spectrum_ratios",
    "draw_structures",
    "draw_studies",
    "draw_training",
    "draw_untraced",
    "figure_style",
    "new_figure",
    "to_page",
    "to_png",
    "to_svg",
]
