"""What a study will cost: time, memory and disk."""
