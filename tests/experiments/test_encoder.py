from __future__ import annotations

import os
import socket
import subprocess

import numpy as np
import pytest

from tests.conftest import EVAL, SAMPLE, Later, eval_script
from xswe.errors import ConfigError
from xswe.io.files import read_json
from xswe.io.ragged import Bags
from xswe.model.static import pool
from xswe.teacher.protocol import TeacherConfig
from xswe.teacher.transformer import load_teacher
from xswe.text.subwords import SubwordUnits
from xswe.training.objective import Objective
from xswe.training.pairs import ParallelBags
from xswe.training.refine import RefineConfig

read_settings = eval_script("settings").read_settings
torch, encoder, teacher_script = (
    Later(name) for name in ("torch", "eval.experiments.encoder", "eval.experiments.make_teacher")
)
UNITS = 60


def shape():
    return encoder.EncoderShape(hidden=32, layers=2, heads=2, intermediate=32, max_tokens=64)


def static(seed=0, units=UNITS, width=12):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(units, width)) * rng.uniform(0.2, 2.0, (units, 1))).astype(np.float32)


def toy(n=40, seed=0, teacher=False):
    rng = np.random.default_rng(seed)
    source = [rng.integers(1, 30, rng.integers(1, 7)).tolist() for _ in range(n)]
    vectors = None
    if teacher:
        vectors = np.array([[one.count(k) for k in range(30)] for one in source], np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return ParallelBags(Bags.of(source), Bags.of([[i + 30 for i in one] for one in source]), vectors)


def test_filling_up_gives_all_vectors_mean_zero_and_one_length():
    filled = encoder.filled_up(static(), 16)
    np.testing.assert_array_equal(filled[:, :12], static())
    np.testing.assert_allclose(filled.mean(1), 0, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(filled, axis=1), np.linalg.norm(filled[0]), rtol=1e-5)
    with pytest.raises(ConfigError, match="at least 2"):
        encoder.filled_up(static(), 13)


def test_the_encoder_starts_as_the_static_model():
    matrix, bags = static(), toy().source
    trainer = encoder.EncoderTrainer(encoder.build(matrix, shape(), 0), encoder.EncoderConfig(bfloat16=False), Objective())
    with torch.no_grad():
        found = trainer.pooled(bags)[0].numpy()
    expected = pool(matrix, bags, normalise=True)
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-4)


@pytest.mark.slow
def test_micro_batches_do_not_change_the_step():
    tables = []
    for size in (40, 4, 7):
        config = encoder.EncoderConfig(
            bfloat16=False, batch_size=40, micro_batch=size, learning_rate=1e-3, token_rate=1e-2, max_steps=10
        )
        trainer = encoder.EncoderTrainer(encoder.build(static(), shape(), 0), config, Objective(distillation=1.0))
        for _ in range(2):
            trainer.step(toy(teacher=True), np.arange(40))
        tables.append(trainer.table.copy())
    for table in tables[1:]:
        np.testing.assert_allclose(tables[0], table, atol=2e-3)
    assert (
        np.abs(tables[0] - encoder.EncoderTrainer(encoder.build(static(), shape(), 0), config, Objective()).table).max()
        > 0.005
    )


def test_a_step_equals_automatic_differentiation_of_the_plain_loss():
    model = encoder.build(static(), shape(), 0)
    trainer = encoder.EncoderTrainer(
        model,
        encoder.EncoderConfig(bfloat16=False, batch_size=12, learning_rate=0.0, token_rate=0.0),
        Objective(margin=0.1),
    )
    bitext = ParallelBags(toy(12).source, toy(12).target)
    value = trainer.step(bitext, np.arange(12))
    gradients = [parameter.grad.clone() for parameter in trainer.body]
    for parameter in trainer.body:
        parameter.grad = None
    unit = trainer.pooled(bitext.batch(np.arange(12)))[0]
    same = [torch.tensor(x) for x in bitext.same(np.arange(12))]
    masked = ((same[0][:, None] == same[0]) | (same[1][:, None] == same[1])) & ~torch.eye(12, dtype=torch.bool)
    logits = ((unit[:12] @ unit[12:].T - 0.1 * torch.eye(12)) / 0.05).masked_fill(masked, -1e9)
    answers = torch.arange(12)
    loss = torch.nn.functional.cross_entropy(logits, answers) + torch.nn.functional.cross_entropy(logits.T, answers)
    loss.backward()
    assert value == pytest.approx(loss.item(), rel=1e-3)
    clipped = torch.nn.utils.clip_grad_norm_(trainer.body, 1.0)
    assert clipped > 0
    for ours, parameter in zip(gradients, trainer.body, strict=True):
        np.testing.assert_allclose(ours.numpy(), parameter.grad.numpy(), atol=2e-3)


def brief():
    """Settings of a short training."""
    return encoder.EncoderConfig(
        bfloat16=False, max_steps=12, batch_size=16, micro_batch=8, learning_rate=1e-3, token_rate=1e-2, eval_steps=4
    )


def test_training_lowers_the_loss():
    config = encoder.EncoderConfig(
        bfloat16=False, max_steps=60, batch_size=32, learning_rate=2e-3, token_rate=5e-2, eval_steps=20
    )
    history = encoder.train_encoder(encoder.build(static(), shape(), 0), [toy(200)], [toy(40, seed=1)], config, Objective())
    assert history[-1]["development_0"] < 0.5 * history[0]["development_0"]


class Killed(Exception):
    pass


def run(**options):
    model = encoder.build(static(), shape(), 0)
    history = encoder.train_encoder(model, [toy(60), toy(50, seed=3)], [toy(20, seed=1)], brief(), Objective(), **options)
    return history, b"".join(p.detach().numpy().tobytes() for p in model.parameters())


