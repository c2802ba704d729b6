"""The published experiments: what each varies, and the comparison of a study with them."""
