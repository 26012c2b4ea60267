"""Documents in XML: the elements of a file, and the formats XLIFF and TMX of translators."""
