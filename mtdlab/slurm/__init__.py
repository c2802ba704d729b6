"""A study as a Slurm array job: resources from its estimate, the script, the array's size."""
