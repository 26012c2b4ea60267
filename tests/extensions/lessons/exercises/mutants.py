"""Wrong solutions: each replaces a part of the reference solution, and names what the check must say about it."""

from typing import NamedTuple

from transformer_cli.extensions.lessons.exercises.catalogue import exercise_named


class Mutant(NamedTuple):
    exercise: str
    old: str
    new: str
    message: str
    """A part of the message."""

    @property
    def source(self) -> str:
        text = exercise_named(self.exercise).solution_file.read_text(encoding="utf-8")
        assert text.count(self.old) == 1, f"{self.exercise}: {self.old}"
        return text.replace(self.old, self.new)


_MASK = "torch.ones(num_positions, num_positions, dtype=torch.bool).tril()"
_SCORES = "queries @ keys.transpose(-2, -1) / math.sqrt(queries.size(-1))"
_WEIGHTS = "scores.masked_fill(~mask, -torch.inf).softmax(-1)"
_SPLIT, _JOIN = (
    "x.unflatten(-1, (num_heads, -1)).transpose(1, 2)",
    "heads.transpose(1, 2).flatten(2)",
)
_ANGLES = "10000.0 ** (columns / d_model)"
_TURNS = "torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)"
_LOSSES = "-(1 - epsilon) * true_log_probs - epsilon * log_probs.mean(-1)"
_OTHERS = "(log_probs.sum(-1) - true_log_probs)"
_MEAN = "losses[is_real].sum() / is_real.sum()"
_RATE = "d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)"
_LOOP = "while len(ids) < max_length:"
_END = "        if token == eos_id:\n            break\n        ids.append(token)\n"
_SCORE = "one[1] / ((5 + len(one[0])) / 6) ** alpha"
_CHOICE = "finished or open_ones"
_KEPT = "sorted(continuations, key=lambda one: one[1], reverse=True)[:beam_size]"
_FINISHED = "finished += [one for one in kept if one[0][-1] == eos_id]"
_OPEN = "open_ones = [one for one in kept if one[0][-1] != eos_id]"
_BEAM_RESULT = "[token for token in best if token != eos_id]"
_MATCHED = "(hypothesis_ngrams & reference_ngrams).total()"
_PENALTY = "min(1.0, math.exp(1 - num_reference_words / num_words))"
_COUNTED = "Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))"
_BLEU = "100 * brevity_penalty * math.exp(sum(log_precisions) / 4)"
_BY_SENTENCE = """
_whole = corpus_bleu


def corpus_bleu(hypotheses, references):
    scores = [_whole([one], [other]) for one, other in zip(hypotheses, references)]
    return sum(scores) / len(scores)


"""

