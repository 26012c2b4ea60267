"""The switch TFM_PLAIN: each command computes with the code of model/ as it stands there, and with no faster form of it."""

import os

SWITCH = "TFM_PLAIN"
"""An environment variable: 1 (or any word but 0, false, no and off) turns all faster forms off, on each device."""
OFF = {"0", "false", "no", "off"}
IS_PLAIN = os.environ.get(SWITCH, "").lower() not in {"", *OFF}
"""Whether everything computes in the plain form; known from the start of the program on."""
