"""Statistics of a study's trials: frames in, frames out.

trials, settings, scores, spectra, probes and items are those of a `StudyFrames`; settings say which
columns of trials are settings. n counts runs; mean, low and high are those of `summarise`. A frame
without rows has its columns.
"""
