"""Measures on arrays: MTD, geometry of embeddings, spherical caps."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
