"""Training texts: reading, tokens, augmentation of text."""
