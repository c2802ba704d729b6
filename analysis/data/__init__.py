"""What the analysis knows of a study: frames, evaluation items, tables, published values."""
