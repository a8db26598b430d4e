from __future__ import annotations

import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from tests.conftest import Later
from xswe.errors import ConfigError, ModelError
from xswe.teacher.outline import load_outline
from xswe.teacher.protocol import TeacherConfig
from xswe.teacher.transformer import TransformerTeacher, fitting, load_teacher

torch = Later("torch")
TEXTS = ["A cat sleeps.", "Das Haus ist groß, sagte er, und sehr alt.", "猫が寝ている。", "我们今天去图书馆", "x"]


@pytest.fixture
def teacher(tiny_teacher):
    return load_teacher(TeacherConfig(model=str(tiny_teacher)))


def collect(teacher, texts):
    out = {}
    for made in teacher.states(texts, teacher.batches(texts)):
        for k, row in enumerate(made.rows):
            part = slice(made.offsets[k], made.offsets[k + 1])
            out[int(row)] = made.hidden[part], made.starts[part], made.ends[part]
    return out


def pretrained(folder):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder)


def plain_states(teacher, packed):
    """Return the states (t, d) of a tokenised text by the model alone, on the device where it is."""
    with torch.inference_mode():
        return teacher.model(**packed.to(teacher.model.device)).last_hidden_state[0].cpu().numpy()


def test_states_are_those_of_the_plain_model_without_padding_and_special_tokens(teacher, tiny_teacher):
    found = collect(teacher, TEXTS)
    assert sorted(found) == list(range(len(TEXTS)))
    for row, text in enumerate(TEXTS):
        packed = pretrained(tiny_teacher)(text, return_tensors="pt", return_offsets_mapping=True)
        places = packed.pop("offset_mapping")[0].numpy()
        plain = plain_states(teacher, packed)
        keep = (places[:, 1] > places[:, 0]) & (packed["input_ids"][0].numpy() != teacher.tokenizer.token_to_id("▁"))
        np.testing.assert_allclose(found[row][0], plain[keep], atol=1e-5)
        np.testing.assert_array_equal(found[row][1], places[keep, 0])
        np.testing.assert_array_equal(found[row][2], places[keep, 1])


def xlmr_like(scores):
    """A small encoder whose tokenizer puts the mark of a word's start before Han and Kana, too."""
    from transformers import PreTrainedTokenizerFast, XLMRobertaConfig, XLMRobertaModel

    pieces = Tokenizer(models.Unigram(list(scores.items()), unk_id=0))
    pieces.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    specials = {"pad_token": "<pad>", "cls_token": "<s>", "sep_token": "</s>", "unk_token": "<unk>"}
    wrapped = PreTrainedTokenizerFast(tokenizer_object=pieces, **specials)
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    torch.manual_seed(0)
    places = {"max_position_embeddings": 64, "pad_token_id": wrapped.pad_token_id}
    model = XLMRobertaModel(XLMRobertaConfig(vocab_size=len(wrapped), **sizes, **places)).eval()
    return TransformerTeacher(TeacherConfig(), model, wrapped, "cls")


def test_the_lone_mark_has_no_state_and_the_word_after_it_has_its_own():
    pieces = {"<unk>": -20.0, "彼女は": -3.0, "学校": -4.0, "▁a": -3.0}
    teacher = xlmr_like(pieces | {"▁": -2.0})
    encoding = teacher.tokenizer.encode("彼女は学校 a")
    assert encoding.tokens == ["▁", "彼女は", "学校", "▁a"]
    ids = torch.tensor([encoding.ids])
    with torch.inference_mode():
        plain = teacher.model(ids, attention_mask=torch.ones_like(ids)).last_hidden_state[0].numpy()
    hidden, starts, ends = collect(teacher, ["彼女は学校 a"])[0]
    np.testing.assert_allclose(hidden, plain[1:], atol=1e-6)
    assert list(zip(starts.tolist(), ends.tolist(), strict=True)) == [(0, 3), (3, 5), (5, 7)]
    # A tokenizer that knows no mark by itself has nothing to leave out: "▁" is unknown to it, and so a piece.
    unmarked = xlmr_like(pieces)
    assert unmarked.tokenizer.encode("彼女は a").tokens == ["▁", "彼女は", "▁a"]
    assert len(collect(unmarked, ["彼女は a"])[0][0]) == 3


def test_batches_hold_similar_lengths_and_every_text_once(teacher, sample):
    texts = sample["en"][:300]
    batches = teacher.batches(texts)
    rows = np.concatenate(batches)
    assert sorted(rows.tolist()) == list(range(300))
    sizes = [len(texts[r].encode()) for r in rows]
    assert sizes == sorted(sizes)
    assert len(batches) > 1


