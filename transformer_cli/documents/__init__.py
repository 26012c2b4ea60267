"""Files that hold text: what is text is translated, everything else stays byte for byte."""
