"""A text sentence by sentence: places, words, probabilities and links, for pages that show how it is translated."""
