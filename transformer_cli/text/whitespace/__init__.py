"""Whole words as a tutorial cuts them: at white space, and around marks; translations have a space between all of them."""
