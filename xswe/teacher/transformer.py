"""Teachers that transformers or sentence-transformers can load, without any code from the model's folder.

GTE and mGTE checkpoints come with their own modelling code. Their ``config.json`` has ``model_type: new`` and names Python
files to run (Zhang et al. 2024, mGTE; gte-base-en-v1.5 and others). The architecture is ``gte`` in transformers, which also
knows these checkpoints' weight names: one matrix for query, key and value, and one whose first half is the gated (up) and
second half the gating matrix. Only the configuration has to be translated, and nothing in a folder is executed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from tokenizers import Tokenizer

from xswe.errors import ConfigError, DependencyError, ModelError, brief
from xswe.io.files import fingerprint, package_folder, read_json
from xswe.io.parallel import alongside, available_memory
from xswe.io.ragged import Texts, bounds_of
from xswe.io.settings import for_all
from xswe.progress import track
from xswe.teacher.protocol import Device, States, TeacherConfig, TeacherType
from xswe.text.tokenizers import WORD_START
from xswe.text.units import in_blocks

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)
# Settings with several values in these checkpoints' code, but only this one in transformers.
_SUPPORTED = {
    "position_embedding_type": "rope",
    "layer_norm_type": "layer_norm",
    "pack_qkv": True,
    "logn_attention_scale": False,
}
_SHARED = (
    *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "hidden_act"),
    *("hidden_dropout_prob", "attention_probs_dropout_prob", "max_position_embeddings", "type_vocab_size"),
    *("initializer_range", "layer_norm_eps", "pad_token_id", "bos_token_id", "eos_token_id"),
)


def is_own_code(settings: Any) -> bool:
    """Return True if a ``config.json`` belongs to a GTE checkpoint with its own code."""
    if not isinstance(settings, dict) or settings.get("model_type") != "new":
        return False
    return any(str(name).startswith("New") for name in settings.get("architectures") or [])


def native_settings(settings: dict[str, Any], where: str) -> dict[str, Any]:
    """Translate the ``config.json`` of a checkpoint with its own code to settings of transformers' ``GteConfig``.

    Its fixed NTK scaling of rotary positions by a factor k gives the frequencies ``(k theta)^(-2i / d) / k^(2 / d)`` for
    heads of d dimensions: a larger base, and a common divisor of all frequencies, which transformers calls linear scaling.
    ModelError: a setting is missing, or not supported by ``GteModel``; ``where`` is the folder or hub name to report.
    """
    for name, known in _SUPPORTED.items():
        if (found := settings.get(name, known)) != known:
            raise ModelError(
                f"teacher {where}: {name} is {found!r} in its config.json, but transformers' gte only supports {known!r}"
            )
    theta = float(settings.get("rope_theta", 10_000.0))
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": theta}
    if scaling := settings.get("rope_scaling"):
        kind, factor = scaling.get("type", scaling.get("rope_type")), float(scaling.get("factor", 1.0))
        if kind != "ntk" or scaling.get("mixed_b") is not None:
            raise ModelError(f"teacher {where}: rope_scaling is {scaling} in its config.json; only type ntk is known")
        try:
            head = settings["hidden_size"] // settings["num_attention_heads"]
        except KeyError as error:
            raise ModelError(f"teacher {where}: its config.json has no {error.args[0]}; fetch it again") from None
        rope = {"rope_type": "linear", "rope_theta": theta * factor, "factor": factor ** (2 / head)}
    return {name: settings[name] for name in _SHARED if name in settings} | {"rope_parameters": rope}


def find_settings(where: str, revision: str | None) -> dict[str, Any] | None:
    """Return the ``config.json`` of a folder or hub name if it is a GTE checkpoint with its own code."""
    try:
        file = settings_file(where, "config.json", revision)
        settings = read_json(file) if file else None
    except (OSError, ValueError, RecursionError):
        return None  # let transformers report the problem
    return settings if is_own_code(settings) else None


def load(where: str, settings: dict[str, Any], dtype: Any, revision: str | None) -> Any:
    """Load a GTE checkpoint with its own code, a folder or hub name, as transformers' ``GteModel``.

    ``settings`` is its ``config.json``, ``dtype`` torch's type of the weights. ModelError: see :func:`native_settings`, or
    weights are missing or have another shape. OSError: there are no safetensors weights.
    """
    from transformers import GteConfig, GteModel

    model, report = GteModel.from_pretrained(
        where,
        config=GteConfig(**native_settings(settings, where)),
        dtype=dtype,
        revision=revision,
        use_safetensors=True,
        output_loading_info=True,
    )
    if wrong := sorted(map(str, [*report["missing_keys"], *report["mismatched_keys"]])):
        named = ", ".join(wrong[:3]) + (", …" if len(wrong) > 3 else "")
        raise ModelError(f"teacher {where}: weights missing or of another shape ({named}); fetch it again")
    return model


_DEVICES: dict[str, Callable[[Any], str]] = for_all(
    Device,
    {
        "auto": lambda torch: "cuda" if torch.cuda.is_available() else "cpu",
        "cpu": lambda _torch: "cpu",
        "cuda": lambda _torch: "cuda",
    },
)


def place_of(config: TeacherConfig) -> str:
    """Return torch's name for the device of a teacher; ConfigError: it is not there."""
    torch = _torch()
    place = _DEVICES[config.device](torch)
    if place == "cuda" and not torch.cuda.is_available():
        raise ConfigError(f"teacher.device={place}: PyTorch sees no graphics card; use cpu, or auto")
    return place


