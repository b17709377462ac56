"""Settings of `dice rl`: the phases of a run, rollouts, reward, objective, and switches for the authors' deviations."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from dice.config import stage_config
from dice.data.difficulty import DifficultyScale
from dice.data.pair import OnBad
from dice.data.schedule import Order
from dice.decoding.block_diffusion import BlockDiffusionConfig
from dice.decoding.sampling import SamplingConfig
from dice.errors import DiceError
from dice.evaluation.prompts import PromptConfig, PromptTask
from dice.kernels.api import Backend, Judging, Limits, Machine
from dice.model.checkpoint import Dtype
from dice.training.losses import AttentionName
from dice.training.optimizer import OptimizerConfig
from dice.training.processes import DeviceName, EngineName
from dice.training.tracerl_loss import Normaliser

PAPER_DECODING = BlockDiffusionConfig(strategy="dynamic", threshold=0.9, sampling=SamplingConfig(temperature=1.0))
"""Paper, A.4.2: dynamic decoding, threshold 0.9, blocks of 4, temperature 1, no filters."""


@stage_config
class Phase:
    """Consecutive steps of one task. The variants of Table 6 are lists of phases."""

    task: PromptTask = "end_to_end"
    """`infilling`: the model writes the middle of a given file. `end_to_end`: the whole file."""
    problems: tuple[str, ...]
    """Files of pairs. `end_to_end` needs no `cuda_code`; `infilling` splits it where the pair is not split."""
    steps: int = Field(default=100, ge=1)
    """RL steps (paper, A.4.2: 20 for infilling, 100 end to end)."""
    order: Order = "paper"
    """`paper`: easy to hard (data scheduling); `uniform`: no curriculum; `released`: as the authors' code does."""
    name: str | None = None
    """Name in history and folders; None: the task."""
    on_bad: OnBad = "refuse"
    """`refuse` a file when a row is bad, or `skip` it."""


@stage_config
class RolloutConfig:
    """How answers are drawn."""

    problems_per_step: int = Field(default=64, ge=1)
    """Problems of one step, over all processes."""
    samples: int = Field(default=16, ge=2)
    """Answers per problem: the group in which rewards are compared."""
    redraws: int = Field(default=0, ge=0)
    """Dynamic sampling (DAPO, arXiv 2503.14476): times a step that groups without a difference are drawn anew, each on
    another problem, before the weights are updated; 0: they are dropped and the step goes on with fewer."""
    draw_ahead: bool = False
    """Draw the next step's answers while this step's are judged and learnt from: they come from weights one update older,
    and the ratio's denominator is what the sampler wrote down."""
    max_new_tokens: int = Field(default=4096, ge=1)
    """Longest answer."""
    decoding: BlockDiffusionConfig = PAPER_DECODING
    """How blocks are filled."""
    max_batch: int = Field(default=64, ge=1)
    """Sequences that one process decodes at the same time."""
    max_prompt_tokens: int | None = Field(default=None, ge=1)
    """Leave out problems with longer prompts, and count them; None: take all."""
    engine: Literal["auto", "plain", "fast"] = "auto"
    """`fast`: CUDA graphs and Triton kernels; `auto`: fast for bfloat16 on a GPU."""
    release: bool = False
    """Free cache and CUDA graphs while weights are updated (large models)."""


@stage_config
class PoolConfig:
    """The problems that are asked, chosen by their measured pass rate: where a policy is always right, or never, rewards
    do not differ."""

    answers: int = Field(default=0, ge=0)
    """Answers of the present policy by which a problem's pass rate is measured; 0: all problems are asked, unmeasured."""
    lowest: float = Field(default=0.083, ge=0, le=1)
    """Lowest pass rate of a problem that is asked; below 1/12 most groups of eight are all wrong."""
    highest: float = Field(default=0.917, ge=0, le=1)
    """Highest pass rate of a problem that is asked."""
    problems: int | None = Field(default=None, ge=1)
    """Problems that are measured at a time, drawn from the phase's by the seed; None: all of them."""
    refresh_every: int | None = Field(default=None, ge=1)
    """Steps after which a pool is measured anew; None: one pool for the phase, measured before its first step."""