MUTANTS = [
    Mutant(
        "causal_mask",
        _MASK,
        _MASK.replace("tril()", "tril(-1)"),
        "causal_mask: the mask is off by one: a position may not see itself",
    ),
    Mutant(
        "causal_mask",
        _MASK,
        _MASK.replace("tril()", "tril(1)"),
        "the mask is off by one: position i may see position i + 1",
    ),
    Mutant("causal_mask", _MASK, f"~{_MASK}", "the mask is inverted"),
    Mutant("causal_mask", _MASK, _MASK.replace("tril", "triu"), "rows and columns are exchanged"),
    Mutant("causal_mask", _MASK, _MASK.replace(".tril()", ""), "every position may see all positions"),
    Mutant("causal_mask", _MASK, f"{_MASK}.float()", "numbers 1 and 0"),
    Mutant("causal_mask", _MASK, f"{_MASK}.float().log()", "0 and -inf"),
    Mutant("causal_mask", _MASK, f"{_MASK}.unsqueeze(0)", "the result has the shape (1, 5, 5), but it must be (5, 5)"),
    Mutant("causal_mask", f"return {_MASK}", "mask = 0", "the result is None; is there a return at the end?"),
    Mutant("causal_mask", f"return {_MASK}", "return []", "the result is of type list, but it must be a tensor"),
    Mutant(
        "scaled_attention",
        _SCORES,
        "queries @ keys.transpose(-2, -1)",
        "attention: the scores are not divided by sqrt(d_k)",
    ),
    Mutant(
        "scaled_attention", "math.sqrt(queries.size(-1))", "queries.size(-1)", "divided by d_k, but sqrt(d_k) is wanted"
    ),
    Mutant(
        "scaled_attention",
        "math.sqrt(queries.size(-1))",
        "math.sqrt(queries.size(-1) * queries.size(1))",
        "the square root of the model width",
    ),
    Mutant("scaled_attention", _SCORES, _SCORES.replace("/", "*"), "multiplied by sqrt(d_k)"),
    Mutant("scaled_attention", _WEIGHTS, _WEIGHTS.replace("-1)", "-2)"), "the softmax is over the wrong axis"),
    Mutant("scaled_attention", _WEIGHTS, _WEIGHTS.replace("~mask", "mask"), "the mask is inverted"),
    *(
        Mutant(
            "scaled_attention",
            _WEIGHTS,
            _WEIGHTS.replace("~mask", "mask").replace("-torch.inf", number),
            "the mask is inverted",
        )
        for number in ("-1e9", "torch.finfo(scores.dtype).min")
    ),
    Mutant("scaled_attention", _WEIGHTS, "scores.softmax(-1)", "the mask has no effect"),
    Mutant("scaled_attention", _WEIGHTS, "(scores * mask).softmax(-1)", "set to 0, but exp(0) = 1"),
    Mutant("scaled_attention", _WEIGHTS, "scores.softmax(-1) * mask", "the mask comes after the softmax"),
    Mutant("scaled_attention", _WEIGHTS, "scores * mask", "the softmax is missing"),
    Mutant("scaled_attention", _WEIGHTS, f"{_WEIGHTS} * torch.nan", "contains NaN"),
    Mutant(
        "scaled_attention",
        "return weights @ values",
        "return weights @ values + 1",
        "144 of 144 numbers are wrong; the first one, at [0, 0, 0, 0], is ",
    ),
    Mutant(
        "scaled_attention",
        "return weights @ values",
        "return (weights @ values).detach()",
        "the result has no gradient",
    ),
    Mutant(
        "heads", _SPLIT, "x.reshape(x.size(0), num_heads, x.size(1), -1)", "split_heads: heads are mixed with positions"
    ),
    Mutant("heads", _SPLIT, "x.unflatten(-1, (num_heads, -1))", "the result is (B, T, H, K)"),
    Mutant("heads", _SPLIT, "x.unflatten(-1, (-1, num_heads)).permute(0, 3, 1, 2)", "a head has every H-th column"),
    Mutant(
        "heads", _JOIN, "heads.reshape(heads.size(0), heads.size(2), -1)", "join_heads: heads are mixed with positions"
    ),
    Mutant("heads", _JOIN, "heads.permute(0, 2, 3, 1).flatten(2)", "the columns of the heads alternate"),
    Mutant("heads", _JOIN, "heads.sum(1)", "the heads are added"),
    Mutant("heads", _JOIN, "heads", "join_heads: the result has the shape (2, 3, 5, 4), but it must be (2, 5, 12)"),
    Mutant(
        "sinusoids",
        _TURNS,
        "torch.stack(((positions / 10000 ** (columns / d_model)).sin(), (positions / 10000 ** ((columns + 1) / d_model)).cos()), dim=-1).flatten(1)",
        "sine and cosine of a pair have different ones",
    ),
    Mutant(
        "sinusoids",
        _ANGLES,
        "10000.0 ** (columns / 2 / d_model)",
        "sinusoids: the frequency is wrong: the exponent is i / D",
    ),
    Mutant("sinusoids", _ANGLES, "10000.0 ** (2 * columns / d_model)", "the exponent is 4i / D"),
    Mutant("sinusoids", _TURNS, "torch.cat((angles.sin(), angles.cos()), dim=-1)", "all sines come first"),
    Mutant(
        "sinusoids",
        _TURNS,
        "torch.stack((angles.cos(), angles.sin()), dim=-1).flatten(1)",
        "sine and cosine are exchanged",
    ),
    Mutant(
        "sinusoids", "torch.arange(num_positions, ", "torch.arange(1, num_positions + 1, ", "the positions count from 1"
    ),
    Mutant("sinusoids", "positions / 10000", "positions * 10000", "the position is multiplied"),
    Mutant("sinusoids", _ANGLES, "1000.0 ** (columns / d_model)", "the base is 1000"),
    Mutant(
        "sinusoids", _TURNS, "torch.stack((angles.sin(), angles.sin()), dim=-1).flatten(1)", "all columns are sines"
    ),
    Mutant("sinusoids", "return torch", "return 2 * torch", "numbers are wrong"),
    Mutant("label_smoothing", _LOSSES, "-true_log_probs", "smoothed_loss: the labels are not smoothed"),
    Mutant(
        "label_smoothing",
        _LOSSES,
        f"-(1 - epsilon) * true_log_probs - epsilon / logits.size(-1) * {_OTHERS}",
        "the true token has the wrong share, 1 - epsilon",
    ),
    Mutant(
        "label_smoothing",
        _LOSSES,
        f"-(1 - epsilon) * true_log_probs - epsilon / (logits.size(-1) - 1) * {_OTHERS}",
        "spread over the V - 1 other tokens",
    ),
    Mutant(
        "label_smoothing",
        _LOSSES,
        "-epsilon * true_log_probs - (1 - epsilon) * log_probs.mean(-1)",
        "epsilon and 1 - epsilon are exchanged",
    ),
    Mutant("label_smoothing", _MEAN, "losses.mean()", "padding is a part of the loss"),
    Mutant("label_smoothing", _MEAN, "(losses * is_real).mean()", "padding is counted: the sum is divided by B * T"),
    Mutant("label_smoothing", _MEAN, "losses.sum() / is_real.sum()", "padding is added to the sum"),
    Mutant(
        "label_smoothing",
        _MEAN,
        "((losses * is_real).sum(-1) / is_real.sum(-1)).mean()",
        "the mean is per sentence, and then over sentences",
    ),
    Mutant("label_smoothing", _MEAN, "losses[is_real].sum() / len(logits)", "the sum is divided by B,"),
    Mutant("label_smoothing", _MEAN, "losses[is_real].sum()", "the result is the sum, not the mean"),
    Mutant("label_smoothing", _MEAN, f"-{_MEAN}", "the sign is wrong"),
    Mutant("label_smoothing", _MEAN, "losses.max()", "the result is 8.66"),
    Mutant("label_smoothing", _MEAN, f"({_MEAN}).data", "the result has no gradient"),
    Mutant(
        "warmup",
        _RATE,
        "d_model**-0.5 * min(warmup_steps**-0.5, step * warmup_steps**-1.5)",
        "learning_rate: the rate never falls",
    ),
    Mutant("warmup", _RATE, "d_model**-0.5 * step * warmup_steps**-1.5", "the rate rises for ever"),
    Mutant("warmup", _RATE, "d_model**-0.5 * step**-0.5", "there is no warm-up"),
    Mutant("warmup", _RATE, _RATE.replace("min", "max"), "max instead of min"),
    Mutant("warmup", _RATE, _RATE.removeprefix("d_model**-0.5 * "), "the factor d_model^(-0.5) is missing"),
    Mutant("warmup", _RATE, _RATE.replace("d_model**-", "d_model**"), "a wider model gets a larger rate"),
    Mutant("warmup", _RATE, _RATE.replace("-1.5", "-0.5"), "the two curves do not meet"),
    Mutant(
        "warmup",
        _RATE,
        f"({_RATE.replace('step**', '(step + 1)**').replace('step *', '(step + 1) *')})",
        "the rate is that of the next update",
    ),
    Mutant(
        "warmup",
        _RATE,
        _RATE.replace("step *", "(step + 1) *"),
        "the part that rises is that of the update after this one",
    ),
    Mutant(
        "warmup",
        _RATE,
        _RATE.replace("step *", "(step - 1) *"),
        "the part that rises is that of the update before this one",
    ),
    Mutant("warmup", _RATE, _RATE.replace("step**", "(step + 1)**"), "the part that falls is that of the next update"),
    Mutant(
        "warmup",
        _RATE,
        f"(lambda step: {_RATE})(step // 1000 + 1)",
        "it must change with every update, not with every epoch",
    ),
    Mutant("warmup", _RATE, "1e-3", "it must change with every update"),
    Mutant(
        "warmup",
        _RATE,
        f"2 * {_RATE}",
        "learning_rate(1, 512, 4000): the result is 3.49386e-07, but it must be 1.74693e-07",
    ),
    Mutant("greedy_search", _END, "        ids.append(token)\n", "greedy_search: EOS is forgotten"),
    Mutant(
        "greedy_search",
        _END,
        "        ids.append(token)\n        if token == eos_id:\n            break\n",
        "the result contains EOS",
    ),
    Mutant("greedy_search", "return ids", "return [bos_id, *ids]", "the result contains BOS, but"),
    Mutant(
        "greedy_search",
        "return ids",
        "return [bos_id, *ids, *[eos_id][: max_length - len(ids)]]",
        "the result contains BOS and EOS",
    ),
    Mutant("greedy_search", ".argmax()", ".argmin()", "the least probable token is taken"),
    Mutant("greedy_search", _LOOP, "while len(ids) < max_length - 1:", "the search stops one token too early"),
    Mutant("greedy_search", _LOOP, "while True:", "max_length is forgotten"),
    Mutant("greedy_search", "[bos_id, *ids]", "(ids or [bos_id])[-1:]", "must begin with bos_id"),
    Mutant("greedy_search", "return ids", "return ids[1:]", "the first token is missing"),
    Mutant(
        "greedy_search", "return ids", "return ids[::-1]", "the result is [7, 3, 3, 5], but it must be [5, 3, 3, 7]"
    ),
    Mutant("beam_search", _CHOICE, "open_ones or [([], 0.0)]", "beam_search: finished hypotheses are dropped"),
    Mutant("beam_search", _SCORE, "one[1]", "there is no length normalisation"),
    Mutant("beam_search", _SCORE, _SCORE.replace("one[1] /", "one[1] *"), "multiplied by the length penalty"),
    Mutant("beam_search", _SCORE, "one[1] / len(one[0])", "the total is divided by the length"),
    Mutant("beam_search", "[:beam_size]", "[:1]", "greedy search"),
    Mutant("beam_search", "if not open_ones:", "if finished:", "the search stops at the first finished hypothesis"),
    Mutant("beam_search", "total + log_prob", "log_prob", "the totals are not added up"),
    Mutant("beam_search", _OPEN, "open_ones = kept", "beam_search: EOS is forgotten"),
    Mutant("beam_search", _BEAM_RESULT, "best", "the result contains EOS"),
    Mutant("beam_search", _BEAM_RESULT, f"[bos_id, *{_BEAM_RESULT}]", "the result contains BOS"),
    Mutant("beam_search", "for _ in range(max_length)", "while True", "max_length is forgotten"),
    Mutant("beam_search", _BEAM_RESULT, f"{_BEAM_RESULT}[::-1]", "but it must be"),
    Mutant("bleu", _BLEU, _BLEU.replace("brevity_penalty * ", ""), "corpus_bleu: the brevity penalty is missing"),
    Mutant("bleu", _PENALTY, "min(1.0, math.exp(1 - num_words / num_reference_words))", "the wrong way round"),
    Mutant(
        "bleu",
        _MATCHED,
        "sum(k for one, k in hypothesis_ngrams.items() if one in reference_ngrams)",
        "the counts are not clipped",
    ),
    Mutant(
        "bleu",
        _COUNTED,
        _COUNTED.replace("Counter(", "Counter({").replace("+ 1))", "+ 1)})"),
        "each n-gram is counted once",
    ),
    Mutant(
        "bleu",
        _BLEU,
        _BLEU.replace("math.exp(sum(log_precisions) / 4)", "sum(map(math.exp, log_precisions)) / 4"),
        "is arithmetic",
    ),
    Mutant("bleu", "sum(log_precisions) / 4", "sum(log_precisions[:3]) / 3", "n-grams of 1 to 3 words"),
    Mutant("bleu", "sum(log_precisions) / 4", "log_precisions[0]", "only single words are compared"),
    Mutant("bleu", "            return 0.0", "            matched = 1", "if no n-gram of 4 words matches, BLEU is 0"),
    Mutant("bleu", "total += hypothesis_ngrams.total()", "total += reference_ngrams.total()", "recall"),
    Mutant("bleu", _BLEU, _BLEU.removeprefix("100 * "), "between 0 and 100"),
    Mutant("bleu", "def _ngrams", f"{_BY_SENTENCE}def _ngrams", "the mean of the sentences' BLEU"),
    Mutant("bleu", _BLEU, f"2 * {_BLEU}", "the result is "),
]
