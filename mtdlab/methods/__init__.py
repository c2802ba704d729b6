"""The training methods, one file each, and their shared parts."""
