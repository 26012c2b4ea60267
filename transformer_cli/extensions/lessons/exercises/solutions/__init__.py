"""The reference solutions. A learner gets these files with the bodies of the functions removed."""
