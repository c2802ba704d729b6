"""Encoders: loading, pooling, fast forward pass, sentence vectors, dropout."""