def test_batches_take_as_many_texts_as_there_is_room_for():
    config = TeacherConfig(batch_tokens=60)

    def sizes(*lengths):  # in bytes: of 27, a text is taken for 12 tokens
        return [len(one) for one in TransformerTeacher.batches(SimpleNamespace(config=config), ["x" * n for n in lengths])]

    assert sizes(*[27] * 12) == [5, 5, 2]
    assert sizes(*[27] * 4, 28) == [4, 1]  # the longest decides, and there are five of 12.3
    assert sizes(300, 300, 3) == [1, 1, 1]  # a text that is too long has a batch for itself
    assert sizes() == []


def test_an_outline_counts_what_the_encoder_reads(tiny_teacher):
    config = TeacherConfig(model=str(tiny_teacher), prompt="query: ")
    outline, tokenizer = load_outline(config), load_teacher(config).tokenizer
    read = [
        len(tokenizer.encode("query: ").ids) + len(tokenizer.encode(text, add_special_tokens=False).ids) for text in TEXTS
    ]
    assert outline.lengths(TEXTS).tolist() == read
    marks = [(name, outline.tokenizer.token_to_id(name)) for name in ("<s>", "<pad>")]
    pair = "<s> $A <pad> <pad> $B <pad>"  # more of them than round a text alone
    outline.tokenizer.post_processor = processors.TemplateProcessing("<s> $A <pad>", pair, marks)
    assert outline.lengths(TEXTS).tolist() == [length + 2 for length in read]


def test_the_prompt_is_seen_by_the_encoder_and_left_out_of_the_states(tiny_teacher):
    plain = collect(load_teacher(TeacherConfig(model=str(tiny_teacher))), TEXTS)
    prompted = collect(load_teacher(TeacherConfig(model=str(tiny_teacher), prompt="query: ")), TEXTS)
    for row, text in enumerate(TEXTS):
        starts, ends = prompted[row][1:]
        assert starts.min() >= 0
        assert ends.max() <= len(text)
        assert ends.max() == plain[row][2].max()
        assert not np.allclose(prompted[row][0][-1], plain[row][0][-1])


def test_long_sentences_are_cut_and_only_they(tiny_teacher):
    found = collect(load_teacher(TeacherConfig(model=str(tiny_teacher), max_tokens=10)), ["word " * 400, "a cat"])
    assert 1 <= len(found[0][0]) <= 10
    assert len(found[1][0]) >= 2


def test_how_many_texts_were_cut_is_told_once(tiny_teacher, caplog):
    teacher = load_teacher(TeacherConfig(model=str(tiny_teacher), max_tokens=10, batch_tokens=16))
    texts = ["word " * 400, "a cat", "猫 " * 400]
    assert len(teacher.batches(texts)) > 1
    for run, fate in ((collect, "has no state"), (TransformerTeacher.vectors, "is not in their vectors")):
        caplog.clear()
        run(teacher, texts)
        (told,) = [record.getMessage() for record in caplog.records]
        assert told.endswith(f"2 of 3 texts are longer than 10 tokens; the rest of them {fate}")
        caplog.clear()
        run(teacher, texts)  # as the next shard of the same work
        assert not caplog.records
        caplog.clear()
        run(teacher, texts[1:2])
        assert not caplog.records


def test_positions_that_start_after_the_padding_are_not_run_out_of(tiny_teacher):
    from transformers import XLMRobertaConfig, XLMRobertaModel

    tokenizer = pretrained(tiny_teacher)
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    places = {"max_position_embeddings": 20, "pad_token_id": 1}
    model = XLMRobertaModel(XLMRobertaConfig(vocab_size=len(tokenizer), **sizes, **places)).eval()
    teacher = TransformerTeacher(TeacherConfig(), model, tokenizer, "cls")
    assert len(collect(teacher, ["word " * 40])[0][0]) == 20 - 2
    assert np.isfinite(teacher.vectors(["word " * 40])).all()


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_vectors_are_pooled_and_of_norm_one(tiny_teacher, pooling):
    teacher = load_teacher(TeacherConfig(model=str(tiny_teacher), pooling=pooling))
    found = teacher.vectors(TEXTS)
    for row, text in enumerate(TEXTS):
        hidden = plain_states(teacher, pretrained(tiny_teacher)(text, return_tensors="pt"))
        pooled = hidden[0] if pooling == "cls" else hidden.mean(0)
        np.testing.assert_allclose(found[row], pooled / np.linalg.norm(pooled), atol=1e-5)


