"""Study files: they are read, checked and turned into trials."""
