"""The compiled kernels, if this installation has them and this processor can run them."""

import ctypes
import functools
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)

SWITCH = "TFM_NATIVE"
"""An environment variable: 0, false, no or off turns the kernels off, so that PyTorch computes everything."""
_OFF = {"0", "false", "no", "off"}

_VERSION = 3  # of the functions; the same as tfm_version in processor.c
_LEVELS = {1: "avx2", 2: "avx512"}
_POINTER, _SIZE, _FLAG = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
# name: the arguments, then the result
_FUNCTIONS: dict[str, tuple[tuple[Any, ...], Any]] = {
    "linear": (
        (_POINTER, _SIZE, _SIZE, *[_POINTER] * 3, _SIZE, _SIZE, _SIZE, _FLAG, _POINTER),
        _FLAG,
    ),
    "attend": (
        (_POINTER, *[_SIZE] * 5, *[_POINTER, _SIZE] * 3, _POINTER, _POINTER, _POINTER),
        _FLAG,
    ),
    "layer_norm": (
        (_POINTER, _SIZE, _SIZE, _POINTER, _POINTER, ctypes.c_float, _POINTER),
        None,
    ),
    "log_softmax": ((_POINTER, _SIZE, _SIZE), None),
    "loss": (
        (
            _POINTER,
            _FLAG,
            _SIZE,
            _SIZE,
            *[_POINTER] * 3,
            _SIZE,
            *[ctypes.c_float] * 3,
            *[_POINTER] * 3,
        ),
        None,
    ),
    "twin_loss": (
        (
            *[_POINTER] * 2,
            _FLAG,
            _SIZE,
            _SIZE,
            *[_POINTER] * 3,
            _SIZE,
            *[ctypes.c_float] * 4,
            *[_POINTER] * 3,
        ),
        None,
    ),
    "top_k": ((_POINTER, *[_SIZE] * 3, _POINTER, _SIZE, _POINTER, _POINTER), None),
}


@dataclass(frozen=True, slots=True)
class Kernels:
    """The functions of one level of instructions. A call releases the lock of the interpreter."""

    level: str
    """avx2, or avx512, which includes VNNI."""
    weight_offset: int
    """What is added to each weight of 8 bits when weights are packed."""
    linear: Any
    """See tfm_linear in linear.c."""
    attend: Any
    """See tfm_attend in attention.c."""
    layer_norm: Any
    """See tfm_layer_norm in rows.c."""
    log_softmax: Any
    """See tfm_log_softmax in rows.c."""
    loss: Any
    """See tfm_loss in losses.c."""
    twin_loss: Any
    """See tfm_twin_loss in losses.c."""
    top_k: Any
    """See tfm_top_k in top_k.c."""


def find_kernels() -> Kernels | None:
    """The kernels for this processor; None: there are none, or the environment variable TFM_NATIVE turns them off."""
    if os.environ.get(SWITCH, "").lower() in _OFF:
        return None
    return load_kernels(Path(__file__).parent / "kernels.bin")


@functools.cache
def load_kernels(path: Path) -> Kernels | None:
    """The kernels of a library; None if this processor or this version cannot use it: the log says why."""
    if not path.exists():
        logger.debug("no compiled kernels: no C compiler was found when the package was installed")
        return None
    try:
        library = ctypes.CDLL(str(path))
        if library.tfm_version() != _VERSION:
            logger.debug("no compiled kernels: %s is of another version; install again", path)
            return None
        level = _LEVELS.get(library.tfm_level())
        if level is None:
            logger.debug("no compiled kernels: this processor has no AVX2")
            return None
        kernels = kernels_of(library, level)
    except (OSError, AttributeError) as error:  # built for another system, or damaged
        logger.debug("no compiled kernels: %s cannot be used: %s", path, error)
        return None
    logger.debug("compiled kernels: %s", level)
    return kernels


def kernels_of(library: ctypes.CDLL, level: str) -> Kernels:
    """The functions of one level; the processor must have its instructions."""
    functions = {}
    for name, (arguments, result) in _FUNCTIONS.items():
        function = functions[name] = getattr(library, f"tfm_{name}_{level}")
        function.argtypes, function.restype = arguments, result
    return Kernels(level, getattr(library, f"tfm_weight_offset_{level}")(), **functions)