@pytest.fixture(scope="module")
def undisturbed():
    return run()


@pytest.mark.parametrize("killed_at", [1, 4, 9])
def test_a_killed_run_goes_on_to_the_same_bytes(undisturbed, tmp_path, monkeypatch, killed_at):
    step = encoder.EncoderTrainer.step

    def dies(self, *rest):
        if self.tokens.steps == killed_at:
            raise Killed
        return step(self, *rest)

    monkeypatch.setattr(encoder.EncoderTrainer, "step", dies)
    with pytest.raises(Killed):
        run(checkpoint=tmp_path / "c", checkpoint_seconds=0.0)
    monkeypatch.undo()
    assert run(checkpoint=tmp_path / "c") == undisturbed


def test_batches_hold_similar_lengths_and_each_pair_at_most_once():
    bitexts = [toy(100), toy(7, seed=2)]
    batches = encoder.length_batches(bitexts, 10, 64, seed=0, epoch=0)
    rows = np.concatenate([rows for which, rows in batches if which == 0])
    assert sorted(rows.tolist()) == list(range(100))
    assert [len(rows) for which, rows in batches if which == 1] == [7]
    spread = [np.ptp(bitexts[0].source.lengths[rows]) for which, rows in batches if which == 0]
    assert np.mean(spread) < 2
    again = encoder.length_batches(bitexts, 10, 64, seed=0, epoch=0)
    assert [rows.tolist() for _, rows in batches] == [rows.tolist() for _, rows in again]


@pytest.mark.slow
def test_the_saved_teacher_opens_in_transformers_and_sentence_transformers(tmp_path, tokenizer):
    units = SubwordUnits(tokenizer, "subwords", ("en", "de", "zh", "ja"))
    matrix = static(units=len(units.tokens))
    encoder.save(encoder.build(matrix, shape(), 0), units.tokenizer, tmp_path)
    teacher = load_teacher(TeacherConfig(model=str(tmp_path)))
    assert teacher.pooling == "mean"
    texts = ["A cat sleeps.", "猫が寝ている。", "Straße"]
    bags = units.bags(texts)
    expected = pool(matrix, bags, normalise=True)
    found = teacher.vectors(texts)
    # Pieces that are no units (a lone mark) have vectors here too, hence not exactly the static figures.
    assert np.abs(found @ found.T - expected @ expected.T).max() < 0.2
    sentence_transformers = pytest.importorskip("sentence_transformers")
    theirs = sentence_transformers.SentenceTransformer(str(tmp_path), device="cpu").encode(texts)
    np.testing.assert_allclose(theirs, found, atol=2e-3)


def test_a_teacher_in_the_making_has_no_contexts(tmp_path):
    c = teacher_script.MakeTeacherConfig(("en", "ja"), refine=RefineConfig(sample_from="contexts"))
    with pytest.raises(ConfigError, match=r"refine\.sample_from"):
        teacher_script.make_teacher(c, None, tmp_path)


# One of the processes that torchrun would start: the group is set up once, and the second time the encoder is there.
TWICE = """import os, runpy
from eval.experiments.make_teacher import group
with group():
    del os.environ["TORCHELASTIC_RUN_ID"]
    for _ in range(2):
        runpy.run_module("eval.experiments.make_teacher", run_name="__main__", alter_sys=True)
"""


@pytest.mark.slow
def test_a_teacher_is_made_of_a_small_bitext_by_one_process_or_two(tmp_path, capsys, warm_python):
    words = ["pair=en-ja", "teacher=none", f"bitext={{en-ja: [{tmp_path / 'pairs.tsv'}]}}", "threads=1", "dim=16"]
    words += [
        "units.size=2500",
        "refine.max_steps=5",
        "refine.batch_size=32",
        "encoder.max_steps=3",
        "encoder.eval_steps=1",
    ]
    words += ["encoder.batch_size=32", "encoder.micro_batch=16", "encoder.bfloat16=false", "objective.distillation=0.0"]
    words += ["static_objective.distillation=0.0", f"corpus.cache={tmp_path}"]
    words += ["shape.hidden=32", "shape.heads=2", "shape.intermediate=32"]
    rows = [line.split("\t") for line in SAMPLE.read_text(encoding="utf-8").splitlines()[:800]]
    (tmp_path / "pairs.tsv").write_text("".join(f"{row[0]}\t{row[3]}\n" for row in rows), encoding="utf-8")
    split = teacher_script.split_words([*words, f"output={tmp_path / 'one'}"], teacher_script.DEFAULTS)
    teacher_script.main(read_settings(split[0], teacher_script.DEFAULTS), split[1])
    assert "teacher: " in capsys.readouterr().out
    assert load_teacher(TeacherConfig(str(tmp_path / "one" / "teacher"), device="cpu")).dim == 32
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(place.getsockname()[1])}
    group |= os.environ | {"TORCHELASTIC_RUN_ID": "two", "WORLD_SIZE": "2"}
    command = [warm_python / "python", "-c", TWICE, *words, f"output={tmp_path / 'two'}"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    both = [
        subprocess.Popen(command, cwd=EVAL.parent, env=group | {"RANK": rank, "LOCAL_RANK": rank}, **pipes) for rank in "01"
    ]
    printed = [process.communicate(timeout=300) for process in both]
    assert [process.returncode for process in both] == [0, 0], printed
    assert "".join(out for out, _ in printed).count("teacher: ") == 2
    one, two = (read_json(tmp_path / name / "results.json")["report"]["encoder"]["history"] for name in ("one", "two"))
    assert [row["step"] for row in one] == [1, 2, 3]
    assert len({row["loss"] for row in one}) == 3
    for ours, theirs in zip(one, two, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-4)
