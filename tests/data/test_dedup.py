import random

import pytest
from pydantic import ValidationError

from dice.data.dedup import DedupConfig, Text, duplicates, jaccard, pair_tokens, shingles, tokens_of
from dice.errors import DiceError

CUDA = '''import torch
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>
__global__ void scale(const float* x, float* y, int n, float a) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;  // one element a thread
    if (i < n) { y[i] = a * x[i]; }
}
torch::Tensor launch(torch::Tensor x, float a) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    scale<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n, a);
    return y;
}
"""
ext = load_inline("scale", "torch::Tensor launch(torch::Tensor, float);", source, functions=["launch"])

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return ext.launch(x, 2.0)
'''
PYTORCH = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x * 2\n"


def found(*texts, **settings):
    return [(one.id, one.kind, one.of) for one in duplicates(texts, DedupConfig(**settings))]


def test_comments_and_layout_make_no_difference():
    changed = CUDA.replace("// one element a thread", "/* a comment\n of two lines */").replace(
        "{ y[i]", "{\n\n   y[i]"
    )
    changed = changed.replace("import torch\n", "import torch  # the library\n", 1)
    changed = changed.replace(
        "class ModelNew(torch.nn.Module):\n", 'class ModelNew(torch.nn.Module):\n    """Mine.\n\n    Fast."""\n', 1
    )
    assert "Fast." in changed
    assert tokens_of(changed) == tokens_of(CUDA)
    assert found(Text("a", PYTORCH, CUDA), Text("b", "# mine\n" + PYTORCH, changed)) == [("b", "exact", "a")]


def test_a_small_change_is_a_near_duplicate_and_another_kernel_is_none():
    slight = CUDA.replace("255) / 256, 256>>>", "127) / 128, 128>>>")
    other = CUDA.replace("a * x[i]", "x[i] > 0.f ? x[i] + a * __expf(-x[i]) : a * tanhf(x[i] / 3.f)").replace(
        "if (i < n)", "for (; i < n; i += gridDim.x * blockDim.x)"
    )
    texts = [Text("a", PYTORCH, CUDA), Text("b", PYTORCH, slight), Text("c", PYTORCH, other)]
    assert found(*texts, threshold=0.85) == [("b", "near", "a")]
    assert found(*texts, threshold=1.1) == []
    assert found(texts[0], Text("b", PYTORCH, slight, near=False), threshold=0.85) == []


def test_one_problem_with_two_kernels_is_two_examples_and_one_kernel_for_two_problems_too():
    kernel = "\n".join(f"y{n} = x{n} * {n}" for n in range(200))
    assert found(Text("a", PYTORCH, CUDA), Text("b", PYTORCH, kernel)) == []
    problem = "\n".join(f"z{n} = x{n} + {n}" for n in range(200))
    assert found(Text("a", PYTORCH, kernel), Text("b", problem, kernel)) == []


def test_the_first_of_duplicates_is_kept_even_across_others():
    texts = [
        Text("a", "x = 1", "y = 1"),
        Text("b", "x = 2", "y = 2"),
        Text("c", "x = 1", "y = 1"),
        Text("d", "x = 1", "y = 1"),
    ]
    assert found(*texts) == [("c", "exact", "a"), ("d", "exact", "a")]


@pytest.mark.parametrize("seed", range(3))
def test_against_all_pairs_compared(seed):
    # an independent reference: greedy over exact similarities of every pair, no sketch
    draw = random.Random(seed)
    bases = [[f"t{draw.randrange(4000)}" for _ in range(draw.randrange(120, 240))] for _ in range(12)]
    texts = []
    for number in range(60):
        words = list(draw.choice(bases))
        for _ in range(draw.choice([0, 0, 1, 2, 30])):
            words[draw.randrange(len(words))] = f"u{draw.randrange(4000)}"
        texts.append(Text(str(number), "p = 1", " + ".join(words)))
    config = DedupConfig(threshold=0.8)
    kept, expected = {}, set()
    for text in texts:
        mine = shingles(pair_tokens(text.pytorch_code, text.cuda_code), config.shingle)
        if any(jaccard(mine, other) >= config.threshold for other in kept.values()):
            expected.add(text.id)
        else:
            kept[text.id] = mine
    dropped = duplicates(texts, config)
    assert {one.id for one in dropped} == expected
    assert all(one.similarity >= config.threshold for one in dropped)
    assert {one.of for one in dropped} <= set(kept)