@stage_config
class RewardConfig:
    """How an answer earns 1 or 0, and when it earns neither. The verifier's settings are those of `dice verify`."""

    url: str | None = None
    """A service that verifies (`dice serve`), such as `http://verifier:8642`, in the place of workers on this machine."""
    backend: Backend = "cuda"
    """Where kernels run."""
    judging: Judging = Judging(correctness_trials=1, measure_time=False)
    """Protocols and trials of the verifier; the first protocol decides. Released: one trial."""
    limits: Limits = Limits()
    """What a candidate may use; beyond its limits it earns 0."""
    machine: Machine = Machine()
    """Workers, GPUs, caches. With several processes each verifies its own answers, by default on its own GPU."""
    deceptive_earns_zero: bool = True
    """A deceptive kernel earns 0 even when its results are right."""
    unsupported_earns_zero: bool = True
    """A kernel that the CPU back end cannot run earns 0, so that the policy learns what can be verified. False: it is
    left out."""
    retries: int = Field(default=1, ge=0)
    """Times that an answer is verified again after a host error before it is left out."""
    silence_s: float = Field(default=1800.0, gt=0)
    """When no verdict comes for this long, the missing ones are left out and the verifier is started again."""


@stage_config
class ObjectiveConfig:
    """TraceRL's loss (arXiv 2509.06949), and how a step's answers are divided among updates."""

    clip: float = Field(default=0.2, gt=0)
    """The surrogate is clipped to ratios within 1 +- clip."""
    beta: float = Field(default=0.01, ge=0)
    """Weight of the KL term (k3)."""
    kl_reference: Literal["step_start", "start_model"] = "step_start"
    """KL from the policy that drew the answers (released), or from the model that the run started from."""
    old_log_probs: Literal["sampler", "recomputed"] = "sampler"
    """Denominator of the ratio: recorded by the sampler, or computed again before the first update (released)."""
    normaliser: Normaliser = "tokens"
    """Mean over `tokens`, over `responses` of their means, or `released`: sum / longest response, mean over rounds."""
    updates_per_step: int = Field(default=4, ge=1)
    """Optimizer updates of a step, each on an equal share of its answers."""
    epochs: int = Field(default=1, ge=1)
    """Times that a step's answers are used."""
    micro_batch_rows: int = Field(default=8192, ge=1)
    """Rows (clean and noised tokens) of one micro-batch; a longer answer is a micro-batch alone."""


@stage_config
class ReleasedBehaviour:
    """Deviations of the authors' code (docs/reference/deviations.md), each off by default; one switch changes one thing."""

    reset_optimizer: bool = False
    """AdamW is reset in every step."""
    weights_16bit: bool = False
    """Weights are rounded to bfloat16 after every step, so small changes are lost."""
    cosine_within_step: bool = False
    """The learning rate decays to 0 over the updates of a step, as accelerate's 8 processes advance it."""
    response_aligned_blocks: bool = False
    """Training cuts blocks from the response's start, decoding from position 0."""
    whole_file_infilling: bool = False
    """Infilling asks for the whole file and verifies it as it is: prefix and suffix are not enforced."""
    text_round_trip: bool = False
    """Answers pass through text and are tokenized again; the recorded step map is cut or extended to fit."""
    unshuffled_updates: bool = False
    """Updates go through the answers problem by problem."""
    host_error_earns_zero: bool = False
    """A host error earns 0."""
    loss_scale: float = Field(default=1.0, gt=0)
    """Factor of the loss; released 1/32, because it is divided twice by the number of accumulated micro-batches."""

    @property
    def recomputes(self) -> bool:
        """Whether the sampler's log-probabilities cannot be used: they belong to another layout or to other tokens."""
        return self.response_aligned_blocks or self.text_round_trip


