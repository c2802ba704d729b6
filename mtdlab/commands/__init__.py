"""The commands, by what they are about: studies, or single encoders and texts."""
