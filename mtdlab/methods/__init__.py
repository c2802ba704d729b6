"""One file a method, and the parts that methods share."""