def type_of(config: TeacherConfig) -> str:
    """Return torch's name for the type of a teacher's computations."""
    if config.dtype != "auto":
        return config.dtype
    torch = _torch()
    if place_of(config) == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float32"
    return "bfloat16" if _has_bfloat16(getattr(torch.cpu, "get_capabilities", dict)()) else "float32"


def load_teacher(config: TeacherConfig) -> TransformerTeacher:
    """Load a teacher.

    ModelError: it is missing, needs remote code, or has no fast tokenizer. DependencyError: torch or transformers is
    missing.
    """
    try:
        import torch

        if config.model != "mini":
            import transformers  # noqa: F401 (the encoder of this package does without)
    except ImportError:
        raise DependencyError("torch and transformers", "train", "a teacher") from None
    where = locate(config.model)
    device = place_of(config)
    config = replace(config, dtype=cast("TeacherType", type_of(config)))  # also on workers elsewhere
    dtype = getattr(torch, config.dtype)
    try:
        if config.model == "mini":
            from xswe.teacher.gte import GteEncoder, GteTokenizer

            model: Any = GteEncoder(Path(where), dtype)
            tokenizer: Any = GteTokenizer(Path(where))
        else:
            model, tokenizer = _by_transformers(where, dtype, config.revision)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise ModelError(explain(where, error)) from None
    if not getattr(tokenizer, "is_fast", False):
        raise ModelError(f"teacher {where}: its tokenizer has no character offsets; choose one with a tokenizer.json")
    config = replace(config, prompt=prompt_of(where, config.revision) if config.prompt is None else config.prompt)
    model = model.eval().to(device)
    if not config.batch_tokens:
        config = replace(config, batch_tokens=fitting(model.config, _free(device), dtype.itemsize, device == "cuda"))
        logger.info("teacher %s: batches of %s tokens", where, f"{config.batch_tokens:,}")
    if dtype is torch.bfloat16 and device == "cpu" and _lacks_bfloat16(getattr(torch.cpu, "get_capabilities", dict)()):
        hint = "float32 takes about a third of the time"
        logger.warning("teacher.dtype=bfloat16: this processor has no instructions for it; %s", hint)
    return TransformerTeacher(config, model, tokenizer, _pooling(config, where))


