"""Encoders: loading, pooling, the fast forward pass, sentence vectors."""