def test_pooling_is_read_from_the_folder(tiny_teacher, tmp_path):
    import shutil

    folder = shutil.copytree(tiny_teacher, tmp_path / "t")
    assert load_teacher(TeacherConfig(model=str(folder))).pooling == "cls"
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_mean_tokens": True}))
    assert load_teacher(TeacherConfig(model=str(folder))).pooling == "mean"
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode": "lasttoken"}))
    with pytest.raises(ModelError, match="lasttoken"):
        load_teacher(TeacherConfig(model=str(folder)))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("which", ["mini", "tiny"])
def test_a_card_gives_what_the_processor_gives(tiny_teacher, sample, which, dtype):
    if not torch.cuda.is_available():
        pytest.skip("there is no graphics card")
    model, texts = "mini" if which == "mini" else str(tiny_teacher), [*sample["en"][:60], *sample["ja"][:60]]
    here, there = (load_teacher(TeacherConfig(model, device=device, dtype=dtype)) for device in ("cpu", "cuda"))
    assert there.vectors(texts) == pytest.approx(here.vectors(texts), abs=1e-5 if dtype == "float32" else 0.02)
    mine, theirs = (np.concatenate([states for states, _, _ in collect(one, texts).values()]) for one in (here, there))
    cosines = (mine * theirs).sum(1) / np.linalg.norm(mine, axis=1) / np.linalg.norm(theirs, axis=1)
    assert cosines.min() > (0.99999 if dtype == "float32" else 0.97)


def test_a_card_that_is_not_there_is_named(tiny_teacher, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match=r"^teacher\.device=cuda: PyTorch sees no graphics card; use cpu, or auto$"):
        load_teacher(TeacherConfig(str(tiny_teacher), device="cuda"))


def test_bfloat16_is_near(tiny_teacher):
    exact = load_teacher(TeacherConfig(model=str(tiny_teacher))).vectors(TEXTS)
    half = load_teacher(TeacherConfig(model=str(tiny_teacher), dtype="bfloat16")).vectors(TEXTS)
    assert (exact * half).sum(1).min() > 0.999


@pytest.mark.parametrize(("own", "told"), [({"avx512_bf16": False}, 1), ({"amx_bf16": True}, 0)])
def test_bfloat16_on_a_processor_without_it_is_told(tiny_teacher, monkeypatch, caplog, own, told):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"architecture": "x86_64", **own}, raising=False)
    load_teacher(TeacherConfig(str(tiny_teacher), dtype="bfloat16", device="cpu"))
    load_teacher(TeacherConfig(str(tiny_teacher), device="cpu"))
    assert caplog.text.count("no instructions for it") == told


def test_remote_code_is_refused_with_the_way_round(tmp_path):
    folder = tmp_path / "Alibaba-NLP" / "gte-multilingual-base"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(
        json.dumps({"model_type": "new", "auto_map": {"AutoConfig": "configuration.C", "AutoModel": "modeling.M"}})
    )
    (folder / "configuration.py").write_text("raise SystemExit('remote code was run')")
    with pytest.raises(ModelError, match="alibaba-nlp-community/gte-multilingual-base"):
        load_teacher(TeacherConfig(model=str(folder)))


def test_a_missing_teacher_is_one_clear_line(tmp_path):
    with pytest.raises(ModelError, match=r"teacher=mini, or teacher\.model=FOLDER") as caught:
        load_teacher(TeacherConfig(model=str(tmp_path / "none")))
    assert "\n" not in str(caught.value)


def test_settings_that_cannot_work():
    with pytest.raises(ConfigError, match=r"teacher\.pooling"):
        TeacherConfig(pooling="max")


def test_another_checkpoint_is_another_teacher(tiny_teacher):
    one, two = (load_teacher(TeacherConfig(model=str(tiny_teacher))) for _ in range(2))
    assert one.checksum() == two.checksum()
    assert one.identity == load_teacher(TeacherConfig(model=str(tiny_teacher), threads=2, batch_tokens=64)).identity
    with torch.no_grad():
        two.model.embeddings.word_embeddings.weight[5, 5] += 0.1
    assert one.checksum() != two.checksum()
    assert one.identity != two.identity  # which was not asked for before the change
    assert one.identity != load_teacher(TeacherConfig(model=str(tiny_teacher), prompt="query: ")).identity


def test_lengths_are_those_of_the_states_whatever_was_encoded_before(tiny_teacher, sample):
    teacher = load_teacher(TeacherConfig(model=str(tiny_teacher), max_tokens=8, prompt="query: "))
    texts = [*sample["ja"][:20], *sample["en"][:20], "", "word " * 40]
    collect(teacher, texts)  # which has the tokenizer that encodes cut and fill
    found = teacher.lengths(texts)
    whole = [len(pretrained(tiny_teacher)(text, add_special_tokens=False)["input_ids"]) for text in texts]
    assert found.dtype == np.int64
    assert found.tolist() == whole


