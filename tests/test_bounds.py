"""The bounds of all numbers in settings: the last value that is taken, and the first that is refused."""

from __future__ import annotations

import dataclasses
import math
import operator
import re
import typing

import pytest

from tests.test_choices import LATER, modules
from xswe.errors import XsweError
from xswe.training.objective import LOSSES

# The bounds of the settings of each class, with what is given besides where there are other bounds without.
BOUNDS = {
    "xswe.alignment.beads:AlignConfig": """
        1 <= most <= 5; 0 <= gap < 1; merge >= 0; length >= 0; prior >= 0; search >= 1; 0 < precision < 1;
        threads >= 0""",
    "xswe.alignment.dictionary:LexiconConfig(candidates=20)": "1 <= best <= 20; 1 <= k <= 20",
    "xswe.alignment.dictionary:LexiconConfig(k=7, best=5)": "candidates >= 7",
    "xswe.alignment.dictionary:DictionaryConfig": "limit >= 0",
    "xswe.alignment.link:BitextLinkConfig(what='lexicon')": "most >= 1; min_count >= 1",
    "xswe.alignment.words:LinkConfig": "prior >= 0; heat > 0; 0 < share <= 1",
    "xswe.alignment.words:LinkConfig(method='itermax')": "turns >= 0; 0 < keep <= 1",
    "xswe.corpus.bitext:CorpusConfig(development=0.0)": "0 <= held_out < 1",
    "xswe.corpus.bitext:CorpusConfig(held_out=0.0)": "0 <= development < 1",
    "xswe.corpus.bitext:CorpusConfig": "max_characters >= 0; max_held_out >= 0; max_development >= 0; limit >= 0",
    "xswe.corpus.cleaning:CleanConfig": "min_characters >= 0; 0 <= letters <= 1; 0 <= script <= 1; 0 <= hubs <= 254",
    "xswe.corpus.contexts:ContextConfig": "per_unit >= 1; candidates >= 1; seed >= 0",
    "xswe.evaluation.metrics:Bootstrap": "rounds >= 0; 0 < level < 1; seed >= 0",
    "xswe.mining.dedup:DedupConfig": "0 < threshold <= 1; 0 < near <= 1",
    "xswe.mining.hard_rules:FilterConfig": "min_characters >= 0",
    "xswe.mining.negatives:NegativesConfig(candidates=9)": "1 <= negatives <= 9; 0 <= relative_margin < 1",
    "xswe.mining.negatives:NegativesConfig(negatives=3)": "candidates >= 3",
    "xswe.mining.pipeline:MineConfig": "k >= 1; 0 < precision < 1; 0 < rerank_share <= 1",
    "xswe.mining.pipeline:MineConfig(select='kbest')": "best >= 1",
    "xswe.mining.score:ScoreFileConfig(score='ratio')": "k >= 1",
    "xswe.mining.verdicts:BitextFilter": """
        0 < precision < 1; 0 < rerank_share <= 1; 0 <= letters <= 1; 0 <= script <= 1; min_characters >= 0;
        max_characters >= 1; 0 <= hubs <= 254""",
    "xswe.model.export:ExportConfig": "dim >= 0; keep >= 0; shared >= 0",
    "xswe.model.interchange:ImportConfig": "limit >= 0",
    "xswe.phrases.search:SpanConfig(max_size=8)": """
        1 <= min_size <= 8; k >= 1; -1 <= min_score <= 1; examples >= 1; threads >= 1""",
    "xswe.phrases.search:SpanConfig(min_size=2)": "2 <= max_size <= 1000",
    "xswe.report.answers:FileSearchConfig": "k >= 1; candidates >= 1; rescored >= 1; threads >= 0",
    "xswe.search.lists:SearchConfig(method='clusters')": """
        0 < memory < inf; clusters >= 0; probes >= 1; threads >= 0; seed >= 0""",
    "xswe.serving.config:ServeConfig": """
        0 <= port <= 65535; max_bytes >= 1; max_texts >= 1; max_characters >= 1; max_connections >= 1; waiting >= 1;
        max_buffered >= 4194304; seconds > 0; threads >= 0""",
    "xswe.teacher.protocol:TeacherConfig": "max_tokens >= 3; batch_tokens >= 0; threads >= 1",
    "xswe.training.config:PCAConfig": "dim >= 1; sentences >= 1; 0 <= norm < inf; 0 < spread < inf",
    "xswe.training.graded:GradedConfig": "0 < weight < inf; 0 < temperature < inf; batch_size >= 2",
    "xswe.training.objective:Objective": """
        0.0265 <= temperature < inf; 0 < distillation_temperature < inf; 0 <= margin < inf; ranking > 0"""
    + "".join(f"; 0 <= {name} < inf" for name in LOSSES if name != "ranking"),  # which is the weight that is not 0
    "xswe.training.refine:RefineConfig(batch_size=64)": """
        0 <= neighbours <= 64; max_steps >= 0; eval_steps >= 1; 0 <= decay_start <= 1; 0 <= bigrams <= 16777215;
        0 <= patience_epochs < inf; 0 < learning_rate < inf; 0 <= max_grad_norm < inf; patience >= 0; 0 <= epochs < inf;
        0 <= warmup <= 1; seed >= 0; threads >= 1""",
    "xswe.training.refine:RefineConfig(neighbours=0)": "batch_size >= 2",
    "xswe.training.refine:RefineConfig(learning_rate=0.25)": "0 <= weight_decay < 4",
    "xswe.training.refine:RefineConfig(sample_from='contexts')": "per_unit >= 0",
    "xswe.training.shape:ShapeConfig": "0 <= norms < inf; centre < inf",
    "xswe.training.triplets:SpanTraining(max_size=8)": """
        1 <= min_size <= 8; max_steps >= 0; batch_size >= 2; around >= 1; 0 <= neighbours <= 1; eval_steps >= 1; pairs >= 2;
        0 < learning_rate < inf; 0 < scale < inf; hard >= 0; seed >= 0; threads >= 1""",
    "xswe.training.triplets:SpanTraining(triples=('a.tsv',), min_size=2)": "pairs >= 0; max_size >= 2",
    "xswe.training.units_stage:UnitsConfig": "size >= 1; sample >= 1",
    "xswe.work.config:ExecutionConfig": "shard >= 1",
    "xswe.work.config:ExecutionConfig('ray')": "workers >= 1; 0 <= cpus < inf; 0 <= gpus < inf",
    "xswe.work.config:ExecutionConfig('array', count=4, index=0)": "0 <= index <= 3",
    "xswe.work.config:ExecutionConfig('array', count=4, index=2)": "count >= 3; 0 <= wait < inf",
}
FACTORS = {
    "xswe.corpus.cleaning:CleanConfig": "ratio",
    "xswe.mining.hard_rules:FilterConfig": "length_ratio",
    "xswe.mining.verdicts:BitextFilter": "ratio",
}
# Numbers of which each is possible: scores, whose range depends on the score; and a column, which may be missing.
FREE = {"min_score", "max_score", "column"}
HOLDS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
TURNED = {"<": ">", "<=": ">="}


