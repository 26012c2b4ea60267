"""Models of tutorials, as pure functions."""