@stage_config
class RlConfig:
    """Settings of `dice rl`. Defaults are the paper's (A.4.2) where it has the setting."""

    model: str
    """Checkpoint folder to start from."""
    out: str
    """Folder of the run."""
    phases: tuple[Phase, ...] = Field(min_length=1)
    """The phases, in their order."""
    tokenizer: str | None = None
    """Folder of the tokenizer; None: the model's."""
    prompt: PromptConfig = PromptConfig()
    """How a problem becomes a prompt; the one that the model was fine-tuned with."""
    rollout: RolloutConfig = RolloutConfig()
    """How answers are drawn."""
    difficulty: DifficultyScale = "level"
    """What the orders `paper` and `released` go up: KernelBench's `level`, or the number of `operators` of a program, for
    programs that are nearly all of one level."""
    pool: PoolConfig = PoolConfig()
    """Which problems of a phase are asked."""
    reward: RewardConfig = RewardConfig()
    """How answers are rewarded."""
    objective: ObjectiveConfig = ObjectiveConfig()
    """The loss and the updates of a step."""
    optimizer: OptimizerConfig = OptimizerConfig(learning_rate=1e-6)
    """AdamW; its state is kept for the whole run. The learning rate is constant."""
    released_behaviour: ReleasedBehaviour = ReleasedBehaviour()
    """The authors' deviations."""
    engine: EngineName = "local"
    """`local`: one device, or replicas under torchrun; `zero2`, `zero3`: DeepSpeed."""
    device: DeviceName = "auto"
    """`auto` takes a GPU where there is one."""
    memory_gib: float | None = Field(default=None, gt=0)
    """Memory of a GPU in GiB; what takes more is refused before a weight is read. None: what the GPU has, no limit on a
    CPU."""
    dtype: Dtype | None = None
    """Type of the products' weights (masters are fp32); None: bfloat16 on a GPU, float32 on a CPU."""
    activation_checkpointing: bool | None = None
    """Recompute layers in the backward pass; None: for models at least 1,024 wide."""
    attention: AttentionName = "auto"
    """`auto`: FlexAttention on a GPU, sample by sample on a CPU; `batched`: all answers in one padded batch."""
    compile: bool = True
    """Compile the operations between products on a GPU."""
    head_chunk: int = Field(default=1024, ge=1)
    """Targets whose logits exist at one time."""
    max_minutes: float | None = Field(default=None, gt=0)
    """Stop with a checkpoint before a step that would end later than this; the same command continues the run."""
    save_every: int = Field(default=10, ge=1)
    """Steps between checkpoints."""
    keep_checkpoints: int = Field(default=2, ge=1)
    """Newest checkpoints to keep."""
    save_rollouts: bool = True
    """Keep every answer with its verdict under rollouts/."""
    seed: int = 0
    """Seed of the schedule, the answers and the shuffling."""
    tensorboard: bool = True
    """Write TensorBoard files beside the history."""

    @property
    def steps(self) -> int:
        """Steps of all phases."""
        return sum(phase.steps for phase in self.phases)


RESUMABLE_CHANGES = {
    "out", "engine", "device", "memory_gib", "activation_checkpointing", "attention", "compile", "head_chunk", "max_minutes",
    "save_every", "keep_checkpoints", "save_rollouts", "tensorboard",
}  # fmt: skip
"""Settings that may change when a run is resumed: they change no result beyond rounding."""


def check(config: RlConfig) -> None:
    """Raises DiceError for settings that contradict each other."""
    released = config.released_behaviour
    if config.engine != "local" and (released.reset_optimizer or released.weights_16bit):
        raise DiceError("released_behaviour.reset_optimizer and weights_16bit need engine: local.")
    if config.rollout.draw_ahead and (config.objective.old_log_probs == "recomputed" or released.recomputes):
        raise DiceError(
            "rollout.draw_ahead needs objective.old_log_probs: sampler, and neither response_aligned_blocks nor "
            "text_round_trip: the policy that drew the answers is gone when they are learnt from."
        )
    if config.pool.lowest > config.pool.highest:
        raise DiceError(f"pool.lowest is {config.pool.lowest}, above pool.highest, {config.pool.highest}.")
    names = [phase.name or phase.task for phase in config.phases]
    if len(set(names)) < len(names):
        raise DiceError(f"two phases are called '{max(names, key=names.count)}'; give them names (phases: name).")
