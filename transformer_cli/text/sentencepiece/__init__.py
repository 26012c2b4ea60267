"""SentencePiece models of other programs: text is split as the SentencePiece library splits it."""