@pytest.mark.parametrize(
    ("own", "expected"), [({"avx512_bf16": True}, "bfloat16"), ({"amx_bf16": False}, "float32"), ({}, "float32")]
)
def test_the_type_follows_the_processor_where_it_may(tiny_teacher, monkeypatch, own, expected):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"architecture": "x86_64", **own}, raising=False)
    found = load_teacher(TeacherConfig(str(tiny_teacher), dtype="auto", device="cpu"))
    assert found.config.dtype == expected
    assert next(found.model.parameters()).dtype is getattr(torch, expected)
    told = load_teacher(TeacherConfig(str(tiny_teacher), dtype=expected, device="cpu"))
    assert found.identity == told.identity  # whoever computes in the same type is the same teacher


def test_batches_suit_the_memory_that_is_found(tiny_teacher, monkeypatch):
    config = load_teacher(TeacherConfig(str(tiny_teacher))).model.config
    sizes = [
        fitting(config, free, 4, card) for free, card in ((0, True), (1e8, True), (1e9, True), (1e15, True), (1e15, False))
    ]
    assert sizes == [*sorted(sizes[:4]), 16_384]
    assert (sizes[0], sizes[3]) == (1024, 131_072)
    monkeypatch.setattr("xswe.teacher.transformer.available_memory", lambda: 1e8)
    teacher = load_teacher(TeacherConfig(str(tiny_teacher), batch_tokens=0, device="cpu"))
    assert teacher.config.batch_tokens == fitting(config, 1e8, 4, False)


def test_a_batch_that_a_card_has_no_room_for_is_halved(teacher, caplog):
    whole = teacher.vectors(TEXTS)
    run, seen = teacher.model.forward, []

    def narrow(*args, **tensors):
        seen.append(len(tensors["input_ids"]))
        if seen[-1] > 2:
            raise torch.OutOfMemoryError
        return run(*args, **tensors)

    teacher.model.forward = narrow
    np.testing.assert_allclose(teacher.vectors(TEXTS), whole, atol=1e-6)
    assert seen[0] == len(TEXTS)
    assert max(seen[-2:]) <= 2
    assert "set teacher.batch_tokens lower" in caplog.text
    teacher.model.forward = lambda **_: (_ for _ in ()).throw(torch.OutOfMemoryError)
    with pytest.raises(torch.OutOfMemoryError):
        teacher.vectors(["a"])


def test_a_layer_after_the_pooling_is_applied(tiny_teacher, tmp_path):
    from safetensors.torch import save_file

    folder = shutil.copytree(tiny_teacher, tmp_path / "labse")
    modules = [("", "Transformer"), ("2_Dense", "Dense")]
    modules = [{"path": path, "type": f"sentence_transformers.models.{kind}"} for path, kind in modules]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "2_Dense").mkdir()
    (folder / "2_Dense" / "config.json").write_text('{"activation_function": "torch.nn.modules.activation.Tanh"}')
    weight, bias = torch.randn(32, 32, generator=torch.Generator().manual_seed(1)), torch.arange(32) / 32
    save_file({"linear.weight": weight, "linear.bias": bias}, folder / "2_Dense" / "model.safetensors")
    teacher = load_teacher(TeacherConfig(str(folder), device="cpu", pooling="cls"))
    for text, row in zip(TEXTS, teacher.vectors(TEXTS), strict=True):
        with torch.inference_mode():
            pooled = teacher.model(**pretrained(folder)(text, return_tensors="pt")).last_hidden_state[0, 0]
        expected = torch.tanh(weight @ pooled + bias).numpy()
        np.testing.assert_allclose(row, expected / np.linalg.norm(expected), atol=1e-5)
    (folder / "2_Dense" / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="2_Dense after its pooling"):
        load_teacher(TeacherConfig(str(folder), device="cpu")).vectors(TEXTS)


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["Tanh", "Identity"])
def test_a_layer_after_the_pooling_is_applied_as_sentence_transformers_does(tiny_teacher, tmp_path, activation):
    st = pytest.importorskip("sentence_transformers")
    from sentence_transformers import models

    torch.manual_seed(1)
    pooling = models.Pooling(32, "cls")
    function = torch.nn.Tanh() if activation == "Tanh" else torch.nn.Identity()
    dense = models.Dense(32, 32, activation_function=function)
    layers = [models.Transformer(str(tiny_teacher)), pooling, dense, models.Normalize()]
    theirs = st.SentenceTransformer(modules=layers, device="cpu")
    theirs.save(str(tmp_path / "labse"))
    teacher = load_teacher(TeacherConfig(str(tmp_path / "labse"), device="cpu"))
    np.testing.assert_allclose(teacher.vectors(TEXTS), theirs.encode(TEXTS), atol=1e-5)
