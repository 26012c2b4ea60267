"""Every state in which a power failure can leave a folder, from a record of the operations on it.

Data of a file is safe after the file was flushed, a name in a folder after the folder was flushed. All
other changes may have reached the disk or not, in any combination. A lost write leaves a shorter file
or zeros.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .faults import Operation

MAX_COMBINED = 6
"""Of the unflushed operations, so many of the last are lost in every combination; older ones all or none."""


@dataclass(eq=False)
class Node:
    """A file, folder or link, independent of its name (an inode)."""

    kind: str
    target: str = ""


@dataclass(frozen=True, eq=False)
class Effect:
    """What one operation does to the disk."""

    time: int
    node: Node
    """The file written to, or the new owner of a name."""
    folders: tuple[Node, ...] = ()
    """Whose flushing makes it safe; for data: the file itself."""
    removed: tuple[Node, str] | None = None
    added: tuple[Node, str] | None = None
    data: bytes | None = None


@dataclass
class History:
    """Operations as effects on nodes, with the times at which each node was flushed."""

    root: Node = field(default_factory=lambda: Node("folder"))
    effects: list[Effect] = field(default_factory=list)
    flushes: list[tuple[int, Node]] = field(default_factory=list)

    @classmethod
    def of(cls, operations: Sequence[Operation]) -> "History":
        history = cls()
        nodes: dict[str, Node] = {".": history.root}
        for time, operation in enumerate(operations):
            history._add(time, operation, nodes)
        return history

    def _add(self, time: int, operation: Operation, nodes: dict[str, Node]) -> None:
        path = Path(operation.path)
        parent = nodes[str(path.parent)]
        here = (parent, path.name)
        match operation.kind:
            case "make_folder" | "create_file" | "link":
                kind = {"make_folder": "folder", "create_file": "file", "link": "link"}[operation.kind]
                node = nodes[operation.path] = Node(kind, operation.other)
                self.effects.append(Effect(time, node, (parent,), added=here))
            case "write":
                node = nodes[operation.path]
                self.effects.append(Effect(time, node, (node,), data=operation.data))
            case "flush":
                self.flushes.append((time, nodes[operation.path]))
            case "remove":
                node = nodes.pop(operation.path)
                self.effects.append(Effect(time, node, (parent,), removed=here))
            case "rename":
                new = Path(operation.other)
                new_parent = nodes[str(new.parent)]
                node = nodes[operation.path]
                for name in [name for name in nodes if Path(name).is_relative_to(path)]:
                    moved = new / Path(name).relative_to(path)
                    nodes[str(moved)] = nodes.pop(name)
                self.effects.append(
                    Effect(time, node, (parent, new_parent), removed=here, added=(new_parent, new.name))
                )
            case _:
                raise AssertionError(operation)

    def states(self, time: int) -> Iterator["Tree"]:
        """The possible states of the disk if the power fails after the first `time` operations."""
        effects = [effect for effect in self.effects if effect.time < time]
        flushes = [(at, node) for at, node in self.flushes if at < time]
        pending = [effect for effect in effects if not _is_safe(effect, flushes)]
        recent, older = pending[-MAX_COMBINED:], pending[:-MAX_COMBINED]
        for is_older_lost, has_zeros in itertools.product((False, True), repeat=2):
            for choice in itertools.product((False, True), repeat=len(recent)):
                lost = {id(effect) for effect, is_lost in zip(recent, choice, strict=True) if is_lost}
                if is_older_lost:
                    lost |= {id(effect) for effect in older}
                yield _tree(self.root, effects, lost, has_zeros)
            if not pending:
                return


def _is_safe(effect: Effect, flushes: list[tuple[int, Node]]) -> bool:
    return all(any(at > effect.time and node is folder for at, node in flushes) for folder in effect.folders)


Tree = tuple[tuple[str, str, bytes], ...]
"""Path, kind, and content or target of everything there is."""


def _tree(root: Node, effects: list[Effect], lost: set[int], has_zeros: bool) -> Tree:
    names: dict[int, dict[str, Node]] = {id(root): {}}
    data: dict[int, bytes] = {}
    sizes: dict[int, int] = {}
    for effect in effects:
        key = id(effect.node)
        if effect.data is not None:
            begin = sizes.get(key, 0)
            sizes[key] = begin + len(effect.data)
            kept = bytes(len(effect.data)) if id(effect) in lost else effect.data
            if id(effect) not in lost or has_zeros:
                data[key] = data.get(key, b"").ljust(begin, b"\0") + kept
            continue
        if id(effect) in lost:
            continue
        if effect.removed is not None:
            folder, name = effect.removed
            if names.get(id(folder), {}).get(name) is effect.node:
                del names[id(folder)][name]
        if effect.added is not None:
            folder, name = effect.added
            names.setdefault(id(folder), {})[name] = effect.node
    return tuple(_walk(root, "", names, data))


def _walk(
    folder: Node, prefix: str, names: dict[int, dict[str, Node]], data: dict[int, bytes]
) -> Iterator[tuple[str, str, bytes]]:
    for name, node in sorted(names.get(id(folder), {}).items()):
        path = f"{prefix}{name}"
        content = node.target.encode() if node.kind == "link" else data.get(id(node), b"")
        yield path, node.kind, content
        if node.kind == "folder":
            yield from _walk(node, f"{path}/", names, data)


def build(tree: Tree, root: Path) -> None:
    """Put a state on the real disk."""
    for path, kind, content in tree:
        if kind == "folder":
            (root / path).mkdir()
        elif kind == "link":
            (root / path).symlink_to(content.decode())
        else:
            (root / path).write_bytes(content)
