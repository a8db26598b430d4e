"""GTE and mGTE checkpoints that come with modelling code of their own, loaded without it.

Their ``config.json`` says ``model_type: new`` and names Python files to run (Zhang et al. 2024, mGTE; gte-base-en-v1.5 and
its kin). The architecture is the one that transformers knows as ``gte``, which also knows these checkpoints' names of the
weights: one matrix for query, key and value, and one whose first half is the gated (up) and second half the gating matrix.
Only the configuration has to be told in other words, and nothing of a folder is executed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from xswe.errors import ModelError
from xswe.io.files import read_json

# What the code of these checkpoints can do and the architecture in transformers cannot: the only value that is the same.
_ONLY = {
    "position_embedding_type": "rope",
    "layer_norm_type": "layer_norm",
    "pack_qkv": True,
    "logn_attention_scale": False,
}
_ALIKE = (
    *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "hidden_act"),
    *("hidden_dropout_prob", "attention_probs_dropout_prob", "max_position_embeddings", "type_vocab_size"),
    *("initializer_range", "layer_norm_eps", "pad_token_id", "bos_token_id", "eos_token_id"),
)


def is_own_code(settings: Any) -> bool:
    """Tell whether a ``config.json`` is that of a GTE checkpoint with code of its own."""
    if not isinstance(settings, dict) or settings.get("model_type") != "new":
        return False
    return any(str(name).startswith("New") for name in settings.get("architectures") or [])


def native_settings(settings: dict[str, Any], where: str) -> dict[str, Any]:
    """Return the settings of transformers' ``GteConfig`` for a checkpoint with code of its own.

    Its fixed NTK scaling of rotary positions by a factor k gives the frequencies
    ``(k theta)^(-2i / d) / k^(2 / d)`` for heads of d dimensions: a larger base, and one divisor of all frequencies, which
    transformers calls linear scaling.

    Args:
        settings: what ``config.json`` says.
        where: the folder or hub name, for messages.

    Raises:
        ModelError: it is a variant that the architecture in transformers has not, or a setting is missing.
    """
    for name, known in _ONLY.items():
        if (found := settings.get(name, known)) != known:
            raise ModelError(
                f"teacher {where}: {name} is {found!r} in its config.json, and transformers' gte knows {known!r}"
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
    return {name: settings[name] for name in _ALIKE if name in settings} | {"rope_parameters": rope}


def find_settings(where: str, revision: str | None) -> dict[str, Any] | None:
    """Return the ``config.json`` of a folder or hub name if it is that of a GTE checkpoint with code of its own."""
    path = Path(where) / "config.json"
    try:
        if not Path(where).is_dir():
            from transformers.utils import cached_file

            found = cached_file(where, "config.json", revision=revision, _raise_exceptions_for_missing_entries=False)
            path = Path(found) if found else path
        settings = read_json(path)
    except (OSError, ValueError, RecursionError):
        return None  # whatever is the matter, transformers says it
    return settings if is_own_code(settings) else None


def load(where: str, settings: dict[str, Any], dtype: Any, revision: str | None) -> Any:
    """Load a GTE checkpoint with code of its own as transformers' ``GteModel``.

    Args:
        where: folder or hub name.
        settings: its ``config.json``.
        dtype: torch's type of the weights.
        revision: of a hub name.

    Raises:
        ModelError: see :func:`native_settings`, or weights are missing or of another shape.
        OSError: there are no weights in safetensors.
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
