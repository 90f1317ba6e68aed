import json
import shutil
from pathlib import Path

import pytest

from engines.spec import Model
from jobs.errors import WorkloadError
from jobs.workload.chat_template import TEMPLATE_DAY, ChatTemplate
from jobs.workload.tokenizer import FolderTokenizer, tokenizer_for

CHAT = [("system", "Be brief."), ("user", "H\u00e4?")]


@pytest.fixture
def folder(model_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(model_folder, tmp_path / "model"))


def configure(folder: Path, **changes: object) -> None:
    file = folder / "tokenizer_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def test_a_rendered_chat_has_special_tokens_once_and_no_truncation(model_folder: Path) -> None:
    tokenizer = FolderTokenizer(model_folder)
    ids = tokenizer.render(CHAT)
    bos, end, user, assistant, system = range(256, 261)
    assert ids[0] == bos
    assert ids.count(bos) == 1
    assert ids[-1] == assistant
    assert [token for token in ids if token > 255] == [bos, system, end, user, end, assistant]
    assert len(ids) > 8  # the folder's own truncation is off
    assert len(tokenizer.encode("H\u00e4?")) == 4


def test_the_digest_follows_what_decides_the_tokens(folder: Path) -> None:
    before = FolderTokenizer(folder).digest
    assert FolderTokenizer(folder).digest == before
    configure(folder, bos_token="<|end|>")
    changed = FolderTokenizer(folder).digest
    assert changed != before
    (folder / "chat_template.jinja").write_text("{{ messages[0]['content'] }}")
    assert FolderTokenizer(folder).digest not in (before, changed)


def test_a_template_file_goes_before_the_configuration(folder: Path) -> None:
    (folder / "chat_template.jinja").write_text("{{ messages[0]['content'] }}")
    assert FolderTokenizer(folder).render(CHAT) == FolderTokenizer(folder).encode("Be brief.")


def test_the_default_of_several_templates(folder: Path) -> None:
    named = [
        {"name": "tool_use", "template": "no"},
        {"name": "default", "template": "{{ messages | length }}"},
    ]
    configure(folder, chat_template=named)
    assert FolderTokenizer(folder).render(CHAT) == FolderTokenizer(folder).encode("2")


def render(source: str, **special: str) -> str:
    return ChatTemplate(source, special, where="model folder x").render(CHAT)


def test_templates_are_rendered_as_the_library_does() -> None:
    # Lines that hold a statement only leave neither their indent nor their newline behind.
    source = "{% for m in messages %}\n    {% if true %}\n{{ m.role }};\n    {% endif %}\n{% endfor %}\n|"
    assert render(source) == "system;\nuser;\n|"
    assert render("{{ messages[1] | tojson }}") == '{"role": "user", "content": "H\u00e4?"}'
    assert render("{% for m in messages %}{% if loop.index > 1 %}{% break %}{% endif %}x{% endfor %}") == "x"
    assert render("{% generation %}{{ messages[0].content }}{% endgeneration %}!") == "Be brief.!"
    assert render("{{ strftime_now('%Y') }}") == TEMPLATE_DAY
    assert (
        render("{{ tools is none }}{{ add_generation_prompt }}{{ eos_token }}", eos_token="</s>")
        == "TrueTrue</s>"
    )


def test_a_refusing_template_is_an_error_with_the_roles() -> None:
    with pytest.raises(WorkloadError, match=r"model folder x: .* roles system user \(no system role\)"):
        render("{{ raise_exception('no system role') }}")
    with pytest.raises(WorkloadError, match="cannot be parsed"):
        render("{% for %}")


def test_templates_cannot_reach_out_of_their_sandbox() -> None:
    with pytest.raises(WorkloadError):
        render("{{ messages.append(1) }}")
    with pytest.raises(WorkloadError):
        render("{{ ''.__class__.__mro__ }}")


def test_missing_and_damaged_folders(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"nowhere does not exist; set model\.path"):
        FolderTokenizer(tmp_path / "nowhere")
    configure(folder, chat_template=None)
    with pytest.raises(WorkloadError, match="has no chat template"):
        FolderTokenizer(folder)
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(WorkloadError, match=r"tokenizer\.json is no tokenizer"):
        FolderTokenizer(folder)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(WorkloadError, match=r"has no tokenizer\.json"):
        FolderTokenizer(folder)


def test_who_gets_which_tokenizer(model_folder: Path) -> None:
    emulated = tokenizer_for(Model(name="llama-3.1-8b"), "emulated")
    assert emulated.render([("user", "hello there")])[:1] == emulated.render([("user", "hello there")])[:1]
    assert emulated.digest != FolderTokenizer(model_folder).digest
    real = tokenizer_for(Model(name="m", path=str(model_folder)), "gpu")
    assert real.digest == FolderTokenizer(model_folder).digest
    with pytest.raises(WorkloadError, match=r"set model\.path"):
        tokenizer_for(Model(name="m"), "gpu")