def _by_transformers(where: str, dtype: Any, revision: str | None) -> tuple[Any, Any]:
    """Load a model and its tokenizer, without any code from the model's folder."""
    from transformers import AutoModel, AutoTokenizer

    options: dict[str, Any] = {"revision": revision, "trust_remote_code": False}
    with quiet():
        if (own := find_settings(where, revision)) is not None:
            model = load(where, own, dtype, revision)
            options["config"] = model.config  # else transformers would look for the tokenizer's class in the folder's code
        else:
            model = AutoModel.from_pretrained(where, dtype=dtype, **options)
        return model, AutoTokenizer.from_pretrained(where, **options)


_MEMORY_SHARE = 0.25  # share of the free memory for a batch
_MIN_TOKENS, _MAX_TOKENS = 1024, {False: 16_384, True: 131_072}  # of a batch; more do not help on a CPU


def fitting(config: Any, free: float, size: int, card: bool) -> int:
    """Return how many padded tokens fit the free bytes, for numbers of ``size`` bytes; ``card`` is True for a GPU."""
    width, heads = config.hidden_size, config.num_attention_heads
    numbers = 8 * width + 3 * getattr(config, "intermediate_size", 4 * width) + 64 * heads  # for a token, in a layer
    tokens = int(_MEMORY_SHARE * free / (numbers * size))
    return min(max(tokens // _MIN_TOKENS * _MIN_TOKENS, _MIN_TOKENS), _MAX_TOKENS[card])


def _free(device: str) -> float:
    """Return the bytes of free memory of a teacher's device."""
    return float(_torch().cuda.mem_get_info()[0]) if device == "cuda" else available_memory()


def _has_bfloat16(capabilities: Mapping[str, Any]) -> bool:
    """Return True if a processor, by torch's description, is known to have bfloat16 products."""
    return any(capabilities.get(name) for name in ("avx512_bf16", "amx_bf16", "arm_bf16", "bf16"))


def _lacks_bfloat16(capabilities: Mapping[str, Any]) -> bool:
    """Return True if an Intel or AMD processor, by torch's description, emulates bfloat16 products."""
    own = ("avx512_bf16", "amx_bf16")
    return capabilities.get("architecture") == "x86_64" and not any(capabilities.get(name) for name in own)


def locate(model: str) -> str:
    """Return the folder or hub name that a ``teacher.model`` stands for."""
    if model == "mini":
        return str(mini_folder())
    if not model.startswith("package:"):
        return model
    package, _, inside = model.removeprefix("package:").partition("/")
    if (folder := package_folder(package)) is None:
        raise ModelError(f"teacher {model}: the Python package {package!r} is not installed; pip install it")
    return str(folder / inside)


def mini_folder() -> Path:
    """Return the folder of the teacher shipped in this package."""
    folder = Path(__file__).parent / "mini"
    if not (folder / "model.safetensors").is_file():
        raise ModelError(f"{folder}: the teacher 'mini' is not in this installation; choose another teacher.model")
    return folder


def explain(where: str, error: Exception) -> str:
    """Turn a loading error into one line with a hint."""
    found = brief(error)
    if "trust_remote_code" in found or "custom code" in found:
        hint = "it needs code from its folder, which xswe never runs"
        if "gte-multilingual" in where:
            hint += "; teacher.model=alibaba-nlp-community/gte-multilingual-base is the same model without code"
        return f"teacher {where}: {hint}; choose a model that transformers knows"
    hint = "check the path or name; without a network use teacher=mini, or teacher.model=FOLDER"
    return f"teacher {where}: cannot be loaded ({found[:300]}); {hint}"


def settings_file(where: str, name: str, revision: str | None) -> Path | None:
    """Return a settings file of a folder or hub model; None if it has none."""
    if Path(where).is_dir():
        return file if (file := Path(where) / name).is_file() else None
    from transformers.utils import cached_file

    found = cached_file(where, name, revision=revision, _raise_exceptions_for_missing_entries=False)
    return Path(found) if found else None


def prompt_of(where: str, revision: str | None) -> str:
    """Return the default prompt of sentence-transformers."""
    file = settings_file(where, "config_sentence_transformers.json", revision)
    settings = read_json(file) if file else {}
    name = settings.get("default_prompt_name")
    if name is None:
        return ""
    prompt = (settings.get("prompts") or {}).get(name)
    if not isinstance(prompt, str):
        raise ModelError(f"{file}: there is no prompt {name!r}, its default; set teacher.prompt")
    return prompt


def _pooling(config: TeacherConfig, where: str) -> str:
    """Return the pooling: as configured, else as in the folder's sentence-transformers settings, else CLS."""
    if config.pooling != "auto":
        return config.pooling
    settings = settings_file(where, "1_Pooling/config.json", config.revision)
    if settings is None:
        return "cls"
    modes = read_json(settings)
    mode = modes.get("pooling_mode") or next(
        (k for k, v in modes.items() if k.startswith("pooling_mode_") and v is True), ""
    )
    for name, words in (("cls", ("cls", "pooling_mode_cls_token")), ("mean", ("mean", "pooling_mode_mean_tokens"))):
        if mode in words:
            return name
    raise ModelError(f"{settings}: pools by {mode!r}; set teacher.pooling to cls or mean")


_ACTIVATIONS = {"torch.nn.modules.activation.Tanh": "tanh", "torch.nn.modules.linear.Identity": "positive"}


@dataclass(frozen=True, eq=False)
class _Dense:
    """A layer after the pooling, as in LaBSE."""

    weight: Any  # (d, d)
    bias: Any  # (d,), or None
    activation: str  # name of a torch function

    def __call__(self, pooled: torch.Tensor) -> torch.Tensor:
        """Apply the layer to (b, d)."""
        torch = _torch()
        weight, bias = (None if one is None else one.to(pooled.device, pooled.dtype) for one in (self.weight, self.bias))
        return getattr(torch, self.activation)(torch.nn.functional.linear(pooled, weight, bias))


def _find_dense(where: str, revision: str | None, width: int) -> _Dense | None:
    """Read the layer after the pooling from a folder's sentence-transformers settings; None if there is none.

    ModelError: the layer is of an unknown kind, of another width, or not in safetensors.
    """
    file = settings_file(where, "modules.json", revision)
    names = [one["path"] for one in (read_json(file) if file else []) if str(one.get("type", "")).endswith("Dense")]
    if not names:
        return None
    from safetensors.torch import load_file

    settings = settings_file(where, f"{names[0]}/config.json", revision)
    layer = read_json(settings) if settings else {}
    activation = _ACTIVATIONS.get(layer.get("activation_function", "torch.nn.modules.activation.Tanh"))
    weights = settings_file(where, f"{names[0]}/model.safetensors", revision)
    if len(names) > 1 or activation is None or weights is None:
        problem = f"{', '.join(names)} after its pooling is no single layer in safetensors with tanh or nothing after it"
        raise ModelError(f"teacher {where}: {problem}; its states can be used, but not its vectors")
    tensors = load_file(weights)
    weight = tensors["linear.weight"]
    if tuple(weight.shape) != (width, width):
        raise ModelError(f"teacher {where}: {names[0]} makes {len(weight)} dimensions of {width}; only as many are known")
    return _Dense(weight, tensors.get("linear.bias"), activation)


# Functions that pool a batch's states (b, t, d), given the attention mask (b, t, 1).
_POOLINGS: dict[str, Callable[[Any, Any], Any]] = {
    "cls": lambda hidden, _mask: hidden[:, 0],
    "mean": lambda hidden, mask: (hidden * mask).sum(1) / mask.sum(1).clamp(min=1),
}


class TransformerTeacher:
    """A transformers encoder as a teacher."""

    def __init__(self, config: TeacherConfig, model: Any, tokenizer: Any, pooling: str) -> None:
        self.config, self.model, self.pooling = config, model, pooling
        self._pretrained = tokenizer
        self._max_tokens = min(config.max_tokens, _positions(model) or config.max_tokens)
        self._warned: set[str] = set()

    @property
    def name(self) -> str:
        """The name that was loaded."""
        return self.config.model

    @property
    def dim(self) -> int:
        """Width of the states."""
        return int(self.model.config.hidden_size)

    @cached_property
    def _dense(self) -> _Dense | None:
        """The layer after the pooling, if the settings name one."""
        return _find_dense(locate(self.config.model), self.config.revision, self.dim)

    def checksum(self) -> str:
        """Return a fingerprint of the weights, so that another checkpoint with the same name is another teacher."""
        parts = sorted((name, list(p.shape), float(p.detach().double().sum())) for name, p in self.model.named_parameters())
        return fingerprint(parts)

    @cached_property
    def identity(self) -> str:
        """A fingerprint of the weights at the first call, and of the settings that determine the results."""
        return fingerprint({**asdict(self.config), "threads": None, "batch_tokens": None}, self.checksum())

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """A copy of the tokenizer: the one used for encoding has truncation and padding set for each batch."""
        own = Tokenizer.from_str(self._pretrained.backend_tokenizer.to_str())
        own.no_truncation()
        own.no_padding()
        return own

    def lengths(self, texts: Sequence[str]) -> np.ndarray:
        """Count the tokens of each text, without truncation, special tokens and prompt: int64 (n,)."""
        count = self.tokenizer.encode_batch_fast
        sizes = (len(one) for block in in_blocks(texts) for one in count(block, add_special_tokens=False))
        return np.fromiter(sizes, np.int64, len(texts))

    def batches(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Split texts into batches of similar length, shortest first; UTF-8 bytes serve as a cheap estimate of tokens."""
        sizes = Texts.of(texts).sizes
        order = np.argsort(sizes, kind="stable")
        out, start = [], 0
        while start < len(order):
            stop = start + 1
            # Three bytes a token is a safe guess for every language here; the bound only limits padding and memory.
            while stop < len(order) and (stop + 1 - start) * (sizes[order[stop]] / 3 + 3) <= self.config.batch_tokens:
                stop += 1
            out.append(order[start:stop])
            start = stop
        return out

    def states(self, texts: Sequence[str], batches: Sequence[np.ndarray]) -> Iterator[States]:
        """Encode the given batches, in order; special tokens, padding, the prompt and lone marks are left out.

        The mark of a word start, if it is a token by itself, reports the place of the character after it. Its state would
        be averaged into that word's vector, which the paper does not do (EN paper 3.1).
        """
        cut = 0
        with closing(alongside(partial(self._tokens_of, texts), batches, most=2)) as tokenized:
            for packed, rows, real, places, over in tokenized:
                cut += over
                hidden = self._forward(packed)
                offsets = bounds_of(real.sum(1))
                flat = hidden[_torch().from_numpy(real).to(hidden.device)].float().cpu().numpy()
                where = np.ascontiguousarray(places[real], np.int32)
                yield States(rows, flat, offsets, where[:, 0].clip(min=0), where[:, 1])
        self._tell(cut, sum(map(len, batches)), "has no state")

    def _tokens_of(self, texts: Sequence[str], rows: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, int]:
        """Tokenise a batch, while the encoder works on the one before.

        Return the encoder's input; the rows; bool (b, t), the tokens whose states are used; int (b, t, 2), their places;
        and the number of truncated texts.
        """
        prompt, mark = self.config.prompt or "", self.tokenizer.token_to_id(WORD_START)
        packed = self._tokenize([prompt + texts[row] for row in rows], places=True)
        over = _count_cut(packed)
        places = packed.pop("offset_mapping").numpy() - len(prompt)
        special = packed.pop("special_tokens_mask").numpy().astype(bool)
        real = ~special & packed["attention_mask"].numpy().astype(bool) & (places[..., 1] > 0)
        real &= places[..., 0] < places[..., 1]
        if mark is not None:
            real &= packed["input_ids"].numpy() != mark
        return packed, rows, real, places, over

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        """Encode texts to unit vectors, float32 (n, d)."""
        out, cut = np.zeros((len(texts), self.dim), np.float32), 0
        for rows in track(self.batches(texts), f"encode with {Path(self.name).name}", unit="batch"):
            packed = self._tokenize([(self.config.prompt or "") + texts[row] for row in rows])
            cut += _count_cut(packed)
            hidden = self._forward(packed).float()
            pooled = _POOLINGS[self.pooling](hidden, packed["attention_mask"].to(hidden.device)[..., None])
            pooled = pooled if self._dense is None else self._dense(pooled)
            out[rows] = _torch().nn.functional.normalize(pooled, dim=-1).cpu().numpy()
        self._tell(cut, len(texts), "is not in their vectors")
        return out

    def _tell(self, cut: int, total: int, fate: str) -> None:
        """Warn only once about truncated texts: the next call may be for the next shard of the same work."""
        if cut:
            level = logging.DEBUG if fate in self._warned else logging.WARNING
            self._warned.add(fate)
            what = "%s: %s of %s texts are longer than %d tokens; the rest of them %s"
            logger.log(level, what, self.name, f"{cut:,}", f"{total:,}", self._max_tokens, fate)

    def _tokenize(self, batch: list[str], places: bool = False) -> Any:
        return self._pretrained(
            batch,
            padding=True,
            truncation=True,
            max_length=self._max_tokens,
            return_tensors="pt",
            return_offsets_mapping=places,
            return_special_tokens_mask=places,
        )

    def _forward(self, packed: Any) -> torch.Tensor:
        """Run the encoder and return the last layer's states, (b, tokens, d)."""
        with _torch().inference_mode(), _threads(self.config.threads), _attention():
            return self._states_of(dict(packed.to(self.model.device)))

    def _states_of(self, tensors: dict[str, torch.Tensor]) -> torch.Tensor:
        """Run the encoder; split the batch in halves if it does not fit a GPU's memory."""
        torch = _torch()
        rows = len(tensors["input_ids"])
        try:
            return self.model(**tensors).last_hidden_state
        except torch.OutOfMemoryError:
            if rows < 2:
                raise
        torch.cuda.empty_cache()
        logger.warning("%s: no memory for a batch of %d texts; set teacher.batch_tokens lower, or to 0", self.name, rows)
        halves = [{name: t[part] for name, t in tensors.items()} for part in (slice(rows // 2), slice(rows // 2, None))]
        return torch.cat([self._states_of(half) for half in halves])


def _count_cut(packed: Any) -> int:
    """Count the truncated texts of a tokenised batch."""
    return sum(bool(one.overflowing) for one in packed.encodings)


def _positions(model: Any) -> int | None:
    """Return the number of positions of a model; None if unknown."""
    table = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    padding = getattr(table, "padding_idx", None)
    limit = getattr(model.config, "max_position_embeddings", None)
    # RoBERTa and its relatives count positions from the one after the padding, and waste the rows before it.
    return limit if limit is None or padding is None else limit - padding - 1


def _torch() -> Any:
    import torch

    return torch


def _attention() -> Any:
    """Compute attention without cuDNN within the block: for each new shape of a batch it plans longer than it computes."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    return sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH])


@contextmanager
def _threads(threads: int) -> Iterator[None]:
    """Run torch on ``threads`` threads within the block."""
    torch = _torch()
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence transformers' progress bars and reports; ValueError: a setting in ``config.json`` has a wrong type."""
    from huggingface_hub.errors import StrictDataclassError
    from transformers.utils import logging as hf_logging

    level = hf_logging.get_verbosity()
    hf_logging.set_verbosity_error()
    hf_logging.disable_progress_bar()
    try:
        yield
    except StrictDataclassError as error:
        raise ValueError(brief(error)) from None
    finally:
        hf_logging.set_verbosity(level)
        hf_logging.enable_progress_bar()
