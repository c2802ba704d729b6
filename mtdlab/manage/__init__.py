"""What is done to a recorded study: examined, exported and imported, confirmed, run again."""
