"""Pages: templates, style and scripts in one HTML file that loads nothing.

The file opens from a disk or a mail attachment. Its content-security policy allows only the style and the scripts whose
digests it lists, and no requests. The templates escape texts; data are in a JSON block that no text can close. Colours
follow the reader's light or dark theme.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xswe.errors import ConfigError, needs
from xswe.io.files import whole_file
from xswe.text.scripts import has_cjk, has_kana
from xswe.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

_ROOM = Path(__file__).parent
_MAX_CHARACTERS = 1000  # of a text on any page
# Characters that could end a script block, or are line breaks in scripts.
_ESCAPED = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})


def asset(name: str) -> str:
    """Return a style or script of the pages, e.g. ``asset("style.css")``."""
    return (_ROOM / "static" / name).read_text(encoding="utf-8")


def as_json(value: Any) -> str:
    r"""Return JSON that is safe in a script block of a page: without ``<``, ``>``, ``&``, and without NaN or infinity.

    Example:
        >>> as_json({"text": "</script>"})
        '{"text":"\\u003c/script\\u003e"}'
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).translate(_ESCAPED)


def language_of(text: str, languages: Sequence[str] = ()) -> str:
    """Guess the language of a text from its script and ``languages``, for ``lang=``, which decides Han glyphs.

    Kana are Japanese on any side, as in a copy; where there is no text, the page says so in English.
    """
    if not text:
        return "en"
    if has_kana(text):
        return "ja"
    if len(languages) == 1:
        return languages[0]
    if has_cjk(text):
        return "ja" if "ja" in languages and "zh" not in languages else "zh"
    return next((code for code in languages if code not in ("zh", "ja")), "en")


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Return the environment of the templates: it cuts and escapes texts, and treats a missing name as an error."""
    with needs("Jinja2", "report", "writing a report"):
        import jinja2
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_ROOM / "templates"),
        autoescape=True,
        finalize=lambda value: shortened(value, _MAX_CHARACTERS) if type(value) is str else value,  # code is Markup
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(number=number, percent=percent, figure=figure, setting=setting)
    made.globals.update(language_of=language_of, sections_of=sections_of)
    return made


def sections_of(main: str) -> list[tuple[str, str]]:
    """Return the anchors and titles of the sections in the body of a page."""
    found = re.findall(r'<section id="([\w-]+)">\s*<h2>(.*?)</h2>', main)
    return [(anchor, html.unescape(name)) for anchor, name in found]


def setting(value: Any) -> str:
    """Return the value of a setting as the command line takes it."""
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(setting, value))}]"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def number(value: float | None) -> str:
    """Return a count with thousands separators, a dash for None."""
    return "–" if value is None else f"{value:,.0f}"


def figure(value: float | None, digits: int = 4) -> str:
    """Return a score with ``digits`` decimals, a dash for None or NaN."""
    return "–" if value is None or value != value else f"{round(value, digits) + 0.0:.{digits}f}"


def percent(share: float | None, digits: int = 1) -> str:
    """Return a fraction in percent, a dash for None or NaN; with one decimal near 0 and 100 %."""
    digits = 1 if share is not None and not 0.005 <= share <= 0.995 else digits
    return "–" if share is None or share != share else f"{100 * share:.{digits}f} %"


def shortened(text: str, most: int) -> str:
    """Return the first ``most`` characters of a text, with an ellipsis if it is longer."""
    return text[:most] + ("…" if len(text) > most else "")


def policy(styles: Sequence[str], scripts: Sequence[str]) -> str:
    """Return a content-security policy that allows these styles and scripts, images within the page, and nothing else."""

    def digests(sources: Sequence[str]) -> str:
        found = (base64.b64encode(hashlib.sha256(source.encode()).digest()).decode() for source in sources)
        return " ".join(f"'sha256-{digest}'" for digest in found) or "'none'"

    return (
        f"default-src 'none'; style-src {digests(styles)}; script-src {digests(scripts)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def render(template: str, *, scripts: Sequence[str] = (), data: Any = None, **context: Any) -> str:
    """Render a template of ``templates/`` that extends ``base.html`` with the values in ``context``.

    ``settings`` among them are shown at the end. ``scripts`` are files of ``static/`` that it needs in addition to
    ``page.js``, ``data`` their JSON data.
    DependencyError: Jinja2 is not installed.
    """
    made = environment()  # raises if Jinja2 is missing
    from markupsafe import Markup

    # A line end at either end would be part of the digested text.
    style, code = asset("style.css").strip(), [asset(name).strip() for name in ("page.js", *scripts)]
    page: str = made.get_template(template).render(
        {"about": "", "settings": None, **context},
        policy=policy([style], code),
        style=Markup(style),
        scripts=[Markup(source) for source in code],
        data=Markup(as_json(data)),
        version=__version__,
    )
    return page.encode("utf-8", "replace").decode()  # JSON may contain lone surrogates, which UTF-8 cannot encode


def check_page(path: str | Path) -> None:
    """Check, before any work, that a page can be written to ``path``.

    ConfigError: the name does not end in ``.html`` or ``.htm``. DependencyError: Jinja2 is not installed.
    """
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise ConfigError(f"{path}: a report is a page; call it report.html")
    environment()


def write_page(path: str | Path, page: str) -> None:
    """Write a page atomically."""
    check_page(path)
    with whole_file(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