def test_a_prefix_of_the_order_decides_the_same():
    draw = random.Random(5)
    texts = [Text(str(n), "p = 1", f"v = {draw.randrange(12)}") for n in range(40)]
    assert duplicates(texts[:25]) == [one for one in duplicates(texts) if int(one.id) < 25]


@pytest.mark.parametrize("length", [3, 500])
def test_a_source_of_many_lines_that_are_added_is_compared(length):
    code = "source = " + " + ".join(f"'int a{n};\\n'" for n in range(length))
    assert found(Text("a", PYTORCH, code), Text("b", PYTORCH, code), Text("c", PYTORCH, "x = 1")) == [
        ("b", "exact", "a")
    ]


def test_a_source_with_half_a_character_is_compared():
    """Python reads the escape in a string as a lone surrogate, which UTF-8 does not have."""
    code = CUDA.replace("// one", "\\ud800 // one")
    assert found(Text("a", PYTORCH, code), Text("b", PYTORCH, code)) == [("b", "exact", "a")]


@pytest.mark.parametrize(("field", "value"), [("threshold", 0.0), ("shingle", 0)])
def test_settings_under_which_everything_is_a_duplicate_are_refused(field, value):
    with pytest.raises(ValidationError, match=field):
        DedupConfig(**{field: value})


@pytest.mark.parametrize("permutations", [-1, 0, 1, 2])
def test_too_few_permutations_are_refused(permutations):
    with pytest.raises(DiceError, match=f"{permutations} permutations"):
        duplicates([], DedupConfig(permutations=permutations))


def test_jaccard_of_sets():
    a, b = shingles(list("abcdef"), 2), shingles(list("abcdxy"), 2)
    assert jaccard(a, b) == pytest.approx(3 / 7)
    assert jaccard(a, a) == 1
    assert shingles(["one"], 5).size == 1


def of_words(*changed: int, words: int = 48) -> Text:
    """A pair whose CUDA program is different words with a plus between them; the words at `changed` are others."""
    written = [f"other{n}" if n in changed else f"word{n}" for n in range(words)]
    return Text(f"without {changed}", "p = 1", " + ".join(written))


def overlap(one: Text, other: Text) -> float:
    """Jaccard similarity of the sets of five consecutive tokens, counted here and not by `shingles`."""
    first, second = (
        {tuple(tokens[n : n + 5]) for n in range(len(tokens) - 4)}
        for tokens in (pair_tokens(text.pytorch_code, text.cuda_code) for text in (one, other))
    )
    return len(first & second) / len(first | second)


@pytest.mark.parametrize(
    ("words", "changed", "similarity", "near"),
    [
        (48, (45,), 90 / 100, True),
        (95, (20, 60), 179 / 199, False),
        (47, (20,), 88 / 98, False),
        (48, (20, 21), 88 / 102, False),
    ],
)
def test_nine_tenths_of_the_shingles_make_a_near_duplicate_and_less_does_not(words, changed, similarity, near):
    """By default, with windows of five tokens: a pair exactly at the threshold is a duplicate, one of 0.8995 is none, though
    the sketch proposes it."""
    original, other = of_words(words=words), of_words(*changed, words=words)
    assert overlap(original, other) == pytest.approx(similarity, abs=0)
    found = [(one.id, one.kind) for one in duplicates([original, other])]
    assert found == ([(other.id, "near")] if near else [])
    (lower,) = duplicates([original, other], DedupConfig(threshold=similarity))
    assert (lower.id, lower.similarity) == (other.id, round(similarity, 4))
