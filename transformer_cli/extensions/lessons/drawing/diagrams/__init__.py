"""Block diagrams: boxes, arrows and trees."""
