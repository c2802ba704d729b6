"""Inference: seeds as blocks, intervals, tests of a shape over MTD, the verdict and its design."""
