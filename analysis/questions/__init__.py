"""What a study asks and what it answers: a module for each kind of question."""
