"""Guards against files that are made to harm: too large, too deep, packed too well, or full of entities."""
