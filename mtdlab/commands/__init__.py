"""The commands: read arguments, call one function, print."""
