"""Statistics of a study's trials: frames in, frames out."""
