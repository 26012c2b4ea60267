"""The benchmark of translating."""
