"""Analysis of momentum-contrastive studies: arrays and frames in, numbers and figures out."""
