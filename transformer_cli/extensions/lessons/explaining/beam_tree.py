"""A beam search as a tree: each token that the search considered, and what became of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from transformer_cli.decoding.engine import TokenIds
from transformer_cli.decoding.search.beam import Beams, Candidates
from transformer_cli.extensions.lessons.explaining.explanation import BeamNode, BeamTree

State = Literal["kept", "dropped", "finished"]


class BeamRecorder:
    """Observes the beam search of one sentence (see `BeamObserver`), and makes a tree of it."""

    def __init__(self, sos_id: int, piece: Callable[[int], str], num_alternatives: int) -> None:
        """
        Args:
            sos_id: what the decoder reads first.
            piece: the readable name of a token.
            num_alternatives: how many of the best continuations of each hypothesis are in the tree; those that the
                search chose are always there.
        """
        self._piece = piece
        self._num_alternatives = num_alternatives
        self._nodes = [BeamNode(0, None, 0, sos_id, piece(sos_id), 0.0, 0.0, 1.0, 0.0, "kept")]
        self._children: dict[tuple[int, int], int] = {}  # parent node and token: node
        self._open = {0: 0}  # slot of the newest step: node
        self._num_steps = 0
        self._penalty = 1.0

    def saw(self, scores: Tensor, beams: Beams) -> None:
        """See `BeamObserver.saw`."""
        if len(beams) != 1:
            raise ValueError("a tree shows the search of one sentence")
        self._num_steps += 1
        self._penalty = beams.length_penalty(self._num_steps)
        scores = scores.cpu()
        still_open = self._add_chosen(scores, beams.newest_candidates)
        for slot, parent in self._open.items():
            self._add_others(parent, scores[slot])
        self._open = still_open

    def tree(self, beam_size: int, hypotheses: Sequence[TokenIds]) -> BeamTree:
        """The tree of the whole search.

        Args:
            hypotheses: what the search found, best first.
        """
        ranks: dict[int, int] = {}
        best: set[int] = set()
        for rank, ids in enumerate(hypotheses):
            path = self.path_of(ids)
            ranks[path[-1]] = rank
            if rank == 0:
                best = set(path)
        nodes = [
            replace(
                node,
                state="chosen" if node.node in best else node.state,
                hypothesis=ranks.get(node.node),
            )
            for node in self._nodes
        ]
        return BeamTree(beam_size, tuple(nodes))

    def path_of(self, ids: TokenIds) -> list[int]:
        """The nodes from the root to the last of these tokens."""
        path = [0]
        for token in ids:
            path.append(self._children[path[-1], token])
        return path

    def _add_chosen(self, scores: Tensor, candidates: Candidates) -> dict[int, int]:
        """Add the candidates of a step; returns the node of each slot that is still open."""
        still_open: dict[int, int] = {}
        sentence_candidates = (one[0].tolist() for one in candidates)
        for slot, candidate in enumerate(zip(*sentence_candidates, strict=True)):
            parent_slot, token, total, score, is_kept, is_end = candidate
            if total == -torch.inf:
                continue
            state: State = "dropped" if not is_kept else "finished" if is_end else "kept"
            log_probability = float(scores[parent_slot, token])
            parent = self._open[parent_slot]
            node = self._add(parent, token, (log_probability, total, score), state)
            if state == "kept":
                still_open[slot] = node
        return still_open

    def _add_others(self, parent: int, scores: Tensor) -> None:
        """Add the best continuations of a node, (V,), that were no candidates."""
        best = scores.topk(min(self._num_alternatives, len(scores)))
        for token, score in zip(best.indices.tolist(), best.values.tolist(), strict=True):
            if score > -torch.inf and (parent, token) not in self._children:
                total = self._nodes[parent].total + score
                self._add(parent, token, (score, total, total / self._penalty), "dropped")

    def _add(self, parent: int, token: int, numbers: tuple[float, float, float], state: State) -> int:
        log_probability, total, score = numbers
        node = BeamNode(
            len(self._nodes),
            parent,
            self._num_steps,
            token,
            self._piece(token),
            log_probability,
            total,
            self._penalty,
            score,
            state,
        )
        self._nodes.append(node)
        self._children[parent, token] = node.node
        return node.node


def branches(tree: BeamTree) -> dict[int, TokenIds]:
    """The nodes without children, and their tokens from the root on."""
    parents = {node.parent for node in tree.nodes}
    return {node.node: tokens_of(tree, node.node) for node in tree.nodes[1:] if node.node not in parents}


def best_of_each_step(tree: BeamTree, nodes: Sequence[int]) -> list[int]:
    """These nodes in another order: first the one with the best score of each step, then the second ones, and so on."""
    ranks: dict[int, int] = {}
    num_seen: dict[int, int] = {}
    for node in sorted(nodes, key=lambda node: -tree.nodes[node].score):
        step = tree.nodes[node].step
        ranks[node] = num_seen[step] = num_seen.get(step, 0) + 1
    return sorted(nodes, key=lambda node: (ranks[node], tree.nodes[node].step))


def tokens_of(tree: BeamTree, node: int) -> TokenIds:
    """The tokens from the first one to this node."""
    ids: list[int] = []
    at = tree.nodes[node]
    while at.parent is not None:
        ids.append(at.id)
        at = tree.nodes[at.parent]
    return tuple(reversed(ids))


def with_continuations(tree: BeamTree, texts: Mapping[int, str]) -> BeamTree:
    """The tree with the text of each node that is in `texts`."""
    nodes = (replace(node, continuation=texts.get(node.node)) for node in tree.nodes)
    return BeamTree(tree.beam_size, tuple(nodes))