def made(name: str) -> typing.Any:
    module, _, call = name.partition(":")
    return eval(call if "(" in call else f"{call}()", vars(modules()[module]).copy())


def numeric(settings: typing.Any) -> dict[str, type]:
    """The numbers among the fields of a dataclass, with their types."""
    hints = typing.get_type_hints(type(settings), localns=LATER)
    parts = {field.name: (hints[field.name], *typing.get_args(hints[field.name])) for field in dataclasses.fields(settings)}
    return {
        name: float if float in kinds else int
        for name, kinds in parts.items()
        if {int, float} & {*kinds} and typing.get_origin(kinds[0]) not in (tuple, dict)
    }


def conditions(line: str) -> typing.Iterator[tuple[str, str, float]]:
    """Yield the conditions of a line: a setting, a sign and a number."""
    for part in line.split(";"):
        low, first, name, second, high = re.fullmatch(
            r"(?:([-\d.]+) (<=?) )?([a-z_]+)(?: ([<>]=?) (\S+))?", part.strip()
        ).groups()
        if low:
            yield name, TURNED[first], float(low)
        if high:
            yield name, second, float(high)


def taken(settings: typing.Any, name: str, value: float) -> bool:
    try:
        dataclasses.replace(settings, **{name: value})
    except XsweError as error:
        return name not in str(error) or "does nothing" in str(error)  # of another setting, or of any value
    return True


@pytest.mark.parametrize("name", BOUNDS)
def test_a_setting_is_taken_up_to_its_bound_and_not_beyond(name):
    settings = made(name)
    kinds = numeric(settings)
    for setting, sign, bound in conditions(BOUNDS[name]):
        kind = kinds[setting]
        near = (bound,) if math.isinf(bound) else (bound - (step := 1 if kind is int else 1e-3), bound, bound + step)
        around = [kind(value) for value in near]
        within = [HOLDS[sign](value, bound) for value in around]
        assert [taken(settings, setting, value) for value in around] == within, f"{setting} {sign} {bound:g}: {around}"


def test_a_factor_is_at_least_one_or_zero_for_none():
    for name, setting in FACTORS.items():
        assert [taken(made(name), setting, value) for value in (0.0, 0.999, 1.0, 1.5)] == [True, False, True, True]


def test_no_bound_is_forgotten():
    """A number of a setting has bounds that are named above, unless each is possible."""
    named = {(name.partition("(")[0], setting) for name, line in BOUNDS.items() for setting, *_ in conditions(line)}
    named |= set(FACTORS.items())
    missing = []
    for module, found in modules().items():
        for name, own in vars(found).items():
            is_checked = hasattr(own, "__post_init__") or name.endswith("Config")
            if dataclasses.is_dataclass(own) and own.__module__ == module and is_checked:
                try:
                    settings = own()
                except (TypeError, XsweError):
                    continue
                for setting, kind in numeric(settings).items():
                    refused = [value for value in map(kind, (-1, 0, 1, 2, 1e6)) if not taken(settings, setting, value)]
                    classes = [f"{one.__module__}:{one.__name__}" for one in own.__mro__]
                    if (refused or setting not in FREE) and not named & {(one, setting) for one in classes}:
                        missing.append(f"{module}:{name}.{setting} refuses {refused}")
    assert missing == []
