"""Blanks: the file of an exercise without the bodies of its functions, and the question whether a function is blank."""

import ast
from pathlib import Path

from transformer_cli.extensions.lessons.exercises.catalogue import Exercise


def blank_file(exercise: Exercise) -> str:
    """The text of the file that a learner fills in: the solution without the bodies of its functions."""
    source = exercise.solution_file.read_text(encoding="utf-8")
    lines = source.splitlines(keepends=True)
    for function in reversed(_functions(ast.parse(source))):
        assert function.end_lineno is not None
        if function.name in exercise.functions:
            first_line = function.body[1].lineno - 1  # behind the docstring
            lines[first_line : function.end_lineno] = [_blank(function.name)]
        else:  # a part of the solution, with the two empty lines before it
            del lines[function.lineno - 3 : function.end_lineno]
    return "".join(lines)


def blank_functions(path: Path, exercise: Exercise) -> tuple[str, ...]:
    """The functions of the exercise that are still blank in a learner's file; none if the file has a syntax error."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):  # ValueError: null bytes
        return ()
    blank = {function.name for function in _functions(tree) if _is_blank(function)}
    return tuple(name for name in exercise.functions if name in blank)


def _blank(name: str) -> str:
    return f'    raise NotImplementedError("{name} is blank: replace this line with your code")\n'


def _functions(tree: ast.Module) -> list[ast.FunctionDef]:
    return [node for node in tree.body if isinstance(node, ast.FunctionDef)]


def _is_blank(function: ast.FunctionDef) -> bool:
    last = function.body[-1]
    is_docstring_before = all(isinstance(node, ast.Expr) for node in function.body[:-1])
    return (
        is_docstring_before
        and isinstance(last, ast.Raise)
        and isinstance(last.exc, ast.Call)
        and ast.unparse(last.exc.func) == "NotImplementedError"
    )
